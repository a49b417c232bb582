// A kernel to try things on, in a new text of the user's: it is theirs to save where they like.
import * as vscode from 'vscode';
import type { App } from '../app';

export function activate(app: App): void {
  app.command('kernelwright.openExample', async () => {
    const root = app.context.extensionUri;
    for (const base of [root, vscode.Uri.joinPath(root, '..')]) {
      const bytes = await Promise.resolve(
        vscode.workspace.fs.readFile(vscode.Uri.joinPath(base, 'examples', 'matmul_blocks128.py')),
      ).catch(() => undefined);
      if (!bytes) continue;
      const content = new TextDecoder().decode(bytes);
      const document = await vscode.workspace.openTextDocument({ content, language: 'python' });
      await vscode.window.showTextDocument(document);
      return;
    }
    void vscode.window.showWarningMessage('Kernelwright: the example is missing. Install the extension again.');
  });
}
