// Questions one after the other, with a way back: each step shows one quick input and stores what it was told.

import * as vscode from 'vscode';

/** How a question ended: with an answer, with the way back, with the wish for more questions, or with Escape. */
export type Answer<T> = { readonly answer: T } | 'back' | 'more' | 'cancel';

/** Asks, keeps the answer for itself, and says how it went. */
export type Step = (position: Position) => Promise<'next' | 'back' | 'more' | 'cancel'>;

export interface Position {
  readonly step: number;
  readonly totalSteps: number;
}

/** Runs the steps until all are answered, or until the user left or wants more of them. */
export async function walk(steps: readonly Step[]): Promise<'answered' | 'more' | 'cancel'> {
  let index = 0;
  while (index < steps.length) {
    const step = steps[index];
    const end = await step?.({ step: index + 1, totalSteps: steps.length });
    if (end === 'next') {
      index += 1;
    } else if (end === 'back' && index > 0) {
      index -= 1;
    } else {
      return end === 'more' ? 'more' : 'cancel';
    }
  }
  return 'answered';
}

interface Question extends Position {
  readonly title: string;
  readonly placeholder?: string;
}

/** A list to choose one from. `active` is the row that Enter takes. */
export function choose<T extends vscode.QuickPickItem>(
  question: Question & { items: readonly T[]; active?: T | undefined },
): Promise<Answer<T>> {
  const picker = vscode.window.createQuickPick<T>();
  dress(picker, question);
  picker.placeholder = question.placeholder;
  picker.matchOnDescription = true;
  picker.matchOnDetail = true;
  picker.items = question.items;
  if (question.active !== undefined) {
    picker.activeItems = [question.active];
  }
  return ended<T>(picker, (end) => {
    picker.onDidAccept(() => {
      const [picked] = picker.selectedItems;
      if (picked !== undefined) {
        end({ answer: picked });
      }
    });
  });
}

/** One line of text. `reject` says what is wrong with it, or nothing. */
export function type(
  question: Question & {
    value: string;
    prompt: string;
    reject: (text: string) => string | undefined;
    /** The tooltip of a button that asks for more questions; without it there is no such button. */
    more?: string | undefined;
  },
): Promise<Answer<string>> {
  const box = vscode.window.createInputBox();
  dress(box, question);
  box.placeholder = question.placeholder;
  box.prompt = question.prompt;
  box.value = question.value;
  if (question.more !== undefined) {
    const button = { iconPath: new vscode.ThemeIcon('settings-gear'), tooltip: question.more };
    box.buttons = [...box.buttons, button];
  }
  const check = (): boolean => {
    const complaint = question.reject(box.value);
    box.validationMessage = complaint;
    return complaint === undefined;
  };
  return ended<string>(box, (end) => {
    box.onDidChangeValue(check);
    box.onDidAccept(() => {
      if (check()) {
        end({ answer: box.value.trim() });
      }
    });
  });
}

function dress(
  input: vscode.QuickInput & { buttons: readonly vscode.QuickInputButton[] },
  question: Question,
): void {
  input.title = question.title;
  input.step = question.step;
  input.totalSteps = question.totalSteps;
  // Looking up an example in the editor must not lose what was typed.
  input.ignoreFocusOut = true;
  input.buttons = question.step > 1 ? [vscode.QuickInputButtons.Back] : [];
}

function ended<T>(
  input: vscode.QuickInput & { onDidTriggerButton: vscode.Event<vscode.QuickInputButton> },
  listen: (end: (answer: Answer<T>) => void) => void,
): Promise<Answer<T>> {
  return new Promise<Answer<T>>((resolve) => {
    input.onDidTriggerButton((button) => {
      resolve(button === vscode.QuickInputButtons.Back ? 'back' : 'more');
    });
    input.onDidHide(() => {
      resolve('cancel');
    });
    listen(resolve);
    input.show();
  }).finally(() => {
    input.dispose();
  });
}
