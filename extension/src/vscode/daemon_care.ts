// The daemon as the features see it: a connected client, started on first need and never in an untrusted workspace. When
// it ends it is found or started again, with growing pauses and a limit; then there is one message with a button.
import * as vscode from 'vscode';
import type { DaemonState } from '../common/health';
import { RestartPolicy } from '../common/restart_policy';
import { ensureDaemon, findBinary, identify, runCommand, type BuildIdentity } from '../node/binary';
import type { DaemonClient } from '../node/client';
import { readDiscovery, runtimeFolder } from '../node/discovery';
import { CallError, UserError } from '../node/errors';
import { setting } from './settings';

export class DaemonCare implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<DaemonState>();
  private readonly connected = new vscode.EventEmitter<DaemonClient>();
  readonly onDidChangeState = this.changed.event;
  /** A client of a daemon that was not connected before. */
  readonly onDidConnect = this.connected.event;

  private current: DaemonClient | undefined;
  private connecting: Promise<DaemonClient> | undefined;
  private readonly policy = new RestartPolicy(() => Date.now());
  private disposed = false;
  private told = '';
  private identity: { file: string; identity: Promise<BuildIdentity> } | undefined;
  private readonly subscription: vscode.Disposable;
  private stateNow: DaemonState = { kind: 'stopped' };

  constructor(
    private readonly extensionPath: string,
    private readonly log: vscode.LogOutputChannel,
  ) {
    if (!vscode.workspace.isTrusted) this.stateNow = { kind: 'untrusted' };
    // Settings of a remote machine may come after the window; and a corrected path is tried at once.
    this.subscription = vscode.workspace.onDidChangeConfiguration((event) => {
      if (!event.affectsConfiguration('kernelwright.daemon.path') || this.stateNow.kind !== 'failed') return;
      this.policy.reset();
      this.told = '';
      this.client().catch(() => undefined);
    });
  }

  get state(): DaemonState {
    return this.stateNow;
  }

  /** The client that is connected now, if one is. */
  get connectedClient(): DaemonClient | undefined {
    return this.current;
  }

  /** A connected client; starts the daemon when none runs. Throws what can be shown to the user. */
  async client(): Promise<DaemonClient> {
    if (!vscode.workspace.isTrusted) {
      throw new UserError('Kernelwright starts nothing in an untrusted workspace.', 'Trust the workspace to use it.');
    }
    if (this.current) return this.current;
    if (!this.connecting) {
      this.connecting = this.connect().finally(() => (this.connecting = undefined));
    }
    return this.connecting;
  }

  binary(): string {
    return findBinary({
      setting: setting<string>('daemon.path'),
      extensionPath: this.extensionPath,
      platform: process.platform,
      arch: process.arch,
    });
  }

  /** Which build the extension's own binary is; asked once per file. */
  buildIdentity(): Promise<BuildIdentity> {
    const file = this.binary();
    if (this.identity?.file !== file) {
      const asked = identify(file);
      this.identity = { file, identity: asked };
      asked.catch(() => (this.identity = undefined));
    }
    return this.identity.identity;
  }

  /** Called when a call says that the daemon is gone. */
  lost(client: DaemonClient): void {
    if (this.current !== client || this.disposed) return;
    this.log.warn(`the daemon, process ${client.discovery.pid}, is gone`);
    client.close();
    this.current = undefined;
    this.setState({ kind: 'stopped' });
    const delay = this.policy.delay();
    setTimeout(() => {
      if (!this.disposed && !this.current) this.client().catch(() => undefined);
    }, delay);
  }

  /** Runs a call; a lost connection is noticed and told apart from an error of the call. */
  async call<T>(use: (client: DaemonClient) => Promise<T>): Promise<T> {
    const client = await this.client();
    try {
      return await use(client);
    } catch (error) {
      if (error instanceof CallError && error.lost) this.lost(client);
      throw error;
    }
  }

  async restart(): Promise<void> {
    const file = this.binary();
    let result = await runCommand(file, ['stop', '--json'], 60_000);
    if (result.code !== 0) {
      const choice = await vscode.window.showWarningMessage(
        'The Kernelwright daemon is busy.',
        {
          modal: true,
          detail: 'Its runs are interrupted. They are kept, and can be resumed.',
        },
        'Restart Anyway',
      );
      if (choice === undefined) return;
      result = await runCommand(file, ['stop', '--force', '--json'], 60_000);
    }
    this.current?.close();
    this.current = undefined;
    this.policy.reset();
    this.told = '';
    await this.client();
  }

  dispose(): void {
    this.disposed = true;
    this.subscription.dispose();
    this.current?.close();
    this.changed.dispose();
    this.connected.dispose();
  }

  private async connect(): Promise<DaemonClient> {
    this.setState({ kind: 'starting' });
    try {
      const identity = await this.buildIdentity();
      const client = (await this.attach(identity)) ?? (await this.start(identity));
      this.current = client;
      this.told = '';
      const { version, pid } = client.discovery;
      this.log.info(`connected to the daemon ${version}, build ${client.discovery.build}, process ${pid}`);
      this.setState({ kind: 'ready', version, pid });
      this.connected.fire(client);
      return client;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.log.error(message);
      this.setState({ kind: 'failed', message });
      this.tellOnce(message);
      throw error;
    }
  }

  // A daemon of the same build is used as it is; for any other the binary decides.
  private async attach(identity: BuildIdentity): Promise<DaemonClient | undefined> {
    const client = await this.open().catch(() => undefined);
    if (!client) return undefined;
    if (client.discovery.build === identity.build && client.discovery.commit === identity.commit) {
      const good = await client.handshake(identity).then(
        () => true,
        () => false,
      );
      if (good) return client;
    }
    client.close();
    return undefined;
  }

  private async start(identity: BuildIdentity): Promise<DaemonClient> {
    if (!this.policy.tryStart()) {
      throw new UserError(
        'The Kernelwright daemon ended too often in the last three minutes.',
        'Show the log, then restart it.',
      );
    }
    const note = await ensureDaemon(this.binary());
    if (note !== '') this.log.info(note);
    const client = await this.open();
    try {
      await client.handshake(identity);
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  private async open(): Promise<DaemonClient> {
    const uid = process.geteuid?.() ?? -1;
    const folder = await runtimeFolder({ xdgRuntimeDir: process.env.XDG_RUNTIME_DIR, tmpdir: process.env.TMPDIR, uid });
    const discovery = await readDiscovery(folder, uid);
    // The transport is large: it is loaded when there is a daemon to talk to, not at activation.
    const { DaemonClient } = await import('../node/client');
    return new DaemonClient(discovery);
  }

  private setState(state: DaemonState): void {
    this.stateNow = state;
    this.changed.fire(state);
  }

  private tellOnce(message: string): void {
    if (this.told === message) return;
    this.told = message;
    void vscode.window.showErrorMessage(message, 'Restart Daemon', 'Show Log').then((choice) => {
      if (choice === 'Show Log') this.log.show();
      if (choice === 'Restart Daemon') void vscode.commands.executeCommand('kernelwright.restartDaemon');
    });
  }
}
