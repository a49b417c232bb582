import { expect, test } from 'vitest';
import { lineStarts, positionAt, rangeOf, utf16Column, utf16Offsets } from './offsets';

test('line starts of all kinds of line ends', () => {
  expect(lineStarts('a\nb\r\nc\rd')).toEqual([0, 2, 5, 7]);
  expect(positionAt(lineStarts('ab\ncd'), 4)).toEqual({ line: 1, character: 1 });
});

test('columns count characters, the editor UTF-16 units', () => {
  expect(utf16Column('a😀b', 2)).toBe(3);
  expect(utf16Column('ab', 9)).toBe(2);
});

test('byte offsets against the platform', () => {
  const text = 'x = "é😀" # ü\nnext\n';
  for (let unit = 0; unit <= text.length; unit++) {
    if (unit > 0 && text.codePointAt(unit - 1)! > 0xffff) continue;
    const bytes = Buffer.from(text.slice(0, unit), 'utf8').length;
    expect(utf16Offsets(text, [bytes])).toEqual([unit]);
  }
  expect(utf16Offsets(text, [0, 4, 10_000])).toEqual([0, 4, text.length]);
});

test('ranges of places', () => {
  const lines = ['  block = f(😀, 1)', 'next'];
  const at = (line: number, column: number, endLine: number, endColumn: number) =>
    rangeOf({ line, column, endLine, endColumn }, lines);
  expect(at(1, 13, 1, 14)).toEqual({ start: { line: 0, character: 12 }, end: { line: 0, character: 14 } });
  expect(at(1, 0, 0, 0)).toEqual({ start: { line: 0, character: 2 }, end: { line: 0, character: 18 } });
  expect(at(0, 0, 0, 0).start).toEqual({ line: 0, character: 0 });
  expect(at(9, 1, 9, 3).start.line).toBe(1);
  expect(at(1, 3, 1, 3).end.character).toBe(18);
});
