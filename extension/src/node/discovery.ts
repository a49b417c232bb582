// Where the daemon of this user and machine announces itself (docs/daemon.md), and the checks before it is believed.
import * as fs from 'node:fs/promises';
import * as path from 'node:path';

export interface Discovery {
  readonly socket: string;
  readonly token: string;
  readonly cookie: string;
  readonly pid: number;
  readonly startMs: number;
  readonly version: string;
  readonly build: number;
  readonly commit: string;
}

export interface RuntimeEnvironment {
  readonly xdgRuntimeDir: string | undefined;
  readonly tmpdir: string | undefined;
  readonly uid: number;
  readonly runUser?: string;
}

/** The daemon's folder, by the same rule as the daemon's. */
export async function runtimeFolder(environment: RuntimeEnvironment): Promise<string> {
  const { xdgRuntimeDir, tmpdir, uid } = environment;
  const own = async (folder: string) => {
    const info = await fs.stat(folder).catch(() => undefined);
    return info !== undefined && info.isDirectory() && info.uid === uid;
  };
  if (xdgRuntimeDir && path.isAbsolute(xdgRuntimeDir) && (await own(xdgRuntimeDir))) {
    return path.join(xdgRuntimeDir, 'kernelwright');
  }
  const runUser = path.join(environment.runUser ?? '/run/user', String(uid));
  if (await own(runUser)) return path.join(runUser, 'kernelwright');
  return path.join(tmpdir === undefined || tmpdir === '' ? '/tmp' : tmpdir, `kernelwright-${uid}`);
}

/** What the daemon wrote. Throws when there is nothing, or when somebody else could have written it. */
export async function readDiscovery(folder: string, uid: number): Promise<Discovery> {
  const file = path.join(folder, 'daemon.json');
  const info = await fs.lstat(file);
  if (!info.isFile() || info.uid !== uid || (info.mode & 0o077) !== 0) {
    throw new Error(`${file} is not private to you. Remove it; the daemon writes a new one at its next start.`);
  }
  return parseDiscovery(await fs.readFile(file, 'utf8'));
}

export function parseDiscovery(text: string): Discovery {
  const json = JSON.parse(text) as Record<string, unknown>;
  const secret = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
  const { socket, token, cookie, pid, start_unix_ms: startMs, version, build, commit } = json;
  if (
    typeof socket !== 'string' ||
    !socket.startsWith('/') ||
    !secret(token) ||
    !secret(cookie) ||
    typeof pid !== 'number' ||
    pid <= 0 ||
    typeof startMs !== 'number' ||
    typeof version !== 'string' ||
    typeof build !== 'number' ||
    typeof commit !== 'string'
  ) {
    throw new Error("the daemon's discovery file has values out of range");
  }
  return { socket, token, cookie, pid, startMs, version, build, commit };
}
