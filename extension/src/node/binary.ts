// The binary: where it is, whether it runs here, and which build it is; and the one command by which a daemon is found or
// started. Versions, locks and replacement of older daemons are the binary's own business (docs/daemon.md).
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { UserError } from './errors';

export interface BuildIdentity {
  readonly version: string;
  readonly build: number;
  readonly commit: string;
  readonly protocolMin: number;
  readonly protocolMax: number;
}

export interface BinaryPlaces {
  readonly setting: string;
  readonly extensionPath: string;
  readonly platform: string;
  readonly arch: string;
}

/** Path of the binary; throws with what to do when this platform has none. */
export function findBinary(places: BinaryPlaces): string {
  if (places.setting !== '') {
    if (isExecutable(places.setting)) return places.setting;
    throw new UserError(
      `The setting kernelwright.daemon.path names ${places.setting}, which is no program.`,
      'Correct the setting, or clear it to use the binary of the extension.',
    );
  }
  if (places.platform !== 'linux' || places.arch !== 'x64') {
    throw new UserError(
      `Kernelwright's compiler runs on Linux x86-64, and this is ${places.platform} ${places.arch}.`,
      'Open the folder over Remote-SSH, in WSL or in a container; the extension then runs there.',
    );
  }
  const candidates = [
    path.join(places.extensionPath, 'bin', 'kernelwright'),
    // In the source tree, after scripts/build.
    path.join(places.extensionPath, '..', 'build', 'kernelwright'),
  ];
  makeExecutable(candidates[0]!);
  const found = candidates.find(isExecutable);
  if (found !== undefined) return found;
  throw new UserError(`The extension's binary is missing: ${candidates[0]}.`, 'Install the extension again.');
}

// Some ways to unpack an extension drop the mode of its files.
function makeExecutable(file: string): void {
  try {
    if (fs.existsSync(file) && !isExecutable(file)) fs.chmodSync(file, 0o755);
  } catch {
    // Not ours to change; what follows says that it is missing.
  }
}

function isExecutable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function runCommand(
  file: string,
  args: readonly string[],
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const options = {
      timeout: timeoutMs,
      maxBuffer: 64 << 20,
      encoding: 'utf8' as const,
      ...(signal ? { signal } : {}),
    };
    execFile(file, [...args], options, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') {
        reject(signal?.aborted ? new UserError('cancelled', '', 'cancelled') : startError(file, error, stderr));
        return;
      }
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

function startError(file: string, error: Error & { killed?: boolean }, stderr: string): UserError {
  if (error.killed) return new UserError(`${file} did not answer in time.`, 'Show the log for more.');
  return new UserError(`${file} cannot be started: ${stderr.trim() || error.message}`, '');
}

/** Runs the binary once without a daemon: says who it is, or why it cannot run on this machine. */
export async function identify(file: string): Promise<BuildIdentity> {
  const result = await runCommand(file, ['version', '--json'], 20_000);
  if (result.code !== 0) throw loaderError(file, result);
  try {
    const json = JSON.parse(result.stdout) as {
      version: string;
      build: number;
      commit: string;
      protocol: { min: number; max: number };
    };
    const { version, build, commit, protocol } = json;
    return { version, build, commit, protocolMin: protocol.min, protocolMax: protocol.max };
  } catch {
    throw new UserError(`${file} is not a Kernelwright binary.`, 'Correct the setting kernelwright.daemon.path.');
  }
}

export function loaderError(file: string, result: CommandResult): UserError {
  const glibc = /version [`'](GLIBC(?:XX)?_[\d.]+)' not found/.exec(result.stderr);
  if (glibc) {
    return new UserError(
      `Kernelwright's binary needs ${glibc[1]}, which this system's C library does not have.`,
      'Use a newer system (glibc 2.35 or later), or a container.',
    );
  }
  const library = /error while loading shared libraries: (\S+):/.exec(result.stderr);
  if (library) {
    return new UserError(
      `Kernelwright's binary needs the library ${library[1]}, which is not installed.`,
      "Install it with the system's package manager.",
    );
  }
  return new UserError(`${file} ended with exit code ${result.code}: ${result.stderr.trim().slice(-500)}`, '');
}

/** Makes sure that a daemon serves: uses the one that does, else starts or replaces it. Returns notes for the log. */
export async function ensureDaemon(file: string): Promise<string> {
  const result = await runCommand(file, ['runs', 'list', '--limit', '1', '--json'], 60_000);
  if (result.code === 0) return result.stderr.trim();
  let message = result.stderr.trim().slice(-1000);
  let remedy = '';
  try {
    const { error } = JSON.parse(result.stdout) as { error?: { message?: string; remedy?: string } };
    message = error?.message ?? message;
    remedy = error?.remedy ?? '';
  } catch {
    // It died before it could say why in JSON; its standard error has to do.
  }
  throw new UserError(`The daemon cannot be used: ${message}.`, remedy);
}
