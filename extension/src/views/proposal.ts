// A proposed text beside the file as it is, in VS Code's diff editor, with one question: apply it all, or nothing.

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
   * Shows what `edit` makes of `document`, and asks. Applies the whole edit or nothing of it; true where it was applied.
   * Other buttons are what `others` names; they leave the question open.
   */
  async offer(
    document: vscode.TextDocument,
    edit: vscode.WorkspaceEdit,
    question: string,
    others: ReadonlyMap<string, () => unknown> = new Map(),
  ): Promise<boolean> {
    const before = document.getText();
    this.count += 1;
    const name = path.basename(document.fileName);
    const proposed = vscode.Uri.from({ scheme: SCHEME, path: `/${this.count}/${name}` });
    this.texts.set(proposed.toString(), edited(document, edit.get(document.uri)));
    try {
      const title = `${name}: now ↔ exportable`;
      await vscode.commands.executeCommand('vscode.diff', document.uri, proposed, title, { preview: true });
      if (!(await asked(question, others))) {
        return false;
      }
      if (document.getText() !== before) {
        void vscode.window.showWarningMessage(
          `${name} has changed since this was proposed, so nothing was applied. Run the command again.`,
        );
        return false;
      }
      if (!(await vscode.workspace.applyEdit(edit))) {
        throw new Error(`VS Code did not take the changes to ${name}; the file is as it was.`);
      }
      return true;
    } finally {
      await close(proposed);
      this.texts.delete(proposed.toString());
    }
  }
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

async function close(proposed: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const shown = tabs.filter(
    ({ input }) =>
      input instanceof vscode.TabInputTextDiff && input.modified.toString() === proposed.toString(),
  );
  await vscode.window.tabGroups.close(shown);
}
