import { describe, expect, test } from 'vitest';
import type { Event } from '../generated/kernelwright/v1/run';
import { RunRecord } from '../generated/kernelwright/v1/session';
import { describeCandidate, describeProgress, describeRun, planMarkdown, runContext, RunTable } from './runs';

let sequence = 0;
type Kind = NonNullable<Event['kind']>;
const event = (kind: Kind): Event => ({ sequence: ++sequence, run: 'r1', timeUnixMs: 1000 + sequence, kind });
const row = {
  id: 'c1',
  status: 'passed',
  what: 'rows=256',
  gate: '',
  why: '',
  estimateMs: 0.5,
  rankedMs: 0,
  contentSha256: '',
  milliseconds: 1,
  compileCached: false,
};

function story(): Event[] {
  sequence = 0;
  const step = {
    id: 's1',
    title: 'Choose `rows`',
    file: '/k.py',
    line: 3,
    endLine: 3,
    reason: 'why',
    expectedGain: '4x',
    evidence: 'ranked',
    contentSha256: 'h',
  };
  return [
    event({ $case: 'planMade', planMade: { chip: 'v5e', steps: [step] } }),
    event({
      $case: 'runStarted',
      runStarted: { kind: 'optimize', file: '/k.py', function: 'f', chips: ['v5e'], referenceSha256: '' },
    }),
    event({ $case: 'baselineReady', baselineReady: { chip: 'v5e', cost: undefined, note: '' } }),
    event({ $case: 'candidateChanged', candidateChanged: { chip: 'v5e', candidate: { ...row, status: 'compiling' } } }),
    event({ $case: 'candidateChanged', candidateChanged: { chip: 'v5e', candidate: row } }),
    event({ $case: 'bestChanged', bestChanged: { chip: 'v5e', candidate: 'c1', speedup: 2, verdict: 'faster' } }),
    event({
      $case: 'progress',
      progress: { chip: 'v5e', stage: 'checking', finished: 1, total: 4, compiles: 1, etaMilliseconds: 61_000 },
    }),
    event({ $case: 'runFinished', runFinished: { status: 'improved', message: 'done', exitCode: 0 } }),
  ];
}

describe('RunTable', () => {
  test('events make the state', () => {
    const table = new RunTable();
    for (const e of story()) expect(table.applyEvent(e)).toBe(true);
    const run = table.get('r1')!;
    expect(run).toMatchObject({ kind: 'optimize', status: 'improved', function: 'f', speedup: 2, message: 'done' });
    expect(run.candidates.get('v5e/c1')?.row.status).toBe('passed');
    expect(table.lastSequence).toBe(8);
    expect(describeRun(run)).toBe('2.00x faster (est.)');
    expect(runContext(run)).toBe('run reviewable');
    expect(planMarkdown(run)).toContain('expected gain: 4x');
  });
  test('c28: a replay over live events changes nothing, at every cut', () => {
    const events = story();
    const whole = new RunTable();
    for (const e of events) whole.applyEvent(e);
    for (let cut = 0; cut <= events.length; cut++) {
      const table = new RunTable();
      for (const e of [...events.slice(0, cut), ...events]) table.applyEvent(e);
      expect(table.get('r1')).toEqual(whole.get('r1'));
    }
  });
  test('a record fills in what events have not said', () => {
    const table = new RunTable();
    const record = RunRecord.fromPartial({
      run: 'r2',
      kind: 'tune',
      status: 'interrupted',
      file: '/k.py',
      function: 'g',
      createdUnixMs: 5,
    });
    expect(runContext(table.applyRecord(record))).toBe('run resumable');
  });
  test('c23: memory is flat over many runs; running and pinned ones stay', () => {
    const table = new RunTable();
    for (let i = 0; i < 1000; i++) {
      table.applyRecord(
        RunRecord.fromPartial({ run: `x${i}`, status: i === 0 ? 'running' : 'failed', createdUnixMs: i }),
      );
      table.trim(100, new Set(['x1']));
    }
    expect(table.all()).toHaveLength(102);
    expect(table.get('x0')).toBeDefined();
    expect(table.get('x1')).toBeDefined();
  });
});

test('rows of the list', () => {
  expect(describeProgress({ stage: 'compiling', finished: 1, total: 4, etaMs: 61_000 })).toBe(
    'compiling, 1 of 4 candidates, about 1 min 1 s left',
  );
  expect(describeProgress({ stage: '', finished: 0, total: 0, etaMs: -1 })).toBe('working');
  expect(describeCandidate({ chip: 'v5e', row: { ...row, status: 'failed', gate: 'G23', why: 'too much' } })).toBe(
    'failed · est. 500 µs · G23 · too much',
  );
});
