import { expect, test } from 'vitest';
import { Diagnostic } from '../generated/kernelwright/v1/check';
import { applyTextEdits, messageOf, toEditorDiagnostic, toTextEdits } from './diagnostics';

const place = { file: '/k.py', line: 2, column: 3, endLine: 2, endColumn: 6 };
const diagnostic = Diagnostic.fromPartial({
  id: 'D01',
  name: 'block-tile',
  severity: 'error',
  place,
  message: 'bad block',
  cause: 'tiles',
  advice: 'round up',
  page: 'docs/diagnostics/D01.md',
  chips: ['v5e'],
  related: [{ place: { ...place, line: 1 }, message: 'here' }],
  fixes: [
    {
      title: 'fix',
      verified: ['v5e'],
      edits: [{ file: '/k.py', begin: 0, end: 1, replacement: 'x', baseSha256: 'h' }],
    },
  ],
  raw: 'Mosaic said no',
});

test('a diagnostic as the editor shows it', () => {
  const shown = toEditorDiagnostic(diagnostic, ['v5e', 'v6e'], (file) =>
    file === '/k.py' ? ['abc', '  def', ''] : undefined,
  );
  expect(shown).toMatchObject({
    id: 'D01',
    severity: 'error',
    file: '/k.py',
    raw: 'Mosaic said no',
    range: { start: { line: 1, character: 2 }, end: { line: 1, character: 5 } },
  });
  expect(shown.message).toBe('bad block\ntiles\nround up\nOnly on v5e.');
  expect(shown.related[0]).toMatchObject({ message: 'here', range: { start: { line: 0 } } });
  expect(shown.fixes[0]?.verified).toEqual(['v5e']);
});

test('a place in a file that is not open keeps its line and columns', () => {
  const shown = toEditorDiagnostic(diagnostic, ['v5e'], () => undefined);
  expect(shown.range.start).toEqual({ line: 1, character: 2 });
  expect(messageOf(diagnostic, ['v5e'])).not.toContain('Only on');
});

test('edits in bytes become edits in lines, and give the text that was meant', () => {
  const text = 'é = 1\r\nb = (12, 160)\r\n';
  const bytes = Buffer.from(text);
  const edit = (what: string, replacement: string) => ({
    file: '/k.py',
    begin: bytes.indexOf(what),
    end: bytes.indexOf(what) + what.length,
    replacement,
    baseSha256: '',
  });
  const edits = toTextEdits(
    [edit('160', '128'), edit('12,', '8,'), { ...edit('1', ''), file: '/other.py' }],
    '/k.py',
    text,
  );
  expect(edits).toHaveLength(2);
  expect(applyTextEdits(text, edits)).toBe('é = 1\r\nb = (8, 128)\r\n');
});
