// Shows an exported file where the user can take it from: the system's file manager, or VS Code's explorer.

import * as vscode from 'vscode';

export async function revealArtifact(file: string): Promise<void> {
  const uri = vscode.Uri.file(file);
  const isLocal = vscode.env.remoteName === undefined && vscode.env.uiKind === vscode.UIKind.Desktop;
  if (isLocal) {
    await vscode.commands.executeCommand('revealFileInOS', uri);
    return;
  }
  if (vscode.workspace.getWorkspaceFolder(uri) !== undefined) {
    await vscode.commands.executeCommand('revealInExplorer', uri);
    return;
  }
  // A file manager on this side cannot show the other machine's files.
  const copy = 'Copy Path';
  const pressed = await vscode.window.showInformationMessage(`The artifact is at ${file}`, copy);
  if (pressed === copy) {
    await vscode.env.clipboard.writeText(file);
  }
}
