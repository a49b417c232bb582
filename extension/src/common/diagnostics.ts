// From the daemon's diagnostics to what an editor shows: ranges, severities, related places, and fixes as edits of the
// text that they were made from.
import type { Diagnostic, FileEdit, Fix, Place } from '../generated/kernelwright/v1/check';
import { lineStarts, positionAt, rangeOf, utf16Offsets, type Range } from './offsets';

type Where = Pick<Place, 'file' | 'line' | 'column' | 'endLine' | 'endColumn'>;
const kNowhere: Where = { file: '', line: 0, column: 0, endLine: 0, endColumn: 0 };

export type Severity = 'error' | 'warning' | 'information' | 'hint';

export interface EditorFix {
  readonly title: string;
  readonly verified: readonly string[];
  readonly edits: readonly FileEdit[];
}

export interface EditorDiagnostic {
  readonly id: string;
  readonly name: string;
  readonly severity: Severity;
  readonly file: string;
  readonly range: Range;
  readonly message: string;
  readonly page: string;
  readonly chips: readonly string[];
  readonly related: readonly { file: string; range: Range; message: string }[];
  readonly fixes: readonly EditorFix[];
  readonly raw: string;
}

/** `textOf` gives the lines of a file as the check saw them; nothing for a file that is not open. */
export function toEditorDiagnostic(
  diagnostic: Diagnostic,
  chips: readonly string[],
  textOf: (file: string) => readonly string[] | undefined,
): EditorDiagnostic {
  const place = diagnostic.place ?? kNowhere;
  return {
    id: diagnostic.id,
    name: diagnostic.name,
    severity: severityOf(diagnostic.severity),
    file: place.file,
    range: rangeOf(place, textOf(place.file) ?? blankLines(place)),
    message: messageOf(diagnostic, chips),
    page: diagnostic.page,
    chips: diagnostic.chips,
    related: diagnostic.related.map((related) => {
      const where = related.place ?? kNowhere;
      return {
        file: where.file,
        range: rangeOf(where, textOf(where.file) ?? blankLines(where)),
        message: related.message,
      };
    }),
    fixes: diagnostic.fixes.map((fix: Fix) => ({ title: fix.title, verified: fix.verified, edits: fix.edits })),
    raw: diagnostic.raw,
  };
}

/** What happened, why, what to do, and for which chips where it is not all that were asked for. */
export function messageOf(diagnostic: Diagnostic, chips: readonly string[]): string {
  const parts = [diagnostic.message];
  if (diagnostic.cause !== '' && diagnostic.cause !== diagnostic.message) parts.push(diagnostic.cause);
  if (diagnostic.advice !== '') parts.push(diagnostic.advice);
  const some = diagnostic.chips.length > 0 && diagnostic.chips.length < chips.length;
  return parts.join('\n') + (some ? `\nOnly on ${diagnostic.chips.join(', ')}.` : '');
}

export interface TextEdit {
  readonly range: Range;
  readonly newText: string;
}

/** A fix's edits of one file in the editor's terms, in order of place. */
export function toTextEdits(edits: readonly FileEdit[], file: string, text: string): TextEdit[] {
  const own = edits.filter((edit) => edit.file === file).sort((a, b) => a.begin - b.begin);
  const offsets = utf16Offsets(
    text,
    own.flatMap((edit) => [edit.begin, edit.end]),
  );
  const starts = lineStarts(text);
  return own.map((edit, index) => ({
    range: { start: positionAt(starts, offsets[2 * index]!), end: positionAt(starts, offsets[2 * index + 1]!) },
    newText: edit.replacement,
  }));
}

/** The text after its edits; they must be in order and apart. */
export function applyTextEdits(text: string, edits: readonly TextEdit[]): string {
  const starts = lineStarts(text);
  const offset = (position: { line: number; character: number }) => starts[position.line]! + position.character;
  let out = '';
  let at = 0;
  for (const edit of edits) {
    out += text.slice(at, offset(edit.range.start)) + edit.newText;
    at = offset(edit.range.end);
  }
  return out + text.slice(at);
}

function severityOf(name: string): Severity {
  return name === 'warning' || name === 'information' || name === 'hint' ? name : 'error';
}

// Lines long enough to hold a place of a file whose text is not at hand.
function blankLines(place: Where): string[] {
  const width = ' '.repeat(Math.max(place.column, place.endColumn, 1));
  return Array.from({ length: Math.max(place.line, place.endLine, 1) }, () => `${width}.`);
}
