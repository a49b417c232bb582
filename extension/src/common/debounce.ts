// How long to wait after a key before a file is checked: a share of what its checks take, within limits, so that quick
// files answer at once and slow ones do not start work that the next key throws away.

export class AdaptiveDelay {
  private average: number | undefined;

  constructor(private readonly maximum = 2000) {}

  learn(checkMs: number): void {
    this.average = this.average === undefined ? checkMs : 0.7 * this.average + 0.3 * checkMs;
  }

  next(minimum: number): number {
    return Math.max(minimum, Math.min((this.average ?? 0) * 0.3, this.maximum));
  }
}
