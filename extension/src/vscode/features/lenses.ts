// A line above each kernel: what can be done with it, and its last known figures.
import * as vscode from 'vscode';
import { figuresText } from '../../common/figures';
import { sha256 } from '../../node/sha256';
import type { App } from '../app';
import { setting } from '../settings';

export function activate(app: App): void {
  const changed = new vscode.EventEmitter<void>();
  const provider: vscode.CodeLensProvider = {
    onDidChangeCodeLenses: changed.event,
    provideCodeLenses: (document) => lensesOf(app, document),
  };
  app.context.subscriptions.push(
    changed,
    vscode.languages.registerCodeLensProvider({ language: 'python', scheme: 'file' }, provider),
    app.onDidChangeFigures(() => changed.fire()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => changed.fire()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('kernelwright.codeLens')) changed.fire();
    }),
  );
}

function lensesOf(app: App, document: vscode.TextDocument): vscode.CodeLens[] {
  if (!setting<boolean>('codeLens.enabled', document.uri)) return [];
  const kernels = app.kernelsOf(document);
  if (kernels.length === 0) return [];
  void vscode.commands.executeCommand('setContext', 'kernelwright.kernelSeen', true);
  const hash = sha256(document.getText());
  return kernels.flatMap((kernel) => {
    const range = new vscode.Range(kernel.firstLine, 0, kernel.firstLine, 0);
    if (!vscode.workspace.isTrusted) {
      const title = `Kernel ${kernel.name} · trust the workspace to check and optimize it`;
      return [new vscode.CodeLens(range, { title, command: 'workbench.trust.manage' })];
    }
    const target = [document.uri, kernel.name];
    const lens = (title: string, command: string, tooltip: string, args: unknown[] = target) =>
      new vscode.CodeLens(range, { title, command, tooltip, arguments: args });
    const lenses = [
      lens('Optimize', 'kernelwright.optimize', `Find a faster version of ${kernel.name}`),
      lens('Check', 'kernelwright.check', 'Compile for every chip of the settings, and run in the interpreter', []),
      lens('Profile', 'kernelwright.profile', 'Show where the cycles go, line by line'),
    ];
    const figures = app.figures.get(document.uri.fsPath, kernel.name);
    if (figures) {
      const tooltip = `${figures.evidenceClass}, ${figures.versions}`;
      lenses.push(lens(figuresText(figures, hash), 'kernelwright.showProfilePanel', tooltip));
    }
    return lenses;
  });
}
