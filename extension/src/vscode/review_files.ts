// What a candidate changes, file by file: the text that it was made from, its own, and the hunks between them. The two sides
// of the diff are texts of ours; nothing is on disk before it is accepted.
import * as path from 'node:path';
import * as vscode from 'vscode';
import { diffLines, splitLines, type Hunk } from '../common/line_diff';
import type { BestCandidate } from '../common/results';
import { reverseDiff } from '../common/unified_diff';
import { sha256 } from '../node/sha256';

export const kScheme = 'kernelwright-review';

export interface ReviewFile {
  readonly file: string;
  readonly base: string;
  readonly proposed: string;
  readonly hunks: readonly Hunk[];
}

export interface Review {
  readonly run: string;
  readonly chip: string;
  readonly candidate: BestCandidate;
  readonly files: readonly ReviewFile[];
}

/** The files of a candidate; throws when what it was made from cannot be had exactly. */
export async function reviewFiles(candidate: BestCandidate): Promise<ReviewFile[]> {
  const files: ReviewFile[] = [];
  for (const edit of candidate.edits) {
    const base = await baseOf(edit.file, edit.baseSha256, edit.newText, candidate.diff);
    if (base === undefined) {
      throw new Error(
        `The text of ${path.basename(edit.file)} that the candidate was made from is not known any more.`,
      );
    }
    const hunks = diffLines(splitLines(base), splitLines(edit.newText));
    files.push({ file: edit.file, base, proposed: edit.newText, hunks });
  }
  return files;
}

async function baseOf(file: string, hash: string, newText: string, diff: string): Promise<string | undefined> {
  const undone = reverseDiff(newText, diff, file);
  if (undone !== undefined && sha256(undone) === hash) return undone;
  const bytes = await Promise.resolve(vscode.workspace.fs.readFile(vscode.Uri.file(file))).catch(() => undefined);
  if (!bytes) return undefined;
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  return sha256(text) === hash ? text : undefined;
}

/** Serves both sides: kernelwright-review:/base/RUN/…, kernelwright-review:/proposed/RUN/… */
export class ReviewTexts implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();

  set(side: 'base' | 'proposed' | 'current', run: string, file: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: kScheme, path: `/${side}/${run}${file}` });
    this.texts.set(uri.toString(), text);
    return uri;
  }

  clear(run: string): void {
    for (const key of this.texts.keys()) {
      if (vscode.Uri.parse(key).path.split('/')[2] === run) this.texts.delete(key);
    }
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? '';
  }
}
