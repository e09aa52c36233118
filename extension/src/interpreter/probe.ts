// Asks an interpreter who it is: its version, and whether the package exportlens is installed for it.

import { execFile } from 'node:child_process';

/** What an interpreter answered; `exportlens` is the installed version, or null. */
export interface Identity {
  readonly python: readonly [number, number, number];
  readonly exportlens: string | null;
}

export type Probe =
  | { readonly kind: 'identity'; readonly identity: Identity }
  | { readonly kind: 'broken'; readonly reason: string };

/** The oldest Python that the package exportlens runs on; `requires-python` in pyproject.toml says the same. */
export const OLDEST_PYTHON: readonly [number, number] = [3, 10];

// Python 2 has to understand this text too, so that it can say that it is Python 2.
const QUESTION = `
import json, sys
version = None
try:
    from importlib import metadata, util
    if util.find_spec("exportlens") is not None:
        try:
            version = metadata.version("exportlens")
        except metadata.PackageNotFoundError:
            version = "unknown"
except ImportError:
    pass
print(json.dumps({"python": list(sys.version_info[:3]), "exportlens": version}))
`;

/**
 * The environment for an interpreter that we start: the same as ours, but nothing is imported from the folder that
 * it is started in, which can be somebody else's.
 */
export function safeEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, PYTHONSAFEPATH: '1', PYTHONUNBUFFERED: '1', PYTHONIOENCODING: 'utf-8' };
}

/** Runs `interpreter` once. `folder` is where it is started; it should hold no Python code. */
export function probe(interpreter: string, folder: string, timeoutMs = 30_000): Promise<Probe> {
  return new Promise((resolve) => {
    const options = {
      cwd: folder,
      env: safeEnvironment(process.env),
      timeout: timeoutMs,
      windowsHide: true,
      encoding: 'utf8' as const,
    };
    execFile(interpreter, ['-c', QUESTION], options, (error, stdout, stderr) => {
      if (error !== null) {
        const timedOut = error.killed === true;
        const lastLine = stderr.trim().split('\n').at(-1) ?? '';
        resolve({
          kind: 'broken',
          reason: timedOut ? `it did not answer within ${timeoutMs / 1000} s` : lastLine || error.message,
        });
        return;
      }
      const identity = readIdentity(stdout);
      resolve(
        identity === undefined
          ? { kind: 'broken', reason: `it answered ${JSON.stringify(stdout.slice(0, 80))}` }
          : { kind: 'identity', identity },
      );
    });
  });
}

/** The answer in what an interpreter printed; sitecustomize and the like may print before it. */
export function readIdentity(stdout: string): Identity | undefined {
  const line = stdout.trim().split('\n').at(-1) ?? '';
  let answer: unknown;
  try {
    answer = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof answer !== 'object' || answer === null || !('python' in answer) || !('exportlens' in answer)) {
    return undefined;
  }
  const { python, exportlens } = answer;
  if (!Array.isArray(python) || !python.every((part) => typeof part === 'number') || python.length !== 3) {
    return undefined;
  }
  if (exportlens !== null && typeof exportlens !== 'string') {
    return undefined;
  }
  const [major = 0, minor = 0, micro = 0] = python;
  return { python: [major, minor, micro], exportlens };
}

/** Whether the package exportlens can run on this Python. */
export function isRecentEnough(python: readonly [number, number, number]): boolean {
  const [major, minor] = OLDEST_PYTHON;
  return python[0] > major || (python[0] === major && python[1] >= minor);
}
