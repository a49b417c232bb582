// Differences of texts by lines (Myers), hunks of an edit, and the merge of two edits of one text. Pure functions: what a
// review shows, what is accepted, and what is refused is decided here and tested without an editor.

/** Lines [baseStart, baseEnd) of the base become `lines`. */
export interface Hunk {
  readonly baseStart: number;
  readonly baseEnd: number;
  readonly lines: readonly string[];
}

/** Lines with their line ends, so that joining them gives the text again. */
export function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Hunks that turn `base` into `other`, in order, never touching each other. */
export function diffLines(base: readonly string[], other: readonly string[]): Hunk[] {
  let start = 0;
  while (start < base.length && start < other.length && base[start] === other[start]) start++;
  let baseEnd = base.length;
  let otherEnd = other.length;
  while (baseEnd > start && otherEnd > start && base[baseEnd - 1] === other[otherEnd - 1]) {
    baseEnd--;
    otherEnd--;
  }
  const hunks: Hunk[] = [];
  let b = start;
  let o = start;
  const flush = (nextB: number, nextO: number) => {
    if (nextB > b || nextO > o) hunks.push({ baseStart: b, baseEnd: nextB, lines: other.slice(o, nextO) });
  };
  for (const [matchB, matchO] of matches(base, other, start, baseEnd, otherEnd)) {
    flush(matchB, matchO);
    b = matchB + 1;
    o = matchO + 1;
  }
  flush(baseEnd, otherEnd);
  return hunks;
}

// Pairs of equal lines on a shortest edit path.
function matches(
  a: readonly string[],
  b: readonly string[],
  start: number,
  aEnd: number,
  bEnd: number,
): [number, number][] {
  const n = aEnd - start;
  const m = bEnd - start;
  const max = n + m;
  const v = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let d = 0; d <= max; d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
      let x = down ? (v.get(k + 1) ?? 0) : (v.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < n && y < m && a[start + x] === b[start + y]) {
        x++;
        y++;
      }
      v.set(k, x);
      if (x >= n && y >= m) return backtrack(trace, n, m, start);
    }
  }
  return [];
}

function backtrack(trace: readonly Map<number, number>[], n: number, m: number, start: number): [number, number][] {
  const pairs: [number, number][] = [];
  let x = n;
  let y = m;
  for (let d = trace.length - 1; d >= 0; d--) {
    const v = trace[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
    const previousK = down ? k + 1 : k - 1;
    const previousX = v.get(previousK) ?? 0;
    const previousY = previousX - previousK;
    while (x > previousX && y > previousY && x > 0 && y > 0) {
      pairs.push([start + x - 1, start + y - 1]);
      x--;
      y--;
    }
    x = previousX;
    y = previousY;
  }
  return pairs.reverse();
}

export function applyHunks(base: readonly string[], hunks: readonly Hunk[]): string {
  const out: string[] = [];
  let at = 0;
  for (const hunk of hunks) {
    out.push(...base.slice(at, hunk.baseStart), ...hunk.lines);
    at = hunk.baseEnd;
  }
  out.push(...base.slice(at));
  return out.join('');
}

export interface MergedHunk {
  readonly hunk: Hunk; // as proposed, in lines of the base
  readonly outcome: 'applied' | 'already' | 'conflict';
  readonly placed?: Hunk; // in lines of the current text, when applied
}

/**
 * Carries hunks of `base` over to `current`, a later text of the same file. A hunk that meets a line which changed since,
 * or touches a change, is a conflict and stays out; one that the current text has already is left alone.
 */
export function carryOver(base: string, current: string, hunks: readonly Hunk[]): MergedHunk[] {
  const baseLines = splitLines(base);
  const changes = diffLines(baseLines, splitLines(current));
  return hunks.map((hunk) => {
    let shift = 0;
    for (const change of changes) {
      const same = change.baseStart === hunk.baseStart && change.baseEnd === hunk.baseEnd;
      if (same && change.lines.join('') === hunk.lines.join('')) return { hunk, outcome: 'already' };
      if (change.baseEnd >= hunk.baseStart && change.baseStart <= hunk.baseEnd) return { hunk, outcome: 'conflict' };
      if (change.baseEnd < hunk.baseStart) shift += change.lines.length - (change.baseEnd - change.baseStart);
    }
    const placed = { baseStart: hunk.baseStart + shift, baseEnd: hunk.baseEnd + shift, lines: hunk.lines };
    return { hunk, outcome: 'applied', placed };
  });
}

/** One line about a hunk, for lists: "lines 28-29: def matmul(…" */
export function hunkLabel(hunk: Hunk): string {
  const last = Math.max(hunk.baseEnd, hunk.baseStart + 1);
  const where = last - hunk.baseStart > 1 ? `lines ${hunk.baseStart + 1}-${last}` : `line ${hunk.baseStart + 1}`;
  const text = (hunk.lines.find((line) => line.trim() !== '') ?? '').trim();
  return `${where}: ${text === '' ? 'removed' : text.length > 80 ? `${text.slice(0, 79)}…` : text}`;
}

/** Where a line of an earlier text is after an edit of [startLine, endLine] into `added` + 1 lines; -1 when it was changed. */
export function shiftLine(line: number, startLine: number, endLine: number, added: number): number {
  if (line < startLine) return line;
  if (line > endLine) return line + added - (endLine - startLine);
  return -1;
}
