// What can be wrong with the interpreters, in words: what, on which path, what to do.

import { OLDEST_PYTHON } from './probe';

/** Which of the two settings an interpreter comes from, or would come from. */
export type Role = 'exportlens.interpreter' | 'exportlens.server.interpreter';

export type Problem =
  | { readonly kind: 'none-found' }
  | { readonly kind: 'not-trusted'; readonly interpreter: string }
  | { readonly kind: 'not-a-file'; readonly role: Role; readonly value: string }
  | { readonly kind: 'broken'; readonly interpreter: string; readonly reason: string }
  | { readonly kind: 'too-old'; readonly interpreter: string; readonly version: string }
  | { readonly kind: 'no-exportlens'; readonly interpreter: string };

/** The command that installs the package exportlens for `interpreter`, as one types it. */
export function installCommand(interpreter: string): string {
  const quoted = /[\s"'()&;]/.test(interpreter) ? `"${interpreter}"` : interpreter;
  return `${quoted} -m pip install exportlens`;
}

export function describeProblem(problem: Problem): string {
  switch (problem.kind) {
    case 'none-found':
      return 'ExportLens found no Python: there is no python3 on PATH. Set exportlens.interpreter to the Python that has torch.';
    case 'not-trusted':
      return `ExportLens does not run ${problem.interpreter}: it lies in a workspace that is not trusted. Trust the workspace, or choose a Python outside of it.`;
    case 'not-a-file':
      return `The setting ${problem.role} names no Python: "${problem.value}" is neither an interpreter nor a virtual environment.`;
    case 'broken':
      return `Python does not start: ${problem.interpreter}: ${problem.reason}. Choose another one in exportlens.interpreter.`;
    case 'too-old':
      return `${problem.interpreter} is Python ${problem.version}; ExportLens needs ${OLDEST_PYTHON.join('.')} or newer. Choose another one in exportlens.server.interpreter.`;
    case 'no-exportlens':
      return `The package exportlens is not installed for ${problem.interpreter}. Install it with: ${installCommand(problem.interpreter)}`;
  }
}
