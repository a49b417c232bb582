// Optimize and tune: starts a run, shows its progress with a way to cancel it, and ends with a result that can be reviewed.
// A run belongs to the daemon: a window that is reloaded takes up the runs that it started.
import * as vscode from 'vscode';
import { formatSpeedup } from '../../common/format';
import { describeProgress, isActive, type RunState } from '../../common/runs';
import { parseRunResult } from '../../common/results';
import { sha256 } from '../../node/sha256';
import type { App } from '../app';
import { saveFirst } from '../saving';
import { chipsFor, requestContext, setting } from '../settings';
import { runOf, type RunArgument } from '../run_argument';

const kMine = 'kernelwright.runsOfThisWorkspace';

export function activate(app: App): void {
  const followed = new Set<string>();
  const mine = () => app.context.workspaceState.get<string[]>(kMine, []);

  const follow = (id: string): void => {
    if (followed.has(id)) return;
    followed.add(id);
    void showProgress(app, id)
      .catch((error: unknown) => app.showError(error))
      .finally(() => {
        followed.delete(id);
        void app.context.workspaceState.update(
          kMine,
          mine().filter((known) => known !== id),
        );
      });
  };

  // A second click while the first is under way is the same wish.
  const starting = new Set<string>();
  const start = async (kind: 'optimize' | 'tune', uri?: vscode.Uri, name?: string): Promise<string | undefined> => {
    const { document, kernel } = await app.target(uri, name);
    const key = `${kind} ${document.uri.fsPath}::${kernel.name}`;
    if (starting.has(key)) return undefined;
    starting.add(key);
    try {
      return await startNow(kind, document, kernel.name);
    } finally {
      starting.delete(key);
    }
  };
  const startNow = async (kind: string, document: vscode.TextDocument, name: string): Promise<string | undefined> => {
    const same = (run: RunState) => run.kind === kind && run.file === document.uri.fsPath && run.function === name;
    if (app.runs.table.all().some((run) => isActive(run) && same(run))) {
      const another = 'Start Another';
      const choice = await vscode.window.showInformationMessage(`${kind} ${name} is running already.`, another);
      if (choice !== another) return undefined;
    }
    await saveFirst(document, kind === 'tune' ? 'retune' : 'optimize');
    const request = {
      ...(await requestContext(document.uri)),
      kind,
      file: document.uri.fsPath,
      function: name,
      chips: chipsFor(document.uri),
      client: 'vscode',
      budgetSeconds: setting<number>('optimize.budgetSeconds', document.uri),
      maxCompiles: setting<number>('optimize.maxCompiles', document.uri),
    };
    const run = await app.daemon.call((client) => client.startRun(request));
    app.log.info(`run ${run}: ${kind} ${request.file}::${name}`);
    await app.context.workspaceState.update(kMine, [...mine(), run].slice(-20));
    follow(run);
    return run;
  };

  app.command('kernelwright.optimize', (uri?: vscode.Uri, name?: string) => start('optimize', uri, name));
  app.command('kernelwright.tune', (uri?: vscode.Uri, name?: string) => start('tune', uri, name));
  app.command('kernelwright.run.cancel', async (argument?: RunArgument) => {
    const run = await runOf(app, argument, 'Cancel which run?', isActive);
    await app.daemon.call((client) => client.cancelRun(run.id));
  });
  app.command('kernelwright.run.resume', async (argument?: RunArgument) => {
    const can = (run: RunState) => run.status === 'interrupted' || run.status === 'cancelled';
    const run = await runOf(app, argument, 'Resume which run?', can);
    const id = await app.daemon.call((client) => client.resumeRun(run.id));
    run.status = 'running';
    await app.context.workspaceState.update(kMine, [...mine(), id].slice(-20));
    follow(id);
  });

  // After a reload the daemon is asked only when this window has something to take up.
  app.daemon.onDidConnect(() => {
    void app.runs.whenAttached().then(() => {
      for (const id of mine()) {
        const run = app.runs.table.get(id);
        if (run) follow(id);
      }
    });
  });
  if (mine().length > 0 && vscode.workspace.isTrusted) app.daemon.client().catch(() => undefined);
}

async function showProgress(app: App, id: string): Promise<void> {
  const options = { location: vscode.ProgressLocation.Notification, title: 'Kernelwright', cancellable: true };
  const run = await vscode.window.withProgress(options, async (progress, token) => {
    token.onCancellationRequested(() => {
      progress.report({ message: 'cancelling, what was found is kept' });
      app.daemon.call((client) => client.cancelRun(id)).catch((error: unknown) => app.showError(error));
    });
    let shown = 0;
    const report = () => {
      const state = app.runs.table.get(id);
      if (!state) return;
      const { progress: now } = state;
      const done = now && now.total > 0 ? Math.min(100, (now.finished / now.total) * 100) : 0;
      const best = state.speedup > 1 ? `, best so far ${formatSpeedup(state.speedup)}` : '';
      const message = `${state.kind} ${state.function}: ${now ? describeProgress(now) : 'starting'}${best}`;
      progress.report({ message, increment: Math.max(0, done - shown) });
      shown = Math.max(shown, done);
    };
    const subscription = app.runs.onDidChange(report);
    report();
    try {
      return await app.runs.whenEnded(id, new AbortController().signal);
    } finally {
      subscription.dispose();
    }
  });
  await tellResult(app, run);
}

async function tellResult(app: App, run: RunState): Promise<void> {
  const what = `${run.kind} ${run.function}`;
  if (run.status === 'interrupted') {
    const message = `${what} was interrupted when its daemon ended. What was found is kept.`;
    const choice = await vscode.window.showWarningMessage(message, 'Resume');
    if (choice === 'Resume') await vscode.commands.executeCommand('kernelwright.run.resume', run.id);
    return;
  }
  await keepFigures(app, run).catch((error: unknown) => app.log.warn(String(error)));
  const message = `${what}: ${run.message || run.status}`;
  if (run.status === 'improved' || (run.status === 'cancelled' && run.best.size > 0)) {
    if (setting<boolean>('review.open')) await vscode.commands.executeCommand('kernelwright.review', run.id);
    const choice = await vscode.window.showInformationMessage(message, 'Review');
    if (choice === 'Review') await vscode.commands.executeCommand('kernelwright.review', run.id);
  } else if (run.status === 'failed') {
    const choice = await vscode.window.showErrorMessage(message, 'Show Log');
    if (choice === 'Show Log') app.log.show();
  } else {
    void vscode.window.showInformationMessage(message);
  }
}

// The original's figures are those of the text on disk now, unless it was edited meanwhile.
async function keepFigures(app: App, run: RunState): Promise<void> {
  const record = await app.daemon.call((client) => client.getRun(run.id));
  const result = parseRunResult(record.resultJson);
  const first = result?.results[0];
  if (!result || !first || first.originalMs === undefined) return;
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(result.file));
  const versions = Object.entries(first.evidence?.versions ?? {}).map(([name, version]) => `${name} ${version}`);
  const kept = first.status === 'no_improvement';
  app.setFigures(result.file, result.function, {
    evidenceClass: first.evidence?.evidenceClass ?? 'estimated',
    chip: first.chip,
    ms: first.originalMs,
    bound: kept ? first.bound : '',
    rooflineFraction: kept ? first.rooflineFraction : undefined,
    textHash: document.isDirty ? '' : sha256(document.getText()),
    versions: versions.join(', '),
  });
}
