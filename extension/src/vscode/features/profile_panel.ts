// The profile's panel: roofline, timeline of a step, VMEM, advice, comparison, as the daemon draws them.
import { randomBytes } from 'node:crypto';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { isPanelMessage, panelPage } from '../../common/panel_page';
import type { App } from '../app';
import type { Profiles } from '../profiles';

export class Panel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private uri: vscode.Uri | undefined;
  private wasStale = false;
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly app: App,
    private readonly profiles: Profiles,
  ) {
    this.subscription = profiles.onDidChange((uri) => {
      if (uri.toString() !== this.uri?.toString() || !this.panel) return;
      // Each key is a change; only the first one after a profile makes a difference here.
      const profile = profiles.get(uri);
      if (profile && !(profile.stale && this.wasStale)) this.render();
    });
  }

  show(uri: vscode.Uri): void {
    if (!this.profiles.get(uri)) return;
    this.uri = uri;
    if (!this.panel) {
      const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      // Only what was rendered: no folder of the disk can be read from inside.
      const options = { enableScripts: true, localResourceRoots: [], enableFindWidget: true };
      this.panel = vscode.window.createWebviewPanel('kernelwright.profile', 'Profile', place, options);
      this.panel.onDidDispose(() => (this.panel = undefined));
      this.panel.webview.onDidReceiveMessage((message: unknown) => this.receive(message));
    }
    this.render();
    this.panel.reveal(undefined, true);
  }

  dispose(): void {
    this.subscription.dispose();
    this.panel?.dispose();
  }

  private render(): void {
    const profile = this.uri && this.profiles.get(this.uri);
    if (!profile || !this.panel) return;
    this.wasStale = profile.stale;
    this.panel.title = `Profile: ${profile.result.function} (${profile.chip.chip})`;
    const note = profile.stale ? 'The text has changed since. Profile again for figures of the new one.' : '';
    this.panel.webview.html = panelPage(profile.html, randomBytes(16).toString('hex'), note);
  }

  private receive(message: unknown): void {
    const profile = this.uri && this.profiles.get(this.uri);
    if (!profile || !isPanelMessage(message) || message.line < 1) return;
    // Files are numbered in the order of their first line in the report; ours alone can be told for sure.
    const files = [...new Set(profile.chip.lines.filter((line) => line.line > 0).map((line) => line.file))];
    const file = files[message.file] ?? profile.result.file;
    const line = message.line - 1;
    vscode.window
      .showTextDocument(vscode.Uri.file(file), {
        viewColumn: vscode.ViewColumn.One,
        selection: new vscode.Range(line, 0, line, 0),
      })
      .then(undefined, () => this.app.showError(new Error(`${path.basename(file)} cannot be opened.`)));
  }
}
