// Finds the two interpreters: the user's, which has torch and runs exports, and the one that runs the server.

import { PythonExtension } from '@vscode/python-extension';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { defaultCommands, findOnPath, isInside, locate, type Surroundings } from './locations';
import { isRecentEnough, probe } from './probe';
import type { Problem, Role } from './problem';

export interface Interpreters {
  /** Runs the models. */
  readonly user: string;
  /** Runs the language server; has the package exportlens. */
  readonly server: string;
}

export type Search = { readonly found: Interpreters } | { readonly problem: Problem };

const PYTHON_EXTENSION = 'ms-python.python';

/** `startFolder` is where interpreters are started; it should hold no Python code. */
export async function findInterpreters(startFolder: string, log: vscode.LogOutputChannel): Promise<Search> {
  const around = surroundings();
  const user = await chooseUserInterpreter(around, log);
  if (typeof user !== 'string') {
    return { problem: user };
  }
  const setting = 'exportlens.server.interpreter';
  const server = fromSetting(setting, around) ?? user;
  if (typeof server !== 'string') {
    return { problem: server };
  }
  const untrusted = [user, server].find((each) => !mayRun(each));
  if (untrusted !== undefined) {
    return { problem: { kind: 'not-trusted', interpreter: untrusted } };
  }
  const problem = await checkServerInterpreter(server, startFolder);
  if (problem !== undefined) {
    return { problem };
  }
  log.info(`Models run in ${user}; the server runs in ${server}.`);
  return { found: { user, server } };
}

/** Calls `changed` whenever the Python extension chooses another interpreter. */
export async function watchPythonExtension(changed: () => void): Promise<vscode.Disposable | undefined> {
  const api = await pythonExtension();
  return api?.environments.onDidChangeActiveEnvironmentPath(changed);
}

export function hasPythonExtension(): boolean {
  return vscode.extensions.getExtension(PYTHON_EXTENSION) !== undefined;
}

async function chooseUserInterpreter(
  around: Surroundings,
  log: vscode.LogOutputChannel,
): Promise<string | Problem> {
  const configured = fromSetting('exportlens.interpreter', around);
  if (configured !== undefined) {
    return configured;
  }
  const active = await fromPythonExtension(log);
  if (active !== undefined) {
    return active;
  }
  return findOnPath(defaultCommands(around.platform), around) ?? { kind: 'none-found' };
}

function fromSetting(role: Role, around: Surroundings): string | Problem | undefined {
  const value = vscode.workspace.getConfiguration().get<string>(role, '');
  if (value.trim() === '') {
    return undefined;
  }
  return locate(value, around) ?? { kind: 'not-a-file', role, value };
}

async function fromPythonExtension(log: vscode.LogOutputChannel): Promise<string | undefined> {
  const api = await pythonExtension();
  if (api === undefined) {
    return undefined;
  }
  const resource = vscode.workspace.workspaceFolders?.[0]?.uri;
  const environment = await api.environments.resolveEnvironment(
    api.environments.getActiveEnvironmentPath(resource),
  );
  const interpreter = environment?.executable.uri?.fsPath;
  if (interpreter === undefined) {
    log.warn('The Python extension has no interpreter chosen; looking on PATH.');
  }
  return interpreter;
}

async function pythonExtension(): Promise<PythonExtension | undefined> {
  if (!hasPythonExtension()) {
    return undefined;
  }
  try {
    return await PythonExtension.api();
  } catch {
    // It is installed but did not start, as in a workspace that is not trusted: PATH is left.
    return undefined;
  }
}

async function checkServerInterpreter(server: string, startFolder: string): Promise<Problem | undefined> {
  const answer = await probe(server, startFolder);
  if (answer.kind === 'broken') {
    return { kind: 'broken', interpreter: server, reason: answer.reason };
  }
  const { python, exportlens } = answer.identity;
  if (!isRecentEnough(python)) {
    return { kind: 'too-old', interpreter: server, version: python.join('.') };
  }
  return exportlens === null ? { kind: 'no-exportlens', interpreter: server } : undefined;
}

/** An interpreter that came with the workspace is the workspace's code, and runs only where that is trusted. */
function mayRun(interpreter: string): boolean {
  if (vscode.workspace.isTrusted) {
    return true;
  }
  const folders = vscode.workspace.workspaceFolders?.map((folder) => folder.uri.fsPath) ?? [];
  // Links are followed up to the folder only: the interpreter of an environment is itself a link out of it.
  const real = path.join(fs.realpathSync(path.dirname(interpreter)), path.basename(interpreter));
  const everywhere = folders.flatMap((folder) => [folder, fs.realpathSync(folder)]);
  return !isInside(interpreter, everywhere) && !isInside(real, everywhere);
}

function surroundings(): Surroundings {
  return {
    home: os.homedir(),
    workspaceFolder: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath,
    env: process.env,
    platform: process.platform,
    isFile: (file) => fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? false,
    isFolder: (folder) => fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false,
  };
}
