// The hardware targets as rows of a list: what is here first, and for the rest what to install.

import type { TargetInfo } from '../protocol';

export interface TargetRow {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
  readonly available: boolean;
  /** The names to export for; empty in a row for a target that is not available. */
  readonly targets: readonly string[];
  readonly info: TargetInfo | undefined;
}

/** Rows for `targets` in their order, available ones first, `preferred` at the head of them. */
export function targetRows(targets: readonly TargetInfo[], preferred: string): TargetRow[] {
  const available = targets.filter((target) => target.available);
  const ordered = [
    ...available.filter((target) => target.name === preferred),
    ...available.filter((target) => target.name !== preferred),
  ];
  const rows = ordered.map((target) => availableRow(target, preferred));
  if (available.length > 1) {
    rows.push(everyRow(available));
  }
  return [...rows, ...targets.filter((target) => !target.available).map(missingRow)];
}

function availableRow(target: TargetInfo, preferred: string): TargetRow {
  const facts = [
    titleOf(target),
    target.version ?? '',
    target.name === preferred ? 'your default' : '',
    target.runsHere ? '' : 'lowered, not run here',
  ];
  return {
    label: target.name,
    description: facts.filter((fact) => fact !== '').join(' · '),
    detail: target.purpose,
    available: true,
    targets: [target.name],
    info: target,
  };
}

/** The title where it says more than the name. */
function titleOf({ name, title }: TargetInfo): string {
  return title === name ? '' : title;
}

function everyRow(available: readonly TargetInfo[]): TargetRow {
  return {
    label: 'All available targets',
    description: `${available.length} targets`,
    detail: available.map((target) => target.name).join(', '),
    available: true,
    targets: available.map((target) => target.name),
    info: undefined,
  };
}

function missingRow(target: TargetInfo): TargetRow {
  return {
    label: target.name,
    description: titleOf(target),
    detail:
      target.install === null
        ? `Not possible on this machine. ${target.purpose}`
        : `To install: ${target.install}`,
    available: false,
    targets: [],
    info: target,
  };
}
