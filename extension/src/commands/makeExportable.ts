// ExportLens: Make Exportable... lets the server repeat export, blame and fix, and shows the result beside the file.

import * as vscode from 'vscode';
import type { RepairReport } from '../protocol';
import type { Services } from '../services';
import { describeSteps } from '../words/repaired';
import type { Command } from './command';
import { requestFor } from './exportModel';
import { chooseModel, placeFrom, type Choice } from './modelChoice';

export const makeExportable: Command = {
  id: 'exportlens.makeExportable',
  async run(services, ...args) {
    const choice = await chooseModel(services, 'Make Exportable:', placeFrom(args));
    if (choice === undefined) {
      return;
    }
    const { name } = choice.model;
    const report = await services.session.requestWithProgress(
      'exportlens/repair',
      `Making ${name} exportable`,
      requestFor(choice, []),
    );
    if (report === 'cancelled') {
      void vscode.window.showInformationMessage(`${name} was left as it is.`);
      return;
    }
    services.log.info(describeSteps(name, report));
    await show(choice, report, services);
  },
};

async function show(
  { document, model }: Choice,
  report: RepairReport,
  { session, log, proposals }: Services,
): Promise<void> {
  const steps = 'Show Steps';
  const showSteps = (): void => {
    log.show();
  };
  const { edit } = report;
  if (edit === null) {
    const pressed = report.ok
      ? await vscode.window.showInformationMessage(report.message, steps)
      : await vscode.window.showWarningMessage(report.message, steps);
    if (pressed === steps) {
      showSteps();
    }
    return;
  }
  const others = new Map([[steps, showSteps]]);
  const question = `${report.message} Apply the changes?`;
  if (await proposals.offer(document, await session.toCode(edit), question, others)) {
    await vscode.window.showTextDocument(document);
    log.info(`The repair of ${model.name} was applied.`);
  }
}
