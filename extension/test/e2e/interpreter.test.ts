// What a person sees when the interpreter is not what it has to be.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { Editor } from './editor';
import { PYTHON, requireInstalled, ROOT } from './places';
import { EditorWindow } from './window';

const WORKSPACE = { 'net.py': { text: 'import torch\n' } };

let editor: Editor | undefined;
let window: EditorWindow | undefined;
const folders: string[] = [];

afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') {
    await window?.picture('failed');
  }
  await window?.close();
  await editor?.stop();
  [window, editor] = [undefined, undefined];
  for (const folder of folders.splice(0)) {
    fs.rmSync(folder, { recursive: true });
  }
});

/** A Python that has nothing but its standard library. */
function barePython(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'exportlens-python-'));
  folders.push(folder);
  const file = path.join(folder, 'python3');
  fs.writeFileSync(file, '#!/bin/sh\nexec env -u PYTHONPATH /usr/bin/python3 -S "$@"\n', { mode: 0o755 });
  return file;
}

test('a Python without the package exportlens: the command that installs it is shown', async () => {
  const python = barePython();
  editor = await Editor.start({ workspace: WORKSPACE, settings: { 'exportlens.interpreter': python } });
  window = await EditorWindow.open('no-exportlens');
  await window.goTo(editor.url());
  await window.openFile('net.py');
  const toast = window.toast('The package exportlens is not installed');
  await toast.waitFor();
  expect(await window.message(toast)).toContain(`${python} -m pip install exportlens`);
  for (const label of ['Install', 'Copy Command', 'Choose Interpreter']) {
    expect(await window.button(toast, label).count(), label).toBeGreaterThan(0);
  }
  await window.picture('message');
});

test('without a setting and without the Python extension, PATH is searched', async () => {
  const python = barePython();
  editor = await Editor.start({
    workspace: WORKSPACE,
    settings: {},
    env: { PATH: `${path.dirname(python)}:${process.env.PATH ?? ''}` },
  });
  window = await EditorWindow.open('python-of-path');
  await window.goTo(editor.url());
  await window.openFile('net.py');
  const toast = window.toast('The package exportlens is not installed');
  await toast.waitFor();
  expect(await window.message(toast)).toContain(python);
});

test('a setting that names no Python is quoted', async () => {
  editor = await Editor.start({
    workspace: WORKSPACE,
    settings: { 'exportlens.interpreter': '/no/such/python' },
  });
  window = await EditorWindow.open('no-such-python');
  await window.goTo(editor.url());
  await window.openFile('net.py');
  await window.toast('The setting exportlens.interpreter names no Python: "/no/such/python"').waitFor();
  await window.picture('message');
});

test('a workspace that is not trusted does not bring its own Python', async () => {
  const python = barePython();
  const trap = path.join(path.dirname(python), 'sprung');
  editor = await Editor.start({
    workspace: {
      ...WORKSPACE,
      '.venv/bin/python3': { text: `#!/bin/sh\ntouch ${trap}\n` },
      '.vscode/settings.json': { text: '{"exportlens.interpreter": "${workspaceFolder}/.venv/bin/python3"}' },
    },
    settings: {},
    env: { PATH: `${path.dirname(python)}:${process.env.PATH ?? ''}` },
    workspaceTrust: true,
  });
  fs.chmodSync(editor.file('.venv/bin/python3'), 0o755);
  window = await EditorWindow.open('not-trusted');
  await window.goTo(editor.url());
  await window.openFile('net.py');
  const toast = window.toast('The package exportlens is not installed');
  await toast.waitFor();
  expect(await window.message(toast)).toContain(python);
  await window.picture('restricted');
  expect(fs.existsSync(trap)).toBe(false);
});

test('a workspace that is not trusted is analysed, and its models are not run', async () => {
  requireInstalled(PYTHON);
  const trap = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'exportlens-trap-')), 'sprung');
  folders.push(path.dirname(trap));
  const source = fs.readFileSync(path.join(ROOT, 'examples/hazards/data_dependent_if.py'), 'utf8');
  editor = await Editor.start({
    workspace: { 'net.py': { text: `${source}\nopen(${JSON.stringify(trap)}, "w").close()\n` } },
    settings: { 'exportlens.interpreter': PYTHON },
    workspaceTrust: true,
  });
  window = await EditorWindow.open('not-trusted-export');
  await window.goTo(editor.url());
  await window.openFile('net.py');
  await window.squiggle('error').waitFor();
  await window.page.locator('.codelens-decoration a', { hasText: 'Export...' }).first().click();
  const toast = window.toast('Exporting a model runs its code, and this workspace is not trusted.');
  await toast.waitFor();
  expect(await window.button(toast, 'Manage Workspace Trust').count()).toBeGreaterThan(0);
  await window.picture('refused');
  expect(fs.existsSync(trap)).toBe(false);
});
