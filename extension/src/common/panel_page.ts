// The daemon's profile page inside the editor: the same picture with the editor's colours, under a policy that lets in
// nothing from outside, and with one small script of ours that opens a line of the source.

const kColors = [
  ['--page', 'var(--vscode-editor-background)'],
  ['--card', 'var(--vscode-editorWidget-background, var(--vscode-editor-background))'],
  ['--ink', 'var(--vscode-editor-foreground)'],
  ['--soft', 'var(--vscode-descriptionForeground)'],
  ['--rule', 'var(--vscode-editorWidget-border, var(--vscode-contrastBorder, #8886))'],
  ['--busy', 'var(--vscode-charts-blue)'],
  ['--wait', 'var(--vscode-charts-red)'],
  ['--ok', 'var(--vscode-charts-green)'],
  ['--mono', 'var(--vscode-editor-font-family)'],
] as const;

// Rows of the source and parts of the timeline carry the line in their id or data-line: p0f0L14.
const kScript = `
const vscode = acquireVsCodeApi();
const place = (node) => {
  for (let at = node; at instanceof Element; at = at.parentElement) {
    const name = at.dataset.line || at.id || (at.getAttribute('href') || '').slice(1);
    const match = /^p\\d+f(\\d+)L(\\d+)$/.exec(name);
    if (match) return { file: Number(match[1]), line: Number(match[2]) };
  }
  return undefined;
};
const open = (event) => {
  const found = place(event.target);
  if (!found) return;
  event.preventDefault();
  vscode.postMessage({ kind: 'open', ...found });
};
document.addEventListener('click', open);
document.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') open(event); });
for (const row of document.querySelectorAll('tr[id^="p"], [data-line]')) {
  if (row.tagName === 'TR' && !row.hasAttribute('title')) continue;
  row.setAttribute('tabindex', '0');
  row.setAttribute('role', 'link');
  const name = row.getAttribute('title') || (row.querySelector('title') || {}).textContent || '';
  const match = /L(\\d+)$/.exec(row.id || row.dataset.line || '');
  row.setAttribute('aria-label', 'line ' + (match ? match[1] : '') + ', ' + name);
}
`;

export interface PanelMessage {
  readonly kind: 'open';
  readonly file: number;
  readonly line: number;
}

export function isPanelMessage(value: unknown): value is PanelMessage {
  const message = value as Partial<PanelMessage> | null;
  return (
    typeof message === 'object' &&
    message?.kind === 'open' &&
    Number.isInteger(message.file) &&
    Number.isInteger(message.line)
  );
}

/** The page for a webview. Scripts of the page itself are dropped; only ours, with the nonce, may run. */
export function panelPage(html: string, nonce: string, note: string): string {
  const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'`;
  const colors = kColors.map(([name, value]) => `${name}:${value}`).join(';');
  const style =
    `<style>:root,body{${colors}}body{padding:0;font-family:var(--vscode-font-family)}main{max-width:none}` +
    'body.vscode-high-contrast svg rect,body.vscode-high-contrast-light svg rect{stroke:var(--vscode-contrastBorder)}' +
    'body.vscode-high-contrast .code tr[title] td,body.vscode-high-contrast-light .code tr[title] td{' +
    'border-left:0;outline:1px dotted var(--vscode-contrastActiveBorder)}' +
    ':focus-visible{outline:2px solid var(--vscode-focusBorder)}[data-line],tr[title]{cursor:pointer}' +
    '.stale{border-left:4px solid var(--wait);padding:4px 12px;margin:0 0 12px}</style>';
  const clean = html.replace(/<script\b[\s\S]*?<\/script>/gi, '').replace(/<meta[^>]*http-equiv[^>]*>/gi, '');
  const head = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  const banner = note === '' ? '' : `<p class="stale" role="status">${escapeHtml(note)}</p>`;
  return clean
    .replace(/<head>/i, (tag) => tag + head)
    .replace(/<\/head>/i, (tag) => style + tag)
    .replace(/<main>/i, (tag) => tag + banner)
    .replace(/<\/body>/i, (tag) => `<script nonce="${nonce}">${kScript}</script>${tag}`);
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
