// The settings under `exportlens`, as the server is told of them.

import * as vscode from 'vscode';

export const SECTION = 'exportlens';

/** The settings that decide which processes run, so that a change of one starts the server anew. */
export const INTERPRETER_SETTINGS = ['exportlens.interpreter', 'exportlens.server.interpreter'] as const;

/**
 * The section for a resource with what only the client knows filled in: the interpreter that was found, and that a
 * workspace that is not trusted has nothing of its own run.
 */
export function sectionForServer(
  interpreter: string,
  resource?: vscode.Uri,
): Record<string, unknown> & { interpreter: string; confirmOnSave: boolean } {
  const section = vscode.workspace.getConfiguration(SECTION, resource);
  return {
    torchVersion: section.get('torchVersion', 'auto'),
    mode: section.get('mode', 'auto'),
    training: section.get('training', false),
    select: section.get('select', []),
    ignore: section.get('ignore', []),
    target: section.get('target', 'torch'),
    export: { timeout: section.get('export.timeout', 600) },
    interpreter,
    confirmOnSave: vscode.workspace.isTrusted && section.get('confirmOnSave', false),
    trusted: vscode.workspace.isTrusted,
  };
}
