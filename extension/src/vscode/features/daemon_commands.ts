// Commands about the daemon itself.
import * as vscode from 'vscode';
import type { App } from '../app';

export function activate(app: App): void {
  app.command('kernelwright.showLog', () => app.log.show());
  app.command('kernelwright.restartDaemon', async () => {
    await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: 'Restarting the Kernelwright daemon' },
      () => app.daemon.restart(),
    );
  });
}
