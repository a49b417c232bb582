// Maps what the daemon says of runs to the one table that all views read. It attaches with the number of the last event,
// so a reload, a second window and a daemon that was restarted all see every event once.
import * as vscode from 'vscode';
import { isActive, RunTable, type RunState } from '../common/runs';
import type { DaemonClient } from '../node/client';
import { CallError } from '../node/errors';
import type { DaemonCare } from './daemon_care';

const kKeptRuns = 100;

export class Controller implements vscode.Disposable {
  readonly table = new RunTable();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly ended = new vscode.EventEmitter<RunState>();
  /** Something about runs has changed; at most every 50 ms. */
  readonly onDidChange = this.changed.event;
  /** A run ended while this window was attached. */
  readonly onDidEnd = this.ended.event;
  private timer: NodeJS.Timeout | undefined;
  private watching: AbortController | undefined;
  private attached: Promise<void> = Promise.resolve();
  pinned: ReadonlySet<string> = new Set();

  constructor(
    private readonly daemon: DaemonCare,
    private readonly log: vscode.LogOutputChannel,
  ) {
    daemon.onDidConnect((client) => {
      this.attached = this.attach(client).catch((error: unknown) => {
        this.log.warn(`attaching to the event log: ${error instanceof Error ? error.message : String(error)}`);
      });
    });
  }

  /** Resolves when the table holds what the daemon had at the last connect. */
  whenAttached(): Promise<void> {
    return this.attached;
  }

  activeRuns(): number {
    return this.table.all().filter(isActive).length;
  }

  /** Makes sure that plan and candidates of a run are known. */
  async details(id: string): Promise<RunState | undefined> {
    const known = this.table.get(id);
    if (known?.eventsComplete) return known;
    await this.daemon.call((client) => this.replay(client, id));
    return this.table.get(id);
  }

  async refresh(): Promise<void> {
    const records = await this.daemon.call((client) => client.listRuns(kKeptRuns));
    for (const record of records) this.table.applyRecord(record);
    this.fire();
  }

  /** Resolves with the run when it has ended, or rejects when `signal` aborts. */
  whenEnded(id: string, signal: AbortSignal): Promise<RunState> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const run = this.table.get(id);
        if (run && !isActive(run)) finish(() => resolve(run));
      };
      const abort = () => finish(() => reject(new Error('cancelled')));
      const subscription = this.onDidChange(look);
      const finish = (settle: () => void) => {
        subscription.dispose();
        signal.removeEventListener('abort', abort);
        settle();
      };
      signal.addEventListener('abort', abort);
      look();
    });
  }

  dispose(): void {
    this.watching?.abort();
    clearTimeout(this.timer);
    this.changed.dispose();
    this.ended.dispose();
  }

  private async attach(client: DaemonClient): Promise<void> {
    this.watching?.abort();
    const watching = new AbortController();
    this.watching = watching;
    const since = this.table.lastSequence;
    // Listening begins before the list is asked for: what happens in between is in both, and applying twice is harmless.
    this.follow(client, since, watching.signal);
    for (const record of await client.listRuns(kKeptRuns)) this.table.applyRecord(record);
    for (const run of this.table.all().filter(isActive)) await this.replay(client, run.id);
    this.fire();
  }

  private follow(client: DaemonClient, since: number, signal: AbortSignal): void {
    client
      .watch(
        '',
        since,
        true,
        (event) => {
          const before = this.table.get(event.run);
          const wasActive = before === undefined || isActive(before);
          if (!this.table.applyEvent(event)) return;
          const run = this.table.get(event.run)!;
          // The log was read from its first event on, so nothing of the run is missing.
          if (since === 0) run.eventsComplete = true;
          if (event.kind?.$case === 'runFinished' && wasActive) this.ended.fire(run);
          this.fire();
        },
        signal,
      )
      .then(
        () => this.daemon.lost(client),
        (error: unknown) => {
          if (signal.aborted) return;
          this.log.warn(`event log: ${error instanceof Error ? error.message : String(error)}`);
          if (error instanceof CallError) this.daemon.lost(client);
        },
      );
  }

  private async replay(client: DaemonClient, id: string): Promise<void> {
    await client.watch(id, 0, false, (event) => void this.table.applyEvent(event), new AbortController().signal);
    const run = this.table.get(id);
    if (run) run.eventsComplete = true;
    this.fire();
  }

  private fire(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.table.trim(kKeptRuns, this.pinned);
      this.changed.fire();
    }, 50);
  }
}
