// The view Workers: the daemon's workers and what they do, asked for while the view is open.
import * as vscode from 'vscode';
import type { App } from '../app';

const kInterval = 5000;

export function activate(app: App): void {
  let lines: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const changed = new vscode.EventEmitter<void>();
  const provider: vscode.TreeDataProvider<string> = {
    onDidChangeTreeData: changed.event,
    getChildren: (line) => (line === undefined ? [...lines] : []),
    getTreeItem: (line) => {
      const [name, ...rest] = line.split(': ');
      const item = new vscode.TreeItem(name ?? line);
      item.description = rest.join(': ');
      item.tooltip = line;
      const busy = /\d+ (running|queued)/.test(line);
      item.iconPath = new vscode.ThemeIcon(
        busy ? 'sync~spin' : line.includes('starting') ? 'loading~spin' : 'server-process',
      );
      item.accessibilityInformation = { label: line };
      return item;
    },
  };
  const view = vscode.window.createTreeView('kernelwright.workers', { treeDataProvider: provider });
  const refresh = async () => {
    const status = await app.daemon.connectedClient?.status().catch(() => undefined);
    lines = status?.workers ?? [];
    changed.fire();
  };
  const follow = () => {
    clearInterval(timer);
    timer = view.visible ? setInterval(() => void refresh(), kInterval) : undefined;
    if (view.visible) void refresh();
  };
  app.context.subscriptions.push(
    changed,
    view,
    view.onDidChangeVisibility(follow),
    app.daemon.onDidChangeState(() => void refresh()),
    app.onDidChangeChecking(() => {
      if (view.visible) void refresh();
    }),
    { dispose: () => clearInterval(timer) },
    vscode.commands.registerCommand('kernelwright.workers.refresh', refresh),
  );
}
