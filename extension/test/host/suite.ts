// Tests inside the extension host, with the whole API of VS Code: what the server says arrives as the editor's own.

import * as assert from 'node:assert/strict';
import * as path from 'node:path';
import * as vscode from 'vscode';

const SECONDS = 1000;
const FILE = 'data_dependent_if.py';

/** Runs the tests one after the other; rejects when one fails. VS Code calls this. */
export async function run(): Promise<void> {
  const failed: string[] = [];
  for (const [name, body] of TESTS) {
    try {
      await body();
      console.log(`passed: ${name}`);
    } catch (error) {
      failed.push(name);
      console.error(
        `failed: ${name}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
    }
  }
  if (failed.length > 0) {
    throw new Error(`${failed.length} of ${TESTS.length} failed: ${failed.join('; ')}`);
  }
}

const TESTS: readonly (readonly [string, () => Promise<void>])[] = [
  ['every command that the manifest names is registered', everyCommandIsThere],
  ['a finding is a diagnostic on its expression, with a link', findingIsDiagnostic],
  ['the fix is a code action that can be applied and undone', fixIsCodeAction],
  ['silencing is a code action', silencing],
  ['an edit that removes the hazard removes the diagnostic', editRemovesDiagnostic],
  ['a model has a CodeLens that names it', codeLensNamesModel],
  ['ignoring a rule in the settings takes effect at once', settingsTakeEffect],
  ['a restarted server says the same again', restartSaysTheSame],
  ['a cell of a notebook has its finding and its fix', notebookCell],
  ['a save confirms what was found, where the settings say so', saveConfirms],
];

async function everyCommandIsThere(): Promise<void> {
  const extension = vscode.extensions.getExtension('exportlens.exportlens');
  assert.ok(extension, 'the extension is not there');
  await extension.activate();
  const manifest = extension.packageJSON as { contributes: { commands: readonly { command: string }[] } };
  const registered = new Set(await vscode.commands.getCommands(true));
  const missing = manifest.contributes.commands.filter(({ command }) => !registered.has(command));
  assert.deepEqual(missing, []);
}

async function findingIsDiagnostic(): Promise<void> {
  const document = await opened();
  const finding = await findingOf(document, 'EXL101');
  assert.equal(finding.severity, vscode.DiagnosticSeverity.Error);
  assert.equal(document.getText(finding.range), 'clip.abs().mean() > 0.5');
  assert.match(finding.message, /torch\.cond/);
  assert.ok(typeof finding.code === 'object' && finding.code.target.toString().length > 0, 'it has no link');
}

async function fixIsCodeAction(): Promise<void> {
  const document = await opened();
  const before = document.getText();
  const finding = await findingOf(document, 'EXL101');
  const action = await until('the fix', async () =>
    (await codeActions(document, finding.range)).find(({ title }) => title.includes('torch.cond')),
  );
  assert.ok(action.edit, 'the action has no edit');
  assert.equal(await vscode.workspace.applyEdit(action.edit), true);
  assert.match(document.getText(), /torch\.cond\(/);
  await noFindingOf(document, 'EXL101');
  await vscode.commands.executeCommand('undo');
  assert.equal(document.getText(), before);
  await findingOf(document, 'EXL101');
}

async function silencing(): Promise<void> {
  const document = await opened();
  const finding = await findingOf(document, 'EXL101');
  const action = await until('the action', async () =>
    (await codeActions(document, finding.range)).find(({ title }) => title.includes('Disable EXL101')),
  );
  assert.ok(action.edit, 'the action has no edit');
  await vscode.workspace.applyEdit(action.edit);
  assert.match(document.lineAt(finding.range.start.line).text, /# exportlens: ignore\[EXL101\]$/);
  await noFindingOf(document, 'EXL101');
  await vscode.commands.executeCommand('undo');
  await findingOf(document, 'EXL101');
}

async function editRemovesDiagnostic(): Promise<void> {
  const document = await opened();
  const finding = await findingOf(document, 'EXL101');
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, finding.range, 'clip.dim() == 2');
  await vscode.workspace.applyEdit(edit);
  await noFindingOf(document, 'EXL101');
  await vscode.commands.executeCommand('undo');
  await findingOf(document, 'EXL101');
}

async function codeLensNamesModel(): Promise<void> {
  const document = await opened();
  const lens = await until('a CodeLens', async () => {
    const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>(
      'vscode.executeCodeLensProvider',
      document.uri,
    );
    return lenses.find(({ command }) => command?.command === 'exportlens.export');
  });
  assert.deepEqual(lens.command?.arguments, [{ uri: document.uri.toString(), model: 'LoudnessGate' }]);
  assert.match(document.lineAt(lens.range.start.line).text, /^class LoudnessGate/);
}

async function settingsTakeEffect(): Promise<void> {
  const document = await opened();
  await findingOf(document, 'EXL101');
  const section = vscode.workspace.getConfiguration('exportlens');
  await section.update('ignore', ['EXL1'], vscode.ConfigurationTarget.Workspace);
  await noFindingOf(document, 'EXL101');
  await section.update('ignore', undefined, vscode.ConfigurationTarget.Workspace);
  await findingOf(document, 'EXL101');
}

async function restartSaysTheSame(): Promise<void> {
  const document = await opened();
  const before = await findingOf(document, 'EXL101');
  await vscode.commands.executeCommand('exportlens.restart');
  const after = await findingOf(document, 'EXL101');
  assert.deepEqual(after.range, before.range);
  assert.equal(after.message, before.message);
}

async function notebookCell(): Promise<void> {
  const model = (await opened()).getText();
  const cells = ['size = 3', model].map(
    (text) => new vscode.NotebookCellData(vscode.NotebookCellKind.Code, text, 'python'),
  );
  const notebook = await vscode.workspace.openNotebookDocument(
    'jupyter-notebook',
    new vscode.NotebookData(cells),
  );
  await vscode.window.showNotebookDocument(notebook);
  const document = notebook.cellAt(1).document;
  const finding = await findingOf(document, 'EXL101');
  assert.equal(document.getText(finding.range), 'clip.abs().mean() > 0.5');
  const action = await until('the fix', async () =>
    (await codeActions(document, finding.range)).find(({ title }) => title.includes('torch.cond')),
  );
  assert.ok(action.edit, 'the action has no edit');
  assert.equal(await vscode.workspace.applyEdit(action.edit), true);
  assert.match(document.getText(), /torch\.cond\(/);
  assert.equal(notebook.cellAt(0).document.getText(), 'size = 3');
  await noFindingOf(document, 'EXL101');
  await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
}

async function saveConfirms(): Promise<void> {
  const document = await opened();
  const before = document.getText();
  const section = vscode.workspace.getConfiguration('exportlens');
  await section.update('confirmOnSave', true, vscode.ConfigurationTarget.Workspace);
  await insertAtEnd(document, '\n# saved\n');
  await document.save();
  // A first export imports torch.
  const finding = await until(
    'a confirmed finding',
    () =>
      Promise.resolve(findings(document, 'EXL101').find(({ message }) => message.includes('Confirmed: '))),
    120,
  );
  assert.match(finding.message, /Confirmed: a real export of LoudnessGate stops here, too \(EXP001\)/);
  assert.equal(findings(document, 'EXP001').length, 1);
  await section.update('confirmOnSave', undefined, vscode.ConfigurationTarget.Workspace);
  await vscode.commands.executeCommand('undo');
  assert.equal(document.getText(), before);
  await document.save();
  // What was said of another text is not said of this one.
  await noFindingOf(document, 'EXP001');
}

async function insertAtEnd(document: vscode.TextDocument, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, document.positionAt(document.getText().length), text);
  await vscode.workspace.applyEdit(edit);
}

async function opened(): Promise<vscode.TextDocument> {
  const [folder] = vscode.workspace.workspaceFolders ?? [];
  assert.ok(folder, 'no folder is open');
  const document = await vscode.workspace.openTextDocument(path.join(folder.uri.fsPath, FILE));
  await vscode.window.showTextDocument(document);
  return document;
}

function findings(document: vscode.TextDocument, code: string): vscode.Diagnostic[] {
  return vscode.languages
    .getDiagnostics(document.uri)
    .filter((finding) => (typeof finding.code === 'object' ? finding.code.value : finding.code) === code);
}

function findingOf(document: vscode.TextDocument, code: string): Promise<vscode.Diagnostic> {
  return until(`a finding ${code}`, () => Promise.resolve(findings(document, code)[0]));
}

async function noFindingOf(document: vscode.TextDocument, code: string): Promise<void> {
  await until(`no finding ${code}`, () =>
    Promise.resolve(findings(document, code).length === 0 ? true : undefined),
  );
}

function codeActions(document: vscode.TextDocument, range: vscode.Range): Thenable<vscode.CodeAction[]> {
  return vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider',
    document.uri,
    range,
    vscode.CodeActionKind.QuickFix.value,
  );
}

/** The first value that `look` gives; fails when there is none in time. */
async function until<T>(what: string, look: () => Promise<T | undefined>, seconds = 30): Promise<T> {
  const deadline = Date.now() + seconds * SECONDS;
  while (Date.now() < deadline) {
    const value = await look();
    if (value !== undefined) {
      return value;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited ${seconds} s for ${what}`);
}
