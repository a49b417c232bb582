// Places in texts. The daemon counts lines and columns from 1, columns in characters (code points), and edits in bytes
// of UTF-8; the editor counts from 0 in UTF-16 units.

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** Where each line begins, in UTF-16 units. Line ends are \n, \r\n and \r, as the editor counts them. */
export function lineStarts(text: string): number[] {
  const starts = [0];
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 13 && text.charCodeAt(i + 1) === 10) continue;
    if (c === 10 || c === 13) starts.push(i + 1);
  }
  return starts;
}

export function positionAt(starts: readonly number[], offset: number): Position {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low, character: offset - starts[low]! };
}

/** UTF-16 units of the first `characters` code points of `line`. */
export function utf16Column(line: string, characters: number): number {
  let units = 0;
  for (let i = 0; i < characters && units < line.length; i++) {
    units += line.codePointAt(units)! > 0xffff ? 2 : 1;
  }
  return units;
}

/** UTF-16 offset of each of the `bytes` offsets of the text's UTF-8 form; offsets must be in order. */
export function utf16Offsets(text: string, bytes: readonly number[]): number[] {
  const result: number[] = [];
  let at = 0;
  let unit = 0;
  for (const wanted of bytes) {
    while (at < wanted && unit < text.length) {
      const c = text.codePointAt(unit)!;
      at += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
      unit += c > 0xffff ? 2 : 1;
    }
    result.push(unit);
  }
  return result;
}

export interface DaemonPlace {
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
}

/** The editor's range of a daemon's place; a place without columns is the line's code. */
export function rangeOf(place: DaemonPlace, lines: readonly string[]): Range {
  const last = Math.max(lines.length - 1, 0);
  const line = Math.min(Math.max(place.line - 1, 0), last);
  const text = lines[line] ?? '';
  if (place.line <= 0 || place.column <= 0) {
    const start = place.line <= 0 ? 0 : text.length - text.trimStart().length;
    return { start: { line, character: start }, end: { line, character: Math.max(text.trimEnd().length, start) } };
  }
  const start = { line, character: utf16Column(text, place.column - 1) };
  const endLine = Math.min(Math.max(place.endLine - 1, line), last);
  const endText = lines[endLine] ?? '';
  let end = { line: endLine, character: utf16Column(endText, Math.max(place.endColumn - 1, 0)) };
  if (place.endLine <= 0 || (end.line === start.line && end.character <= start.character)) {
    end = { line, character: Math.max(text.trimEnd().length, start.character) };
  }
  return { start, end };
}
