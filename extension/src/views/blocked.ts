// Tells the user why the server cannot start, and offers the next step.

import * as vscode from 'vscode';
import { hasPythonExtension } from '../interpreter/find';
import { describeProblem, installCommand, type Problem } from '../interpreter/problem';
import type { Session } from '../session';

const INSTALL = 'Install';
const COPY = 'Copy Command';
const CHOOSE = 'Choose Interpreter';
const TRUST = 'Manage Workspace Trust';

/** Shows `problem` as a notification; what the user presses is done. */
export async function tellProblem(problem: Problem, session: Session): Promise<void> {
  const pressed = await vscode.window.showErrorMessage(describeProblem(problem), ...offersFor(problem));
  if (pressed === INSTALL && problem.kind === 'no-exportlens') {
    await install(problem.interpreter, session);
  } else if (pressed === COPY && problem.kind === 'no-exportlens') {
    await vscode.env.clipboard.writeText(installCommand(problem.interpreter));
  } else if (pressed === CHOOSE) {
    await chooseInterpreter();
  } else if (pressed === TRUST) {
    await vscode.commands.executeCommand('workbench.trust.manage');
  }
}

function offersFor(problem: Problem): string[] {
  switch (problem.kind) {
    case 'no-exportlens':
      return [INSTALL, COPY, CHOOSE];
    case 'not-trusted':
      return [TRUST, CHOOSE];
    case 'none-found':
    case 'not-a-file':
    case 'broken':
    case 'too-old':
      return [CHOOSE];
  }
}

async function chooseInterpreter(): Promise<void> {
  const own = vscode.workspace.getConfiguration().get<string>('exportlens.interpreter', '');
  await (hasPythonExtension() && own === ''
    ? vscode.commands.executeCommand('python.setInterpreter')
    : vscode.commands.executeCommand('workbench.action.openSettings', 'exportlens interpreter'));
}

/** Runs pip where the user sees it, and starts the server when it is done. */
async function install(interpreter: string, session: Session): Promise<void> {
  const pip = new vscode.ProcessExecution(interpreter, ['-m', 'pip', 'install', 'exportlens']);
  const task = new vscode.Task(
    { type: 'process' },
    vscode.TaskScope.Workspace,
    'install exportlens',
    'ExportLens',
    pip,
  );
  const execution = await vscode.tasks.executeTask(task);
  const ending = vscode.tasks.onDidEndTaskProcess((event) => {
    if (event.execution !== execution) {
      return;
    }
    ending.dispose();
    if (event.exitCode === 0) {
      void session.restart();
    }
  });
}
