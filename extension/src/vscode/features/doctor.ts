// Doctor: what the environment has and lacks, as a list with a remedy for each.
import * as vscode from 'vscode';
import type { DoctorItem } from '../../generated/kernelwright/v1/session';
import type { App } from '../app';
import { requestContext } from '../settings';

export function activate(app: App): void {
  app.command('kernelwright.doctor', () => doctor(app));
}

export async function askDoctor(app: App, signal?: AbortSignal): Promise<DoctorItem[]> {
  const document = vscode.window.activeTextEditor?.document;
  const uri = document?.uri.scheme === 'file' ? document.uri : vscode.workspace.workspaceFolders?.[0]?.uri;
  const context = await requestContext(uri ?? vscode.Uri.file(process.env.HOME ?? '/'));
  const { python, workingDirectory, environment, sandbox } = context;
  const file = document?.languageId === 'python' && document.uri.scheme === 'file' ? document.uri.fsPath : '';
  const request = { file, python, workingDirectory, environment, sandbox };
  return (await app.daemon.call((client) => client.doctor(request, signal))).items;
}

async function doctor(app: App): Promise<void> {
  const items = await vscode.window.withProgress(
    {
      location: vscode.ProgressLocation.Notification,
      title: 'Kernelwright looks at the environment',
      cancellable: true,
    },
    (_progress, token) => {
      const abort = new AbortController();
      token.onCancellationRequested(() => abort.abort());
      return askDoctor(app, abort.signal);
    },
  );
  for (const item of items) {
    const line = `doctor: ${item.name}: ${item.status}, ${item.value} ${item.remedy}`;
    if (item.status === 'ok') app.log.info(line);
    else app.log.warn(line);
  }
  const icons: Record<string, string> = { ok: '$(pass)', warning: '$(warning)', error: '$(error)' };
  const rank = (item: DoctorItem) => ['error', 'warning', 'ok'].indexOf(item.status);
  const rows = [...items]
    .sort((a, b) => rank(a) - rank(b))
    .map((item) => ({
      label: `${icons[item.status] ?? ''} ${item.name}: ${item.status}`,
      description: item.value,
      detail: item.remedy === '' ? undefined : item.remedy,
      item,
    }));
  const bad = items.filter((item) => item.status !== 'ok').length;
  const title = bad === 0 ? 'Doctor: everything is there' : `Doctor: ${bad} of ${items.length} need attention`;
  const chosen = await vscode.window.showQuickPick(rows, {
    title,
    placeHolder: 'Enter copies a line',
    matchOnDescription: true,
  });
  if (chosen) {
    const { name, status, value, remedy } = chosen.item;
    await vscode.env.clipboard.writeText(`${name}: ${status}, ${value} ${remedy}`.trim());
  }
}
