import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureDaemon, findBinary, identify, loaderError } from './binary';
import { parseDiscovery, readDiscovery, runtimeFolder } from './discovery';
import { UserError } from './errors';
import { tail } from './log_tail';
import { sha256 } from './sha256';

let folder: string;
beforeEach(() => (folder = fs.mkdtempSync(path.join(os.tmpdir(), 'kw-node-'))));
afterEach(() => fs.rmSync(folder, { recursive: true }));

const program = (text: string): string => {
  const file = path.join(folder, 'kernelwright');
  fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return file;
};
const good = {
  schema_version: 1,
  socket: '/run/s',
  token: 'a'.repeat(64),
  cookie: 'b'.repeat(64),
  pid: 7,
  start_unix_ms: 1,
  version: '0.1.0',
  build: 3,
  commit: 'c',
};

describe('discovery', () => {
  const uid = process.geteuid!();
  test("the folder follows the daemon's rule", async () => {
    const base = { uid, runUser: '/nonexistent' };
    expect(await runtimeFolder({ ...base, xdgRuntimeDir: folder, tmpdir: '/t' })).toBe(
      path.join(folder, 'kernelwright'),
    );
    expect(await runtimeFolder({ ...base, xdgRuntimeDir: 'relative', tmpdir: '/t' })).toBe(`/t/kernelwright-${uid}`);
    expect(await runtimeFolder({ ...base, xdgRuntimeDir: undefined, tmpdir: '' })).toBe(`/tmp/kernelwright-${uid}`);
  });
  test('a file that others could write is refused', async () => {
    const file = path.join(folder, 'daemon.json');
    fs.writeFileSync(file, JSON.stringify(good), { mode: 0o600 });
    expect((await readDiscovery(folder, uid)).pid).toBe(7);
    fs.chmodSync(file, 0o644);
    await expect(readDiscovery(folder, uid)).rejects.toThrow('not private');
  });
  test.each(['token', 'cookie', 'socket', 'pid', 'build'])('a bad %s is refused', (name) => {
    expect(() => parseDiscovery(JSON.stringify({ ...good, [name]: '' }))).toThrow('out of range');
  });
});

describe('binary', () => {
  const places = { setting: '', extensionPath: '/nowhere', platform: 'linux', arch: 'x64' };
  test('c13: another platform gets one message that says where it works', () => {
    expect(() => findBinary({ ...places, platform: 'darwin' })).toThrow('Remote-SSH');
    expect(() => findBinary(places)).toThrow('Install the extension again');
    expect(() => findBinary({ ...places, setting: '/none' })).toThrow('Correct the setting');
  });
  test('the setting wins', () => {
    const file = program('exit 0');
    expect(findBinary({ ...places, platform: 'darwin', setting: file })).toBe(file);
  });
  test('identify asks once and explains a C library that is too old', async () => {
    const file = program(`echo '{"version":"0.1.0","build":9,"commit":"c","protocol":{"min":1,"max":1}}'`);
    expect(await identify(file)).toMatchObject({ build: 9, protocolMax: 1 });
    const old = { code: 1, stdout: '', stderr: "kernelwright: /lib/libc.so.6: version `GLIBC_2.38' not found" };
    expect(loaderError(file, old).message).toContain('glibc 2.35');
    await expect(identify(program('echo nonsense'))).rejects.toThrow('not a Kernelwright binary');
  });
  test('c07: a daemon that cannot start gives its reason and remedy at once', async () => {
    const file = program(`echo '{"error":{"kind":"environment","message":"no room","remedy":"free some."}}'; exit 3`);
    await expect(ensureDaemon(file)).rejects.toThrow(UserError);
    await expect(ensureDaemon(file)).rejects.toThrow('no room');
    expect(await ensureDaemon(program('echo note >&2; echo {}'))).toBe('note');
  });
});

test('hash and tail', async () => {
  expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  const file = path.join(folder, 'log');
  fs.writeFileSync(file, 'x'.repeat(100) + 'end');
  expect(await tail(file, 5)).toBe('xxend');
  expect(await tail(path.join(folder, 'none'), 5)).toContain('does not exist');
});
