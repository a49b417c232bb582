import { describe, expect, test } from 'vitest';
import { applyHunks, carryOver, diffLines, hunkLabel, shiftLine, splitLines } from './line_diff';

let seed = 3;
const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
const randomLines = (n: number) => Array.from({ length: random(n) }, () => `${'abc'[random(3)]}\n`);

describe('diffLines', () => {
  test('its hunks turn one text into the other, on random texts', () => {
    for (let round = 0; round < 1000; round++) {
      const a = randomLines(12);
      const b = randomLines(12);
      const hunks = diffLines(a, b);
      expect(applyHunks(a, hunks)).toBe(b.join(''));
      for (let i = 1; i < hunks.length; i++) expect(hunks[i]!.baseStart).toBeGreaterThan(hunks[i - 1]!.baseEnd);
      const size = hunks.reduce((sum, h) => sum + h.lines.length + h.baseEnd - h.baseStart, 0);
      expect(size).toBe(a.length + b.length - 2 * commonLength(a, b));
    }
  });
  test('a last line without an end stays as it is', () => {
    const base = splitLines('a\nb');
    expect(applyHunks(base, diffLines(base, splitLines('a\nc')))).toBe('a\nc');
  });
});

// Longest common subsequence by the textbook.
function commonLength(a: readonly string[], b: readonly string[]): number {
  const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      table[i]![j] = a[i - 1] === b[j - 1] ? table[i - 1]![j - 1]! + 1 : Math.max(table[i - 1]![j]!, table[i]![j - 1]!);
    }
  }
  return table[a.length]![b.length]!;
}

describe('carryOver (c32: an old edit never overwrites newer work)', () => {
  const base = 'one\ntwo\nthree\nfour\nfive\n';
  const hunks = diffLines(splitLines(base), splitLines('one\nTWO\nthree\nfour\nFIVE\n'));
  const carry = (current: string) => carryOver(base, current, hunks).map((item) => item.outcome);
  test('an unchanged text takes all', () => expect(carry(base)).toEqual(['applied', 'applied']));
  test('lines above move a hunk along', () => {
    const current = `zero\n${base}`;
    const placed = carryOver(base, current, hunks).flatMap((item) => (item.placed ? [item.placed] : []));
    expect(applyHunks(splitLines(current), placed)).toBe('zero\none\nTWO\nthree\nfour\nFIVE\n');
  });
  test('c36: each hunk has its own outcome', () =>
    expect(carry('one\n2\nthree\nfour\nfive\n')).toEqual(['conflict', 'applied']));
  test('c34: what is there already is not made again', () => {
    expect(carry('one\nTWO\nthree\nfour\nfive\n')).toEqual(['already', 'applied']);
  });
  test('an insertion that touches a hunk is a conflict', () => {
    expect(carry('one\ntwo\nnew\nthree\nfour\nfive\n')).toEqual(['conflict', 'applied']);
  });
  test('random edits: an applied hunk never changes a line that the user changed', () => {
    for (let round = 0; round < 500; round++) {
      const from = randomLines(10);
      const proposed = randomLines(10);
      const current = randomLines(10);
      const all = diffLines(from, proposed);
      const merged = carryOver(from.join(''), current.join(''), all);
      const placed = merged.flatMap((item) => (item.placed ? [item.placed] : []));
      for (const hunk of placed) {
        const item = merged.find((m) => m.placed === hunk)!;
        expect(current.slice(hunk.baseStart, hunk.baseEnd)).toEqual(from.slice(item.hunk.baseStart, item.hunk.baseEnd));
      }
      const removed = placed.reduce((sum, h) => sum + h.baseEnd - h.baseStart, 0);
      const added = placed.reduce((sum, h) => sum + h.lines.length, 0);
      expect(splitLines(applyHunks(current, placed)).length).toBe(current.length - removed + added);
    }
  });
});

test('labels and shifts', () => {
  expect(hunkLabel({ baseStart: 9, baseEnd: 10, lines: ['def f(x):\n'] })).toBe('line 10: def f(x):');
  expect(hunkLabel({ baseStart: 9, baseEnd: 12, lines: [] })).toBe('lines 10-12: removed');
  expect(shiftLine(5, 1, 1, 2)).toBe(7);
  expect(shiftLine(0, 1, 1, 2)).toBe(0);
  expect(shiftLine(2, 1, 3, 0)).toBe(-1);
});
