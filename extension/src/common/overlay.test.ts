import { describe, expect, test } from 'vitest';
import { hoverMarkdown, lineText, makeOverlay, metrics, unattributedText } from './overlay';
import { parseProfileResult } from './results';

const line = (number: number, share: number, more: object = {}) => ({
  file: '/k.py',
  line: number,
  cycles: share * 1000,
  share,
  slots: { VPU: 5, MXU: 2 },
  spills: 0,
  casts: 0,
  casts_inserted: 0,
  relayouts: 0,
  dma_bytes: 0,
  dma_wait_cycles: 0,
  live_registers: 7,
  ...more,
});
const json = (counts = 'executed') =>
  JSON.stringify({
    file: '/k.py',
    function: 'f',
    results: [
      {
        chip: 'v5e',
        status: 'profiled',
        estimate_ms: 0.5,
        interval: [0.4, 0.6],
        confidence: 'medium',
        bound: 'memory',
        counts,
        evidence: {
          class: 'estimated',
          chip: 'v5e',
          versions: { libtpu: '0.0.52' },
          interval: [0.4, 0.6],
          confidence: 'medium',
        },
        lines: [
          line(0, 0.4),
          line(3, 0.5, { spills: 12, casts: 3, casts_inserted: 2 }),
          line(4, 0.06),
          line(5, 0.004),
          line(9, 0.036, { file: '/other.py' }),
        ],
        advice: [{ id: 'spills', kernel: 'k', file: '/k.py', lines: [3], title: 't', text: 'x', share: 0.1 }],
      },
    ],
  });

describe('makeOverlay', () => {
  const chip = parseProfileResult(json())!.results[0]!;
  test('own lines above the threshold, hot by their share of the whole', () => {
    const overlay = makeOverlay(chip, '/k.py', 'share', 1);
    expect([...overlay.lines.keys()]).toEqual([2, 3]);
    expect([...overlay.lines.values()].map((l) => l.heat)).toEqual([4, 2]);
    expect(overlay.lines.get(2)!.text).toBe('50 % · VPU · 12 spills · 3 casts');
    expect(overlay.unattributedShare).toBeCloseTo(0.4);
    expect(unattributedText(overlay, 1)).toMatch(/^40 % on no line/);
    expect(unattributedText(overlay, 50)).toBeUndefined();
  });
  test('EvidenceClass: the hover names class, chip and versions', () => {
    const overlay = makeOverlay(chip, '/k.py', 'share', 1);
    const hover = hoverMarkdown(overlay.lines.get(2)!, overlay, true);
    expect(hover).toContain('**estimated** for v5e, libtpu 0.0.52');
    expect(hover).toContain('The text has changed since');
    expect(hover).toContain('3 (2 by the compiler)');
    expect(hover).not.toContain('moves across lanes');
  });
  test('every metric has a text', () => {
    for (const metric of metrics) expect(lineText(chip.lines[1]!, metric, false)).not.toMatch(/undefined|NaN/);
  });
  test('a refused time is never a share of time', () => {
    const refused = parseProfileResult(json('static'))!.results[0]!;
    const overlay = makeOverlay(refused, '/k.py', 'share', 1);
    expect(overlay.lines.get(2)!.text).toContain('of the code');
    expect(unattributedText(overlay, 1)).toBeUndefined();
    expect(hoverMarkdown(overlay.lines.get(2)!, overlay, false)).toContain('No time can be given');
  });
});
