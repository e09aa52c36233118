// Asks for the hardware target.

import * as vscode from 'vscode';
import type { TargetInfo } from '../protocol';
import { SECTION } from '../settings';
import type { Session } from '../session';
import { choose, type Answer, type Position } from './steps';
import { targetRows, type TargetRow } from './targetRows';

type Row = vscode.QuickPickItem & { readonly row?: TargetRow };

/** Starts looking for targets; that imports torch, so it is started before there is something else to ask. */
export function probeTargets(session: Session): Promise<readonly TargetInfo[]> {
  const probed = session.request('exportlens/targets', {}).then(({ targets }) => targets);
  // Whoever asks for the target gets the error; nobody may get that far.
  probed.catch(() => undefined);
  return probed;
}

/** The row that was chosen; one of a target that is not available is answered with what to install. */
export async function askTarget(
  probed: Promise<readonly TargetInfo[]>,
  title: string,
  position: Position,
  howMany: 'one' | 'any' = 'any',
): Promise<Answer<TargetRow>> {
  const resource = vscode.window.activeTextEditor?.document.uri;
  const preferred = vscode.workspace.getConfiguration(SECTION, resource).get('target', 'torch');
  const targets = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Window, title: 'ExportLens looks for hardware targets' },
    () => probed,
  );
  const rows = targetRows(targets, preferred).filter((row) => howMany === 'any' || row.targets.length < 2);
  const items = withHeadings(rows);
  for (;;) {
    const chosen = await choose({
      ...position,
      title,
      placeholder: 'Which hardware is it for?',
      items,
      active: items.find((item) => item.row?.available),
    });
    if (typeof chosen === 'string') {
      return chosen;
    }
    const { row } = chosen.answer;
    if (row?.available) {
      return { answer: row };
    }
    if (row?.info !== undefined && (await explainMissing(row.info.name, row.info.install)) === 'leave') {
      return 'cancel';
    }
  }
}

function withHeadings(rows: readonly TargetRow[]): Row[] {
  const heading = (label: string): Row => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const asItem = (row: TargetRow): Row => ({
    label: `$(${row.available ? 'pass' : 'circle-slash'}) ${row.label}`,
    description: row.description,
    detail: row.detail,
    row,
  });
  const [here, missing] = [rows.filter((row) => row.available), rows.filter((row) => !row.available)];
  return [
    ...(here.length > 0 ? [heading('available'), ...here.map(asItem)] : []),
    ...(missing.length > 0 ? [heading('not installed'), ...missing.map(asItem)] : []),
  ];
}

async function explainMissing(name: string, install: string | null): Promise<'again' | 'leave'> {
  if (install === null) {
    void vscode.window.showWarningMessage(`The target ${name} is not possible on this machine.`);
    return 'again';
  }
  const copy = 'Copy Command';
  const again = 'Choose Another Target';
  const pressed = await vscode.window.showInformationMessage(
    `The target ${name} is not installed.`,
    { modal: true, detail: `To install it: ${install}` },
    copy,
    again,
  );
  if (pressed === copy) {
    await vscode.env.clipboard.writeText(install);
  }
  return pressed === again ? 'again' : 'leave';
}
