// The profile of a file beside its lines: which figure, how warm, and the table of the hover. Values only; the editor's
// decorations are made from them for the lines that are visible.
import { formatBytes, formatCount, formatShare } from './format';
import type { ChipProfile, ProfileLine } from './results';

export const metrics = ['share', 'cycles', 'mxu', 'vpu', 'spills', 'casts', 'relayouts', 'traffic', 'waits'] as const;
export type Metric = (typeof metrics)[number];

export const metricNames: Readonly<Record<Metric, string>> = {
  share: 'Share of the time',
  cycles: 'Cycles',
  mxu: 'Slots of the matrix unit',
  vpu: 'Slots of the vector unit',
  spills: 'Spills and fills',
  casts: 'Conversions of types',
  relayouts: 'Moves across lanes',
  traffic: 'Bytes copied',
  waits: 'Cycles waiting for copies',
};

export interface OverlayLine {
  readonly line: number; // from 0
  readonly text: string;
  readonly heat: 0 | 1 | 2 | 3 | 4;
  readonly profile: ProfileLine;
}

export interface Overlay {
  readonly chip: string;
  readonly evidenceClass: string;
  readonly versions: string;
  readonly isStatic: boolean;
  readonly lines: ReadonlyMap<number, OverlayLine>;
  readonly unattributedShare: number;
}

export function makeOverlay(profile: ChipProfile, file: string, metric: Metric, thresholdPercent: number): Overlay {
  const own = profile.lines.filter((line) => line.file === file && line.line > 0);
  const total = own.reduce((sum, line) => sum + metricValue(line, metric), 0);
  const all = profile.lines.reduce((sum, line) => sum + line.share, 0);
  const lines = new Map<number, OverlayLine>();
  for (const line of own) {
    const value = metricValue(line, metric);
    const part = metric === 'share' ? line.share : total > 0 ? value / total : 0;
    if (value <= 0 || part * 100 < thresholdPercent) continue;
    const heat = heatOf(part);
    lines.set(line.line - 1, {
      line: line.line - 1,
      text: lineText(line, metric, profile.isStatic),
      heat,
      profile: line,
    });
  }
  const rest = profile.lines.filter((line) => line.line === 0).reduce((sum, line) => sum + line.share, 0);
  const versions = Object.entries(profile.evidence?.versions ?? {}).map(([name, version]) => `${name} ${version}`);
  return {
    chip: profile.chip,
    evidenceClass: profile.evidence?.evidenceClass ?? 'estimated',
    versions: versions.join(', '),
    isStatic: profile.isStatic,
    lines,
    unattributedShare: all > 0 ? rest / all : 0,
  };
}

/** How warm a part of the whole is. Absolute, so that a file without a costly line has no hot one. */
export function heatOf(part: number): 1 | 2 | 3 | 4 {
  return part >= 0.35 ? 4 : part >= 0.15 ? 3 : part >= 0.05 ? 2 : 1;
}

/** What the compiler gives no line, as a text for the kernel's own line; nothing when it is little. */
export function unattributedText(overlay: Overlay, thresholdPercent: number): string | undefined {
  if (overlay.isStatic || overlay.unattributedShare * 100 < Math.max(thresholdPercent, 1)) return undefined;
  return `${formatShare(overlay.unattributedShare)} on no line: copies, waits for them, index arithmetic`;
}

export function metricValue(line: ProfileLine, metric: Metric): number {
  switch (metric) {
    case 'share':
      return line.share;
    case 'cycles':
      return line.cycles;
    case 'mxu':
      return slotsOf(line, 'MXU');
    case 'vpu':
      return slotsOf(line, 'VPU');
    case 'spills':
      return line.spills;
    case 'casts':
      return line.casts;
    case 'relayouts':
      return line.relayouts;
    case 'traffic':
      return line.dmaBytes;
    case 'waits':
      return line.dmaWaitCycles;
  }
}

function slotsOf(line: ProfileLine, unit: string): number {
  const found = Object.entries(line.slots).find(([name]) => name.toUpperCase() === unit);
  return found?.[1] ?? 0;
}

/** The unit whose slots the line uses most; waiting when it mostly waits. */
export function busiestUnit(line: ProfileLine): string {
  if (line.cycles > 0 && line.dmaWaitCycles > line.cycles / 2) return 'waits for copies';
  const [unit] = Object.entries(line.slots).sort((a, b) => b[1] - a[1])[0] ?? [''];
  return unit;
}

export function lineText(line: ProfileLine, metric: Metric, isStatic: boolean): string {
  const parts = [leadText(line, metric, isStatic)];
  const unit = busiestUnit(line);
  if (unit !== '') parts.push(unit);
  if (line.spills > 0 && metric !== 'spills') parts.push(`${formatCount(line.spills)} spills`);
  if (line.casts > 0 && metric !== 'casts') parts.push(`${formatCount(line.casts)} casts`);
  return parts.join(' · ');
}

function leadText(line: ProfileLine, metric: Metric, isStatic: boolean): string {
  switch (metric) {
    case 'share':
      return isStatic ? `${formatShare(line.share)} of the code` : formatShare(line.share);
    case 'cycles':
      return `${formatCount(line.cycles)} cycles`;
    case 'mxu':
      return `${formatCount(metricValue(line, metric))} MXU slots`;
    case 'vpu':
      return `${formatCount(metricValue(line, metric))} VPU slots`;
    case 'spills':
      return `${formatCount(line.spills)} spills`;
    case 'casts':
      return `${formatCount(line.casts)} casts`;
    case 'relayouts':
      return `${formatCount(line.relayouts)} moves`;
    case 'traffic':
      return formatBytes(line.dmaBytes);
    case 'waits':
      return `${formatCount(line.dmaWaitCycles)} cycles waiting`;
  }
}

/** The hover of a line as Markdown. */
export function hoverMarkdown(line: OverlayLine, overlay: Overlay, stale: boolean): string {
  const p = line.profile;
  const rows: [string, string][] = [
    ['share', formatShare(p.share)],
    ['cycles', formatCount(p.cycles)],
    ['waiting for copies', `${formatCount(p.dmaWaitCycles)} cycles`],
    ['copied', formatBytes(p.dmaBytes)],
    ...Object.entries(p.slots).map(([unit, count]): [string, string] => [`${unit} slots`, formatCount(count)]),
    ['spills and fills', formatCount(p.spills)],
    ['casts', formatCount(p.casts) + (p.castsInserted > 0 ? ` (${formatCount(p.castsInserted)} by the compiler)` : '')],
    ['moves across lanes', formatCount(p.relayouts)],
    ['live registers', `at most ${p.liveRegisters} of 64`],
  ];
  const state = stale ? ' **The text has changed since.**' : '';
  const counted = overlay.isStatic ? ' No time can be given: each instruction counts once.' : '';
  return [
    `**${overlay.evidenceClass}** for ${overlay.chip}, ${overlay.versions || 'versions unknown'}.${counted}${state}`,
    '',
    '| | |',
    '|---|---:|',
    ...rows.filter(([, value]) => !/^0( |$)/.test(value)).map(([name, value]) => `| ${name} | ${value} |`),
  ].join('\n');
}
