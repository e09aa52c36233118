// Asking an interpreter who it is: with real processes.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isRecentEnough, probe, readIdentity } from '../../src/interpreter/probe';

let folder: string;

function script(text: string): string {
  const file = path.join(folder, 'interpreter');
  fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return file;
}

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'exportlens-'));
});

afterEach(() => {
  fs.rmSync(folder, { recursive: true });
});

describe('probe', () => {
  test('a real Python says its version', async () => {
    const answer = await probe('python3', folder);
    expect(answer).toMatchObject({
      kind: 'identity',
      identity: { python: [3, expect.any(Number), expect.any(Number)] },
    });
  });

  test('a Python without the package exportlens says so', async () => {
    // -S and an empty PYTHONPATH: nothing but the standard library.
    const answer = await probe(script('exec env -u PYTHONPATH python3 -S "$@"'), folder);
    expect(answer).toMatchObject({ kind: 'identity', identity: { exportlens: null } });
  });

  test('what lies in the folder that it is started in is not imported', async () => {
    fs.mkdirSync(path.join(folder, 'exportlens'));
    const trap = path.join(folder, 'sprung');
    fs.writeFileSync(path.join(folder, 'json.py'), `open(${JSON.stringify(trap)}, "w")`);
    const newEnough = await probe(script('exec python3 -S "$@"'), os.tmpdir());
    const answer = await probe(script('exec env -u PYTHONPATH python3 -S "$@"'), folder);
    expect(newEnough.kind).toBe('identity');
    // PYTHONSAFEPATH is understood from 3.11 on; before that, the folder that we start in is our own.
    if (newEnough.kind === 'identity' && newEnough.identity.python[1] >= 11) {
      expect(answer).toMatchObject({ kind: 'identity', identity: { exportlens: null } });
      expect(fs.existsSync(trap)).toBe(false);
    }
  });

  test('one that fails is quoted by its last line', async () => {
    const answer = await probe(
      script('echo first >&2; echo "libpython.so: not found" >&2; exit 127'),
      folder,
    );
    expect(answer).toEqual({ kind: 'broken', reason: 'libpython.so: not found' });
  });

  test('one that hangs is given up', async () => {
    const answer = await probe(script('exec sleep 30'), folder, 300);
    expect(answer).toEqual({ kind: 'broken', reason: 'it did not answer within 0.3 s' });
  });

  test('one that is not there is broken', async () => {
    expect(await probe(path.join(folder, 'none'), folder)).toMatchObject({ kind: 'broken' });
  });

  test('something that is no Python is broken', async () => {
    expect(await probe(script('echo hello'), folder)).toMatchObject({
      kind: 'broken',
      reason: 'it answered "hello\\n"',
    });
  });
});

describe('readIdentity', () => {
  test('what is printed before the answer is passed over', () => {
    const printed = 'conda activated\n{"python": [3, 11, 2], "exportlens": "0.1.0"}\n';
    expect(readIdentity(printed)).toEqual({ python: [3, 11, 2], exportlens: '0.1.0' });
  });

  test.each([
    '',
    '[]',
    '{}',
    '{"python": [3], "exportlens": null}',
    '{"python": [3, 1, 1], "exportlens": 3}',
  ])('no answer: %s', (printed) => {
    expect(readIdentity(printed)).toBeUndefined();
  });
});

test.each([
  [[3, 9, 18], false],
  [[3, 10, 0], true],
  [[3, 13, 1], true],
  [[2, 7, 18], false],
  [[4, 0, 0], true],
] as const)('is %s recent enough?', (version, expected) => {
  expect(isRecentEnough(version)).toBe(expected);
});
