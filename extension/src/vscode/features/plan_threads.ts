// The steps of a run's plan as comment threads at their lines: what, why, expected gain, evidence. Today's runs approve
// their own plans, so the threads are read-only; a step carries the hash of its content, which an approval will name.
import * as vscode from 'vscode';
import { planMarkdown, type RunState } from '../../common/runs';
import type { PlanStep } from '../../generated/kernelwright/v1/run';
import type { App } from '../app';
import { runOf, type RunArgument } from '../run_argument';
import { setting } from '../settings';

/** What a person may do with a step; more ways come with a session that waits for the answer. */
type Decision = 'automatic';

export function activate(app: App): void {
  const controller = vscode.comments.createCommentController('kernelwright.plan', 'Kernelwright Plan');
  const threads = new Map<string, vscode.CommentThread[]>(); // by run
  app.context.subscriptions.push(controller);

  const hide = (run: string) => {
    for (const thread of threads.get(run) ?? []) thread.dispose();
    threads.delete(run);
  };
  const show = (run: RunState, open: boolean) => {
    // One plan at a time per kernel: the newest.
    for (const [other] of threads) {
      const state = app.runs.table.get(other);
      if (other === run.id || (state?.file === run.file && state.function === run.function)) hide(other);
    }
    threads.set(run.id, threadsOf(controller, run, open, 'automatic'));
  };

  app.runs.onDidChange(() => {
    for (const run of app.runs.table.all()) {
      const fresh = run.status === 'running' && run.plans.size > 0 && !threads.has(run.id);
      if (fresh && setting<boolean>('plan.threads') && isOpen(run.file)) show(run, false);
    }
  });
  const withPlan = (run: RunState) => run.status !== 'queued';
  app.command('kernelwright.plan.show', async (argument?: RunArgument) => {
    const chosen = await runOf(app, argument, 'Show the plan of which run?', withPlan);
    const run = (await app.runs.details(chosen.id)) ?? chosen;
    const first = [...run.plans.values()].flat()[0];
    if (!first) {
      void vscode.window.showInformationMessage('Kernelwright: this run made no plan.');
      return;
    }
    show(run, true);
    const line = Math.max(0, first.line - 1);
    const options = { selection: new vscode.Range(line, 0, line, 0) };
    await vscode.window.showTextDocument(vscode.Uri.file(first.file), options);
  });
  app.command('kernelwright.plan.hide', () => {
    for (const run of [...threads.keys()]) hide(run);
  });
  app.command('kernelwright.plan.markdown', async (argument?: RunArgument) => {
    const chosen = await runOf(app, argument, 'The plan of which run?', withPlan);
    const run = (await app.runs.details(chosen.id)) ?? chosen;
    const document = await vscode.workspace.openTextDocument({ content: planMarkdown(run), language: 'markdown' });
    await vscode.window.showTextDocument(document);
  });
}

function isOpen(file: string): boolean {
  return vscode.workspace.textDocuments.some((document) => document.uri.fsPath === file);
}

function threadsOf(
  controller: vscode.CommentController,
  run: RunState,
  open: boolean,
  decision: Decision,
): vscode.CommentThread[] {
  const steps = [...run.plans].flatMap(([chip, list]) => list.map((step) => ({ chip, step })));
  const byLine = new Map<string, { chip: string; step: PlanStep }[]>();
  for (const entry of steps) {
    const key = `${entry.step.file}:${entry.step.line}`;
    byLine.set(key, [...(byLine.get(key) ?? []), entry]);
  }
  return [...byLine.values()].map((entries) => {
    const { step } = entries[0]!;
    const range = new vscode.Range(Math.max(0, step.line - 1), 0, Math.max(0, step.endLine - 1), 0);
    const comments = entries.map((entry) => commentOf(entry.step, entry.chip, run, decision));
    const thread = controller.createCommentThread(vscode.Uri.file(step.file), range, comments);
    thread.canReply = false;
    thread.label = `Plan of ${run.kind} ${run.function}`;
    thread.contextValue = `planStep ${decision}`;
    thread.collapsibleState = open
      ? vscode.CommentThreadCollapsibleState.Expanded
      : vscode.CommentThreadCollapsibleState.Collapsed;
    return thread;
  });
}

function commentOf(step: PlanStep, chip: string, run: RunState, decision: Decision): vscode.Comment {
  const body = new vscode.MarkdownString();
  body.appendMarkdown(`**${escape(step.title)}**\n\n${escape(step.reason)}\n\n`);
  body.appendMarkdown(`- expected gain: ${escape(step.expectedGain)}\n- evidence: ${escape(step.evidence)}\n`);
  const tried = [...run.candidates.values()].filter((candidate) => candidate.chip === chip).length;
  if (tried > 0) body.appendMarkdown(`- candidates so far: ${tried}\n`);
  return {
    body,
    mode: vscode.CommentMode.Preview,
    author: { name: `Kernelwright, step ${step.id}, ${chip}` },
    contextValue: decision,
    label: decision,
  };
}

function escape(text: string): string {
  return text.replace(/([\\*_[\]<>#|])/g, '\\$1');
}
