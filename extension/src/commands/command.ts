// How a command is registered, and how its errors reach the user: as one sentence with a way to the log.

import * as vscode from 'vscode';
import type { Services } from '../services';

export interface Command {
  readonly id: string;
  run(services: Services, ...args: readonly unknown[]): Promise<void>;
}

export function register(command: Command, services: Services): vscode.Disposable {
  return vscode.commands.registerCommand(command.id, async (...args: unknown[]) => {
    try {
      await command.run(services, ...args);
    } catch (error) {
      services.log.error(error instanceof Error ? error : String(error));
      await showError(error instanceof Error ? error.message : String(error), services);
    }
  });
}

async function showError(message: string, { session, log }: Services): Promise<void> {
  const restart = 'Restart Server';
  const logs = 'Show Log';
  const offered = session.state.kind === 'running' ? [logs] : [restart, logs];
  const pressed = await vscode.window.showErrorMessage(message, ...offered);
  if (pressed === restart) {
    await session.restart();
  } else if (pressed === logs) {
    log.show();
  }
}
