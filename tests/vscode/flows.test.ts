// The main flows, each from an open file to what is on disk.
import { expect, test } from 'vitest';
import { bench } from './harness';
import { offTile, plain, slowAdd } from './kernels';
import { until } from './machine';

const b = bench({ settings: { 'kernelwright.optimize.maxCompiles': 3 } });

test('no daemon is started for a file without kernels', async () => {
  b.machine.write('plain.py', plain);
  const window = await b.open('plain.py');
  await window.status('Kernelwright').waitFor();
  await window.line('return 2 * x').waitFor();
  expect(b.machine.daemonPid()).toBeUndefined();
});

test('an error gets a squiggle on its line, a fix that compiles, and is gone', async () => {
  b.machine.write('negate.py', offTile);
  const window = await b.open('negate.py');
  await window.squiggle('error').first().waitFor();
  await window.status('Kernelwright').filter({ hasNotText: 'checking' }).waitFor();
  await window.shot('diagnostic');
  await window.goToLine(11, 15);
  await window.shot('diagnostic-cursor');
  await window.takeQuickFix('compiles on v5e');
  await window.save();
  await until('the fix is on disk', 20, () => b.machine.read('negate.py') !== offTile);
  await window.squiggle('error').first().waitFor({ state: 'detached' });
  const answer = b.machine.kernelwright('check', `${b.machine.workspace}/negate.py`, '--chip', 'v5e', '--json');
  expect(JSON.parse(answer)).toMatchObject({ status: 'clean' });
});

test('a profile stands beside the lines, is stale after an edit, and opens as a panel', async () => {
  b.machine.write('profiled.py', slowAdd);
  const window = await b.open('profiled.py');
  await window.pressLens('Profile', window.toast('Profiling add').or(window.lens('est. ')).first());
  await window.afterLine('% ·');
  await window.lens('est. ').waitFor();
  await window.shot('overlay');
  await window.line('o_ref[...] = x_ref').hover();
  await window.page.locator('.monaco-hover', { hasText: 'estimated for v5e' }).first().waitFor();
  await window.shot('overlay-hover');
  await window.page.keyboard.press('Escape');
  await window.goToLine(7);
  await window.page.keyboard.type('#');
  await window.afterLine('stale');
  await window.lens('before the last edit').waitFor();
  await window.shot('overlay-stale');
  await window.page.keyboard.press('Control+z');
  await window.notAfterLine('stale');
  await window.pressLens('est. ', window.anyTab('Profile: add'));
  const frame = await window.frame('main h1');
  expect(await frame.textContent('main h1')).toContain('add');
  await window.shot('panel');
});

test('optimize shows its plan, survives a reload, and its result is reviewed, accepted and undone', async () => {
  b.machine.write('add.py', slowAdd);
  let window = await b.open('add.py');
  await window.pressLens('Optimize', window.toast('optimize add'));
  await window.shot('optimize-progress');
  await until('the run is stored', 30, () => b.machine.kernelwright('runs', 'list', '--json').includes('"running"'));
  await window.reload();
  await window.tab('add.py:').waitFor({ timeout: 120_000 });
  await window.shot('review');
  await window.command('Kernelwright: Accept All Changes');
  await until(
    'the candidate is on disk',
    20,
    () => b.machine.read('add.py').includes('rows=256') || b.machine.read('add.py').includes('rows=128'),
  );
  await window.lens(/^est\. .* of roofline$/).waitFor();
  await window.command('Kernelwright: Show Plan in the Editor');
  await window.page.locator('.review-widget', { hasText: 'expected gain' }).first().waitFor();
  await window.shot('plan');
  await window.command('Kernelwright: Hide Plan').catch(() => undefined);
  await window.line('def add').click();
  await window.page.keyboard.press('Control+z');
  await window.line('rows=8)').waitFor();
  await window.save();
  await until('the undo is on disk', 20, () => b.machine.read('add.py') === slowAdd);
  window = await b.open('add.py');
  await window.page.locator('.activitybar [aria-label*="Kernelwright"]').first().click();
  await window.page.locator('.monaco-list-row', { hasText: 'optimize add' }).first().waitFor();
  await window.shot('runs-view');
});

test('a daemon that was killed is started again, and the next edit is checked', async () => {
  b.machine.write('killed.py', offTile);
  const window = await b.open('killed.py');
  await window.squiggle('error').first().waitFor();
  const pid = b.machine.daemonPid()!;
  process.kill(pid, 'SIGKILL');
  await until('another daemon serves', 60, () => ![undefined, pid].includes(b.machine.daemonPid()));
  const checks = () => b.machine.extensionLog().split('checked ').length;
  const before = await until(
    'the file is checked again',
    60,
    () => b.machine.extensionLog().includes('connected') && checks(),
  );
  await window.goToLine(11);
  await window.page.keyboard.press('Control+Shift+K');
  await until('the edit is checked', 60, () => checks() > before);
});
