// The chips and their figures, each with its source, from the product's own table.
import table from '../../../agents/chips.json';
import { formatBytes } from './format';

export interface ChipRow {
  readonly label: string;
  readonly value: string;
  readonly source: string;
}

export interface Chip {
  readonly name: string;
  readonly summary: string;
  readonly rows: readonly ChipRow[];
}

interface Figure {
  readonly value: number;
  readonly source: string;
  readonly state: string;
}

interface Entry {
  readonly name: string;
  readonly device_kind: string;
  readonly calibration: string;
  readonly cores_per_device: number;
  readonly mxu_count: number;
  readonly mxu_size: number;
  readonly figures: Readonly<Record<string, Figure | undefined>>;
  readonly peak_tflops: Readonly<Record<string, Figure | undefined>>;
}

export function chips(names: readonly string[]): Chip[] {
  const entries = table.chips as unknown as readonly Entry[];
  return entries
    .filter((entry) => names.includes(entry.name))
    .map((entry) => ({
      name: entry.name,
      summary: `${entry.device_kind}, ${entry.cores_per_device} ${entry.cores_per_device === 1 ? 'core' : 'cores'}, model ${entry.calibration}`,
      rows: [
        row('Matrix units', `${entry.mxu_count} of ${entry.mxu_size} x ${entry.mxu_size} per core`, undefined),
        ...Object.entries(entry.peak_tflops).map(([type, figure]) =>
          row(`Peak, ${type}`, `${figure?.value} TFLOP/s`, figure),
        ),
        figureRow(entry, 'Clock', 'clock_ghz', (value) => `${value} GHz`),
        figureRow(entry, 'HBM bandwidth', 'hbm_gbps', (value) => `${value} GB/s`),
        figureRow(entry, 'HBM', 'hbm_bytes', formatBytes),
        figureRow(entry, 'VMEM', 'vmem_bytes', formatBytes),
        figureRow(entry, 'VMEM limit of a kernel', 'vmem_default_limit_bytes', formatBytes),
      ].filter((item) => item !== undefined),
    }));
}

function figureRow(entry: Entry, label: string, name: string, show: (value: number) => string): ChipRow | undefined {
  const figure = entry.figures[name];
  return figure && row(label, show(figure.value), figure);
}

function row(label: string, value: string, figure: Figure | undefined): ChipRow {
  return { label, value, source: figure ? `${figure.state}: ${figure.source}` : '' };
}
