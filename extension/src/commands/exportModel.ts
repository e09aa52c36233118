// ExportLens: Export Model... asks what is needed, runs the export in the server, and says how it went.

import * as vscode from 'vscode';
import type { Step } from '../asking/steps';
import { askTarget, probeTargets } from '../asking/target';
import type { TargetRow } from '../asking/targetRows';
import type { ExportReport, ModelRequest, ReportedFinding } from '../protocol';
import type { Services } from '../services';
import { SECTION } from '../settings';
import { describeExport } from '../words/exported';
import type { Command } from './command';
import { chooseModel, placeFrom, type Choice } from './modelChoice';
import { revealArtifact } from './revealArtifact';

export const exportModel: Command = {
  id: 'exportlens.export',
  async run(services, ...args) {
    let target: TargetRow | undefined;
    const targetStep = (title: string): Step[] => {
      const probed = probeTargets(services.session);
      return [
        async (position) => {
          const asked = await askTarget(probed, `${title}: Hardware target`, position);
          if (typeof asked === 'string') {
            return asked;
          }
          target = asked.answer;
          return 'next';
        },
      ];
    };
    const choice = await chooseModel(services, 'Export', placeFrom(args), targetStep);
    const chosen = target;
    if (choice === undefined || chosen === undefined) {
      return;
    }
    const { model } = choice;
    const report = await services.session.requestWithProgress(
      'exportlens/export',
      `Exporting ${model.name} for ${chosen.label}`,
      requestFor(choice, chosen.targets),
    );
    if (report === 'cancelled') {
      void vscode.window.showInformationMessage(`The export of ${model.name} was cancelled.`);
      return;
    }
    await services.reports.add(model.name, report.report);
    await show(model.name, report, services);
  },
};

/** The request for a choice, in the mode and with the time limit of the settings. */
export function requestFor(
  { document, model, recipe }: Choice,
  targets: readonly string[],
): Omit<ModelRequest, 'workDoneToken'> {
  const section = vscode.workspace.getConfiguration(SECTION, document.uri);
  return {
    uri: document.uri.toString(),
    model: model.name,
    targets,
    mode: section.get('mode', 'auto'),
    timeout: section.get('export.timeout', 600),
    ...recipe,
  };
}

async function show(model: string, report: ExportReport, services: Services): Promise<void> {
  const message = describeExport(model, report);
  const offers = offersFor(model, report, services);
  const pressed = report.ok
    ? await vscode.window.showInformationMessage(message, ...offers.keys())
    : await vscode.window.showErrorMessage(message, ...offers.keys());
  await offers.get(pressed ?? '')?.();
}

/** What can be done with the result: labels of buttons, and what each does. */
function offersFor(model: string, report: ExportReport, services: Services): Map<string, () => unknown> {
  const offers = new Map<string, () => unknown>();
  const [finding] = report.findings;
  const page = report.report;
  const artifact = report.targets.find((target) => target.artifact !== null)?.artifact;
  if (!report.ok && finding !== undefined) {
    offers.set('Go to Line', () => goTo(finding));
  }
  if (page !== null) {
    offers.set('Open Report', () => services.reports.show(model, page));
  }
  if (report.ok && artifact) {
    offers.set('Reveal Artifact', () => revealArtifact(artifact));
  }
  if (!report.ok) {
    offers.set('Show Log', () => {
      services.log.show();
    });
  }
  return offers;
}

async function goTo({ filename, location }: ReportedFinding): Promise<void> {
  const place = new vscode.Position(location.row - 1, location.column - 1);
  await vscode.window.showTextDocument(vscode.Uri.file(filename), {
    selection: new vscode.Range(place, place),
  });
}
