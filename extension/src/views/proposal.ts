// Proposed texts beside the files as they are, in VS Code's diff editors, with one question: apply it all, or nothing.

import * as path from 'node:path';
import * as vscode from 'vscode';

const SCHEME = 'exportlens-proposed';
const APPLY = 'Apply';
const DISCARD = 'Discard';

export class Proposals implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private count = 0;

  dispose(): void {
    this.registered.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? '';
  }

  /**
   * Shows what `edit` makes of `document`, and of other files, and asks. Applies the whole edit or nothing of it; true
   * where it was applied. Other buttons are what `others` names; they leave the question open.
   */
  async offer(
    document: vscode.TextDocument,
    edit: vscode.WorkspaceEdit,
    question: string,
    others: ReadonlyMap<string, () => unknown> = new Map(),
  ): Promise<boolean> {
    this.count += 1;
    const changes = await Promise.all(edit.entries().map(([uri, edits]) => this.proposed(uri, edits)));
    const name = path.basename(document.fileName);
    // Of several files, VS Code adds how many they are.
    const title = `${name}: now ↔ exportable`;
    try {
      await show(title, changes);
      if (!(await asked(question, others))) {
        return false;
      }
      const moved = changes.find((change) => change.document.getText() !== change.before);
      if (moved !== undefined) {
        const file = path.basename(moved.document.fileName);
        void vscode.window.showWarningMessage(
          `${file} has changed since this was proposed, so nothing was applied. Run the command again.`,
        );
        return false;
      }
      if (!(await vscode.workspace.applyEdit(edit))) {
        throw new Error(`VS Code did not take the changes; ${name} is as it was.`);
      }
      return true;
    } finally {
      await close(title);
      for (const { proposed } of changes) {
        this.texts.delete(proposed.toString());
      }
    }
  }

  private async proposed(uri: vscode.Uri, edits: vscode.TextEdit[]): Promise<Change> {
    const document = await vscode.workspace.openTextDocument(uri);
    // Under the path of the file: another one would be shown as a renaming.
    const proposed = vscode.Uri.from({ scheme: SCHEME, path: uri.path, query: this.count.toString() });
    this.texts.set(proposed.toString(), edited(document, edits));
    return { document, before: document.getText(), proposed };
  }
}

interface Change {
  readonly document: vscode.TextDocument;
  readonly before: string;
  readonly proposed: vscode.Uri;
}

/** One file in the diff editor, several in the one for many files. */
async function show(title: string, changes: readonly Change[]): Promise<void> {
  const [first, ...more] = changes;
  if (first !== undefined && more.length === 0) {
    const { document, proposed } = first;
    await vscode.commands.executeCommand('vscode.diff', document.uri, proposed, title, { preview: true });
    return;
  }
  const resources = changes.map(({ document, proposed }) => [document.uri, document.uri, proposed]);
  await vscode.commands.executeCommand('vscode.changes', title, resources);
}

async function asked(question: string, others: ReadonlyMap<string, () => unknown>): Promise<boolean> {
  for (;;) {
    const pressed = await vscode.window.showInformationMessage(question, APPLY, DISCARD, ...others.keys());
    const other = others.get(pressed ?? '');
    if (other === undefined) {
      return pressed === APPLY;
    }
    other();
  }
}

/** The text of a document with edits that do not overlap. */
function edited(document: vscode.TextDocument, edits: readonly vscode.TextEdit[]): string {
  const newline = document.eol === vscode.EndOfLine.CRLF ? '\r\n' : '\n';
  const placed = edits.map(({ range, newText }) => ({
    start: document.offsetAt(range.start),
    end: document.offsetAt(range.end),
    text: newText.replace(/\r?\n/g, newline),
  }));
  let text = document.getText();
  for (const { start, end, text: inserted } of placed.sort((one, other) => other.start - one.start)) {
    text = text.slice(0, start) + inserted + text.slice(end);
  }
  return text;
}

async function close(title: string): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  // The editor for several files tells extensions nothing but its title.
  await vscode.window.tabGroups.close(
    tabs.filter(({ label }) => label === title || label.startsWith(`${title} (`)),
  );
}
