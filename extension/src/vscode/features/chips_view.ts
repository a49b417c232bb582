// The view Chips: what the estimates are made with, and where each figure comes from.
import * as vscode from 'vscode';
import { chips, type Chip, type ChipRow } from '../../common/chips';
import type { App } from '../app';

export function activate(app: App): void {
  const provider: vscode.TreeDataProvider<Chip | ChipRow> = {
    getChildren: (node) =>
      node === undefined ? chips(['v5e', 'v5p', 'v6e', 'tpu7x']) : 'rows' in node ? [...node.rows] : [],
    getTreeItem(node) {
      if ('rows' in node) {
        const item = new vscode.TreeItem(node.name, vscode.TreeItemCollapsibleState.Collapsed);
        item.description = node.summary;
        item.iconPath = new vscode.ThemeIcon('circuit-board');
        return item;
      }
      const item = new vscode.TreeItem(node.label);
      item.description = node.value;
      item.tooltip =
        node.source === '' ? `${node.label}: ${node.value}` : `${node.label}: ${node.value}\n${node.source}`;
      item.accessibilityInformation = { label: `${node.label}, ${node.value}` };
      return item;
    },
  };
  app.context.subscriptions.push(vscode.window.registerTreeDataProvider('kernelwright.chips', provider));
}
