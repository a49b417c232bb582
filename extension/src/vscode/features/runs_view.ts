// The view Runs: runs, newest first with pinned ones on top, and below each its candidates. Live: it follows the table.
import * as path from 'node:path';
import * as vscode from 'vscode';
import {
  describeCandidate,
  describeRun,
  isActive,
  runContext,
  type CandidateState,
  type RunState,
} from '../../common/runs';
import type { App } from '../app';
import { runOf, type RunArgument } from '../run_argument';

const kPinned = 'kernelwright.pinnedRuns';

class RunItem extends vscode.TreeItem {
  readonly runId: string;
  constructor(run: RunState, pinned: boolean) {
    super(`${run.kind} ${run.function || '…'}`, vscode.TreeItemCollapsibleState.Collapsed);
    this.runId = run.id;
    this.id = run.id;
    this.description = `${describeRun(run)} · ${path.basename(run.file)}`;
    this.contextValue = runContext(run);
    this.iconPath = iconOf(run, pinned);
    const details = [
      `run ${run.id}`,
      run.file,
      run.chips.join(', '),
      new Date(run.createdMs).toLocaleString(),
      run.message,
    ];
    this.tooltip = details.filter((line) => line !== '').join('\n');
    this.accessibilityInformation = {
      label: `${this.label as string}, ${this.description}${pinned ? ', pinned' : ''}`,
    };
  }
}

class CandidateItem extends vscode.TreeItem {
  constructor(run: RunState, candidate: CandidateState) {
    const { row, chip } = candidate;
    super(`${row.id} ${row.what}`, vscode.TreeItemCollapsibleState.None);
    const best = run.best.get(chip) === row.id;
    this.id = `${run.id}/${chip}/${row.id}`;
    this.description = `${run.chips.length > 1 ? `${chip} · ` : ''}${describeCandidate(candidate)}${best ? ' · best' : ''}`;
    this.tooltip = `${row.what}\n${describeCandidate(candidate)}${row.compileCached ? '\ncompiled before' : ''}`;
    this.contextValue = 'candidate';
    const failed = row.status === 'failed';
    const name = best ? 'star-full' : failed ? 'circle-slash' : row.status === 'passed' ? 'pass' : 'circle-outline';
    this.iconPath = new vscode.ThemeIcon(name);
    this.accessibilityInformation = { label: `candidate ${row.id}, ${row.what}, ${this.description}` };
    if (best) this.command = { command: 'kernelwright.review', title: 'Review', arguments: [run.id] };
  }
}

function iconOf(run: RunState, pinned: boolean): vscode.ThemeIcon {
  if (pinned) return new vscode.ThemeIcon('pinned');
  if (isActive(run)) return new vscode.ThemeIcon('sync~spin');
  const names: Record<string, string> = {
    improved: 'rocket',
    no_improvement: 'dash',
    failed: 'error',
    cancelled: 'circle-slash',
    interrupted: 'debug-pause',
  };
  return new vscode.ThemeIcon(names[run.status] ?? 'circle-outline');
}

export function activate(app: App): void {
  const pinned = () => new Set(app.context.workspaceState.get<string[]>(kPinned, []));
  app.runs.pinned = pinned();
  const changed = new vscode.EventEmitter<void>();
  const provider: vscode.TreeDataProvider<RunItem | CandidateItem> = {
    onDidChangeTreeData: changed.event,
    getTreeItem: (item) => item,
    async getChildren(item) {
      if (!item) {
        const pins = pinned();
        const all = app.runs.table.all();
        const sorted = [...all.filter((run) => pins.has(run.id)), ...all.filter((run) => !pins.has(run.id))];
        return sorted.map((run) => new RunItem(run, pins.has(run.id)));
      }
      if (!(item instanceof RunItem)) return [];
      const run = await app.runs.details(item.runId);
      return run ? [...run.candidates.values()].map((candidate) => new CandidateItem(run, candidate)) : [];
    },
  };
  const view = vscode.window.createTreeView('kernelwright.runs', { treeDataProvider: provider, showCollapseAll: true });
  app.context.subscriptions.push(
    changed,
    view,
    app.runs.onDidChange(() => {
      changed.fire();
      const active = app.runs.activeRuns();
      view.badge = active > 0 ? { value: active, tooltip: `${active} running` } : undefined;
    }),
  );
  // The view is opened to see runs: that is reason enough to look for a daemon.
  app.context.subscriptions.push(
    view.onDidChangeVisibility((event) => {
      if (event.visible && vscode.workspace.isTrusted) app.daemon.client().catch(() => undefined);
    }),
  );

  app.command('kernelwright.runs.refresh', async () => {
    await app.runs.refresh();
    await vscode.commands.executeCommand('kernelwright.workers.refresh');
  });
  app.command('kernelwright.run.pin', async (argument?: RunArgument) => {
    const run = await runOf(app, argument, 'Pin or unpin which run?', () => true);
    const pins = pinned();
    if (!pins.delete(run.id)) pins.add(run.id);
    await app.context.workspaceState.update(kPinned, [...pins]);
    app.runs.pinned = pins;
    changed.fire();
  });
  app.command('kernelwright.run.open', async (argument?: RunArgument) => {
    const run = await runOf(app, argument, 'Open the kernel of which run?', () => true);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(run.file));
    const kernel = app.kernelsOf(document).find((found) => found.name === run.function);
    const line = kernel?.line ?? 0;
    await vscode.window.showTextDocument(document, { selection: new vscode.Range(line, 0, line, 0) });
  });
  app.command('kernelwright.run.compare', async (argument?: RunArgument) => {
    const first = await runOf(app, argument, 'Compare which run?', () => true);
    const second = await runOf(
      app,
      undefined,
      `Compare ${first.function} with which run?`,
      (run) => run.id !== first.id,
    );
    const content = comparison(
      (await app.runs.details(first.id)) ?? first,
      (await app.runs.details(second.id)) ?? second,
    );
    const document = await vscode.workspace.openTextDocument({ content, language: 'markdown' });
    await vscode.window.showTextDocument(document);
  });
}

function comparison(a: RunState, b: RunState): string {
  const row = (name: string, of: (run: RunState) => string) => `| ${name} | ${of(a)} | ${of(b)} |`;
  const baseline = (run: RunState) =>
    [...run.baselines].map(([chip, ms]) => `${chip}: ${ms?.toPrecision(3) ?? 'refused'} ms`).join(', ');
  return [
    '# Two runs',
    '',
    '| | first | second |',
    '|---|---|---|',
    row('run', (run) => `\`${run.id}\``),
    row('what', (run) => `${run.kind} ${run.function}`),
    row('file', (run) => run.file),
    row('started', (run) => new Date(run.createdMs).toISOString()),
    row('status', (run) => run.status),
    row('original (estimated)', baseline),
    row('best', describeRun),
    row('candidates', (run) => String(run.candidates.size)),
    row('message', (run) => run.message.replace(/\|/g, '\\|')),
    '',
  ].join('\n');
}
