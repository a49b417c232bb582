// The package, installed into a clean profile: it brings its own daemon and worker, and works without this tree.
import { execFileSync } from 'node:child_process';
import * as path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { full } from './harness';
import { offTile } from './kernels';
import { Machine, top, until } from './machine';
import { closeBrowser, Window } from './window';

describe.runIf(full)('package', () => {
  const vsix = path.join(top, 'build', 'kernelwright-test.vsix');

  beforeAll(() => {
    const args = [path.join(top, 'extension/scripts/package.mjs'), '--output', vsix];
    // A binary that was built elsewhere spares the build of another one.
    if (process.env.KW_PACKAGE_BINARY !== undefined) args.push('--binary', process.env.KW_PACKAGE_BINARY);
    execFileSync(process.execPath, args, { stdio: 'inherit' });
  }, 1_800_000);

  test('installs, starts its own daemon and checks a file', async () => {
    const machine = new Machine({ withoutExtension: true, settings: { 'kernelwright.daemon.path': '' } });
    try {
      machine.install(process.env.KW_VSCODE!, vsix);
      machine.write('negate.py', offTile);
      await machine.startServer(process.env.KW_VSCODE!);
      const window = await Window.open(machine, 'negate.py');
      await window.squiggle('error').first().waitFor();
      await window.shot('package');
      const pid = await until('the daemon serves', 30, () => machine.daemonPid());
      expect(execFileSync('readlink', [`/proc/${pid}/exe`], { encoding: 'utf8' })).toContain(machine.root);
      await window.close();
    } finally {
      await closeBrowser();
      await machine.stop();
    }
  });
});
