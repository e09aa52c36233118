// What has to hold before a command may run the user's models.

import * as vscode from 'vscode';

/** Whether the workspace may run code; where it may not, the user is told and led to the place to change that. */
export async function isTrustedToRun(): Promise<boolean> {
  if (vscode.workspace.isTrusted) {
    return true;
  }
  const manage = 'Manage Workspace Trust';
  const pressed = await vscode.window.showWarningMessage(
    'Exporting a model runs its code, and this workspace is not trusted.',
    manage,
  );
  if (pressed === manage) {
    await vscode.commands.executeCommand('workbench.trust.manage');
  }
  return false;
}

/** The Python file that a command is about: the one given, or the active editor's. Undefined after telling why. */
export async function pythonFile(uri: string | undefined): Promise<vscode.TextDocument | undefined> {
  if (uri !== undefined) {
    return vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
  }
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== 'python') {
    void vscode.window.showInformationMessage(
      'Open the Python file that has the model, then run the command again.',
    );
    return undefined;
  }
  return document;
}

/** Saves the file, because what is exported is what is on disk. False where it is still not there. */
export async function isOnDisk(document: vscode.TextDocument): Promise<boolean> {
  if (!document.isDirty && !document.isUntitled) {
    return true;
  }
  if (await document.save()) {
    return true;
  }
  void vscode.window.showWarningMessage('Save the file first: what is exported is the file on disk.');
  return false;
}
