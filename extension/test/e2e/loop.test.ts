// The whole loop as a person goes through it: see the squiggle, take the fix, export from the palette, see the result.

import * as fs from 'node:fs';
import * as path from 'node:path';
import type { Locator } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Editor } from './editor';
import { PYTHON, requireInstalled, ROOT } from './places';
import { EditorWindow } from './window';

const HAZARDS = path.join(ROOT, 'examples/hazards');
const FILE = 'data_dependent_if.py';
const MODEL = 'LoudnessGate';

// A model whose fault lies in another file, and one of its own.
const CALLER = 'limiter.py';
const GATES = `def gate(clip):
    if clip.mean() > 0:
        clip = clip * 2
    return clip
`;
const LIMITER = `import torch
from gates import gate


class Limiter(torch.nn.Module):
    def forward(self, clip: torch.Tensor) -> torch.Tensor:
        level = clip * 2
        level.data.mul_(2)
        return gate(level)


if __name__ == "__main__":
    torch.export.export(Limiter(), (torch.randn(2, 64),))
`;

let editor: Editor;
let window: EditorWindow;

beforeAll(async () => {
  requireInstalled(PYTHON);
  editor = await Editor.start({
    workspace: {
      [FILE]: { copyOf: path.join(HAZARDS, FILE) },
      'gates.py': { text: GATES },
      [CALLER]: { text: LIMITER },
    },
    settings: { 'exportlens.interpreter': PYTHON },
  });
  window = await EditorWindow.open('loop');
  await window.goTo(editor.url());
});

afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') {
    await window.picture('failed');
    console.error(editor.extensionLog().split('\n').slice(-40).join('\n'));
  }
});

afterAll(async () => {
  await window.close();
  await editor.stop();
});

test('the `if` on a tensor has a squiggle, with a message that says what to do', async () => {
  await window.openFile(FILE);
  await window.squiggle('error').waitFor();
  await window.goToPlace(lineOf('if clip.abs().mean() > 0.5'), 12);
  await window.pointAt(window.squiggle('error'));
  const hover = window.page.locator('.monaco-hover:not(.hidden)').filter({ hasText: 'EXL101' }).first();
  await hover.waitFor();
  expect(await hover.textContent()).toContain('torch.cond');
  await window.picture('squiggle');
});

test('an export of it fails, in a sentence and on the line', async () => {
  await exportFromPalette('torch');
  const toast = window.toast(`${MODEL} does not export`);
  await toast.waitFor({ timeout: 120_000 });
  await window.picture('export-fails');
  const told = await window.message(toast);
  expect(told).toContain('cannot trace it');
  expect(told).not.toMatch(/Could not guard|u0|unhinted/);
  await window.goToPlace(1, 1);
  await window.button(toast, 'Go to Line').click();
  await window.page.getByText(`Ln ${lineOf('if clip.abs().mean() > 0.5')}, Col`).waitFor();
  await window.page.keyboard.press('Control+Shift+m');
  const problem = window.page
    .locator('.markers-panel .monaco-list-row')
    .filter({ hasText: /EXP\d+/ })
    .first();
  await problem.waitFor();
  await window.picture('failure-on-its-line');
  await window.page.keyboard.press('Control+j');
});

test('the fix is verified before it is taken', async () => {
  await window.openFile(FILE);
  await window.goToPlace(lineOf('if clip.abs().mean() > 0.5'), 14);
  await window.quickFix(/^\s*Verify fix: .*torch\.cond/, async () => {
    await window.picture('verify-beside-the-fix');
    const titles = await window.page.locator('.action-widget .monaco-list-row').allTextContents();
    expect(titles.filter((title) => title.includes('Disable EXP'))).toEqual([]);
    expect(titles.filter((title) => title.includes('Disable EXL101'))).toHaveLength(1);
  });
  await window.toast(`${MODEL} exports with this fix, and equals the original`).waitFor({ timeout: 120_000 });
  await window.picture('verified');
  expect(editor.read(FILE)).not.toContain('torch.cond(');
});

test('Make Exportable shows the whole repair beside the file; Discard writes nothing', async () => {
  const before = editor.read(FILE);
  await window.openFile(FILE);
  const toast = await repaired();
  await window.picture('proposal');
  expect(editor.read(FILE)).toBe(before);
  await window.button(toast, 'Discard').click();
  await window.diff().waitFor({ state: 'detached' });
  await window.openFile(FILE);
  expect(await window.text()).toContain('if clip.abs().mean() > 0.5');
  expect(editor.read(FILE)).toBe(before);
});

test('Apply takes the whole repair, and Undo takes it back', async () => {
  await window.openFile(FILE);
  const toast = await repaired();
  await window.button(toast, 'Apply').click();
  await window.diff().waitFor({ state: 'detached' });
  await expect.poll(() => window.text()).toContain('torch.cond(');
  expect(await window.text()).not.toContain('if clip.abs().mean() > 0.5:');
  await window.squiggle('error').waitFor({ state: 'detached' });
  await window.picture('applied');
  await window.page.keyboard.press('Control+z');
  await expect.poll(() => window.text()).toContain('if clip.abs().mean() > 0.5:');
  expect(await window.text()).not.toContain('torch.cond(');
  await window.save();
});

test('a repair of two files shows both; Apply takes both', async () => {
  await window.openFile(CALLER);
  const toast = await repaired('Limiter', 'after 2 fixes');
  await window.page.locator('.multiDiffEntry').nth(1).waitFor();
  await window.picture('proposal-for-two-files');
  await window.button(toast, 'Apply').click();
  await window.page.locator('.tab', { hasText: 'now ↔ exportable' }).waitFor({ state: 'detached' });
  await expect.poll(() => window.text()).toContain('.detach().mul_(2)');
  // More than once: the model's file is shown again at some time after that.
  const other = window.page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'gates.py' });
  await expect
    .poll(() => other.click().then(() => window.text()), { timeout: 20_000, interval: 1_000 })
    .toContain('torch.cond(');
  await window.picture('both-files-applied');
});

test('the quick fix rewrites it with torch.cond', async () => {
  await window.openFile(FILE);
  await window.goToPlace(lineOf('if clip.abs().mean() > 0.5'), 14);
  await window.quickFix(/torch\.cond/, () => window.picture('quick-fix'));
  await expect.poll(() => window.text()).toContain('torch.cond(');
  await window.squiggle('error').waitFor({ state: 'detached' });
  await window.save();
  expect(editor.read(FILE)).toContain('torch.cond(');
  expect(editor.read(FILE)).not.toContain('if clip.abs().mean() > 0.5:');
  await window.picture('rewritten');
});

test('the export from the palette succeeds, and its result is there', async () => {
  await exportFromPalette('torch');
  const toast = window.toast(`${MODEL} is exported for torch`);
  await toast.waitFor({ timeout: 120_000 });
  expect(await window.message(toast)).toMatch(/equal to eager|differs from eager by at most/);
  await window.picture('exported');
  const artifacts = fs
    .readdirSync(editor.folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.pt2'));
  expect(artifacts).toHaveLength(1);
  await window.button(toast, 'Open Report').click();
  const page = window.page.frameLocator('iframe.webview').frameLocator('iframe');
  await page.getByText(MODEL).first().waitFor();
  await window.picture('report');
  // A double click on a line of the source in the report leads there in the editor.
  await page.locator('#source .row', { hasText: 'torch.cond(' }).dblclick();
  const line = String(lineOf('torch.cond('));
  await window.page.locator('.line-numbers.active-line-number', { hasText: line }).first().waitFor();
  await window.picture('from-report-to-line');
});

test('Cancel ends a running export', async () => {
  await window.openFile(FILE);
  await exportFromPalette('aoti-cpu');
  const progress = window.toast(`Exporting ${MODEL} for aoti-cpu`);
  await progress.waitFor();
  await window.button(progress, 'Cancel').click();
  await window.toast(`The export of ${MODEL} was cancelled`).waitFor();
  await window.picture('cancelled');
});

/** Runs Make Exportable on the file that is open, with the proposed inputs; the question, beside the difference. */
async function repaired(model = MODEL, told = 'after 1 fix'): Promise<Locator> {
  await window.run('ExportLens: Make Exportable...');
  await window.page
    .locator('.quick-input-widget')
    .filter({ hasText: `${model}: Example inputs` })
    .waitFor();
  await window.page.keyboard.press('Enter');
  const toast = window.toast(`${model} exports and equals the original ${told}`);
  await toast.waitFor({ timeout: 120_000 });
  await window.page.locator('.view-line', { hasText: 'torch.cond(' }).first().waitFor();
  return toast;
}

/** Line of a text in the file on disk, counted from 1. */
function lineOf(text: string): number {
  const index = editor
    .read(FILE)
    .split('\n')
    .findIndex((line) => line.includes(text));
  expect(index, text).toBeGreaterThanOrEqual(0);
  return index + 1;
}

/** Answers the questions of the command: the proposed inputs as they are, then the target. */
async function exportFromPalette(target: string): Promise<void> {
  await window.run('ExportLens: Export Model...');
  const inputs = window.page
    .locator('.quick-input-widget')
    .filter({ hasText: `Export ${MODEL}: Example inputs` });
  await inputs.waitFor();
  expect(await inputs.locator('input.input').inputValue()).toContain('torch.randn(2, 64)');
  await window.picture(`inputs-for-${target}`);
  await window.page.keyboard.press('Enter');
  const row = window.row(new RegExp(`^\\s*${target}`));
  await row.waitFor({ timeout: 60_000 });
  await window.picture(`targets-for-${target}`);
  await row.click();
}
