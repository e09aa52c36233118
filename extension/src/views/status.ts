// The status bar: what the server does, and the hardware target that is offered first.

import * as vscode from 'vscode';
import { describeProblem } from '../interpreter/problem';
import type { Session, SessionState } from '../session';
import { SECTION } from '../settings';

const PYTHON: vscode.DocumentSelector = { language: 'python' };

export class Status implements vscode.Disposable {
  private readonly server = vscode.languages.createLanguageStatusItem('exportlens.server', PYTHON);
  private readonly target = vscode.window.createStatusBarItem(
    'exportlens.target',
    vscode.StatusBarAlignment.Right,
    90,
  );
  private readonly listening: vscode.Disposable;

  constructor(private readonly session: Session) {
    this.server.name = 'ExportLens server';
    this.target.name = 'ExportLens hardware target';
    this.target.command = 'exportlens.selectTarget';
    this.listening = vscode.Disposable.from(
      session.onDidChange((state) => {
        this.showServer(state);
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.showTarget();
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('exportlens.target')) {
          this.showTarget();
        }
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        this.showTarget();
      }),
    );
    this.showServer(session.state);
    this.showTarget();
  }

  dispose(): void {
    this.listening.dispose();
    this.server.dispose();
    this.target.dispose();
  }

  private showServer(state: SessionState): void {
    this.server.busy = state.kind === 'starting';
    this.server.severity = vscode.LanguageStatusSeverity.Information;
    this.server.command = { command: 'exportlens.showLogs', title: 'Show Log' };
    switch (state.kind) {
      case 'starting':
        this.server.text = 'ExportLens starts';
        this.server.detail = '';
        break;
      case 'running':
        this.server.text = 'ExportLens';
        this.server.detail = `models run in ${state.interpreters.user}`;
        break;
      case 'stopped':
        this.server.text = 'ExportLens is stopped';
        this.server.detail = '';
        this.server.command = { command: 'exportlens.restart', title: 'Start' };
        break;
      case 'blocked':
        this.server.severity = vscode.LanguageStatusSeverity.Error;
        this.server.text = 'ExportLens cannot start';
        this.server.detail = describeProblem(state.problem);
        break;
      case 'failed':
        this.server.severity = vscode.LanguageStatusSeverity.Error;
        this.server.text = 'ExportLens failed';
        this.server.detail = state.reason;
        this.server.command = { command: 'exportlens.restart', title: 'Restart' };
        break;
    }
    this.showTarget();
  }

  private showTarget(): void {
    const document = vscode.window.activeTextEditor?.document;
    const runs = this.session.state.kind === 'running' && vscode.workspace.isTrusted;
    if (!runs || document?.languageId !== 'python') {
      this.target.hide();
      return;
    }
    const name = vscode.workspace.getConfiguration(SECTION, document.uri).get('target', 'torch');
    this.target.text = `$(circuit-board) ${name}`;
    this.target.tooltip = `ExportLens: ${name} is the hardware target that is offered first. Click to select another one.`;
    this.target.show();
  }
}
