// What the commands share.

import type * as vscode from 'vscode';
import type { Recipes } from './asking/recipe';
import type { Session } from './session';
import type { Proposals } from './views/proposal';
import type { Reports } from './views/reports';

export interface Services {
  readonly session: Session;
  readonly recipes: Recipes;
  readonly reports: Reports;
  readonly proposals: Proposals;
  readonly log: vscode.LogOutputChannel;
}
