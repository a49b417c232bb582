// How often a daemon that keeps ending may be started again before the user is asked: at most four times in three minutes.

export class RestartPolicy {
  private readonly starts: number[] = [];

  constructor(
    private readonly now: () => number,
    private readonly limit = 4,
    private readonly windowMs = 180_000,
  ) {}

  /** Counts a start; false when there were too many. */
  tryStart(): boolean {
    const now = this.now();
    while (this.starts.length > 0 && this.starts[0]! <= now - this.windowMs) this.starts.shift();
    if (this.starts.length >= this.limit) return false;
    this.starts.push(now);
    return true;
  }

  /** Milliseconds to wait before the next start: none, then doubling. */
  delay(): number {
    return this.starts.length <= 1 ? 0 : Math.min(250 * 2 ** (this.starts.length - 2), 8000);
  }

  reset(): void {
    this.starts.length = 0;
  }
}
