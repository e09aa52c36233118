// Asks how a model is made and called: what the server proposes, or what was used last, to be edited.

import type * as vscode from 'vscode';
import type { ModelInfo, Recipe } from '../protocol';
import { complainAbout } from './expressions';
import { type, type Step } from './steps';

const KEY = 'exportlens.recipes';

/** The answers of the last export of a model of this workspace. */
export class Recipes {
  constructor(private readonly memory: vscode.Memento) {}

  last(model: ModelInfo): Recipe | undefined {
    return this.memory.get<Record<string, Recipe>>(KEY, {})[nameOf(model)];
  }

  async remember(model: ModelInfo, recipe: Recipe): Promise<void> {
    const all = this.memory.get<Record<string, Recipe>>(KEY, {});
    await this.memory.update(KEY, { ...all, [nameOf(model)]: recipe });
  }
}

/** One question of the recipe, in the order in which they are asked. */
interface RecipeQuestion {
  readonly field: keyof Recipe;
  readonly heading: string;
  readonly prompt: string;
  readonly placeholder: string;
  readonly required: boolean;
}

const INIT: RecipeQuestion = {
  field: 'init',
  heading: 'Constructor arguments',
  prompt: 'As they stand in the parentheses; empty for none.',
  placeholder: 'hidden=64',
  required: false,
};
const INPUTS: RecipeQuestion = {
  field: 'inputs',
  heading: 'Example inputs',
  prompt: 'A Python expression for the tuple of positional arguments.',
  placeholder: '(torch.randn(2, 3),)',
  required: true,
};
const KWARGS: RecipeQuestion = {
  field: 'kwargs',
  heading: 'Keyword arguments',
  prompt: 'A Python expression for the dict of keyword arguments; empty for none.',
  placeholder: "{'mask': torch.ones(2, 3)}",
  required: false,
};
const DYNAMIC_SHAPES: RecipeQuestion = {
  field: 'dynamicShapes',
  heading: 'Dynamic shapes',
  prompt: 'A Python expression as for torch.export.export(dynamic_shapes=...); empty for fixed sizes.',
  placeholder: "{'x': {0: torch.export.Dim('batch')}}",
  required: false,
};

const QUESTIONS = [INIT, INPUTS, KWARGS, DYNAMIC_SHAPES];

/** The answers that the questions start from: those of the last time, else what the server proposes. */
export function startingRecipe(
  { init, inputs, kwargs, dynamicShapes }: ModelInfo,
  last: Recipe | undefined,
): Recipe {
  return last ?? { init, inputs, kwargs, dynamicShapes };
}

/**
 * The steps that ask for `recipe`, which they change. The inputs are always asked for; the rest where there is
 * something to look at, or where `everything` is asked for.
 */
export function recipeSteps(
  recipe: Record<keyof Recipe, string>,
  { title, origin, everything }: { title: string; origin: string; everything: boolean },
): Step[] {
  const asked = QUESTIONS.filter(({ field }) => everything || field === 'inputs' || recipe[field] !== '');
  const left = QUESTIONS.filter((question) => !asked.includes(question));
  const more =
    left.length > 0
      ? `Also ask for: ${left.map(({ heading }) => heading.toLowerCase()).join(', ')}`
      : undefined;
  return asked.map((question): Step => {
    return async (position) => {
      const ended = await type({
        ...position,
        title: `${title}: ${question.heading}`,
        prompt: `${question.prompt} ${recipe[question.field] === '' ? '' : origin}`.trim(),
        placeholder: `for example ${question.placeholder}`,
        value: recipe[question.field],
        reject: (text) => reject(question, text),
        more,
      });
      if (typeof ended === 'string') {
        return ended;
      }
      recipe[question.field] = ended.answer;
      return 'next';
    };
  });
}

/** Where the starting answers come from, as a sentence, or nothing. */
export function originOf(model: ModelInfo, last: Recipe | undefined): string {
  if (last !== undefined) {
    return 'This is what you used last.';
  }
  return model.proposedFrom === '' ? '' : `Proposed from ${model.proposedFrom}.`;
}

function reject(question: RecipeQuestion, text: string): string | undefined {
  if (text.trim() === '') {
    return question.required ? `A Python expression is needed, such as ${question.placeholder}.` : undefined;
  }
  return complainAbout(text);
}

function nameOf(model: ModelInfo): string {
  return `${model.uri}#${model.name}`;
}
