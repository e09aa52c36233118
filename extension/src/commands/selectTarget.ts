// ExportLens: Select Hardware Target... sets exportlens.target, the target that is offered first.

import * as vscode from 'vscode';
import { askTarget, probeTargets } from '../asking/target';
import { SECTION } from '../settings';
import type { Command } from './command';
import { isTrustedToRun } from './runnable';

export const selectTarget: Command = {
  id: 'exportlens.selectTarget',
  async run({ session }) {
    // Looking for targets asks the user's interpreter, which runs what is installed for it.
    if (!(await isTrustedToRun())) {
      return;
    }
    const asked = await askTarget(
      probeTargets(session),
      'ExportLens: Hardware target',
      { step: 1, totalSteps: 1 },
      'one',
    );
    if (typeof asked === 'string') {
      return;
    }
    const [name] = asked.answer.targets;
    const scope =
      vscode.workspace.workspaceFolders === undefined
        ? vscode.ConfigurationTarget.Global
        : vscode.ConfigurationTarget.Workspace;
    await vscode.workspace.getConfiguration(SECTION).update('target', name, scope);
  },
};
