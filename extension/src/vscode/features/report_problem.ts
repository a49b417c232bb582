// "Report a problem": versions, health and the redacted end of the logs in a new text. Nothing is sent.
import * as os from 'node:os';
import * as vscode from 'vscode';
import { makeReport } from '../../common/report';
import { daemonLogFile, tail } from '../../node/log_tail';
import type { App } from '../app';
import { askDoctor } from './doctor';

export function activate(app: App): void {
  app.command('kernelwright.reportProblem', async () => {
    const options = { location: vscode.ProgressLocation.Notification, title: 'Collecting versions and logs' };
    const content = await vscode.window.withProgress(options, () => collect(app));
    const document = await vscode.workspace.openTextDocument({ content, language: 'markdown' });
    await vscode.window.showTextDocument(document);
  });
}

async function collect(app: App): Promise<string> {
  const words = (error: unknown) => (error instanceof Error ? error.message : String(error));
  const identity = await app.daemon.buildIdentity().then(
    ({ version, build, commit }) => `${version}, build ${build}, ${commit}`,
    (error: unknown) => words(error),
  );
  const status = await app.daemon.connectedClient
    ?.status()
    .then(
      (s) =>
        `${s.activeRuns} runs, ${s.queuedJobs} queued, ${s.residentBytes} bytes of memory, up ${s.uptimeMs} ms; ${s.workers.join('; ')}`,
      words,
    );
  const items = vscode.workspace.isTrusted ? await askDoctor(app).catch(() => []) : [];
  const manifest = app.context.extension.packageJSON as { version: string };
  return makeReport({
    versions: {
      extension: manifest.version,
      binary: identity,
      'VS Code': vscode.version,
      remote: vscode.env.remoteName ?? 'none',
      system: `${os.type()} ${os.release()} ${os.arch()}`,
      node: process.version,
    },
    doctor: items,
    status: status ?? 'no daemon is connected',
    log: await tail(daemonLogFile(), 8000),
    home: os.homedir(),
    user: os.userInfo().username,
  });
}
