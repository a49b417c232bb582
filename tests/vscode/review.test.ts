// What becomes of a candidate when the file is not what it was: nothing is lost, and each refusal says why.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { bench, full } from './harness';
import { slowAdd } from './kernels';
import { until } from './machine';
import type { Window } from './window';

describe.runIf(full)('review', () => {
  const b = bench({ settings: { 'kernelwright.optimize.maxCompiles': 3, 'kernelwright.check.run': 'manual' } });
  let improved = '';

  beforeAll(() => {
    b.machine.write('add.py', slowAdd);
    b.machine.kernelwright('optimize', `${b.machine.workspace}/add.py::add`, '--chip', 'v5e', '--max-compiles', '3');
    const runs = b.machine.kernelwright('runs', 'list', '--json');
    expect(runs).toContain('improved');
    const { runs: list } = JSON.parse(runs) as { runs: { run: string }[] };
    const result = b.machine.kernelwright('runs', 'show', list[0]!.run, '--json');
    improved = (JSON.parse(result) as { best: { edits: { new_text: string }[] } }).best.edits[0]!.new_text;
  });

  const review = async (text: string): Promise<Window> => {
    b.machine.write('add.py', text);
    const window = await b.open('add.py');
    await window.command('Kernelwright: Review Candidate');
    await window.tab('add.py:').waitFor();
    return window;
  };

  test('c28: a run of the shell is in the list of a window, with its candidates', async () => {
    const window = await b.open('add.py');
    await window.openView();
    const run = window.row('optimize add');
    await run.click();
    await window.page.keyboard.press('ArrowRight');
    await window.row('rows=256').waitFor();
    await window.shot('runs-candidates');
  });

  test('lines that moved take the change along', async () => {
    const window = await review(`# a new first line\n${slowAdd}`);
    await window.command('Kernelwright: Accept All Changes');
    await until('the merge is on disk', 20, () => b.machine.read('add.py') === `# a new first line\n${improved}`);
  });

  test('c32: a line that was changed meanwhile is never overwritten', async () => {
    const mine = slowAdd.replace('rows=8', 'rows=16');
    const window = await review(mine);
    await window.command('Kernelwright: Accept All Changes');
    await window.dialog('was changed where the candidate changes it').waitFor();
    await window.shot('conflict');
    await window.pressDialogButton('was changed', 'Compare');
    await window.tab('as it is now').waitFor();
    expect(b.machine.read('add.py')).toBe(mine);
  });

  test('chosen changes only, by keyboard', async () => {
    const window = await review(slowAdd);
    await window.command('Kernelwright: Choose Changes to Accept');
    await window.quickPickRow('rows=256').waitFor();
    await window.shot('hunks');
    await window.page.keyboard.press('Enter');
    await until('the change is on disk', 20, () => b.machine.read('add.py') === improved);
  });

  test('a rejected candidate changes nothing', async () => {
    const window = await review(slowAdd);
    await window.command('Kernelwright: Reject Candidate');
    await window.tab('add.py:').waitFor({ state: 'detached' });
    expect(b.machine.read('add.py')).toBe(slowAdd);
  });

  test('unsaved changes elsewhere stay, and stay unsaved', async () => {
    b.machine.write('add.py', slowAdd);
    const window = await b.open('add.py');
    await window.line('import jax').click();
    await window.page.keyboard.press('Control+Home');
    await window.page.keyboard.type('# mine ');
    await window.command('Kernelwright: Review Candidate');
    await window.tab('add.py:').waitFor();
    await window.command('Kernelwright: Accept All Changes');
    await window.line('rows=256').waitFor();
    await window.line('# mine import jax').waitFor();
    expect(b.machine.read('add.py')).toBe(slowAdd);
  });

  test('a file that is gone is not made again', async () => {
    const window = await review(slowAdd);
    fs.rmSync(path.join(b.machine.workspace, 'add.py'));
    await window.command('Kernelwright: Accept All Changes');
    await window.toast('does not exist any more').waitFor();
    expect(fs.existsSync(path.join(b.machine.workspace, 'add.py'))).toBe(false);
  });

  test('the plan as text', async () => {
    b.machine.write('add.py', slowAdd);
    const window = await b.open('add.py');
    await window.command('Kernelwright: Open Plan as Text');
    await window.line('expected gain').waitFor();
  });
});
