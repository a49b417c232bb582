// Review of a candidate: a diff of two texts of ours, then all of it, some hunks or nothing goes into the file. What was
// accepted is placed on the text as it is now, hunk by hunk; a hunk whose lines changed meanwhile stays out and is told, and
// nothing is ever overwritten.
import * as path from 'node:path';
import * as vscode from 'vscode';
import { formatMs, formatSpeedup } from '../../common/format';
import { applyHunks, carryOver, hunkLabel, splitLines, type Hunk } from '../../common/line_diff';
import { parseRunResult, type ChipRunResult } from '../../common/results';
import { UserError } from '../../node/errors';
import { sha256 } from '../../node/sha256';
import type { App } from '../app';
import { kScheme, reviewFiles, ReviewTexts, type Review, type ReviewFile } from '../review_files';
import { runOf, type RunArgument } from '../run_argument';
import { setting } from '../settings';

export function activate(app: App): void {
  const texts = new ReviewTexts();
  const reviews = new Map<string, Review>(); // by run
  const disposables = [vscode.workspace.registerTextDocumentContentProvider(kScheme, texts)];

  const current = (): Review | undefined => {
    const uri = activeReviewUri();
    return uri && reviews.get(uri.path.split('/')[2]!);
  };
  const updateContext = () => {
    void vscode.commands.executeCommand('setContext', 'kernelwright.reviewing', current() !== undefined);
  };
  disposables.push(
    vscode.window.tabGroups.onDidChangeTabs(updateContext),
    vscode.window.onDidChangeActiveTextEditor(updateContext),
  );
  app.context.subscriptions.push(...disposables);

  app.command('kernelwright.review', async (argument?: RunArgument) => {
    const run = await runOf(
      app,
      argument,
      'Review the candidate of which run?',
      (r) => r.status === 'improved' || r.best.size > 0,
    );
    const record = await app.daemon.call((client) => client.getRun(run.id));
    const result = parseRunResult(record.resultJson);
    const withBest = result?.results.filter((item) => item.best !== undefined) ?? [];
    const chosen = withBest.length > 1 ? await pickChip(withBest) : withBest[0];
    if (!chosen?.best) throw new UserError('This run has no candidate to review.', '', 'not_found');
    const review = { run: run.id, chip: chosen.chip, candidate: chosen.best, files: await reviewFiles(chosen.best) };
    reviews.set(run.id, review);
    for (const file of review.files) {
      const left = texts.set('base', run.id, file.file, file.base);
      const right = texts.set('proposed', run.id, file.file, file.proposed);
      await vscode.commands.executeCommand('vscode.diff', left, right, titleOf(file, chosen), { preview: false });
    }
    updateContext();
  });

  const finish = async (review: Review) => {
    await closeTabs(review.run);
    texts.clear(review.run);
    reviews.delete(review.run);
    updateContext();
  };
  const need = (): Review => {
    const review = current() ?? [...reviews.values()].at(-1);
    if (!review) throw new UserError('No candidate is under review.', 'Choose one in the view Runs.', 'usage');
    return review;
  };

  app.command('kernelwright.review.accept', async () => {
    const review = need();
    if (await acceptFiles(app, texts, review, review.files)) {
      await keepFigures(app, review);
      await finish(review);
    }
  });
  app.command('kernelwright.review.acceptHunks', async () => {
    const review = need();
    const items = review.files.flatMap((file) =>
      file.hunks.map((hunk) => ({
        label: hunkLabel(hunk),
        description: path.basename(file.file),
        picked: true,
        file,
        hunk,
      })),
    );
    const options = {
      canPickMany: true as const,
      title: 'Which changes?',
      placeHolder: 'Space to choose, Enter to accept',
    };
    const chosen = await vscode.window.showQuickPick(items, options);
    if (!chosen || chosen.length === 0) return;
    const files = review.files.map((file) => ({
      ...file,
      hunks: chosen.filter((item) => item.file === file).map((item) => item.hunk),
    }));
    if (await acceptFiles(app, texts, review, files)) await finish(review);
  });
  app.command('kernelwright.review.reject', async () => {
    const review = need();
    await finish(review);
    vscode.window.setStatusBarMessage('Kernelwright: candidate rejected, nothing was changed', 5000);
  });
}

// The candidate's figures are the kernel's from now on, where its whole text is.
async function keepFigures(app: App, review: Review): Promise<void> {
  const state = await app.runs.details(review.run);
  const file = review.files.find((item) => item.file === state?.file);
  if (!state || !file) return;
  const { candidate, chip } = review;
  const versions = Object.entries(candidate.evidence?.versions ?? {}).map(([name, version]) => `${name} ${version}`);
  app.setFigures(state.file, state.function, {
    evidenceClass: candidate.evidence?.evidenceClass ?? 'estimated',
    chip,
    ms: candidate.estimateMs,
    bound: candidate.bound,
    rooflineFraction: candidate.rooflineFraction,
    textHash: sha256(file.proposed),
    versions: versions.join(', '),
  });
}

function activeReviewUri(): vscode.Uri | undefined {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  const uri = input instanceof vscode.TabInputTextDiff ? input.modified : undefined;
  return uri?.scheme === kScheme ? uri : undefined;
}

async function closeTabs(run: string): Promise<void> {
  const own = vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter((tab) => {
      const uri = tab.input instanceof vscode.TabInputTextDiff ? tab.input.modified : undefined;
      return uri?.scheme === kScheme && uri.path.split('/')[2] === run;
    });
  await vscode.window.tabGroups.close(own);
}

async function pickChip(results: readonly ChipRunResult[]): Promise<ChipRunResult | undefined> {
  const items = results.map((result) => ({
    label: result.chip,
    description: result.speedup === undefined ? '' : `${formatSpeedup(result.speedup)} (estimated)`,
    result,
  }));
  return (await vscode.window.showQuickPick(items, { title: 'The candidate for which chip?' }))?.result;
}

// The evidence stands in the title, beside the change that it is about.
function titleOf(file: ReviewFile, result: ChipRunResult): string {
  const best = result.best!;
  const times =
    result.originalMs !== undefined && best.estimateMs !== undefined
      ? `${formatMs(result.originalMs)} → ${formatMs(best.estimateMs)} `
      : '';
  const passed = best.gates.filter((gate) => gate.status === 'pass').length;
  const word = best.evidence?.evidenceClass ?? 'estimated';
  return `${path.basename(file.file)}: ${times}${word}, ${result.chip}, ${passed} gates passed`;
}

/** True when everything that was asked for is in the files. */
async function acceptFiles(
  app: App,
  texts: ReviewTexts,
  review: Review,
  files: readonly ReviewFile[],
): Promise<boolean> {
  let complete = true;
  for (const file of files) {
    if (file.hunks.length > 0) complete = (await acceptFile(app, texts, review, file)) && complete;
  }
  return complete;
}

async function acceptFile(app: App, texts: ReviewTexts, review: Review, file: ReviewFile): Promise<boolean> {
  const name = path.basename(file.file);
  const document = await openWritable(file);
  const wasDirty = document.isDirty;
  const now = document.getText();
  const carried = carryOver(file.base, now, file.hunks);
  const conflicts = carried.filter((item) => item.outcome === 'conflict').map((item) => item.hunk);
  const placed = carried.flatMap((item) => (item.placed ? [item.placed] : []));
  if (conflicts.length > 0) {
    const again = await askAboutConflicts(texts, review, file, now, conflicts, placed.length);
    if (!again) return false;
  }
  if (placed.length > 0) await applyPlaced(document, now, placed);
  app.log.info(
    `accepted ${review.run}/${review.candidate.id}: ${placed.length} of ${file.hunks.length} changes in ${file.file}`,
  );
  if (placed.length > 0 && !wasDirty && setting<boolean>('review.save', document.uri)) await document.save();
  if (conflicts.length > 0) {
    void vscode.window.showWarningMessage(
      `${name}: ${placed.length} changes were made, ${conflicts.length} were left out.`,
    );
    return false;
  }
  const merged = now === file.base ? '' : ', merged with your later changes';
  vscode.window.setStatusBarMessage(`Kernelwright: ${name} changed${merged}. Undo takes it back.`, 8000);
  return true;
}

async function openWritable(file: ReviewFile): Promise<vscode.TextDocument> {
  const uri = vscode.Uri.file(file.file);
  const name = path.basename(file.file);
  const info = await Promise.resolve(vscode.workspace.fs.stat(uri)).catch(() => undefined);
  if (!info) {
    const choice = await vscode.window.showWarningMessage(
      `${file.file} does not exist any more.`,
      'Open the Candidate as a New File',
    );
    if (choice === undefined) throw new vscode.CancellationError();
    const document = await vscode.workspace.openTextDocument({ content: file.proposed, language: 'python' });
    await vscode.window.showTextDocument(document);
    throw new vscode.CancellationError();
  }
  if (info.permissions !== undefined && (info.permissions & vscode.FilePermission.Readonly) !== 0) {
    throw new UserError(
      `${name} is read-only, so nothing was changed.`,
      'Make it writable, then accept again.',
      'conflict',
    );
  }
  return vscode.workspace.openTextDocument(uri);
}

// One WorkspaceEdit of the lines that change, made from the version that was looked at, and read back.
async function applyPlaced(document: vscode.TextDocument, seen: string, hunks: readonly Hunk[]): Promise<void> {
  const version = document.version;
  const edit = new vscode.WorkspaceEdit();
  const lines = splitLines(seen);
  const place = (line: number) =>
    line < document.lineCount ? new vscode.Position(line, 0) : document.lineAt(document.lineCount - 1).range.end;
  const label = { label: 'Kernelwright: accept candidate', needsConfirmation: false };
  for (const hunk of hunks) {
    edit.replace(
      document.uri,
      new vscode.Range(place(hunk.baseStart), place(hunk.baseEnd)),
      hunk.lines.join(''),
      label,
    );
  }
  if (document.version !== version || document.getText() !== seen) {
    throw new UserError('The file changed at this very moment, so nothing was changed.', 'Accept again.', 'conflict');
  }
  const applied = await vscode.workspace.applyEdit(edit);
  const wanted = applyHunks(lines, hunks);
  if (!applied || normal(document.getText()) !== normal(wanted)) {
    throw new UserError(
      'The editor did not take the change as it was made.',
      'Look at the file; undo takes it back.',
      'conflict',
    );
  }
}

function normal(text: string): string {
  return text.replace(/\r\n/g, '\n');
}

/** True to go on with the hunks that fit. */
async function askAboutConflicts(
  texts: ReviewTexts,
  review: Review,
  file: ReviewFile,
  now: string,
  conflicts: readonly Hunk[],
  fitting: number,
): Promise<boolean> {
  const name = path.basename(file.file);
  const what = conflicts.map((hunk) => hunkLabel(hunk)).join('\n');
  const buttons = fitting > 0 ? [`Accept the Other ${fitting}`, 'Compare'] : ['Compare'];
  const message = `${name} was changed where the candidate changes it.`;
  const choice = await vscode.window.showWarningMessage(
    message,
    { modal: true, detail: `Nothing is overwritten.\n\n${what}` },
    ...buttons,
  );
  if (choice === 'Compare') {
    const left = texts.set('current', review.run, file.file, now);
    const right = texts.set('proposed', review.run, file.file, file.proposed);
    await vscode.commands.executeCommand('vscode.diff', left, right, `${name}: as it is now ↔ candidate`);
    return false;
  }
  return choice !== undefined && choice !== 'Compare';
}
