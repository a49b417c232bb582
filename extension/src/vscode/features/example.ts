// A kernel to try things on, saved where the user says: the compiler reads files.
import * as vscode from 'vscode';
import type { App } from '../app';

export function activate(app: App): void {
  app.command('kernelwright.openExample', async () => {
    const { root } = app;
    for (const base of [root, vscode.Uri.joinPath(root, '..')]) {
      const bytes = await Promise.resolve(
        vscode.workspace.fs.readFile(vscode.Uri.joinPath(base, 'examples', 'matmul_blocks128.py')),
      ).catch(() => undefined);
      if (!bytes) continue;
      const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
      const defaultUri = folder && vscode.Uri.joinPath(folder, 'matmul_example.py');
      const options = { title: 'Where to put the example', filters: { Python: ['py'] } };
      const target = await vscode.window.showSaveDialog(defaultUri ? { ...options, defaultUri } : options);
      if (!target) return;
      await vscode.workspace.fs.writeFile(target, bytes);
      await vscode.window.showTextDocument(target);
      return;
    }
    void vscode.window.showWarningMessage('Kernelwright: the example is missing. Install the extension again.');
  });
}
