// Asks which model of a file is meant.

import * as vscode from 'vscode';
import type { ModelInfo } from '../protocol';
import { choose, type Answer, type Position } from './steps';

type Row = vscode.QuickPickItem & { readonly model: ModelInfo };

/** The model to start with is the one around `line`, if any. */
export async function askModel(
  models: readonly ModelInfo[],
  line: number | undefined,
  title: string,
  position: Position,
): Promise<Answer<ModelInfo>> {
  const items = models.map((model): Row => ({
    label: `$(symbol-class) ${model.name}`,
    description: `line ${model.range.start.line + 1}`,
    detail: model.inputs === '' ? 'No example inputs are known yet' : model.inputs,
    model,
  }));
  const active = line === undefined ? undefined : items.find((item) => isAround(item.model, line));
  const chosen = await choose({ ...position, title, placeholder: 'Which model?', items, active });
  return typeof chosen === 'string' ? chosen : { answer: chosen.answer.model };
}

/** Whether the model's definition includes the line, counted from 0. */
export function isAround(model: ModelInfo, line: number): boolean {
  return model.range.start.line <= line && line <= model.range.end.line;
}
