// The profile beside the code: a figure after each line, heat behind it, marks in the overview ruler, a table on hover. Only
// the lines on the screen are decorated; the marks of the ruler are few and are set once per profile.
import * as vscode from 'vscode';
import {
  hoverMarkdown,
  makeOverlay,
  metricNames,
  metrics,
  unattributedText,
  type Overlay,
  type OverlayLine,
} from '../../common/overlay';
import type { App } from '../app';
import type { FileProfile, Profiles } from '../profiles';
import { metricFor, setting } from '../settings';

const kMargin = 30; // lines above and below the visible ones, so that scrolling shows no gap

interface Made {
  readonly profile: FileProfile;
  readonly key: string;
  readonly overlay: Overlay;
}

export class Overlays implements vscode.Disposable {
  private shown = true;
  private readonly heat: readonly vscode.TextEditorDecorationType[];
  private readonly after: vscode.TextEditorDecorationType;
  private readonly ruler: vscode.TextEditorDecorationType;
  private readonly made = new WeakMap<FileProfile, Made>();
  private readonly disposables: vscode.Disposable[] = [];
  private readonly pending = new Map<vscode.TextEditor, NodeJS.Timeout>();

  constructor(
    private readonly app: App,
    private readonly profiles: Profiles,
  ) {
    const { window, languages } = vscode;
    this.heat = [1, 2, 3, 4].map((level) =>
      window.createTextEditorDecorationType({
        isWholeLine: true,
        backgroundColor: new vscode.ThemeColor(`kernelwright.heat${level}`),
        // Without colours that carry meaning, as in high contrast, the border does.
        borderColor: new vscode.ThemeColor('kernelwright.heatRuler'),
        borderStyle: 'solid',
        borderWidth: level >= 3 ? '0 0 0 3px' : '0 0 0 1px',
      }),
    );
    this.after = window.createTextEditorDecorationType({
      rangeBehavior: vscode.DecorationRangeBehavior.ClosedOpen,
      after: { margin: '0 0 0 3em' },
    });
    this.ruler = window.createTextEditorDecorationType({
      overviewRulerColor: new vscode.ThemeColor('kernelwright.heatRuler'),
      overviewRulerLane: vscode.OverviewRulerLane.Right,
    });
    this.disposables.push(
      ...this.heat,
      this.after,
      this.ruler,
      profiles.onDidChange((uri) => this.refresh(uri)),
      window.onDidChangeVisibleTextEditors(() => this.all()),
      window.onDidChangeTextEditorVisibleRanges((event) => this.later(event.textEditor)),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('kernelwright.overlay')) this.all();
      }),
      languages.registerHoverProvider(
        { language: 'python', scheme: 'file' },
        {
          provideHover: (document, position) => this.hover(document, position),
        },
      ),
    );
    app.command('kernelwright.toggleOverlay', () => {
      this.visible = !this.shown;
      const editor = window.activeTextEditor;
      if (this.shown && editor && !profiles.get(editor.document.uri)) {
        return vscode.commands.executeCommand('kernelwright.profile');
      }
      return undefined;
    });
    app.command('kernelwright.pickMetric', async () => {
      const items = metrics.map((metric) => ({ label: metricNames[metric], metric }));
      const chosen = await window.showQuickPick(items, { title: 'What the overlay shows' });
      if (!chosen) return;
      const settings = vscode.workspace.getConfiguration('kernelwright');
      await settings.update('overlay.metric', chosen.metric, vscode.ConfigurationTarget.Global);
      this.visible = true;
    });
  }

  set visible(value: boolean) {
    this.shown = value;
    void vscode.commands.executeCommand('setContext', 'kernelwright.overlayShown', value);
    this.all();
  }

  dispose(): void {
    for (const timer of this.pending.values()) clearTimeout(timer);
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private all(): void {
    for (const editor of vscode.window.visibleTextEditors) this.decorate(editor, true);
  }

  private refresh(uri: vscode.Uri): void {
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document.uri.toString() === uri.toString()) this.decorate(editor, true);
    }
  }

  // Scrolling sends many events; one decoration a frame is enough.
  private later(editor: vscode.TextEditor): void {
    if (this.pending.has(editor) || !this.profiles.get(editor.document.uri)) return;
    this.pending.set(
      editor,
      setTimeout(() => {
        this.pending.delete(editor);
        this.decorate(editor, false);
      }, 30),
    );
  }

  private overlayOf(profile: FileProfile): Overlay {
    const { uri } = profile;
    const metric = metricFor(uri);
    const threshold = setting<number>('overlay.threshold', uri);
    const key = `${metric} ${threshold}`;
    const known = this.made.get(profile);
    if (known?.key === key) return known.overlay;
    const overlay = makeOverlay(profile.chip, uri.fsPath, metric, threshold);
    this.made.set(profile, { profile, key, overlay });
    return overlay;
  }

  private lineAt(profile: FileProfile, overlay: Overlay, now: number): OverlayLine | undefined {
    const then = profile.moved ? profile.moved.get(now) : now;
    return then === undefined ? undefined : overlay.lines.get(then);
  }

  private decorate(editor: vscode.TextEditor, withRuler: boolean): void {
    const { document } = editor;
    if (document.languageId !== 'python') return;
    const profile = this.shown ? this.profiles.get(document.uri) : undefined;
    const buckets: vscode.Range[][] = [[], [], [], []];
    const after: vscode.DecorationOptions[] = [];
    const ruler: vscode.Range[] = [];
    if (profile) {
      const overlay = this.overlayOf(profile);
      for (const visible of editor.visibleRanges) {
        const end = Math.min(document.lineCount - 1, visible.end.line + kMargin);
        for (let line = Math.max(0, visible.start.line - kMargin); line <= end; line++) {
          const found = this.lineAt(profile, overlay, line);
          if (!found) continue;
          const range = document.lineAt(line).range;
          if (!profile.stale) buckets[found.heat - 1]?.push(range);
          after.push({
            range: new vscode.Range(range.end, range.end),
            renderOptions: { after: look(found.text, overlay, profile.stale) },
          });
        }
      }
      const rest = unattributedText(overlay, setting<number>('overlay.threshold', document.uri));
      const kernel = this.app.kernelsOf(document).find((found) => found.name === profile.result.function);
      if (rest !== undefined && kernel) {
        const end = document.lineAt(kernel.line).range.end;
        after.push({ range: new vscode.Range(end, end), renderOptions: { after: look(rest, overlay, profile.stale) } });
      }
      if (withRuler && !profile.stale) {
        for (const line of overlay.lines.values()) {
          if (line.heat >= 2 && line.line < document.lineCount) ruler.push(document.lineAt(line.line).range);
        }
      }
    }
    this.heat.forEach((type, index) => editor.setDecorations(type, buckets[index]!));
    editor.setDecorations(this.after, after);
    if (withRuler) editor.setDecorations(this.ruler, ruler);
  }

  private hover(document: vscode.TextDocument, position: vscode.Position): vscode.Hover | undefined {
    const profile = this.shown ? this.profiles.get(document.uri) : undefined;
    if (!profile) return undefined;
    const overlay = this.overlayOf(profile);
    const line = this.lineAt(profile, overlay, position.line);
    if (!line) return undefined;
    const text = new vscode.MarkdownString(hoverMarkdown(line, overlay, profile.stale));
    const advice = profile.chip.advice.filter(
      (a) => a.lines.includes(line.profile.line) && a.file === document.uri.fsPath,
    );
    for (const item of advice) text.appendMarkdown(`\n\n**${item.title}**: ${item.text}`);
    return new vscode.Hover(text, document.lineAt(position.line).range);
  }
}

// Estimated and measured differ in shape, not only in colour: estimates are in italics after "~".
function look(figure: string, overlay: Overlay, stale: boolean): vscode.ThemableDecorationAttachmentRenderOptions {
  const estimated = overlay.evidenceClass !== 'measured';
  const text = `${estimated ? '~ ' : ''}${figure}${stale ? ' · stale' : ''}`;
  return {
    contentText: text,
    fontStyle: estimated ? 'italic' : 'normal',
    color: new vscode.ThemeColor(stale ? 'kernelwright.stale' : 'kernelwright.estimated'),
    margin: '0 0 0 3em',
  };
}
