// The end of the daemon's log, for reports.
import * as fs from 'node:fs/promises';
import * as os from 'node:os';
import * as path from 'node:path';

export function daemonLogFile(): string {
  const state = process.env.XDG_STATE_HOME;
  const base = state && path.isAbsolute(state) ? state : path.join(os.homedir(), '.local', 'state');
  return path.join(base, 'kernelwright', 'daemon.log');
}

export async function tail(file: string, bytes: number): Promise<string> {
  const handle = await fs.open(file, 'r').catch(() => undefined);
  if (!handle) return `${file} does not exist`;
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.min(size, bytes));
    await handle.read(buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8');
  } finally {
    await handle.close();
  }
}
