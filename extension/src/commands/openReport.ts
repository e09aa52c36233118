// ExportLens: Open Report shows the report of an export, the latest first.

import * as vscode from 'vscode';
import { choose } from '../asking/steps';
import type { Command } from './command';

export const openReport: Command = {
  id: 'exportlens.openReport',
  async run({ reports }) {
    const all = reports.all();
    const [latest] = all;
    if (latest === undefined) {
      void vscode.window.showInformationMessage('There is no report yet: export a model first.');
      return;
    }
    if (all.length === 1) {
      await reports.show(latest.model, latest.path);
      return;
    }
    const items = all.map((report) => ({
      label: `$(graph) ${report.model}`,
      description: new Date(report.time).toLocaleString(),
      detail: report.path,
      report,
    }));
    const chosen = await choose({
      title: 'ExportLens: Reports',
      placeholder: 'Which report?',
      items,
      step: 1,
      totalSteps: 1,
    });
    if (typeof chosen !== 'string') {
      const { model, path } = chosen.answer.report;
      await reports.show(model, path);
    }
  },
};
