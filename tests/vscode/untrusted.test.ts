// An untrusted folder: kernels are marked, and nothing is started, imported or compiled until it is trusted.
import { expect, test } from 'vitest';
import { bench } from './harness';
import { offTile } from './kernels';

const b = bench({ trust: false });

test('an untrusted folder is view only, and trust starts the check', async () => {
  b.machine.write('negate.py', offTile);
  const window = await b.open('negate.py');
  await window.lens('trust the workspace').waitFor();
  await window.shot('untrusted');
  expect(b.machine.daemonPid()).toBeUndefined();
});
