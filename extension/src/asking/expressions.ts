// A first look at a Python expression that was typed, so that a slip is seen before an export is started.

const PAIRS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

/** What is plainly wrong with the brackets and quotes of a Python expression, or undefined. */
export function complainAbout(expression: string): string | undefined {
  const open: string[] = [];
  let index = 0;
  while (index < expression.length) {
    const character = expression.charAt(index);
    if (character === '"' || character === "'") {
      const end = endOfString(expression, index);
      if (end === undefined) {
        return `The string that starts at character ${index + 1} has no end: ${character} is missing.`;
      }
      index = end;
      continue;
    }
    if ('([{'.includes(character)) {
      open.push(character);
    } else if (character in PAIRS) {
      if (open.pop() !== PAIRS[character]) {
        return `The ${character} at character ${index + 1} closes nothing.`;
      }
    }
    index += 1;
  }
  const left = open.at(-1);
  return left === undefined ? undefined : `A ${left} is not closed.`;
}

/** The index after the string literal that starts at `start`, or undefined where it does not end. */
function endOfString(expression: string, start: number): number | undefined {
  const quote = expression.charAt(start);
  const mark = expression.startsWith(quote.repeat(3), start) ? quote.repeat(3) : quote;
  let index = start + mark.length;
  while (index < expression.length) {
    if (expression.charAt(index) === '\\') {
      index += 2;
    } else if (expression.startsWith(mark, index)) {
      return index + mark.length;
    } else {
      index += 1;
    }
  }
  return undefined;
}
