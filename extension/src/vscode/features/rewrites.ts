// "Optimize this kernel" and "Retune block sizes" as rewrites in the editor's own menu, wherever the cursor is in a kernel.
import * as vscode from 'vscode';
import { kernelAt } from '../../common/python_text';
import type { App } from '../app';

const kOptimize = vscode.CodeActionKind.RefactorRewrite.append('kernelwright.optimize');
const kTune = vscode.CodeActionKind.RefactorRewrite.append('kernelwright.tune');

export function activate(app: App): void {
  const provider: vscode.CodeActionProvider = {
    provideCodeActions(document, range, context) {
      if (!vscode.workspace.isTrusted) return [];
      if (context.triggerKind === vscode.CodeActionTriggerKind.Automatic && !context.only) return [];
      const kernel = kernelAt(app.kernelsOf(document), range.start.line);
      if (!kernel) return [];
      const action = (title: string, kind: vscode.CodeActionKind, command: string) => {
        const result = new vscode.CodeAction(title, kind);
        result.command = { command, title, arguments: [document.uri, kernel.name] };
        return result;
      };
      const actions = [action('Optimize this kernel', kOptimize, 'kernelwright.optimize')];
      if (kernel.pallas || kernel.marked) actions.push(action('Retune block sizes', kTune, 'kernelwright.tune'));
      return actions;
    },
  };
  const selector = { language: 'python', scheme: 'file' };
  app.context.subscriptions.push(
    vscode.languages.registerCodeActionsProvider(selector, provider, { providedCodeActionKinds: [kOptimize, kTune] }),
  );
}
