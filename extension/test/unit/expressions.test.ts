import { expect, test } from 'vitest';
import { complainAbout } from '../../src/asking/expressions';

test.each([
  '(torch.randn(2, 3),)',
  '()',
  '',
  "{'x': torch.zeros(1), \"it's\": [1, 2]}",
  "('a bracket in a string: )',)",
  "('''three ' quotes)''',)",
  "('escaped \\' quote (',)",
  'hidden=64, name="net"',
])('nothing is wrong with %s', (expression) => {
  expect(complainAbout(expression)).toBeUndefined();
});

test.each([
  ['(torch.randn(2, 3),', 'A ( is not closed.'],
  ['(torch.randn(2, 3]),)', 'The ] at character 18 closes nothing.'],
  ['torch.randn(2))', 'The ) at character 15 closes nothing.'],
  ["('abc,)", "The string that starts at character 2 has no end: ' is missing."],
  ["('abc\\',)", "The string that starts at character 2 has no end: ' is missing."],
])('%s', (expression, complaint) => {
  expect(complainAbout(expression)).toBe(complaint);
});
