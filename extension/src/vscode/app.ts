// What the features share. A feature is a file with `activate(app)`; it registers what it needs on `app.context` and knows
// no other feature except through commands and the events here.
import { realpathSync } from 'node:fs';
import * as vscode from 'vscode';
import { FigureStore, type Figures } from '../common/figures';
import { concernsKernels, findKernelFunctions, kernelAt, type KernelFunction } from '../common/python_text';
import { UserError } from '../node/errors';
import { Controller } from './controller';
import { DaemonCare } from './daemon_care';

const kFigures = 'kernelwright.figures';

export class App {
  readonly log: vscode.LogOutputChannel;
  /** The extension's folder. */
  readonly root: vscode.Uri;
  readonly daemon: DaemonCare;
  readonly runs: Controller;
  readonly figures: FigureStore;
  private readonly figuresChanged = new vscode.EventEmitter<void>();
  readonly onDidChangeFigures = this.figuresChanged.event;
  private readonly checkingChanged = new vscode.EventEmitter<void>();
  readonly onDidChangeChecking = this.checkingChanged.event;
  private checks = 0;
  private readonly kernels = new WeakMap<vscode.TextDocument, { version: number; found: readonly KernelFunction[] }>();

  constructor(readonly context: vscode.ExtensionContext) {
    this.log = vscode.window.createOutputChannel('Kernelwright', { log: true });
    // In a source tree the extension may be a link; what is beside it is beside its real place.
    this.root = vscode.Uri.file(realpathSync(context.extensionPath));
    this.daemon = new DaemonCare(this.root.fsPath, this.log);
    this.runs = new Controller(this.daemon, this.log);
    this.figures = new FigureStore(context.workspaceState.get<[string, Figures][]>(kFigures, []));
    context.subscriptions.push(this.log, this.daemon, this.runs, this.figuresChanged, this.checkingChanged);
  }

  get checking(): boolean {
    return this.checks > 0;
  }

  countCheck(change: 1 | -1): void {
    this.checks += change;
    this.checkingChanged.fire();
  }

  setFigures(file: string, name: string, figures: Figures): void {
    this.figures.set(file, name, figures);
    void this.context.workspaceState.update(kFigures, this.figures.save());
    this.figuresChanged.fire();
  }

  /** Kernel functions of a document, found once per version. */
  kernelsOf(document: vscode.TextDocument): readonly KernelFunction[] {
    const known = this.kernels.get(document);
    if (known?.version === document.version) return known.found;
    const text = document.getText();
    const found = concernsKernels(text) ? findKernelFunctions(text) : [];
    this.kernels.set(document, { version: document.version, found });
    return found;
  }

  /** Registers a command whose errors become one message with its remedy and the way to the log. */
  command(name: string, run: (...args: never[]) => unknown): void {
    this.context.subscriptions.push(
      vscode.commands.registerCommand(name, async (...args: never[]) => {
        try {
          return await run(...args);
        } catch (error) {
          this.showError(error);
          return undefined;
        }
      }),
    );
  }

  showError(error: unknown): void {
    if (error instanceof vscode.CancellationError) return;
    if (error instanceof UserError && error.kind === 'cancelled') return;
    const message = error instanceof Error ? error.message : String(error);
    this.log.error(error instanceof Error && !(error instanceof UserError) ? (error.stack ?? message) : message);
    const buttons =
      error instanceof UserError && error.kind === 'environment' ? ['Run Doctor', 'Show Log'] : ['Show Log'];
    void vscode.window.showErrorMessage(`Kernelwright: ${message}`, ...buttons).then((choice) => {
      if (choice === 'Show Log') this.log.show();
      if (choice === 'Run Doctor') void vscode.commands.executeCommand('kernelwright.doctor');
    });
  }

  /** The kernel that a command is about: given by a lens, else at the cursor, else the only one, else asked for. */
  async target(uri?: vscode.Uri, name?: string): Promise<{ document: vscode.TextDocument; kernel: KernelFunction }> {
    const editor = vscode.window.activeTextEditor;
    const document = uri instanceof vscode.Uri ? await vscode.workspace.openTextDocument(uri) : editor?.document;
    if (!document || document.languageId !== 'python') {
      throw new UserError('There is no Python file to work on.', 'Open one with a kernel.', 'usage');
    }
    const kernels = this.kernelsOf(document);
    if (kernels.length === 0) {
      throw new UserError(
        'No kernel was found in this file.',
        'A kernel is a function that holds a pallas_call, is compiled with jax.jit, or has a "# kernelwright:" comment above it.',
        'usage',
      );
    }
    const named = typeof name === 'string' ? kernels.find((kernel) => kernel.name === name) : undefined;
    const here = editor?.document === document ? kernelAt(kernels, editor.selection.active.line) : undefined;
    const chosen = named ?? here ?? (kernels.length === 1 ? kernels[0] : await pick(kernels));
    if (!chosen) throw new vscode.CancellationError();
    return { document, kernel: chosen };
  }
}

async function pick(kernels: readonly KernelFunction[]): Promise<KernelFunction | undefined> {
  const items = kernels.map((kernel) => ({ label: kernel.name, description: `line ${kernel.line + 1}`, kernel }));
  return (await vscode.window.showQuickPick(items, { title: 'Which kernel?' }))?.kernel;
}
