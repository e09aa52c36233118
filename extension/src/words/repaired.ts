// The steps of a repair, as lines for the log.

import type { RepairReport } from '../protocol';

/** One line a step, numbered, under a heading. */
export function describeSteps(model: string, report: RepairReport): string {
  const lines = report.steps.map(({ kind, code, message }, index) => {
    const about = code === null || code === '' ? kind : `${kind} ${code}`;
    return `  ${index + 1}. ${about}: ${message}`;
  });
  return [`Making ${model} exportable: ${report.message}`, ...lines].join('\n');
}
