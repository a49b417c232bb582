// Entry: makes what the features share and activates each. No daemon is started here: an open text that is about kernels,
// a view or a command does that.
import type * as vscode from 'vscode';
import { App } from './app';
import * as chipsView from './features/chips_view';
import * as daemonCommands from './features/daemon_commands';
import * as diagnostics from './features/diagnostics';
import * as doctor from './features/doctor';
import * as example from './features/example';
import * as lenses from './features/lenses';
import * as planThreads from './features/plan_threads';
import * as profile from './features/profile';
import * as quickFixes from './features/quick_fixes';
import * as reportProblem from './features/report_problem';
import * as review from './features/review';
import * as rewrites from './features/rewrites';
import * as runs from './features/runs';
import * as runsView from './features/runs_view';
import * as statusBar from './features/status_bar';
import * as workersView from './features/workers_view';

const features = [
  statusBar,
  daemonCommands,
  lenses,
  diagnostics,
  quickFixes,
  rewrites,
  planThreads,
  review,
  runs,
  profile,
  runsView,
  workersView,
  chipsView,
  doctor,
  reportProblem,
  example,
];

/** Set by the bundle's first line. */
declare const kernelwrightLoadStart: number;

export function activate(context: vscode.ExtensionContext): void {
  const start = performance.now();
  const app = new App(context);
  for (const feature of features) feature.activate(app);
  const end = performance.now();
  app.log.info(
    `loaded in ${(start - kernelwrightLoadStart).toFixed(1)} ms, activated in ${(end - start).toFixed(1)} ms`,
  );
}

export function deactivate(): void {
  // Everything is disposed with the context. The daemon stays: other windows use it, and without any it ends by itself.
}
