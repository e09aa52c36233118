// The language server's life: one process at a time, started with what the interpreters and the settings say.

import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import {
  DidChangeConfigurationNotification,
  ExecuteCommandRequest,
  LanguageClient,
  RevealOutputChannelOn,
  State,
  Trace,
  WorkDoneProgress,
  type LanguageClientOptions,
} from 'vscode-languageclient/node';
import { findInterpreters, type Interpreters } from './interpreter/find';
import type { Problem } from './interpreter/problem';
import { safeEnvironment } from './interpreter/probe';
import type { Method, Requests } from './protocol';
import { SECTION, sectionForServer } from './settings';

export type SessionState =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'starting' }
  | { readonly kind: 'running'; readonly interpreters: Interpreters }
  | { readonly kind: 'blocked'; readonly problem: Problem }
  | { readonly kind: 'failed'; readonly reason: string };

/** The server is not there to answer; the message says why. */
export class NotRunning extends Error {}

export class Session implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<SessionState>();
  private client: ExportLensClient | undefined;
  private current: SessionState = { kind: 'stopped' };
  private turn: Promise<void> = Promise.resolve();

  private readonly watching: vscode.Disposable;

  readonly onDidChange = this.changed.event;

  constructor(
    readonly log: vscode.LogOutputChannel,
    private readonly startFolder: string,
  ) {
    this.watching = vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(SECTION)) {
        void this.followSettings();
      }
    });
  }

  get state(): SessionState {
    return this.current;
  }

  /** Stops the server if there is one, and starts one with what the settings say now. Calls queue up. */
  restart(): Promise<void> {
    this.turn = this.turn.then(() => this.stopNow()).then(() => this.startNow());
    return this.turn;
  }

  stop(): Promise<void> {
    this.turn = this.turn.then(() => this.stopNow());
    return this.turn;
  }

  dispose(): void {
    this.watching.dispose();
    void this.stop();
    this.changed.dispose();
  }

  /** The server's answer; waits for a server that is being started. Throws NotRunning where there is none. */
  async request<M extends Method>(method: M, params: Requests[M]['params']): Promise<Requests[M]['result']> {
    const client = await this.running();
    return client.sendRequest<Requests[M]['result']>(method, params);
  }

  /** Like `request`, with a notification that shows the server's progress and lets the user cancel. */
  async requestWithProgress<M extends 'exportlens/export' | 'exportlens/repair' | 'exportlens/verify'>(
    method: M,
    title: string,
    params: Omit<Requests[M]['params'], 'workDoneToken'>,
  ): Promise<Requests[M]['result'] | 'cancelled'> {
    const client = await this.running();
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    return vscode.window.withProgress(options, async (progress, token) => {
      const workDoneToken = randomUUID();
      const meter = new Meter(progress);
      const listening = client.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
        meter.show(value);
      });
      try {
        return await client.sendRequest<Requests[M]['result']>(method, { ...params, workDoneToken }, token);
      } catch (error) {
        if (token.isCancellationRequested) {
          return 'cancelled';
        }
        throw error;
      } finally {
        listening.dispose();
      }
    });
  }

  /** The edit in the editor's own form. */
  async toCode(
    edit: NonNullable<Requests['exportlens/repair']['result']['edit']>,
  ): Promise<vscode.WorkspaceEdit> {
    const client = await this.running();
    return client.protocol2CodeConverter.asWorkspaceEdit(edit);
  }

  /** The place in the protocol's own form. */
  async toProtocol(range: vscode.Range): Promise<Requests['exportlens/verify']['params']['range']> {
    const client = await this.running();
    return client.code2ProtocolConverter.asRange(range);
  }

  private async running(): Promise<ExportLensClient> {
    await this.turn;
    if (this.client === undefined) {
      const why = this.current.kind === 'failed' ? `: ${this.current.reason}` : '';
      throw new NotRunning(`The ExportLens server is not running${why}`);
    }
    return this.client;
  }

  private async followSettings(): Promise<void> {
    await this.turn;
    if (this.client?.isRunning() === true) {
      await this.client.followTraceSetting();
      await this.client.tellSettings();
    }
  }

  private become(state: SessionState): void {
    this.current = state;
    this.changed.fire(state);
  }

  private async startNow(): Promise<void> {
    this.become({ kind: 'starting' });
    const search = await findInterpreters(this.startFolder, this.log);
    if ('problem' in search) {
      this.become({ kind: 'blocked', problem: search.problem });
      return;
    }
    const interpreters = search.found;
    const client = new ExportLensClient(interpreters, this.startFolder, this.log);
    client.onDidChangeState(({ newState }) => {
      if (this.client !== client) {
        return;
      }
      if (newState === State.Running) {
        this.become({ kind: 'running', interpreters });
      } else if (newState === State.Stopped) {
        this.become({ kind: 'failed', reason: 'the server ended by itself; its log says why' });
      }
    });
    try {
      await client.start();
    } catch (error) {
      this.log.error(error instanceof Error ? error : String(error));
      await client.dispose().catch(() => undefined);
      this.become({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
      return;
    }
    this.client = client;
    await client.followTraceSetting();
    this.become({ kind: 'running', interpreters });
  }

  private async stopNow(): Promise<void> {
    const { client } = this;
    this.client = undefined;
    if (client === undefined) {
      return;
    }
    try {
      await client.dispose(5000);
    } catch (error) {
      // A server that crashed or hangs cannot say goodbye; the client ends its process.
      this.log.warn(`The server did not stop in order: ${String(error)}`);
    }
    this.become({ kind: 'stopped' });
  }
}

/** Turns the server's percentages, which count up to 100, into VS Code's increments. */
class Meter {
  private reached = 0;

  constructor(private readonly progress: vscode.Progress<{ message?: string; increment?: number }>) {}

  show(value: { kind: string; title?: string; message?: string; percentage?: number }): void {
    if (value.kind === 'end') {
      return;
    }
    const percentage = value.percentage ?? this.reached;
    const increment = Math.max(0, percentage - this.reached);
    this.reached = Math.max(this.reached, percentage);
    const message = value.message ?? (value.kind === 'begin' ? value.title : undefined);
    this.progress.report({ increment, ...(message === undefined ? {} : { message }) });
  }
}

class ExportLensClient extends LanguageClient {
  private readonly interpreter: string;

  constructor(interpreters: Interpreters, startFolder: string, log: vscode.LogOutputChannel) {
    const server = {
      command: interpreters.server,
      args: ['-m', 'exportlens', 'server'],
      options: { cwd: startFolder, env: safeEnvironment(process.env) },
    };
    super(SECTION, 'ExportLens', server, clientOptions(interpreters.user, log));
    this.interpreter = interpreters.user;
  }

  /** Tells the settings, not as they are written, but with the interpreter that they led to. */
  async tellSettings(): Promise<void> {
    await this.sendNotification(DidChangeConfigurationNotification.type, {
      settings: { [SECTION]: sectionForServer(this.interpreter) },
    });
  }

  /** Messages are shown when the setting says so, whatever the level of the log. */
  override trace(message: string, data?: string): void {
    this.outputChannel.info(data === undefined ? message : `${message}\n${data}`);
  }

  async followTraceSetting(): Promise<void> {
    const wanted = vscode.workspace.getConfiguration(SECTION).get('trace.server', 'off');
    await this.setTrace(Trace.fromString(wanted));
  }

  /**
   * The server's commands are for editors without an extension of their own. Here the extension has commands of the
   * same names, which ask for what is missing; registering the server's as well would be an error.
   */
  override registerFeature(feature: Parameters<LanguageClient['registerFeature']>[0]): void {
    if ('registrationType' in feature && feature.registrationType.method === ExecuteCommandRequest.method) {
      return;
    }
    super.registerFeature(feature);
  }
}

function clientOptions(interpreter: string, log: vscode.LogOutputChannel): LanguageClientOptions {
  return {
    documentSelector: [
      { scheme: 'file', language: 'python' },
      { scheme: 'untitled', language: 'python' },
      // What is in a cell is told with its notebook; this is for code actions and hover.
      { scheme: 'vscode-notebook-cell', language: 'python' },
    ],
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    diagnosticCollectionName: SECTION,
    initializationOptions: { interpreter, hoverShowsDiagnostics: true },
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher('**/{*.py,pyproject.toml}') },
    middleware: {
      workspace: {
        configuration: async (params, token, next) => {
          const answers: unknown = await next(params, token);
          if (!Array.isArray(answers)) {
            return [];
          }
          return answers.map((answer: unknown, index) => {
            const item = params.items[index];
            if (item?.section !== SECTION) {
              return answer;
            }
            const resource = item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri);
            return sectionForServer(interpreter, resource);
          });
        },
        // The session tells of changes, whether or not the server has asked to be told.
        didChangeConfiguration: () => Promise.resolve(),
      },
    },
  };
}
