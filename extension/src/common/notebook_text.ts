// A notebook as one module: its Python cells one after the other, with magic commands blanked, and the way back from a
// line of the module to a cell and its line.

export interface Cell {
  readonly id: string;
  readonly text: string;
}

export interface NotebookModule {
  readonly text: string;
  readonly cells: readonly { readonly id: string; readonly firstLine: number; readonly lines: number }[];
}

export function notebookModule(cells: readonly Cell[]): NotebookModule {
  const lines: string[] = [];
  const map: { id: string; firstLine: number; lines: number }[] = [];
  for (const cell of cells) {
    const wholeMagic = /^\s*%%/.test(cell.text);
    const own = cell.text.split(/\r?\n/).map((line) => (wholeMagic || /^\s*[%!?]/.test(line) ? '' : line));
    map.push({ id: cell.id, firstLine: lines.length, lines: own.length });
    lines.push(...own);
  }
  return { text: lines.join('\n') + (lines.length > 0 ? '\n' : ''), cells: map };
}

/** The cell that holds a line of the module (from 0), and the line in it. */
export function cellOf(module: NotebookModule, line: number): { id: string; line: number } | undefined {
  const cell = module.cells.find((c) => line >= c.firstLine && line < c.firstLine + c.lines);
  return cell ? { id: cell.id, line: line - cell.firstLine } : undefined;
}
