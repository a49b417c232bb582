// Benchmarks: time of activation, and how much later the extension host's loop is with the overlay on in a long file.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { describe, expect, test } from 'vitest';
import { bench, full } from './harness';
import { slowAdd } from './kernels';
import { top, until } from './machine';

const probe = path.join(__dirname, 'loop_probe');

// A file of 5,000 lines whose kernel has a costly line on every tenth one.
function longFile(): string {
  const filler = Array.from(
    { length: 490 },
    (_, i) => `def helper_${i}(a):\n${'    a = a + 1\n'.repeat(8)}    return a\n`,
  );
  return `${slowAdd}\n\n${filler.join('')}`;
}

function report(name: string, value: object): void {
  const folder = path.join(top, 'build', 'vscode-artefacts');
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, `${name}.json`), JSON.stringify(value, null, 1));
  console.log(name, JSON.stringify(value));
}

async function measure(b: ReturnType<typeof bench>, withOverlay: boolean): Promise<{ p99: number; p50: number }> {
  const folder = path.join(b.machine.root, 'loop');
  for (const name of ['start', 'started', 'stop', 'result.json']) fs.rmSync(path.join(folder, name), { force: true });
  b.machine.write('long.py', longFile());
  const window = await b.open('long.py');
  if (withOverlay) {
    await window.pressLens('Profile', window.lens('est. '));
    await window.afterLine('on no line');
  } else {
    await window.line('def add').waitFor();
  }
  await until('the probe listens', 60, () => {
    fs.writeFileSync(path.join(folder, 'start'), '');
    return fs.existsSync(path.join(folder, 'started'));
  });
  await window.line('def add').click();
  for (let i = 0; i < 60; i++) await window.page.keyboard.press('PageDown');
  for (let i = 0; i < 60; i++) await window.page.keyboard.press('PageUp');
  const result = await until('the probe answers', 30, () => {
    fs.writeFileSync(path.join(folder, 'stop'), '');
    const file = path.join(folder, 'result.json');
    return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : undefined;
  });
  return JSON.parse(result) as { p99: number; p50: number };
}

const loopFolder = fs.mkdtempSync('/tmp/kwl-');
const environment = { KW_LOOP_FOLDER: loopFolder };
let off: { p99: number; p50: number };

describe.runIf(full)('extension off', () => {
  const b = bench({ environment, probe, withoutExtension: true });
  test('the loop without us', async () => {
    off = await measure(withFolder(b), false);
    report('loop-delay-off', off);
  });
});

describe.runIf(full)('extension on', () => {
  const b = bench({ environment, probe });
  test('with the overlay on, p99 of the loop delay is at most 20 ms above that', async () => {
    const on = await measure(withFolder(b), true);
    report('loop-delay-on', on);
    expect(on.p99 - off.p99).toBeLessThanOrEqual(20);
  });
  test('activation takes less than 150 ms of our own time', () => {
    const found = [...b.machine.extensionLog().matchAll(/loaded in ([\d.]+) ms, activated in ([\d.]+) ms/g)];
    const times = found.map((match) => Number(match[1]) + Number(match[2]));
    report('activation', { times });
    expect(Math.min(...times)).toBeLessThan(150);
  });
});

// The probe's folder must exist before the editor starts; it is not the machine's, which is made later.
function withFolder(b: ReturnType<typeof bench>): ReturnType<typeof bench> {
  const link = path.join(b.machine.root, 'loop');
  if (!fs.existsSync(link)) fs.symlinkSync(loopFolder, link);
  return b;
}
