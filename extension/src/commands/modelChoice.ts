// The questions that come before a model is run: which one, and how it is made and called.

import * as vscode from 'vscode';
import { askModel, isAround } from '../asking/model';
import { originOf, recipeSteps, startingRecipe } from '../asking/recipe';
import { walk, type Step } from '../asking/steps';
import type { ModelInfo, Recipe } from '../protocol';
import type { Services } from '../services';
import { isOnDisk, isTrustedToRun, pythonFile } from './runnable';

/** Where a CodeLens stands, or what another extension asks for. */
export interface ModelPlace {
  readonly uri: string;
  readonly model: string;
}

export interface Choice {
  readonly document: vscode.TextDocument;
  readonly model: ModelInfo;
  readonly recipe: Recipe;
}

/** Questions that a command asks after those about the model, under the same title. */
export type LastSteps = (title: string) => readonly Step[];

/** The place among a command's arguments; the palette and menus give none or the file's Uri. */
export function placeFrom(args: readonly unknown[]): ModelPlace | undefined {
  const [first] = args;
  if (typeof first !== 'object' || first === null || !('uri' in first) || !('model' in first)) {
    return undefined;
  }
  const { uri, model } = first;
  return typeof uri === 'string' && typeof model === 'string' ? { uri, model } : undefined;
}

/** All that a run needs to know, or undefined when the user left or cannot go on (and has been told why). */
export async function chooseModel(
  services: Services,
  title: string,
  place: ModelPlace | undefined,
  lastSteps: LastSteps = () => [],
): Promise<Choice | undefined> {
  const document = (await isTrustedToRun()) ? await pythonFile(place?.uri) : undefined;
  if (document === undefined || !(await isOnDisk(document))) {
    return undefined;
  }
  const models = await modelsOf(document, services);
  if (models === undefined) {
    return undefined;
  }
  const named = models.find((model) => model.name === place?.model);
  const only = models.length === 1 ? models[0] : undefined;
  const model = named ?? only ?? (await oneOf(models, document, title));
  if (model === undefined) {
    return undefined;
  }
  return askRest(services, `${title} ${model.name}`, document, model, lastSteps);
}

async function modelsOf(
  document: vscode.TextDocument,
  { session }: Services,
): Promise<readonly ModelInfo[] | undefined> {
  const { models } = await session.request('exportlens/models', { uri: document.uri.toString() });
  if (models.length > 0) {
    return models;
  }
  const name = vscode.workspace.asRelativePath(document.uri);
  void vscode.window.showInformationMessage(
    `${name} defines no model: ExportLens looks for classes that derive from torch.nn.Module and for what is passed to torch.export.export.`,
  );
  return undefined;
}

async function oneOf(
  models: readonly ModelInfo[],
  document: vscode.TextDocument,
  title: string,
): Promise<ModelInfo | undefined> {
  const editor = vscode.window.activeTextEditor;
  const line = editor?.document === document ? editor.selection.active.line : undefined;
  const inside = line === undefined ? [] : models.filter((model) => isAround(model, line));
  const start = inside.at(-1)?.range.start.line;
  const chosen = await askModel(models, start, `${title} a model`, { step: 1, totalSteps: 1 });
  return typeof chosen === 'string' ? undefined : chosen.answer;
}

async function askRest(
  services: Services,
  title: string,
  document: vscode.TextDocument,
  model: ModelInfo,
  lastSteps: LastSteps,
): Promise<Choice | undefined> {
  const last = services.recipes.last(model);
  const recipe = { ...startingRecipe(model, last) };
  const about = { title, origin: originOf(model, last) };
  const further = lastSteps(title);
  let end = await walk([...recipeSteps(recipe, { ...about, everything: false }), ...further]);
  if (end === 'more') {
    recipe.dynamicShapes ||= model.dynamicProposed;
    end = await walk([...recipeSteps(recipe, { ...about, everything: true }), ...further]);
  }
  if (end !== 'answered') {
    return undefined;
  }
  await services.recipes.remember(model, recipe);
  return { document, model, recipe };
}
