// Fixes that the daemon has proven, as quick fixes and as one fix for all. An edit names the hash of the text that it was
// made from; on any other text it is not offered.
import * as vscode from 'vscode';
import { toTextEdits, type EditorFix } from '../../common/diagnostics';
import type { FileEdit } from '../../generated/kernelwright/v1/check';
import { sha256 } from '../../node/sha256';
import type { App } from '../app';
import { toRange } from '../convert';
import { details, type Details } from './diagnostics';

const kFixAll = vscode.CodeActionKind.SourceFixAll.append('kernelwright');
const kFix = vscode.CodeActionKind.QuickFix.append('kernelwright');

export function activate(app: App): void {
  const selector: vscode.DocumentSelector = [
    { language: 'python', scheme: 'file' },
    { language: 'python', scheme: 'vscode-notebook-cell' },
  ];
  app.context.subscriptions.push(
    vscode.languages.registerCodeActionsProvider(selector, new Fixes(), {
      providedCodeActionKinds: [kFix, kFixAll],
    }),
  );
}

class Fixes implements vscode.CodeActionProvider {
  provideCodeActions(
    document: vscode.TextDocument,
    _range: vscode.Range,
    context: vscode.CodeActionContext,
  ): vscode.CodeAction[] {
    const actions: vscode.CodeAction[] = [];
    for (const shown of context.diagnostics) {
      const diagnostic = details.get(shown) ?? lookUp(document, shown);
      if (!diagnostic) continue;
      diagnostic.fixes.forEach((fix, index) => {
        const edit = workspaceEdit(fix.edits, diagnostic);
        if (!edit) return;
        const action = new vscode.CodeAction(titleOf(fix), kFix);
        action.edit = edit;
        action.diagnostics = [shown];
        action.isPreferred = index === 0;
        actions.push(action);
      });
      actions.push(...moreAbout(shown, diagnostic));
    }
    if (!context.only || context.only.intersects(kFixAll)) {
      const all = fixAll(document);
      if (all) actions.push(all);
    }
    return actions;
  }
}

// The editor hands back copies of diagnostics.
function lookUp(document: vscode.TextDocument, shown: vscode.Diagnostic): Details | undefined {
  if (shown.source !== 'kernelwright') return undefined;
  const own = vscode.languages
    .getDiagnostics(document.uri)
    .find((d) => d.source === shown.source && d.message === shown.message && d.range.isEqual(shown.range));
  return own && details.get(own);
}

function titleOf(fix: EditorFix): string {
  return fix.verified.length > 0 ? `${fix.title} (compiles on ${fix.verified.join(', ')})` : fix.title;
}

function moreAbout(shown: vscode.Diagnostic, diagnostic: Details): vscode.CodeAction[] {
  const page = new vscode.CodeAction(`About ${diagnostic.id}: ${diagnostic.name}`, vscode.CodeActionKind.QuickFix);
  page.command = { command: 'kernelwright.openDocumentation', title: page.title, arguments: [diagnostic.page] };
  page.diagnostics = [shown];
  if (diagnostic.raw === '') return [page];
  const raw = new vscode.CodeAction("Show the compiler's text", vscode.CodeActionKind.QuickFix);
  raw.command = { command: 'kernelwright.showRaw', title: raw.title, arguments: [diagnostic.raw] };
  raw.diagnostics = [shown];
  return [page, raw];
}

function openText(file: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((d) => d.uri.scheme === 'file' && d.uri.fsPath === file);
}

/** The edits as the editor applies them; nothing when a file is not open or has another text. */
export function workspaceEdit(edits: readonly FileEdit[], { origin }: Details): vscode.WorkspaceEdit | undefined {
  const result = new vscode.WorkspaceEdit();
  for (const file of new Set(edits.map((edit) => edit.file))) {
    const own = edits.filter((edit) => edit.file === file);
    const checked = file === origin.file;
    const document = checked ? undefined : openText(file);
    const text = checked && origin.isCurrent() ? origin.text : document?.getText();
    if (text === undefined || own.some((edit) => edit.baseSha256 !== sha256(text))) return undefined;
    for (const edit of toTextEdits(own, file, text)) {
      const { start, end } = edit.range;
      const place = checked ? origin.placeOf(start.line) : document && { uri: document.uri, shift: 0 };
      // An edit over the border of two cells cannot be one of either.
      if (!place || (checked && origin.placeOf(end.line)?.uri.toString() !== place.uri.toString())) return undefined;
      result.replace(place.uri, toRange(edit.range, place.shift), edit.newText);
    }
  }
  return result.size > 0 ? result : undefined;
}

// The first fix of each diagnostic, as long as they do not touch each other.
function fixAll(document: vscode.TextDocument): vscode.CodeAction | undefined {
  const taken: FileEdit[] = [];
  const mended: vscode.Diagnostic[] = [];
  let some: Details | undefined;
  for (const shown of vscode.languages.getDiagnostics(document.uri)) {
    const detail = details.get(shown);
    const fix = detail?.fixes[0];
    if (!fix) continue;
    some = detail;
    const fresh = fix.edits.filter(
      (edit) =>
        !taken.some(
          (t) =>
            t.file === edit.file && t.begin === edit.begin && t.end === edit.end && t.replacement === edit.replacement,
        ),
    );
    if (fresh.some((edit) => taken.some((t) => t.file === edit.file && edit.begin < t.end && t.begin < edit.end)))
      continue;
    taken.push(...fresh);
    mended.push(shown);
  }
  const edit = some && workspaceEdit(taken, some);
  if (!edit) return undefined;
  const action = new vscode.CodeAction('Fix all that Kernelwright can fix', kFixAll);
  action.edit = edit;
  action.diagnostics = mended;
  return action;
}
