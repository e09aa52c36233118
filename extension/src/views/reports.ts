// The reports of past exports: remembered for the workspace, shown in a webview.

import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { sealed } from './sealedPage';

const KEY = 'exportlens.reports';
const REMEMBERED = 10;

export interface RememberedReport {
  readonly model: string;
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly time: number;
}

export class Reports implements vscode.Disposable {
  private readonly panels = new Map<string, vscode.WebviewPanel>();

  constructor(
    private readonly memory: vscode.Memento,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** The reports of this workspace, the latest first. */
  all(): readonly RememberedReport[] {
    return this.memory.get<readonly RememberedReport[]>(KEY, []);
  }

  async add(model: string, file: string | null): Promise<void> {
    if (file === null) {
      return;
    }
    const others = this.all().filter((report) => report.path !== file);
    const all = [{ model, path: file, time: Date.now() }, ...others].slice(0, REMEMBERED);
    await this.memory.update(KEY, all);
    const panel = this.panels.get(file);
    if (panel !== undefined) {
      await this.fill(panel, file);
    }
  }

  /** Opens the report, or brings the panel to the front that shows it already. */
  async show(model: string, file: string): Promise<void> {
    const open = this.panels.get(file);
    if (open !== undefined) {
      open.reveal();
      return;
    }
    const panel = vscode.window.createWebviewPanel(
      'exportlens.report',
      `Export of ${model}`,
      vscode.ViewColumn.Active,
      { enableScripts: true, enableFindWidget: true, retainContextWhenHidden: true, localResourceRoots: [] },
    );
    this.panels.set(file, panel);
    panel.onDidDispose(() => this.panels.delete(file));
    panel.webview.onDidReceiveMessage((message: unknown) => this.follow(message));
    await this.fill(panel, file);
  }

  dispose(): void {
    for (const panel of this.panels.values()) {
      panel.dispose();
    }
  }

  private async fill(panel: vscode.WebviewPanel, file: string): Promise<void> {
    let html: string;
    try {
      html = await fs.readFile(file, 'utf8');
    } catch {
      panel.dispose();
      throw new Error(`The report ${file} is not there any more: export the model again.`);
    }
    panel.webview.html = sealed(html);
  }

  /** A click on a node or a source line of the report leads to that line. */
  private async follow(message: unknown): Promise<void> {
    const place = placeFrom(message);
    if (place === undefined) {
      this.log.warn(`A report sent a message that is not understood: ${JSON.stringify(message)}`);
      return;
    }
    const position = new vscode.Position(place.line - 1, 0);
    const shown = vscode.window.visibleTextEditors.find(({ document }) => document.uri.fsPath === place.file);
    await vscode.window.showTextDocument(vscode.Uri.file(place.file), {
      viewColumn: shown?.viewColumn ?? vscode.ViewColumn.Beside,
      selection: new vscode.Range(position, position),
      // One click leads to the next: the report keeps the keyboard.
      preserveFocus: true,
    });
  }
}

/** `{type: "open", file, line}`: an absolute path, and a line that counts from 1. */
function placeFrom(message: unknown): { file: string; line: number } | undefined {
  if (typeof message !== 'object' || message === null || !('file' in message) || !('line' in message)) {
    return undefined;
  }
  const { file, line } = message;
  const isPlace = typeof file === 'string' && path.isAbsolute(file) && typeof line === 'number' && line >= 1;
  return isPlace ? { file, line } : undefined;
}
