// Profiles a kernel for the first chip of the settings, and shows it beside the lines and, on demand, as a panel.
import * as path from 'node:path';
import * as vscode from 'vscode';
import { parseProfileResult, errorOfResult, type ChipProfile } from '../../common/results';
import { UserError } from '../../node/errors';
import { sha256 } from '../../node/sha256';
import type { App } from '../app';
import { Profiles } from '../profiles';
import { saveFirst } from '../saving';
import { chipsFor, requestContext, setting } from '../settings';
import { Overlays } from './overlay';
import { Panel } from './profile_panel';

interface Against {
  readonly file: string;
  readonly function: string;
  readonly chip: string;
}

const kAlone: Against = { file: '', function: '', chip: '' };

export function activate(app: App): void {
  const profiles = new Profiles();
  const overlays = new Overlays(app, profiles);
  const panel = new Panel(app, profiles);
  app.context.subscriptions.push(profiles, overlays, panel);

  const running = new Set<string>(); // a second click is the same wish
  const profile = async (uri?: vscode.Uri, name?: string, against: Against = kAlone) => {
    const { document, kernel } = await app.target(uri, name);
    const key = `${document.uri.fsPath}::${kernel.name}`;
    if (running.has(key)) return;
    running.add(key);
    try {
      await profileNow(document, kernel.name, against);
    } finally {
      running.delete(key);
    }
  };
  const profileNow = async (document: vscode.TextDocument, name: string, against: Against) => {
    await saveFirst(document, 'profile');
    const text = document.getText();
    const chip = chipsFor(document.uri)[0]!;
    const request = {
      ...(await requestContext(document.uri)),
      file: document.uri.fsPath,
      function: name,
      inputs: '',
      chips: [chip],
      wantHtml: true,
      budgetSeconds: 0,
      againstFile: against.file,
      againstFunction: against.function,
      againstChip: against.chip,
    };
    const title = `Profiling ${name} for ${chip}`;
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    const reply = await vscode.window.withProgress(options, (_progress, token) => {
      const abort = new AbortController();
      token.onCancellationRequested(() => abort.abort());
      return app.daemon.call((client) => client.profile(request, abort.signal));
    });
    const result = parseProfileResult(reply.resultJson);
    const first = result?.results[0];
    if (!result || !first)
      throw new UserError(errorOfResult(reply.resultJson) ?? 'The profile is empty.', '', 'user_code');
    if (first.status === 'failed') throw new UserError(first.error ?? 'The kernel does not compile.', '', 'user_code');
    const stale = document.getText() !== text;
    profiles.set({ uri: document.uri, result, chip: first, html: reply.html, text, moved: undefined, stale });
    app.setFigures(document.uri.fsPath, name, figuresOf(first, text));
    overlays.visible = true;
    if (first.refusal !== undefined) {
      void vscode.window.showInformationMessage(
        `No time can be given for ${name}: ${first.refusal}. The lines count each instruction once.`,
      );
    }
    if (against !== kAlone || setting<boolean>('overlay.openPanel', document.uri)) panel.show(document.uri);
  };

  app.command('kernelwright.profile', (uri?: vscode.Uri, name?: string) => profile(uri, name));
  app.command('kernelwright.compareProfile', async (uri?: vscode.Uri, name?: string) => {
    const { document, kernel } = await app.target(uri, name);
    const against = await pickAgainst(app, document, kernel.name);
    if (against) await profile(document.uri, kernel.name, against);
  });
  app.command('kernelwright.showProfilePanel', async (uri?: vscode.Uri, name?: string) => {
    const target = uri instanceof vscode.Uri ? uri : vscode.window.activeTextEditor?.document.uri;
    if (!target || !profiles.get(target)) await profile(uri, name);
    const shown = target ?? vscode.window.activeTextEditor?.document.uri;
    if (shown) panel.show(shown);
  });
}

function figuresOf(profile: ChipProfile, text: string) {
  const versions = Object.entries(profile.evidence?.versions ?? {}).map(([name, version]) => `${name} ${version}`);
  return {
    evidenceClass: profile.evidence?.evidenceClass ?? 'estimated',
    chip: profile.chip,
    ms: profile.estimateMs,
    bound: profile.bound,
    rooflineFraction: profile.rooflineFraction,
    textHash: sha256(text),
    versions: versions.join(', '),
  };
}

async function pickAgainst(app: App, document: vscode.TextDocument, name: string): Promise<Against | undefined> {
  const own = chipsFor(document.uri)[0]!;
  type Item = vscode.QuickPickItem & { against?: Against; browse?: boolean };
  const chips: Item[] = ['v5e', 'v5p', 'v6e', 'tpu7x']
    .filter((chip) => chip !== own)
    .map((chip) => ({
      label: `$(circuit-board) the same kernel on ${chip}`,
      against: { file: '', function: '', chip },
    }));
  const functions: Item[] = app
    .kernelsOf(document)
    .filter((kernel) => kernel.name !== name)
    .map((kernel) => ({
      label: `$(symbol-function) ${kernel.name}`,
      description: `line ${kernel.line + 1} of this file`,
      against: { file: document.uri.fsPath, function: kernel.name, chip: '' },
    }));
  const items: Item[] = [...functions, ...chips, { label: '$(file-code) a kernel of another file…', browse: true }];
  const chosen = await vscode.window.showQuickPick(items, { title: `Compare ${name} with` });
  if (!chosen?.browse) return chosen?.against;
  const [file] = (await vscode.window.showOpenDialog({ filters: { Python: ['py'] }, defaultUri: document.uri })) ?? [];
  if (!file) return undefined;
  const other = await vscode.workspace.openTextDocument(file);
  const rows = app.kernelsOf(other).map((kernel) => ({ label: kernel.name, description: `line ${kernel.line + 1}` }));
  const picked = await vscode.window.showQuickPick(rows, { title: `A kernel of ${path.basename(file.fsPath)}` });
  return picked && { file: file.fsPath, function: picked.label, chip: '' };
}
