// One item: the daemon's health and what it does; a click lists what can be done.
import * as vscode from 'vscode';
import { formatBytes, formatDuration } from '../../common/format';
import { healthOf } from '../../common/health';
import type { App } from '../app';
import { setting } from '../settings';

export function activate(app: App): void {
  const item = vscode.window.createStatusBarItem('kernelwright.status', vscode.StatusBarAlignment.Left, 10);
  item.name = 'Kernelwright';
  item.command = 'kernelwright.menu';
  const colors = {
    normal: undefined,
    warning: 'statusBarItem.warningBackground',
    error: 'statusBarItem.errorBackground',
  };
  const show = () => {
    const unsandboxed = setting<string>('sandbox') === 'none';
    const health = healthOf(app.daemon.state, app.runs.activeRuns(), app.checking, unsandboxed);
    item.text = health.text;
    item.accessibilityInformation = { label: health.accessible, role: 'button' };
    const color = colors[health.level];
    item.backgroundColor = color === undefined ? undefined : new vscode.ThemeColor(color);
    item.tooltip = tooltip(app, health.accessible);
    item.show();
  };
  app.context.subscriptions.push(
    item,
    app.daemon.onDidChangeState(show),
    app.runs.onDidChange(show),
    app.onDidChangeChecking(show),
    vscode.workspace.onDidGrantWorkspaceTrust(show),
  );
  show();
  app.command('kernelwright.menu', () => menu(app));
}

function tooltip(app: App, accessible: string): vscode.MarkdownString {
  const text = new vscode.MarkdownString('', true);
  text.appendText(accessible);
  if (app.daemon.state.kind === 'ready')
    text.appendText(`, daemon ${app.daemon.state.version}, process ${app.daemon.state.pid}`);
  return text;
}

async function menu(app: App): Promise<void> {
  const state = await app.daemon.connectedClient?.status().catch(() => undefined);
  const facts = state
    ? `${state.activeRuns} runs, ${state.queuedJobs} jobs queued, ${state.workers.length} workers, ` +
      `${formatBytes(state.residentBytes)} of memory, up ${formatDuration(state.uptimeMs)}`
    : app.daemon.state.kind === 'failed'
      ? app.daemon.state.message
      : 'the daemon does not run';
  const items: (vscode.QuickPickItem & { command?: string })[] = [
    { label: facts, kind: vscode.QuickPickItemKind.Separator },
    { label: '$(rocket) Optimize this kernel', command: 'kernelwright.optimize' },
    { label: '$(flame) Profile this kernel', command: 'kernelwright.profile' },
    { label: '$(checklist) Check this file', command: 'kernelwright.check' },
    { label: '$(eye) Show or hide the profile in the editor', command: 'kernelwright.toggleOverlay' },
    { label: '', kind: vscode.QuickPickItemKind.Separator },
    { label: '$(pulse) Doctor', command: 'kernelwright.doctor' },
    { label: '$(output) Show log', command: 'kernelwright.showLog' },
    { label: '$(debug-restart) Restart daemon', command: 'kernelwright.restartDaemon' },
    { label: '$(report) Report a problem', command: 'kernelwright.reportProblem' },
    { label: '$(gear) Settings', command: 'workbench.action.openSettings' },
  ];
  const chosen = await vscode.window.showQuickPick(items, { title: `Kernelwright: ${facts}` });
  if (!chosen?.command) return;
  if (chosen.command === 'workbench.action.openSettings') {
    await vscode.commands.executeCommand(chosen.command, '@ext:kernelwright.kernelwright');
  } else {
    await vscode.commands.executeCommand(chosen.command);
  }
}
