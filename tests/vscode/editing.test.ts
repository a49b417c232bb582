// Smaller things that a user does, one window each.
import { describe, expect, test } from 'vitest';
import { bench, full } from './harness';
import { offTile, slowAdd } from './kernels';
import { until } from './machine';

describe.runIf(full)('editing', () => {
  const b = bench({ settings: { 'kernelwright.optimize.maxCompiles': 30 } });

  test('an error is seen while typing, before the file is saved', async () => {
    b.machine.write('typed.py', slowAdd);
    const window = await b.open('typed.py');
    await window.lens('Optimize').waitFor();
    await window.goToLine(10, 18);
    await window.page.keyboard.press('End');
    await window.page.keyboard.press('ArrowLeft');
    await window.page.keyboard.press('ArrowLeft');
    await window.page.keyboard.type('12');
    await window.page.keyboard.press('Delete');
    await window.squiggle('error').first().waitFor();
    expect(b.machine.read('typed.py')).toBe(slowAdd);
    await window.shot('typed');
  });

  test('fix all from the palette', async () => {
    b.machine.write('all.py', offTile);
    const window = await b.open('all.py');
    await window.squiggle('error').first().waitFor();
    await until('fixes were proven', 90, () => /checked .*all\.py/.test(b.machine.extensionLog()));
    await window.line('def negate(x)').click();
    await window.command('Fix All');
    await window.squiggle('error').first().waitFor({ state: 'detached' });
  });

  test('the refactor menu offers to optimize and retune', async () => {
    b.machine.write('menu.py', slowAdd);
    const window = await b.open('menu.py');
    await window.lens('Optimize').waitFor();
    await window.goToLine(11, 6);
    await window.page.keyboard.press('Control+Shift+r');
    await window.page.locator('.action-widget', { hasText: 'Retune block sizes' }).first().waitFor();
    await window.shot('refactor');
  });

  test('a run is cancelled from its progress, and what was found is kept', async () => {
    b.machine.write('cancel.py', slowAdd.replaceAll('2048', '4096'));
    const window = await b.open('cancel.py');
    await window.pressLens('Optimize', window.toast('optimize add'));
    await until('the run is stored', 30, () => b.machine.kernelwright('runs', 'list', '--json').includes('"running"'));
    await window.pressToastButton('optimize add', 'Cancel');
    await until('the run is cancelled', 60, () =>
      b.machine.kernelwright('runs', 'list', '--json').includes('"cancelled"'),
    );
  });

  test('a second window sees the run of the first', async () => {
    b.machine.write('two.py', slowAdd.replaceAll('512', '1024'));
    const first = await b.open('two.py');
    await first.pressLens('Optimize', first.toast('optimize add'));
    const second = await b.open('two.py');
    await second.openView();
    await second.row('candidates').waitFor();
    await second.shot('second-window');
    await first.pressToastButton('optimize add', 'Cancel');
    await second.row('candidates').waitFor({ state: 'detached' });
  });

  test('a cell of a notebook is checked', async () => {
    const cells = ['%matplotlib inline\nimport jax', offTile].map((source) => ({
      cell_type: 'code',
      source,
      metadata: {},
      outputs: [],
      execution_count: null,
    }));
    const metadata = { language_info: { name: 'python' }, kernelspec: { name: 'python3', display_name: 'Python 3' } };
    b.machine.write('book.ipynb', JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }));
    // As a notebook, and not as the text that a file given to the window would be.
    const window = await b.open();
    await window.openFile('book.ipynb');
    await window.squiggle('error').first().waitFor();
    await window.shot('notebook');
  });

  test('the overlay can be hidden, shown and set to another figure by keyboard', async () => {
    b.machine.write('metric.py', slowAdd);
    const window = await b.open('metric.py');
    await window.lens('Optimize').waitFor();
    await window.goToLine(11, 6);
    await window.page.keyboard.press('Control+Alt+k');
    await window.page.keyboard.press('p');
    await window.afterLine('% ·');
    await window.command('Kernelwright: Choose What the Overlay Shows');
    await window.quickPickRow('Cycles').first().click();
    await window.afterLine('cycles');
    await window.command('Kernelwright: Show or Hide Profile');
    await window.notAfterLine('cycles');
  });

  test("the page of a diagnostic opens, and the compiler's own text", async () => {
    b.machine.write('page.py', offTile);
    const window = await b.open('page.py');
    await window.squiggle('error').first().waitFor();
    await until('the check ended', 90, () => /checked .*page\.py/.test(b.machine.extensionLog()));
    await window.goToLine(11, 15);
    await window.takeQuickFix('About D01');
    expect(await (await window.frame('h1')).textContent('h1')).toContain('D01');
    await window.shot('documentation');
  });

  test('doctor lists what is there, and a report holds no token', async () => {
    const window = await b.open('page.py');
    await window.command('Kernelwright: Doctor');
    await window.quickPickRow('interpreter').waitFor({ timeout: 120_000 });
    await window.shot('doctor');
    await window.page.keyboard.press('Escape');
    await window.command('Kernelwright: Report a Problem');
    await window.line('# Kernelwright: report of a problem').waitFor({ timeout: 120_000 });
    await window.shot('report');
  });

  test('views show workers and chips with sources', async () => {
    const window = await b.open('page.py');
    await window.openView();
    await window.row('local worker').waitFor();
    await window.page.locator('.pane-header', { hasText: 'Chips' }).click();
    await window.row('v5e').click();
    await window.row('Matrix units').waitFor();
    await window.shot('views');
  });

  test('the walkthrough opens', async () => {
    const window = await b.open('page.py');
    await window.command('Welcome: Open Walkthrough');
    await window.quickPickRow('Your first faster kernel').click();
    await window.page.locator('.getting-started-step', { hasText: 'See that everything is there' }).first().waitFor();
    await window.shot('walkthrough');
  });
});
