// What the windows know of runs: a state made from records and numbered events, and from nothing else. Applying an event
// twice changes nothing, so that replays after a reload and live events can overlap.
import type { CandidateRow, Event, PlanStep } from '../generated/kernelwright/v1/run';
import type { RunRecord } from '../generated/kernelwright/v1/session';
import { formatDuration, formatMs, formatSpeedup } from './format';

export interface CandidateState {
  readonly chip: string;
  readonly row: CandidateRow;
}

export interface RunState {
  readonly id: string;
  kind: string;
  status: string; // running, interrupted, improved, no_improvement, failed, cancelled
  file: string;
  function: string;
  chips: readonly string[];
  createdMs: number;
  message: string;
  speedup: number;
  lastSequence: number;
  eventsComplete: boolean; // replayed from the first event on
  readonly plans: Map<string, readonly PlanStep[]>; // by chip
  readonly baselines: Map<string, number | undefined>; // by chip: ms, or refused
  readonly candidates: Map<string, CandidateState>; // by chip and id
  readonly best: Map<string, string>; // by chip: candidate
  progress: { stage: string; finished: number; total: number; etaMs: number } | undefined;
}

export class RunTable {
  private readonly runs = new Map<string, RunState>();
  /** Newest event that was applied. */
  lastSequence = 0;

  get(id: string): RunState | undefined {
    return this.runs.get(id);
  }

  /** Newest first. */
  all(): RunState[] {
    return [...this.runs.values()].sort((a, b) => b.createdMs - a.createdMs || (a.id < b.id ? 1 : -1));
  }

  /** Takes over what the daemon says of a run. Events are newer than records where both speak of the same. */
  applyRecord(record: RunRecord): RunState {
    const run = this.ensure(record.run);
    run.kind = record.kind;
    run.file = record.file;
    run.function = record.function;
    run.chips = record.chips;
    run.createdMs = record.createdUnixMs;
    run.status = record.status;
    run.speedup = Math.max(run.speedup, record.speedup);
    return run;
  }

  /** False when the event is of no run, or was applied before. */
  applyEvent(event: Event): boolean {
    this.lastSequence = Math.max(this.lastSequence, event.sequence);
    if (event.run === '' || !event.kind) return false;
    const run = this.ensure(event.run);
    if (event.sequence <= run.lastSequence) return false;
    run.lastSequence = event.sequence;
    if (run.createdMs === 0) run.createdMs = event.timeUnixMs;
    const kind = event.kind;
    switch (kind.$case) {
      case 'runStarted':
        run.kind = kind.runStarted.kind;
        run.file = kind.runStarted.file;
        run.function = kind.runStarted.function;
        run.chips = kind.runStarted.chips;
        run.status = 'running';
        break;
      case 'planMade':
        run.plans.set(kind.planMade.chip, kind.planMade.steps);
        break;
      case 'baselineReady': {
        const cost = kind.baselineReady.cost?.kind;
        run.baselines.set(kind.baselineReady.chip, cost?.$case === 'estimate' ? cost.estimate.milliseconds : undefined);
        break;
      }
      case 'candidateChanged': {
        const row = kind.candidateChanged.candidate;
        if (row)
          run.candidates.set(`${kind.candidateChanged.chip}/${row.id}`, { chip: kind.candidateChanged.chip, row });
        break;
      }
      case 'bestChanged':
        run.best.set(kind.bestChanged.chip, kind.bestChanged.candidate);
        run.speedup = Math.max(run.speedup, kind.bestChanged.speedup);
        break;
      case 'progress':
        run.progress = {
          stage: kind.progress.stage,
          finished: kind.progress.finished,
          total: kind.progress.total,
          etaMs: kind.progress.etaMilliseconds,
        };
        if (run.status !== 'running' && kind.progress.stage !== 'done') run.status = 'running';
        break;
      case 'logLine':
        run.message = kind.logLine.text;
        break;
      case 'runFinished':
        run.status = kind.runFinished.status;
        run.message = kind.runFinished.message;
        run.progress = undefined;
        break;
      case 'runResumed':
        run.status = 'running';
        break;
    }
    return true;
  }

  /** Drops all but the newest runs that have ended, so that memory stays flat. */
  trim(keep: number, pinned: ReadonlySet<string>): void {
    for (const run of this.all().slice(keep)) {
      if (run.status !== 'running' && !pinned.has(run.id)) this.runs.delete(run.id);
    }
  }

  private ensure(id: string): RunState {
    let run = this.runs.get(id);
    if (!run) {
      run = {
        id,
        kind: '',
        status: 'running',
        file: '',
        function: '',
        chips: [],
        createdMs: 0,
        message: '',
        speedup: 0,
        lastSequence: 0,
        eventsComplete: false,
        plans: new Map(),
        baselines: new Map(),
        candidates: new Map(),
        best: new Map(),
        progress: undefined,
      };
      this.runs.set(id, run);
    }
    return run;
  }
}

export function isActive(run: RunState): boolean {
  return run.status === 'running' || run.status === 'queued';
}

/** What a row of the list says beside its name. */
export function describeRun(run: RunState): string {
  if (isActive(run)) return run.progress ? describeProgress(run.progress) : 'running';
  const words = run.status.replace(/_/g, ' ');
  return run.status === 'improved' && run.speedup > 0 ? `${formatSpeedup(run.speedup)} faster (est.)` : words;
}

export function describeProgress(progress: NonNullable<RunState['progress']>): string {
  const parts = [progress.stage || 'working'];
  if (progress.total > 0) parts.push(`${progress.finished} of ${progress.total} candidates`);
  if (progress.etaMs >= 0 && progress.total > 0) parts.push(`about ${formatDuration(progress.etaMs)} left`);
  return parts.join(', ');
}

export function describeCandidate(candidate: CandidateState): string {
  const { row } = candidate;
  const parts: string[] = [row.status];
  if (row.estimateMs > 0) parts.push(`est. ${formatMs(row.estimateMs)}`);
  if (row.gate !== '') parts.push(row.gate);
  if (row.why !== '') parts.push(row.why);
  return parts.join(' · ');
}

/** What can be done with a run, as words in the context value of its row. */
export function runContext(run: RunState): string {
  const can: string[] = ['run'];
  if (isActive(run)) can.push('cancellable');
  if (run.status === 'interrupted' || run.status === 'cancelled') can.push('resumable');
  if (run.status === 'improved' || run.best.size > 0) can.push('reviewable');
  return can.join(' ');
}

/** A plan as Markdown. */
export function planMarkdown(run: RunState): string {
  const lines = [`# Plan of ${run.kind} ${run.function}`, '', `Run \`${run.id}\`, ${run.file}`, ''];
  for (const [chip, steps] of run.plans) {
    lines.push(`## ${chip}`, '');
    if (steps.length === 0) lines.push('No steps.', '');
    steps.forEach((step, index) => {
      lines.push(
        `${index + 1}. **${step.title}** (line ${step.line})`,
        `   - why: ${step.reason}`,
        `   - expected gain: ${step.expectedGain}`,
        `   - evidence: ${step.evidence}`,
        '',
      );
    });
  }
  return lines.join('\n');
}
