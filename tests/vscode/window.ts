// A window of the editor, driven by keyboard and mouse in a headless browser. What is waited for is what a user sees; the
// browser's own waiting does it, nothing sleeps.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { chromium, type Browser, type Frame, type Locator, type Page } from 'playwright-core';
import { top, until, type Machine } from './machine';

const artefacts = process.env.KW_ARTEFACTS ?? path.join(top, 'build', 'vscode-artefacts');

let browser: Browser | undefined;

async function openBrowser(): Promise<Browser> {
  browser ??= await chromium.launch({
    executablePath: process.env.KW_CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--disable-dev-shm-usage',
    ],
  });
  return browser;
}

export async function closeBrowser(): Promise<void> {
  await browser?.close();
  browser = undefined;
}

export class Window {
  private constructor(
    readonly machine: Machine,
    readonly page: Page,
  ) {}

  /** Opens a window on the machine's workspace, with files open. */
  static async open(machine: Machine, ...files: string[]): Promise<Window> {
    const context = await (await openBrowser()).newContext({ viewport: { width: 1400, height: 900 } });
    const page = await context.newPage();
    page.setDefaultTimeout(Number(process.env.KW_WAIT ?? 60_000));
    const window = new Window(machine, page);
    await page.goto(window.url(files), { waitUntil: 'domcontentloaded' });
    await window.ready();
    return window;
  }

  private url(files: string[]): string {
    const host = `127.0.0.1:${this.machine.port}`;
    const open = files.map((name) => ['openFile', `vscode-remote://${host}${path.join(this.machine.workspace, name)}`]);
    const payload = encodeURIComponent(JSON.stringify(open));
    return `http://${host}/?folder=${encodeURIComponent(this.machine.workspace)}${files.length > 0 ? `&payload=${payload}` : ''}`;
  }

  async ready(): Promise<void> {
    await this.page.locator('.monaco-workbench .part.statusbar').waitFor();
  }

  async reload(): Promise<void> {
    await this.page.reload({ waitUntil: 'domcontentloaded' });
    await this.ready();
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }

  async shot(name: string): Promise<void> {
    fs.mkdirSync(artefacts, { recursive: true });
    await this.page.screenshot({ path: path.join(artefacts, `${name}.png`) });
  }

  // ---- quick input ----

  private get input(): Locator {
    return this.page.locator('.quick-input-widget:visible input').first();
  }

  /**
   * Opens a quick input with a key, types, waits for a row and takes it. An editor that opens at that moment takes the focus
   * and closes the input: then once more.
   */
  private async pick(key: string, text: string, row?: string): Promise<void> {
    const soon = { timeout: 6000 };
    for (let attempt = 0; ; attempt++) {
      try {
        await this.page.keyboard.press(key);
        await this.input.waitFor({ state: 'visible', ...soon });
        await this.input.fill(text, soon);
        if (row !== undefined) {
          await this.page
            .locator('.quick-input-list .monaco-list-row.focused:visible', { hasText: row })
            .first()
            .waitFor(soon);
        }
        await this.input.press('Enter', soon);
        return;
      } catch (error) {
        if (attempt > 10) throw error;
        await this.page.keyboard.press('Escape');
      }
    }
  }

  async command(title: string): Promise<void> {
    await this.pick('F1', `>${title}`, title);
  }

  async goToLine(line: number, column = 1): Promise<void> {
    await this.pick('Control+g', `:${line}:${column}`);
    await this.page.locator('.quick-input-widget').first().waitFor({ state: 'hidden' });
  }

  async openFile(name: string): Promise<void> {
    await this.pick('Control+p', name, path.basename(name));
    await this.tab(path.basename(name)).waitFor();
  }

  tab(title: string): Locator {
    return this.page.locator('.tabs-container .tab.active', { hasText: title });
  }

  /** A tab of any group, active or not. */
  anyTab(title: string): Locator {
    return this.page.locator('.tabs-container .tab', { hasText: title }).first();
  }

  quickPickRow(text: string): Locator {
    return this.page.locator('.quick-input-list .monaco-list-row', { hasText: text }).first();
  }

  // ---- editor ----

  lens(text: string | RegExp): Locator {
    return this.page
      .locator('.codelens-decoration a, .codelens-decoration span', {
        hasText: text,
      })
      .first();
  }

  /** Clicks a lens until it has its effect: a lens that is being laid out anew swallows a click. */
  async pressLens(text: string, effect: Locator): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      await this.lens(text).click();
      try {
        await effect.waitFor({ timeout: 5000 });
        return;
      } catch (error) {
        if (attempt > 5) throw error;
      }
    }
  }

  squiggle(kind: 'error' | 'warning' | 'info'): Locator {
    return this.page.locator(`.cdr.squiggly-${kind}`);
  }

  /** A line of code on the screen. */
  line(text: string): Locator {
    return this.page.locator('.editor-instance .view-line', { hasText: text }).first();
  }

  /** Texts after lines. They are made by style sheets, so no text of the page holds them. */
  private async afterTexts(): Promise<string[]> {
    return this.page.evaluate(() =>
      [...document.querySelectorAll('.editor-instance .view-line span')]
        .map((span) => getComputedStyle(span, '::after').content)
        .filter((content) => content !== 'none' && content !== 'normal' && content !== '')
        .map((content) => content.replace(/^"|"$/g, '').replace(/\u00a0/g, ' ')),
    );
  }

  async afterLine(text: string): Promise<void> {
    await until(`"${text}" after a line`, 40, async () =>
      (await this.afterTexts()).some((found) => found.includes(text)),
    );
  }

  async notAfterLine(text: string): Promise<void> {
    await until(
      `no "${text}" after a line`,
      40,
      async () => !(await this.afterTexts()).some((found) => found.includes(text)),
    );
  }

  toast(text: string | RegExp): Locator {
    return this.page.locator('.notification-list-item', { hasText: text }).first();
  }

  async pressToastButton(text: string | RegExp, button: string): Promise<void> {
    await this.toast(text).locator('.monaco-button', { hasText: button }).first().click();
  }

  dialog(text: string | RegExp): Locator {
    return this.page.locator('.monaco-dialog-box', { hasText: text });
  }

  async pressDialogButton(text: string | RegExp, button: string): Promise<void> {
    await this.dialog(text).locator('.monaco-button', { hasText: button }).first().click();
  }

  /** Opens the quick fixes at the cursor until the wanted one is there, and returns its row. */
  async quickFix(title: string): Promise<Locator> {
    const row = this.page.locator('.action-widget .monaco-list-row.action', { hasText: title }).first();
    for (let attempt = 0; ; attempt++) {
      await this.page.keyboard.press('Control+.');
      try {
        await row.waitFor({ timeout: 4000 });
        return row;
      } catch (error) {
        if (attempt > 8) throw error;
        await this.page.keyboard.press('Escape');
      }
    }
  }

  async takeQuickFix(title: string): Promise<void> {
    const row = await this.quickFix(title);
    await row.click();
    await row.waitFor({ state: 'detached' });
  }

  async save(): Promise<void> {
    await this.page.keyboard.press('Control+s');
  }

  /** Opens Kernelwright's own views. */
  async openView(): Promise<void> {
    await this.page.locator('.activitybar [aria-label*="Kernelwright"]').first().click();
  }

  /** A row of a view. */
  row(text: string): Locator {
    return this.page.locator('.pane-body .monaco-list-row', { hasText: text }).first();
  }

  status(text: string | RegExp): Locator {
    return this.page.locator('.part.statusbar .statusbar-item', { hasText: text }).first();
  }

  /** The frame of a webview that holds what the selector names. */
  async frame(selector: string): Promise<Frame> {
    return until(`a webview with ${selector}`, 60, async () => {
      for (const frame of this.page.frames()) {
        if (await frame.$(selector).catch(() => null)) return frame;
      }
      return undefined;
    });
  }
}
