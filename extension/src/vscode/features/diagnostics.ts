// Diagnostics while typing. Each document is one conversation with the daemon: a newer text ends the check of the older
// one, and the pause before a check grows with what checks of this document take. Nothing is asked for texts without
// kernels, and nothing in an untrusted workspace.
import * as path from 'node:path';
import * as vscode from 'vscode';
import { AdaptiveDelay } from '../../common/debounce';
import { toEditorDiagnostic, type EditorDiagnostic } from '../../common/diagnostics';
import { cellOf, notebookModule, type NotebookModule } from '../../common/notebook_text';
import { concernsKernels } from '../../common/python_text';
import type { CheckResult, Diagnostic } from '../../generated/kernelwright/v1/check';
import { UserError } from '../../node/errors';
import type { App } from '../app';
import { toRange, toSeverity } from '../convert';
import { requestContext, setting, chipsFor } from '../settings';

/** What a shown diagnostic was made from; quick fixes and commands find it here. */
export interface Details extends EditorDiagnostic {
  /** The text that was checked, where its lines are in the editor, and whether that is still so. */
  readonly origin: {
    readonly file: string;
    readonly text: string;
    isCurrent(): boolean;
    placeOf(line: number): { uri: vscode.Uri; shift: number } | undefined;
  };
}

export const details = new WeakMap<vscode.Diagnostic, Details>();

interface Conversation {
  timer: NodeJS.Timeout | undefined;
  running: AbortController | undefined;
  readonly delay: AdaptiveDelay;
  published: readonly vscode.Uri[];
}

interface Subject {
  readonly key: string;
  readonly uri: vscode.Uri; // whose settings apply
  readonly file: string;
  readonly version: () => string;
  readonly text: string;
  readonly module?: { map: NotebookModule; cells: ReadonlyMap<string, vscode.Uri> };
}

export function activate(app: App): void {
  const checker = new Checker(app);
  app.context.subscriptions.push(checker);
  app.command('kernelwright.check', async () => {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return;
    await checker.checkNow(editor.document);
  });
  app.command('kernelwright.openDocumentation', (page?: string) => openDocumentation(app, page));
  app.command('kernelwright.showRaw', (text?: string) => showRaw(app, text));
}

class Checker implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection('kernelwright');
  private readonly conversations = new Map<string, Conversation>();
  private readonly disposables: vscode.Disposable[] = [this.collection];
  private toldEnvironment = '';
  private connectedBefore = false;
  private missed = false; // a check found no daemon

  constructor(private readonly app: App) {
    const { workspace } = vscode;
    this.disposables.push(
      workspace.onDidOpenTextDocument((document) => this.touched(document, 'open')),
      workspace.onDidSaveTextDocument((document) => this.touched(document, 'save')),
      workspace.onDidChangeTextDocument((event) => {
        if (event.contentChanges.length > 0) this.touched(event.document, 'type');
      }),
      workspace.onDidCloseTextDocument((document) => this.closed(document)),
      workspace.onDidCloseNotebookDocument((notebook) => this.clear(notebook.uri.toString())),
      workspace.onDidGrantWorkspaceTrust(() => this.all()),
      workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('kernelwright')) this.all();
      }),
      app.daemon.onDidConnect(() => {
        // What was asked of a daemon that has ended is asked again; the first connection was made by a check.
        if (this.connectedBefore || this.missed) this.all();
        this.connectedBefore = true;
        this.missed = false;
      }),
    );
    this.all();
  }

  dispose(): void {
    for (const conversation of this.conversations.values()) {
      clearTimeout(conversation.timer);
      conversation.running?.abort();
    }
    vscode.Disposable.from(...this.disposables).dispose();
  }

  async checkNow(document: vscode.TextDocument): Promise<void> {
    const subject = this.subjectOf(document);
    if (!subject) {
      void vscode.window.showInformationMessage('Kernelwright: this file has no kernels to check.');
      return;
    }
    await this.app.daemon.client();
    await vscode.window.withProgress(
      {
        location: vscode.ProgressLocation.Notification,
        title: `Checking ${path.basename(subject.file)}`,
        cancellable: true,
      },
      async (progress, token) => {
        const abort = new AbortController();
        token.onCancellationRequested(() => abort.abort());
        await this.run(subject, true, abort, (stage) => progress.report({ message: stage }));
      },
    );
  }

  private all(): void {
    for (const document of vscode.workspace.textDocuments) this.touched(document, 'open');
  }

  private touched(document: vscode.TextDocument, how: 'open' | 'save' | 'type'): void {
    if (!vscode.workspace.isTrusted) return;
    const when = setting<string>('check.run', document.uri);
    if (when === 'manual' || (how === 'type' && when !== 'onType')) return;
    const subject = this.subjectOf(document);
    if (!subject) return;
    const conversation = this.conversationOf(subject.key);
    clearTimeout(conversation.timer);
    const wait = how === 'type' ? conversation.delay.next(setting<number>('check.delay', subject.uri)) : 0;
    conversation.timer = setTimeout(() => {
      const fresh = this.subjectOf(document);
      if (!fresh) return this.clear(subject.key);
      void this.run(fresh, how !== 'type', new AbortController());
    }, wait);
  }

  private closed(document: vscode.TextDocument): void {
    this.clear(document.uri.toString());
  }

  private clear(key: string): void {
    const conversation = this.conversations.get(key);
    if (!conversation) return;
    clearTimeout(conversation.timer);
    conversation.running?.abort();
    for (const uri of conversation.published) this.collection.delete(uri);
    this.conversations.delete(key);
  }

  private conversationOf(key: string): Conversation {
    let conversation = this.conversations.get(key);
    if (!conversation) {
      conversation = { timer: undefined, running: undefined, delay: new AdaptiveDelay(), published: [] };
      this.conversations.set(key, conversation);
    }
    return conversation;
  }

  private subjectOf(document: vscode.TextDocument): Subject | undefined {
    if (document.languageId !== 'python' || document.isClosed) return undefined;
    if (document.uri.scheme === 'vscode-notebook-cell') return notebookSubject(document);
    if (document.uri.scheme !== 'file') return undefined;
    const text = document.getText();
    if (!concernsKernels(text) || this.app.kernelsOf(document).length === 0) return undefined;
    const version = () => (document.isClosed ? 'closed' : String(document.version));
    return { key: document.uri.toString(), uri: document.uri, file: document.uri.fsPath, version, text };
  }

  private async run(
    subject: Subject,
    whole: boolean,
    abort: AbortController,
    onStage?: (text: string) => void,
  ): Promise<void> {
    const conversation = this.conversationOf(subject.key);
    conversation.running?.abort();
    conversation.running = abort;
    const version = subject.version();
    const chips = chipsFor(subject.uri);
    const start = Date.now();
    const found: Diagnostic[] = [];
    this.app.countCheck(1);
    try {
      const request = {
        ...(await requestContext(subject.uri)),
        file: subject.file,
        function: '',
        inputs: '',
        chips,
        files: unsavedTexts(subject),
        semantics: whole && setting<string>('check.semantics', subject.uri) === 'onSave',
        fixes: setting<boolean>('check.fixes', subject.uri),
        document: `vscode-${process.pid}-${subject.key}`,
        debounce: !whole,
        budgetSeconds: 0,
      };
      if (abort.signal.aborted) return;
      await this.app.daemon.call((client) =>
        client.check(
          request,
          (event) => {
            if (abort.signal.aborted || subject.version() !== version) return;
            if (event.kind?.$case === 'stage') {
              const { stage } = event.kind;
              onStage?.([stage.stage, stage.function, stage.chip].filter((part) => part !== '').join(' '));
              if (stage.diagnostics.length === 0) return;
              found.push(...stage.diagnostics);
              this.publish(subject, conversation, found, chips);
            } else if (event.kind?.$case === 'result') {
              this.publish(subject, conversation, event.kind.result.diagnostics, chips);
              this.finished(subject, conversation, event.kind.result, Date.now() - start);
            }
          },
          abort.signal,
        ),
      );
    } catch (error) {
      // Superseded and cancelled checks end like this too; the state of the daemon is told elsewhere.
      if (!abort.signal.aborted)
        this.app.log.warn(`check of ${subject.file}: ${error instanceof Error ? error.message : String(error)}`);
      if (onStage && !abort.signal.aborted) throw error;
    } finally {
      if (conversation.running === abort) conversation.running = undefined;
      this.app.countCheck(-1);
    }
  }

  private finished(subject: Subject, conversation: Conversation, result: CheckResult, tookMs: number): void {
    conversation.delay.learn(tookMs);
    const verdict = `${result.diagnostics.length} diagnostics in ${tookMs} ms`;
    this.app.log.info(`checked ${subject.file} for ${result.chips.join(', ')}: ${verdict}`);
    void vscode.commands.executeCommand('setContext', 'kernelwright.checked', true);
    const failure = result.failure;
    if (!failure || failure.kind === 'cancelled') return;
    this.app.log.warn(`no verdict of some stage: ${failure.message} ${failure.where} ${failure.remedy}`);
    if (failure.kind !== 'environment' || this.toldEnvironment === failure.message) return;
    this.toldEnvironment = failure.message;
    this.app.showError(new UserError(`${failure.message}.`, failure.remedy, 'environment'));
  }

  private publish(
    subject: Subject,
    conversation: Conversation,
    diagnostics: readonly Diagnostic[],
    chips: readonly string[],
  ): void {
    const lines = subject.text.split(/\r?\n/);
    const open = (file: string) => {
      if (file === subject.file) return lines;
      return vscode.workspace.textDocuments
        .find((d) => d.uri.scheme === 'file' && d.uri.fsPath === file)
        ?.getText()
        .split(/\r?\n/);
    };
    const byUri = new Map<string, { uri: vscode.Uri; shown: vscode.Diagnostic[] }>();
    for (const item of diagnostics) {
      const mapped = toEditorDiagnostic(item, chips, open);
      const place = placeIn(subject, mapped.file, mapped.range.start.line);
      if (!place) continue;
      const entry = byUri.get(place.uri.toString()) ?? { uri: place.uri, shown: [] };
      byUri.set(place.uri.toString(), entry);
      entry.shown.push(toVscode(mapped, place.shift, subject));
    }
    for (const uri of conversation.published) {
      if (!byUri.has(uri.toString())) this.collection.delete(uri);
    }
    for (const { uri, shown } of byUri.values()) this.collection.set(uri, shown);
    conversation.published = [...byUri.values()].map((entry) => entry.uri);
  }
}

function toVscode(mapped: EditorDiagnostic, shift: number, subject: Subject): vscode.Diagnostic {
  const shown = new vscode.Diagnostic(toRange(mapped.range, shift), mapped.message, toSeverity(mapped.severity));
  shown.source = 'kernelwright';
  const argument = encodeURIComponent(JSON.stringify([mapped.page]));
  shown.code = { value: mapped.id, target: vscode.Uri.parse(`command:kernelwright.openDocumentation?${argument}`) };
  shown.relatedInformation = mapped.related.flatMap((related) => {
    const place = placeIn(subject, related.file, related.range.start.line);
    if (!place) return [];
    return [
      new vscode.DiagnosticRelatedInformation(
        new vscode.Location(place.uri, toRange(related.range, place.shift)),
        related.message,
      ),
    ];
  });
  const version = subject.version();
  const origin = {
    file: subject.file,
    text: subject.text,
    isCurrent: () => subject.version() === version,
    placeOf: (line: number) => placeIn(subject, subject.file, line),
  };
  details.set(shown, { ...mapped, origin });
  return shown;
}

// Where a line of the daemon's file is in the editor: for notebooks a cell, with what has to be taken off the line.
function placeIn(subject: Subject, file: string, line: number): { uri: vscode.Uri; shift: number } | undefined {
  if (!subject.module) return file === '' ? { uri: subject.uri, shift: 0 } : { uri: vscode.Uri.file(file), shift: 0 };
  if (file !== subject.file) return { uri: vscode.Uri.file(file), shift: 0 };
  const cell = cellOf(subject.module.map, line);
  const uri = cell && subject.module.cells.get(cell.id);
  return cell && uri ? { uri, shift: line - cell.line } : undefined;
}

// The text of the subject, and of every other open Python file that has unsaved changes: the kernel may import it.
function unsavedTexts(subject: Subject): { path: string; text: string }[] {
  const others = vscode.workspace.textDocuments.filter(
    (d) => d.isDirty && d.languageId === 'python' && d.uri.scheme === 'file' && d.uri.fsPath !== subject.file,
  );
  return [
    { path: subject.file, text: subject.text },
    ...others.map((d) => ({ path: d.uri.fsPath, text: d.getText() })),
  ];
}

function notebookSubject(document: vscode.TextDocument): Subject | undefined {
  if (!setting<boolean>('notebooks.enabled', document.uri)) return undefined;
  const notebook = vscode.workspace.notebookDocuments.find((n) =>
    n.getCells().some((cell) => cell.document === document),
  );
  if (!notebook || notebook.uri.scheme !== 'file') return undefined;
  const cells = notebook.getCells().filter((cell) => cell.document.languageId === 'python');
  const map = notebookModule(
    cells.map((cell) => ({ id: cell.document.uri.toString(), text: cell.document.getText() })),
  );
  if (!concernsKernels(map.text)) return undefined;
  return {
    key: notebook.uri.toString(),
    uri: notebook.uri,
    // Beside the notebook, so that its imports work; the text is sent, nothing is written.
    file: notebook.uri.fsPath.replace(/\.ipynb$/, '').concat('_ipynb.py'),
    version: () => cells.map((cell) => cell.document.version).join('.'),
    text: map.text,
    module: { map, cells: new Map(cells.map((cell) => [cell.document.uri.toString(), cell.document.uri])) },
  };
}

async function openDocumentation(app: App, page?: string): Promise<void> {
  const { root } = app;
  let wanted = page;
  if (wanted === undefined) {
    const id = await vscode.window.showInputBox({
      title: 'Documentation of a diagnostic',
      prompt: 'Its number, such as D01',
      value: 'D01',
    });
    if (id === undefined) return;
    wanted = `docs/diagnostics/${id.trim().toUpperCase()}.md`;
  }
  const [file, fragment] = wanted.split('#') as [string, string?];
  for (const base of [root, vscode.Uri.joinPath(root, '..')]) {
    const uri = vscode.Uri.joinPath(base, file);
    const exists = await vscode.workspace.fs.stat(uri).then(
      () => true,
      () => false,
    );
    if (!exists) continue;
    await vscode.commands.executeCommand('markdown.showPreview', fragment === undefined ? uri : uri.with({ fragment }));
    return;
  }
  void vscode.window.showWarningMessage(`Kernelwright: there is no page ${wanted}.`);
}

async function showRaw(app: App, text?: string): Promise<void> {
  let raw = text;
  if (raw === undefined) {
    const editor = vscode.window.activeTextEditor;
    const here =
      editor &&
      vscode.languages
        .getDiagnostics(editor.document.uri)
        .find(
          (d) =>
            d.source === 'kernelwright' &&
            d.range.start.line <= editor.selection.active.line &&
            d.range.end.line >= editor.selection.active.line,
        );
    raw = here && details.get(here)?.raw;
  }
  if (raw === undefined || raw === '') {
    void vscode.window.showInformationMessage('Kernelwright: there is no text of the compiler for this line.');
    return;
  }
  app.log.debug("showing the compiler's text");
  const document = await vscode.workspace.openTextDocument({ content: raw, language: 'plaintext' });
  await vscode.window.showTextDocument(document, { preview: true, viewColumn: vscode.ViewColumn.Beside });
}
