// A private machine for the tests of the extension: folders of its own for daemon, state and editor, the real binary, a
// copy of kernels to work on. What was started is ended, and looked for afterwards.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import * as http from 'node:http';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';

export const top = path.resolve(__dirname, '../..');
export const binary = process.env.KW_BINARY ?? path.join(top, 'build', 'kernelwright');
const extensionFolder = path.join(top, 'extension');

export async function until<T>(
  what: string,
  seconds: number,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > end) throw new Error(`did not happen within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function dataFolder(): string {
  const share = process.env.XDG_DATA_HOME ?? path.join(os.homedir(), '.local', 'share');
  return process.env.KERNELWRIGHT_HOME ?? path.join(share, 'kernelwright');
}

export interface MachineOptions {
  /** An editor without Kernelwright. */
  readonly withoutExtension?: boolean;
  /** Folder of one more extension. */
  readonly probe?: string;
  readonly settings?: Record<string, unknown>;
  readonly trust?: boolean;
  readonly environment?: Record<string, string | undefined>;
}

export class Machine {
  readonly root: string;
  readonly workspace: string;
  private readonly environment: NodeJS.ProcessEnv;
  private server: ChildProcess | undefined;
  port = 0;

  constructor(readonly options: MachineOptions = {}) {
    // Short, because a socket's path has at most 107 characters.
    this.root = fs.mkdtempSync(path.join('/tmp', 'kwv-'));
    this.workspace = path.join(this.root, 'project');
    for (const name of ['state', 'cache', 'config', 'tmp', 'data/User', 'extensions', 'project']) {
      fs.mkdirSync(path.join(this.root, name), { recursive: true });
    }
    fs.mkdirSync(path.join(this.root, 'run'), { mode: 0o700 });
    this.environment = {
      HOME: this.root,
      PATH: process.env.PATH,
      LANG: 'C.UTF-8',
      XDG_STATE_HOME: path.join(this.root, 'state'),
      XDG_CACHE_HOME: path.join(this.root, 'cache'),
      XDG_CONFIG_HOME: path.join(this.root, 'config'),
      XDG_RUNTIME_DIR: path.join(this.root, 'run'),
      TMPDIR: path.join(this.root, 'tmp'),
      KERNELWRIGHT_HOME: dataFolder(),
      KERNELWRIGHT_LOG: 'debug',
      ...options.environment,
    };
    const settings = {
      'workbench.startupEditor': 'none',
      'telemetry.telemetryLevel': 'off',
      'extensions.autoUpdate': false,
      'extensions.autoCheckUpdates': false,
      'extensions.ignoreRecommendations': true,
      'security.workspace.trust.enabled': options.trust === false,
      'workbench.enableExperiments': false,
      'git.enabled': false,
      'chat.disableAIFeatures': true,
      'workbench.secondarySideBar.defaultVisibility': 'hidden',
      'workbench.colorTheme': 'Default Light Modern',
      'editor.minimap.enabled': false,
      'editor.accessibilitySupport': 'off',
      'window.confirmBeforeClose': 'never',
      'files.hotExit': 'off',
      'files.autoSave': 'off',
      'workbench.tips.enabled': false,
      'editor.hover.delay': 100,
      'kernelwright.daemon.path': binary,
      ...options.settings,
    };
    // Paths of programs are settings of the machine that the code is on.
    for (const place of ['data/User', 'data/Machine']) {
      fs.mkdirSync(path.join(this.root, place), { recursive: true });
      fs.writeFileSync(path.join(this.root, place, 'settings.json'), JSON.stringify(settings));
    }
    const link = (folder: string, name: string) => fs.symlinkSync(folder, path.join(this.root, 'extensions', name));
    if (options.withoutExtension !== true) link(extensionFolder, 'kernelwright.kernelwright-0.1.0');
    if (options.probe !== undefined) link(options.probe, 'kernelwright-tests.loop-probe-0.0.1');
  }

  /** Writes a file of the workspace; returns its path. */
  write(name: string, text: string): string {
    const file = path.join(this.workspace, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return file;
  }

  example(name: string): string {
    return this.write(name, fs.readFileSync(path.join(top, 'examples', name), 'utf8'));
  }

  read(name: string): string {
    return fs.readFileSync(path.join(this.workspace, name), 'utf8');
  }

  async startServer(vscode: string): Promise<void> {
    this.port = await freePort();
    const log = fs.openSync(path.join(this.root, 'server.log'), 'a');
    this.server = spawn(
      process.execPath,
      [
        path.join(vscode, 'out/server-main.js'),
        '--host',
        '127.0.0.1',
        '--port',
        String(this.port),
        '--without-connection-token',
        '--accept-server-license-terms',
        '--telemetry-level',
        'off',
        '--user-data-dir',
        path.join(this.root, 'data'),
        '--server-data-dir',
        path.join(this.root, 'server'),
        '--extensions-dir',
        path.join(this.root, 'extensions'),
        ...(this.options.trust === false ? [] : ['--disable-workspace-trust']),
      ],
      { stdio: ['ignore', log, log], detached: true, env: this.environment },
    );
    await until('the VS Code server answers', 60, () => {
      if (this.server?.exitCode !== null) throw new Error(`the server ended:\n${this.serverLog()}`);
      return answers(`http://127.0.0.1:${this.port}/version`);
    });
  }

  /** Installs a package as a user would. */
  install(vscode: string, vsix: string): void {
    const folders = [
      '--extensions-dir',
      path.join(this.root, 'extensions'),
      '--server-data-dir',
      path.join(this.root, 'server'),
    ];
    const args = [
      path.join(vscode, 'out/server-main.js'),
      '--install-extension',
      vsix,
      '--accept-server-license-terms',
      ...folders,
    ];
    execFileSync(process.execPath, args, { env: this.environment, encoding: 'utf8' });
  }

  serverLog(): string {
    return fs.readFileSync(path.join(this.root, 'server.log'), 'utf8');
  }

  /** What the extension wrote to its channel, over all windows. */
  extensionLog(): string {
    return this.find(this.root, 'Kernelwright.log')
      .map((file) => fs.readFileSync(file, 'utf8'))
      .join('\n');
  }

  kernelwright(...args: string[]): string {
    return execFileSync(binary, args, {
      env: this.environment,
      encoding: 'utf8',
    });
  }

  daemonPid(): number | undefined {
    try {
      const { pid } = JSON.parse(fs.readFileSync(path.join(this.root, 'run/kernelwright/daemon.json'), 'utf8')) as {
        pid: number;
      };
      process.kill(pid, 0);
      return pid;
    } catch {
      return undefined;
    }
  }

  async stop(): Promise<void> {
    const pid = this.server?.pid;
    if (pid !== undefined) {
      try {
        process.kill(-pid, 'SIGTERM');
      } catch {
        /* it has ended */
      }
    }
    const daemon = this.daemonPid();
    if (daemon !== undefined) process.kill(daemon, 'SIGTERM');
    await until('every process of the test ends', 20, () => this.leftovers().length === 0).catch(() => undefined);
    const left = this.leftovers();
    for (const { pid: process_ } of left) {
      try {
        process.kill(process_, 'SIGKILL');
      } catch {
        /* it has ended */
      }
    }
    // The editor's server leaves helpers of its own now and then; ours must never stay.
    const own = left.filter(({ command }) => command.includes('kernelwright'));
    if (process.env.KW_KEEP === undefined) fs.rmSync(this.root, { recursive: true, force: true });
    if (own.length > 0) throw new Error(`left behind: ${own.map(({ command }) => command).join('; ')}`);
  }

  // Processes that know our folder: by their environment, which children inherit.
  private leftovers(): { pid: number; command: string }[] {
    const mark = `HOME=${this.root}`;
    return fs
      .readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        try {
          if (!fs.readFileSync(`/proc/${name}/environ`, 'utf8').split('\0').includes(mark)) return [];
          if (/^\d+ \(.*\) Z/s.test(fs.readFileSync(`/proc/${name}/stat`, 'utf8'))) return [];
          return [
            {
              pid: Number(name),
              command: fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' '),
            },
          ];
        } catch {
          return [];
        }
      });
  }

  private find(folder: string, suffix: string): string[] {
    return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const full = path.join(folder, entry.name);
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : this.find(full, suffix);
      return entry.name.endsWith(suffix) ? [full] : [];
    });
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    http
      .get(url, (reply) => {
        reply.resume();
        resolve(reply.statusCode === 200);
      })
      .on('error', () => resolve(false));
  });
}
