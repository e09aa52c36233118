// Runs extension/test/host inside a real extension host, the way VS Code runs an extension's own tests.

import * as path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { Editor } from './editor';
import { PYTHON, requireInstalled, ROOT } from './places';
import { EditorWindow } from './window';

const FILE = 'data_dependent_if.py';

let editor: Editor | undefined;
let window: EditorWindow | undefined;

afterEach(async () => {
  await window?.close();
  await editor?.stop();
});

test('the suite inside the extension host', async () => {
  const suite = path.join(ROOT, 'extension/dist/test/suite.js');
  requireInstalled(PYTHON, suite);
  editor = await Editor.start({
    workspace: { [FILE]: { copyOf: path.join(ROOT, 'examples/hazards', FILE) } },
    settings: { 'exportlens.interpreter': PYTHON },
    install: false,
    switches: ['--vscode-option', 'enable-smoke-test-driver'],
  });
  window = await EditorWindow.open('host');
  const lines: string[] = [];
  const ended = new Promise<number>((resolve) => {
    void window?.page.exposeFunction('codeAutomationExit', resolve);
  });
  await window.page.exposeFunction('codeAutomationLog', (_level: string, words: unknown[]) => {
    lines.push(words.map(String).join(' '));
  });
  const remote = (file: string): string => `vscode-remote://127.0.0.1:${editor?.port}${file}`;
  await window.page.goto(
    editor.url([
      ['extensionDevelopmentPath', remote(ROOT)],
      ['extensionTestsPath', remote(suite)],
    ]),
  );
  const code = await ended;
  const results = lines.filter((line) => /passed: |failed: /.test(line));
  expect(code, lines.join('\n')).toBe(0);
  expect(results.length, lines.join('\n')).toBeGreaterThan(0);
  expect(results.filter((line) => line.includes('failed: '))).toEqual([]);
});
