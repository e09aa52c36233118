// ExportLens: Verify Fix tries the fix of a finding in the worker: does the model export, and equal the original?

import * as vscode from 'vscode';
import type { VerifyRequest } from '../protocol';
import type { Session } from '../session';
import { SECTION } from '../settings';
import type { Command } from './command';
import { isOnDisk, isTrustedToRun, pythonFile } from './runnable';

export const verifyFix: Command = {
  id: 'exportlens.verifyFix',
  async run({ session }, ...args) {
    if (!(await isTrustedToRun())) {
      return;
    }
    const given = requestFrom(args);
    const document = await pythonFile(given?.uri);
    if (document === undefined || !(await isOnDisk(document))) {
      return;
    }
    const request = given ?? (await requestAtCursor(document, session));
    if (request === undefined) {
      return;
    }
    const report = await session.requestWithProgress(
      'exportlens/verify',
      `Verifying the fix of ${request.code}`,
      request,
    );
    if (report === 'cancelled') {
      return;
    }
    const show = report.verified ? vscode.window.showInformationMessage : vscode.window.showWarningMessage;
    await show(report.message);
  },
};

/** The finding among a command's arguments, as the server's code action gives it. */
function requestFrom([first]: readonly unknown[]): VerifyRequest | undefined {
  if (typeof first !== 'object' || first === null) {
    return undefined;
  }
  return 'uri' in first && 'range' in first && 'code' in first ? (first as VerifyRequest) : undefined;
}

/** The finding under the cursor, or the only one of the line; asks where there are several. */
async function requestAtCursor(
  document: vscode.TextDocument,
  session: Session,
): Promise<VerifyRequest | undefined> {
  const cursor = vscode.window.activeTextEditor?.selection.active;
  const ours = vscode.languages
    .getDiagnostics(document.uri)
    .filter(({ source }) => source?.toLowerCase() === SECTION);
  const onLine = ours.filter(({ range }) => cursor !== undefined && touches(range, cursor.line));
  const exact = onLine.filter(({ range }) => cursor !== undefined && range.contains(cursor));
  const finding = await oneOf(exact.length > 0 ? exact : onLine);
  if (finding === undefined) {
    if (onLine.length === 0) {
      void vscode.window.showInformationMessage(
        'Put the cursor on a line with a finding of ExportLens first.',
      );
    }
    return undefined;
  }
  return {
    uri: document.uri.toString(),
    range: await session.toProtocol(finding.range),
    code: codeOf(finding),
  };
}

async function oneOf(findings: readonly vscode.Diagnostic[]): Promise<vscode.Diagnostic | undefined> {
  if (findings.length < 2) {
    return findings[0];
  }
  const items = findings.map((finding) => ({ label: codeOf(finding), detail: finding.message, finding }));
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: 'The fix of which finding?' });
  return chosen?.finding;
}

function touches(range: vscode.Range, line: number): boolean {
  return range.start.line <= line && line <= range.end.line;
}

function codeOf({ code }: vscode.Diagnostic): string {
  return String(typeof code === 'object' ? code.value : (code ?? ''));
}
