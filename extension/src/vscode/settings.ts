// The settings, read where they are needed, with their scope; package.json holds names and defaults.
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Metric } from '../common/overlay';

export function setting<T>(name: string, scope?: vscode.Uri): T {
  return vscode.workspace.getConfiguration('kernelwright', scope).get<T>(name) as T;
}

export const chipsFor = (uri: vscode.Uri) => {
  const chips = setting<string[]>('chips', uri);
  return chips.length > 0 ? chips : ['v5e'];
};
export const metricFor = (uri: vscode.Uri) => setting<Metric>('overlay.metric', uri);

/** What each request says about where it comes from. Only variables that choose an interpreter; never keys. */
export interface RequestContext {
  readonly python: string;
  readonly sandbox: string;
  readonly timeoutSeconds: number;
  readonly workingDirectory: string;
  readonly environment: { [name: string]: string };
}

export async function requestContext(uri: vscode.Uri): Promise<RequestContext> {
  const environment: { [name: string]: string } = {};
  for (const name of ['PATH', 'HOME', 'LANG', 'PYTHONPATH', 'KERNELWRIGHT_HOME', 'XDG_DATA_HOME']) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  const selected = await selectedEnvironment(uri);
  if (selected !== undefined) environment.VIRTUAL_ENV = selected;
  const folder = vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? path.dirname(uri.fsPath);
  return {
    python: setting<string>('python.interpreter', uri).replace('${workspaceFolder}', folder),
    sandbox: setting<string>('sandbox', uri),
    timeoutSeconds: setting<number>('timeoutSeconds', uri),
    workingDirectory: folder,
    environment,
  };
}

interface PythonApi {
  environments?: { getActiveEnvironmentPath(uri?: vscode.Uri): { path: string; id: string } };
}

// The environment chosen in the Python extension, when it is one (a bare system interpreter is no choice for kernels).
async function selectedEnvironment(uri: vscode.Uri): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>('ms-python.python');
  if (!extension) return undefined;
  try {
    const api = extension.isActive ? extension.exports : await extension.activate();
    const chosen = api.environments?.getActiveEnvironmentPath(uri).path ?? '';
    const folder = /\/bin\/python[\d.]*$/.test(chosen) ? path.dirname(path.dirname(chosen)) : chosen;
    await vscode.workspace.fs.stat(vscode.Uri.file(path.join(folder, 'pyvenv.cfg')));
    return folder;
  } catch {
    return undefined;
  }
}
