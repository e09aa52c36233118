// The editor as a person sees it: a browser page, and what one does there with keyboard and mouse.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { chromium, type BrowserContext, type Locator, type Page } from 'playwright-core';
import { expect, vi } from 'vitest';
import { CHROMIUM, PICTURES, requireInstalled } from './places';

const MENU_ATTEMPTS = 5;
const MENU_PATIENCE = 6_000; // milliseconds

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export class EditorWindow {
  private pictures = 0;

  private constructor(
    private readonly context: BrowserContext,
    private readonly profile: string,
    private readonly name: string,
    readonly page: Page,
  ) {}

  /** A browser whose pictures are kept under `name`; `goTo` shows the editor in it. */
  static async open(name: string): Promise<EditorWindow> {
    requireInstalled(CHROMIUM);
    const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'exportlens-browser-'));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: CHROMIUM,
      headless: true,
      args: FLAGS,
      viewport: { width: 1280, height: 800 },
    });
    context.setDefaultTimeout(30_000);
    const [first] = context.pages();
    fs.rmSync(path.join(PICTURES, name), { recursive: true, force: true });
    return new EditorWindow(context, profile, name, first ?? (await context.newPage()));
  }

  async goTo(url: string): Promise<void> {
    await this.page.goto(url);
    await this.page.locator('.monaco-workbench').waitFor();
    await this.page.locator('.explorer-folders-view .monaco-list-row').first().waitFor();
  }

  async close(): Promise<void> {
    await this.context.close();
    fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  /** Keeps a picture of the window; they are numbered in the order in which they are taken. */
  async picture(title: string): Promise<string> {
    this.pictures += 1;
    const file = path.join(PICTURES, this.name, `${String(this.pictures).padStart(2, '0')}-${title}.png`);
    await this.page.screenshot({ path: file });
    return file;
  }

  async openFile(name: string): Promise<void> {
    await this.page.keyboard.press('Control+p');
    await this.pick(
      name,
      this.page.locator(`.quick-input-list .monaco-list-row[aria-label^="${path.basename(name)}"]`).first(),
    );
    // Only when it is open: what is asked for meanwhile would lose the focus to it, and be closed.
    await this.page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
    await this.page
      .locator('.editor-group-container.active .tab.active', { hasText: path.basename(name) })
      .waitFor();
    await this.page.locator('.editor-instance .view-line').first().waitFor();
  }

  /** Puts the cursor at a place; line and column count from 1. */
  async goToPlace(line: number, column: number): Promise<void> {
    await this.page.keyboard.press('Control+g');
    const input = this.page.locator('.quick-input-widget input');
    await input.fill(`:${line}:${column}`);
    await this.page.keyboard.press('Enter');
    await input.waitFor({ state: 'hidden' });
  }

  async run(command: string): Promise<void> {
    await this.page.keyboard.press('F1');
    await this.pick(
      `>${command}`,
      this.page.locator('.quick-input-list .monaco-list-row').filter({ hasText: command }).first(),
    );
  }

  /** Types into the list of choices that is open, and clicks a row of it until it is taken. */
  private async pick(typed: string, row: Locator): Promise<void> {
    const input = this.page.locator('.quick-input-widget input');
    const isWaiting = async (): Promise<boolean> =>
      (await input.isVisible()) && (await input.inputValue({ timeout: 1_000 }).catch(() => '')) === typed;
    await input.fill(typed);
    await row.waitFor();
    // A list that is filled anew between the press and the release of the button takes no click.
    for (let attempt = 1; await isWaiting(); attempt += 1) {
      if (attempt > 5) {
        throw new Error(`nothing was picked for ${typed}`);
      }
      await row.click({ timeout: 5_000 }).catch(() => undefined);
      await expect
        .poll(isWaiting, { timeout: 3_000 })
        .toBe(false)
        .catch(() => undefined);
    }
  }

  /** The text of the lines on screen. */
  async text(): Promise<string> {
    const lines = await this.page.locator('.editor-instance .view-line').evaluateAll((all) =>
      all
        .map((line) => ({ top: line.getBoundingClientRect().top, text: line.textContent }))
        .sort((one, other) => one.top - other.top)
        .map(({ text }) => text),
    );
    return lines.join('\n').replaceAll('\u00a0', ' ');
  }

  /** The editor that shows two texts side by side. */
  diff(): Locator {
    return this.page.locator('.monaco-diff-editor').first();
  }

  squiggle(kind: 'error' | 'warning' | 'info'): Locator {
    return this.page.locator(`.squiggly-${kind}`).first();
  }

  /** Rests the mouse on something, without scrolling it anywhere: the editor scrolls its own way. */
  async pointAt(what: Locator): Promise<void> {
    // What is drawn anew has no place for a moment, also in the moment after it had one: the place that was seen is taken.
    const box = await vi.waitFor(
      async () => {
        const place = await what.boundingBox({ timeout: 1_000 });
        if (place === null) {
          throw new Error('it is not on screen');
        }
        return place;
      },
      { timeout: 20_000, interval: 100 },
    );
    await this.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 5 });
  }

  /** The question on screen, told by its title. */
  question(title: string | RegExp): Locator {
    return this.page.locator('.quick-input-widget').filter({ has: this.page.getByText(title) });
  }

  row(label: string | RegExp): Locator {
    return this.page.locator('.quick-input-list .monaco-list-row').filter({ hasText: label }).first();
  }

  /** What a notification says, without the words of its buttons. */
  async message(toast: Locator): Promise<string> {
    return (await toast.locator('.notification-list-item-message').textContent()) ?? '';
  }

  toast(text: string | RegExp): Locator {
    return this.page.locator('.notification-toast').filter({ hasText: text }).first();
  }

  button(toast: Locator, label: string): Locator {
    return toast.locator('.monaco-button', { hasText: label });
  }

  /** Opens the quick fixes at the cursor and takes the one with this text. */
  async quickFix(label: string | RegExp, beforeTaking?: () => Promise<unknown>): Promise<void> {
    const row = this.page.locator('.action-widget .monaco-list-row').filter({ hasText: label }).first();
    // The list holds what was known when it was opened: as a person would, it is opened anew until the fix has come.
    for (let attempt = 1; ; attempt++) {
      await this.page.keyboard.press('Control+.');
      try {
        await row.waitFor({ timeout: MENU_PATIENCE });
        break;
      } catch (error) {
        if (attempt === MENU_ATTEMPTS) throw error;
        await this.page.keyboard.press('Escape');
      }
    }
    await beforeTaking?.();
    await row.click();
  }

  async save(): Promise<void> {
    await this.page.keyboard.press('Control+s');
    await this.page.locator('.tab.active.dirty').waitFor({ state: 'detached' });
  }
}
