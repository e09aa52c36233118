// Every message about an interpreter names what is wrong, on which path, and what to do.

import { expect, test } from 'vitest';
import { describeProblem, installCommand } from '../../src/interpreter/problem';

test('an interpreter without the package comes with the command that installs it', () => {
  const message = describeProblem({ kind: 'no-exportlens', interpreter: '/opt/env/bin/python' });
  expect(message).toContain('/opt/env/bin/python -m pip install exportlens');
});

test('a path with a space is quoted in the command', () => {
  expect(installCommand('/my env/bin/python')).toBe('"/my env/bin/python" -m pip install exportlens');
});

test.each([
  [{ kind: 'none-found' }, ['python3', 'exportlens.interpreter']],
  [{ kind: 'not-trusted', interpreter: '/w/.venv/bin/python' }, ['/w/.venv/bin/python', 'Trust']],
  [
    { kind: 'not-a-file', role: 'exportlens.interpreter', value: 'pyhton' },
    ['"pyhton"', 'exportlens.interpreter'],
  ],
  [
    { kind: 'broken', interpreter: '/p', reason: 'no libpython' },
    ['/p', 'no libpython', 'exportlens.interpreter'],
  ],
  [{ kind: 'too-old', interpreter: '/p', version: '3.8.1' }, ['/p', '3.8.1', '3.10']],
] as const)('%o', (problem, words) => {
  const message = describeProblem(problem);
  for (const word of words) {
    expect(message).toContain(word);
  }
});
