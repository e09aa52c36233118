// A real VS Code: code-server on a free port, with folders and settings of its own.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { CODE_SERVER, NODE, PACKAGE, requireInstalled } from './places';

const SECONDS_TO_START = 60;

/** Nothing on screen, on the network or in the way but the extension. */
const QUIET = {
  'workbench.startupEditor': 'none',
  'telemetry.telemetryLevel': 'off',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'update.mode': 'none',
  'chat.disableAIFeatures': true,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.colorTheme': 'Default Dark Modern',
  'git.enabled': false,
  'files.autoSave': 'off',
  'editor.minimap.enabled': false,
  'editor.accessibilitySupport': 'off',
  'window.confirmBeforeClose': 'never',
  // A picture taken while something fades in shows nothing of use.
  'workbench.reduceMotion': 'on',
};

export interface EditorOptions {
  /** Files and folders that the opened folder is made of: names and what to copy or write there. */
  readonly workspace: Readonly<Record<string, { copyOf: string } | { text: string }>>;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Whether VS Code asks for trust and starts in restricted mode. */
  readonly workspaceTrust?: boolean;
  /** Whether the packaged extension is installed; tests inside the host bring it from the source folder. */
  readonly install?: boolean;
  /** Switches of VS Code, given through code-server. */
  readonly switches?: readonly string[];
  /** Environment variables that differ from ours. */
  readonly env?: Readonly<Record<string, string>>;
}

export class Editor {
  private constructor(
    private readonly server: ChildProcess,
    private readonly home: string,
    readonly port: number,
    /** The opened folder. */
    readonly folder: string,
  ) {}

  static async start(options: EditorOptions): Promise<Editor> {
    requireInstalled(NODE, CODE_SERVER, ...(options.install === false ? [] : [PACKAGE]));
    const home = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'exportlens-editor-')));
    const folder = path.join(home, 'models');
    furnish(folder, options.workspace);
    writeSettings(home, options.settings, options.workspaceTrust ?? false);
    const own = [
      ...['--config', path.join(home, 'config.yaml'), '--user-data-dir', path.join(home, 'data')],
      ...['--extensions-dir', path.join(home, 'extensions')],
    ];
    if (options.install !== false) {
      await promisify(execFile)(NODE, [CODE_SERVER, ...own, '--install-extension', PACKAGE]);
    }
    const port = await freePort();
    const log = fs.openSync(path.join(home, 'code-server.log'), 'w');
    const server = spawn(
      NODE,
      [
        CODE_SERVER,
        ...own,
        ...[
          '--auth',
          'none',
          '--bind-addr',
          `127.0.0.1:${port}`,
          '--disable-telemetry',
          '--disable-update-check',
        ],
        ...(options.workspaceTrust ? [] : ['--disable-workspace-trust']),
        '--disable-getting-started-override',
        ...(options.switches ?? []),
      ],
      {
        stdio: ['ignore', log, log],
        env: {
          ...process.env,
          // code-server asks the login shell for its environment; a person's start-up files are not part of a test.
          SHELL: '/bin/true',
          ...options.env,
          EXTENSIONS_GALLERY: '{"serviceUrl":"","itemUrl":"","resourceUrlTemplate":""}',
        },
      },
    );
    fs.closeSync(log);
    const editor = new Editor(server, home, port, folder);
    await editor.untilHealthy();
    return editor;
  }

  /** Where the opened folder is shown. */
  url(payload?: readonly (readonly [string, string])[]): string {
    const query = new URLSearchParams({ folder: this.folder });
    if (payload !== undefined) {
      query.set('payload', JSON.stringify(payload));
    }
    return `http://127.0.0.1:${this.port}/?${query.toString()}`;
  }

  file(name: string): string {
    return path.join(this.folder, name);
  }

  read(name: string): string {
    return fs.readFileSync(this.file(name), 'utf8');
  }

  /** What the extension has written to its log so far. */
  extensionLog(): string {
    const files = fs.readdirSync(path.join(this.home, 'data'), { recursive: true, encoding: 'utf8' });
    return files
      .filter((file) => path.basename(file) === 'ExportLens.log')
      .map((file) => fs.readFileSync(path.join(this.home, 'data', file), 'utf8'))
      .join('\n');
  }

  async stop(): Promise<void> {
    if (this.server.exitCode === null) {
      const ended = once(this.server, 'exit');
      this.server.kill('SIGTERM');
      const inTime = await Promise.race([ended.then(() => true), sleep(10_000, false)]);
      if (!inTime) {
        this.server.kill('SIGKILL');
        await ended;
      }
    }
    fs.rmSync(this.home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  private async untilHealthy(): Promise<void> {
    const deadline = Date.now() + SECONDS_TO_START * 1000;
    while (Date.now() < deadline && this.server.exitCode === null) {
      const healthy = await fetch(`http://127.0.0.1:${this.port}/healthz`).then(
        (response) => response.ok,
        () => false,
      );
      if (healthy) {
        return;
      }
      await sleep(200);
    }
    const log = fs.readFileSync(path.join(this.home, 'code-server.log'), 'utf8');
    throw new Error(`code-server did not answer on port ${this.port} within ${SECONDS_TO_START} s:\n${log}`);
  }
}

function furnish(folder: string, workspace: EditorOptions['workspace']): void {
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, source] of Object.entries(workspace)) {
    const place = path.join(folder, name);
    fs.mkdirSync(path.dirname(place), { recursive: true });
    if ('text' in source) {
      fs.writeFileSync(place, source.text);
    } else {
      fs.cpSync(source.copyOf, place, { recursive: true });
    }
  }
}

function writeSettings(home: string, settings: Readonly<Record<string, unknown>>, trust: boolean): void {
  const everything = { ...QUIET, 'security.workspace.trust.enabled': trust, ...settings };
  // Paths on the machine that runs the server are settings of that machine: VS Code reads them there only.
  for (const level of ['User', 'Machine']) {
    const file = path.join(home, 'data', level, 'settings.json');
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, JSON.stringify(everything, null, 2));
  }
  fs.writeFileSync(path.join(home, 'config.yaml'), 'auth: none\n');
}

async function freePort(): Promise<number> {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') {
    throw new Error('no port is free');
  }
  return address.port;
}
