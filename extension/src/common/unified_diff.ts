// Undoes a unified diff: what a candidate was made from, exactly, from its new text. The caller compares the hash.

/** The old text; nothing when the diff is not one of `newText`. `path` chooses among several files. */
export function reverseDiff(newText: string, diff: string, path?: string): string | undefined {
  const newLines = newText.split('\n');
  const out: string[] = [];
  let at = 0;
  let own = path === undefined;
  let oldLeft = 0;
  let newLeft = 0;
  for (const line of diff.split('\n')) {
    if (oldLeft > 0 || newLeft > 0) {
      if (line.startsWith('\\')) continue;
      const mark = line === '' ? ' ' : line[0];
      if (mark !== '+') oldLeft--;
      if (mark !== '-') newLeft--;
      if (!own) continue;
      if (mark === '-') {
        out.push(line.slice(1));
      } else {
        if (newLines[at] !== line.slice(1)) return undefined;
        if (mark === ' ') out.push(newLines[at]!);
        at++;
      }
      continue;
    }
    if (line.startsWith('+++ ')) {
      const name = line.slice(4).split('\t')[0]!.replace(/^b\//, '');
      own = path === undefined || path.replace(/^\//, '') === name || path.endsWith(`/${name}`);
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (!hunk) continue;
    oldLeft = hunk[2] === undefined ? 1 : Number(hunk[2]);
    newLeft = hunk[4] === undefined ? 1 : Number(hunk[4]);
    if (!own) continue;
    // A hunk without new lines stands after the line that it names.
    const start = newLeft === 0 ? Number(hunk[3]) : Number(hunk[3]) - 1;
    if (start < at) return undefined;
    while (at < start && at < newLines.length) out.push(newLines[at++]!);
  }
  while (at < newLines.length) out.push(newLines[at++]!);
  return out.join('\n');
}
