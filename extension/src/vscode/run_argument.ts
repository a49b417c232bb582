// Commands about a run get it from a row of the list, by its id, or ask.
import * as vscode from 'vscode';
import { describeRun, type RunState } from '../common/runs';
import { UserError } from '../node/errors';
import type { App } from './app';

export type RunArgument = string | { readonly runId: string } | undefined;

export async function runOf(
  app: App,
  argument: RunArgument,
  question: string,
  fits: (run: RunState) => boolean,
): Promise<RunState> {
  const id = typeof argument === 'string' ? argument : argument?.runId;
  if (id !== undefined) {
    const known = app.runs.table.get(id);
    if (known) return known;
  }
  await app.daemon.client();
  await app.runs.whenAttached();
  const named = id === undefined ? undefined : app.runs.table.get(id);
  if (named) return named;
  if (id !== undefined) throw new UserError(`The run ${id} is not known any more.`, '', 'not_found');
  const runs = app.runs.table.all().filter(fits);
  if (runs.length === 0) throw new UserError('There is no such run.', '', 'not_found');
  const items = runs.map((run) => ({
    label: `${run.kind} ${run.function}`,
    description: describeRun(run),
    detail: `${new Date(run.createdMs).toLocaleString()} · ${run.file}`,
    run,
  }));
  const chosen = runs.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title: question });
  if (!chosen) throw new vscode.CancellationError();
  return chosen.run;
}
