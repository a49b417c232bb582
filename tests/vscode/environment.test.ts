// Machines that lack something: one message that says what and how to get it.
import { describe, expect, test } from 'vitest';
import { bench, full } from './harness';
import { offTile, slowAdd } from './kernels';

describe.runIf(full)('no interpreter', () => {
  const b = bench({ settings: { 'kernelwright.python.interpreter': '/nowhere/python' } });
  test('is said once, with the remedy', async () => {
    b.machine.write('add.py', slowAdd);
    const window = await b.open('add.py');
    await window.toast('/nowhere/python').waitFor();
    await window.shot('no-python');
    expect(await window.page.locator('.notification-list-item').count()).toBe(1);
  });
});

describe.runIf(full)('no binary', () => {
  const b = bench({ settings: { 'kernelwright.daemon.path': '/nowhere/kernelwright' } });
  test('is said once, and the editor goes on', async () => {
    b.machine.write('add.py', slowAdd);
    const window = await b.open('add.py');
    await window.toast('Correct the setting').waitFor();
    await window.lens('Optimize').waitFor();
    await window.status('Kernelwright').waitFor();
    await window.shot('no-binary');
  });
});

for (const theme of ['Default Dark Modern', 'Default High Contrast', 'Default High Contrast Light']) {
  describe.runIf(full)(theme, () => {
    const b = bench({ settings: { 'workbench.colorTheme': theme } });
    test('figures, heat and squiggles can be told apart', async () => {
      b.machine.write('add.py', slowAdd);
      b.machine.write('negate.py', offTile);
      const window = await b.open('add.py');
      await window.pressLens('Profile', window.lens('est. '));
      await window.afterLine('% ·');
      await window.pressLens('est. ', window.anyTab('Profile: add'));
      await window.frame('main h1');
      await window.shot(`theme-${theme.replaceAll(' ', '-')}`);
    });
  });
}
