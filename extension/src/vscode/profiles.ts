// The last profile of each file, shared by the overlay and the panel. A change of the text moves its lines along and marks
// it as made from an earlier text.
import * as vscode from 'vscode';
import { shiftLine } from '../common/line_diff';
import type { ChipProfile, ProfileResult } from '../common/results';

export interface FileProfile {
  readonly uri: vscode.Uri;
  readonly result: ProfileResult;
  readonly chip: ChipProfile;
  readonly html: string;
  readonly text: string; // that was profiled
  /** Now line → profiled line; identical until the text changes. */
  moved: Map<number, number> | undefined;
  stale: boolean;
}

const kKept = 20;

export class Profiles implements vscode.Disposable {
  private readonly byFile = new Map<string, FileProfile>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly subscription: vscode.Disposable;

  constructor() {
    this.subscription = vscode.workspace.onDidChangeTextDocument((event) => this.edited(event));
  }

  get(uri: vscode.Uri): FileProfile | undefined {
    return this.byFile.get(uri.toString());
  }

  set(profile: FileProfile): void {
    const key = profile.uri.toString();
    this.byFile.delete(key);
    this.byFile.set(key, profile);
    for (const oldest of this.byFile.keys()) {
      if (this.byFile.size <= kKept) break;
      this.byFile.delete(oldest);
    }
    this.changed.fire(profile.uri);
  }

  dispose(): void {
    this.subscription.dispose();
    this.changed.dispose();
  }

  private edited(event: vscode.TextDocumentChangeEvent): void {
    const profile = this.get(event.document.uri);
    if (!profile || event.contentChanges.length === 0) return;
    if (event.document.getText() === profile.text) {
      // An undo brings the profiled text back.
      profile.stale = false;
      profile.moved = undefined;
    } else {
      profile.stale = true;
      profile.moved ??= new Map(profile.chip.lines.map((line) => [line.line - 1, line.line - 1]));
      for (const change of event.contentChanges) {
        const added = change.text.split('\n').length - 1;
        const next = new Map<number, number>();
        for (const [now, then] of profile.moved) {
          const line = shiftLine(now, change.range.start.line, change.range.end.line, added);
          // A change within one line leaves the line where it is, with its old figure.
          const within = added === 0 && change.range.isSingleLine && now === change.range.start.line;
          if (line >= 0 || within) next.set(within ? now : line, then);
        }
        profile.moved = next;
      }
    }
    this.changed.fire(event.document.uri);
  }
}
