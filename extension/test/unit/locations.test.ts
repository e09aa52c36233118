// Where an interpreter is: on real folders and files of a temporary directory.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expand, findOnPath, isInside, locate, type Surroundings } from '../../src/interpreter/locations';

let root: string;
let around: Surroundings;

function place(relative: string): string {
  const file = path.join(root, relative);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, '');
  return file;
}

beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'exportlens-'));
  fs.mkdirSync(path.join(root, 'work'));
  around = {
    home: path.join(root, 'home'),
    workspaceFolder: path.join(root, 'work'),
    env: {
      PATH: [path.join(root, 'first'), 'relative', path.join(root, 'second')].join(':'),
      CONDA: '/conda',
    },
    platform: 'linux',
    isFile: (file) => fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? false,
    isFolder: (folder) => fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false,
  };
});

afterEach(() => {
  fs.rmSync(root, { recursive: true });
});

describe('expand', () => {
  test.each([
    ['~/env/bin/python', (r: string) => `${r}/home/env/bin/python`],
    ['~', (r: string) => `${r}/home`],
    ['~other/python', () => '~other/python'],
    ['${workspaceFolder}/.venv', (r: string) => `${r}/work/.venv`],
    ['${env:CONDA}/bin/python', () => '/conda/bin/python'],
    ['${env:NOT_SET}/python', () => '/python'],
    ['  /usr/bin/python3 ', () => '/usr/bin/python3'],
  ])('%s', (text, expected) => {
    expect(expand(text, around)).toBe(expected(root));
  });
});

describe('locate', () => {
  test('an executable is itself', () => {
    const python = place('somewhere/python3.12');
    expect(locate(python, around)).toBe(python);
  });

  test('the folder of a virtual environment leads to its interpreter', () => {
    const python = place('work/.venv/bin/python');
    expect(locate('${workspaceFolder}/.venv', around)).toBe(python);
  });

  test('a relative path starts at the workspace folder', () => {
    const python = place('work/env/bin/python3');
    expect(locate('env/bin/python3', around)).toBe(python);
    expect(locate('env', around)).toBe(python);
  });

  test('a bare command is looked up on PATH', () => {
    const python = place('second/python3.12');
    expect(locate('python3.12', around)).toBe(python);
  });

  test('what is not there is nothing', () => {
    expect(locate('/no/such/python', around)).toBeUndefined();
    expect(locate('work', { ...around, workspaceFolder: undefined })).toBeUndefined();
    expect(locate('   ', around)).toBeUndefined();
    expect(locate(path.join(root, 'work'), around)).toBeUndefined();
  });
});

describe('findOnPath', () => {
  test('the first folder wins, then the next name', () => {
    place('second/python3');
    place('first/python');
    expect(findOnPath(['python3', 'python'], around)).toBe(path.join(root, 'second/python3'));
    const first = place('first/python3');
    expect(findOnPath(['python3', 'python'], around)).toBe(first);
  });

  test('a relative folder of PATH is passed over: it would be looked up in the workspace', () => {
    const before = process.cwd();
    place('relative/python3');
    process.chdir(root);
    try {
      expect(findOnPath(['python3'], around)).toBeUndefined();
    } finally {
      process.chdir(before);
    }
  });
});

describe('isInside', () => {
  test.each([
    ['/work/.venv/bin/python', true],
    ['/work', false],
    ['/workshop/python', false],
    ['/usr/bin/python3', false],
    ['/work/../usr/bin/python3', false],
    ['/work/..venv/bin/python', true],
  ])('%s', (file, expected) => {
    expect(isInside(file, ['/work'])).toBe(expected);
  });
});
