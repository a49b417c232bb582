// Entry: makes what the features share, activates each, and starts the daemon only when an open text is about kernels.
import type * as vscode from 'vscode';
import { App } from './app';
import * as diagnostics from './features/diagnostics';
import * as quickFixes from './features/quick_fixes';
import * as statusBar from './features/status_bar';
import * as daemonCommands from './features/daemon_commands';

const features = [diagnostics, quickFixes, statusBar, daemonCommands];

export function activate(context: vscode.ExtensionContext): void {
  const start = performance.now();
  const app = new App(context);
  for (const feature of features) feature.activate(app);
  app.log.info(`activated in ${(performance.now() - start).toFixed(1)} ms`);
}

export function deactivate(): void {
  // Everything is disposed with the context. The daemon stays: other windows use it, and without any it ends by itself.
}
