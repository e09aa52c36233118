// Where VS Code enters: puts the parts together, starts the server, and starts it anew when its interpreter changes.

import * as vscode from 'vscode';
import { Recipes } from './asking/recipe';
import { register } from './commands/command';
import { exportModel } from './commands/exportModel';
import { makeExportable } from './commands/makeExportable';
import { openReport } from './commands/openReport';
import { restart } from './commands/restart';
import { selectTarget } from './commands/selectTarget';
import { showLogs } from './commands/showLogs';
import { verifyFix } from './commands/verifyFix';
import { watchPythonExtension } from './interpreter/find';
import type { Services } from './services';
import { Session } from './session';
import { INTERPRETER_SETTINGS } from './settings';
import { tellProblem } from './views/blocked';
import { Proposals } from './views/proposal';
import { Reports } from './views/reports';
import { Status } from './views/status';

const COMMANDS = [exportModel, makeExportable, verifyFix, openReport, selectTarget, restart, showLogs];

let session: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel('ExportLens', { log: true });
  session = new Session(log, context.extensionPath);
  const services: Services = {
    session,
    log,
    recipes: new Recipes(context.workspaceState),
    reports: new Reports(context.workspaceState, log),
    proposals: new Proposals(),
  };
  context.subscriptions.push(
    log,
    services.reports,
    services.proposals,
    new Status(session),
    ...COMMANDS.map((command) => register(command, services)),
    ...watchForRestart(session),
    tellProblems(session),
  );
  void watchPythonExtension(() => void services.session.restart()).then((watching) => {
    if (watching !== undefined) {
      context.subscriptions.push(watching);
    }
  });
  await session.restart();
}

/** VS Code waits for this before it ends the extension host, so that no server is left behind. */
export async function deactivate(): Promise<void> {
  await session?.stop();
}

function watchForRestart(running: Session): vscode.Disposable[] {
  return [
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (INTERPRETER_SETTINGS.some((setting) => event.affectsConfiguration(setting))) {
        void running.restart();
      }
    }),
    // What a trusted workspace brings along (its own virtual environment, its settings) counts from now on.
    vscode.workspace.onDidGrantWorkspaceTrust(() => void running.restart()),
  ];
}

function tellProblems(running: Session): vscode.Disposable {
  return running.onDidChange((state) => {
    if (state.kind === 'blocked') {
      void tellProblem(state.problem, running);
    }
  });
}
