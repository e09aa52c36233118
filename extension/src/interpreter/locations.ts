// Where an interpreter is, from what the user wrote: pure path work, nothing is run.

import * as path from 'node:path';

/** What a path in a setting may refer to. */
export interface Surroundings {
  readonly home: string;
  readonly workspaceFolder: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  isFile(file: string): boolean;
  isFolder(folder: string): boolean;
}

/** The text of a setting with `~`, `${workspaceFolder}` and `${env:NAME}` filled in; unknown ones become empty. */
export function expand(text: string, around: Surroundings): string {
  const filled = text
    .trim()
    .replace(/\$\{workspaceFolder\}/g, () => around.workspaceFolder ?? '')
    .replace(/\$\{userHome\}/g, () => around.home)
    .replace(/\$\{env:([^}]+)\}/g, (_, name: string) => around.env[name] ?? '');
  return /^~(?=$|[\\/])/.test(filled) ? around.home + filled.slice(1) : filled;
}

/**
 * The interpreter that a setting names: an executable, the folder of a virtual environment, a path relative to the
 * workspace folder, or a bare command that is looked up on PATH.
 */
export function locate(setting: string, around: Surroundings): string | undefined {
  const text = expand(setting, around);
  if (text === '') {
    return undefined;
  }
  if (!/[\\/]/.test(text)) {
    const onPath = findOnPath([text], around);
    if (onPath !== undefined) {
      return onPath;
    }
  }
  const full = path.isAbsolute(text)
    ? text
    : around.workspaceFolder === undefined
      ? undefined
      : path.join(around.workspaceFolder, text);
  if (full === undefined) {
    return undefined;
  }
  return around.isFolder(full)
    ? pythonsOfEnvironment(full, around.platform).find((file) => around.isFile(file))
    : around.isFile(full)
      ? full
      : undefined;
}

/** Where the interpreter of a virtual (or conda) environment can be, the likeliest first. */
export function pythonsOfEnvironment(folder: string, platform: NodeJS.Platform): string[] {
  return platform === 'win32'
    ? [path.join(folder, 'Scripts', 'python.exe'), path.join(folder, 'python.exe')]
    : [path.join(folder, 'bin', 'python3'), path.join(folder, 'bin', 'python')];
}

/** The first of `names` that stands in a folder of PATH; folders given relatively are passed over. */
export function findOnPath(names: readonly string[], around: Surroundings): string | undefined {
  const windows = around.platform === 'win32';
  const folders = (around.env.PATH ?? around.env.Path ?? '').split(windows ? ';' : ':');
  const suffixes = windows ? ['.exe', ''] : [''];
  for (const name of names) {
    for (const folder of folders.filter((each) => path.isAbsolute(each))) {
      const found = suffixes
        .map((suffix) => path.join(folder, name + suffix))
        .find((file) => around.isFile(file));
      if (found !== undefined) {
        return found;
      }
    }
  }
  return undefined;
}

/** The commands that PATH is searched for when nothing else names an interpreter. */
export function defaultCommands(platform: NodeJS.Platform): string[] {
  return platform === 'win32' ? ['python', 'python3'] : ['python3', 'python'];
}

/** Whether `file` lies in one of `folders`, and so could have come with a workspace that is not trusted. */
export function isInside(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const relative = path.relative(folder, file);
    return relative !== '' && !/^\.\.(?=$|[\\/])/.test(relative) && !path.isAbsolute(relative);
  });
}
