// The last known figures of each kernel, for the lens above it. They name their class and chip, and the text that they
// were made from: after a change they are shown as those of an earlier text, never as the new one's.
import { formatMs, formatShare } from './format';

export interface Figures {
  readonly evidenceClass: string; // estimated, measured
  readonly chip: string;
  readonly ms: number | undefined; // none: refused
  readonly bound: string;
  readonly rooflineFraction: number | undefined;
  readonly textHash: string;
  readonly versions: string;
}

export function figuresText(figures: Figures, currentHash: string): string {
  const short = figures.evidenceClass === 'measured' ? 'measured' : 'est.';
  if (figures.ms === undefined) return `no time can be given (${figures.chip})`;
  const parts = [`${short} ${formatMs(figures.ms)} ${figures.chip}`];
  if (figures.bound !== '' && figures.bound !== 'unknown') parts.push(`${figures.bound}-bound`);
  if (figures.rooflineFraction !== undefined) parts.push(`${formatShare(figures.rooflineFraction)} of roofline`);
  return parts.join(', ') + (figures.textHash === currentHash ? '' : ' · before the last edit');
}

/** Figures by file and function; bounded, oldest out first. */
export class FigureStore {
  private readonly entries: Map<string, Figures>;

  constructor(
    saved: readonly (readonly [string, Figures])[] = [],
    private readonly limit = 500,
  ) {
    this.entries = new Map(saved);
  }

  get(file: string, name: string): Figures | undefined {
    return this.entries.get(`${file}::${name}`);
  }

  set(file: string, name: string, figures: Figures): void {
    const key = `${file}::${name}`;
    this.entries.delete(key);
    this.entries.set(key, figures);
    for (const oldest of this.entries.keys()) {
      if (this.entries.size <= this.limit) break;
      this.entries.delete(oldest);
    }
  }

  save(): (readonly [string, Figures])[] {
    return [...this.entries];
  }
}
