// Where the pieces of an editor test are, and what to do when one is missing.

import * as fs from 'node:fs';
import * as path from 'node:path';

export const ROOT = path.resolve(__dirname, '../../..');
export const NODE = path.join(ROOT, '.tools/node24/bin/node');
export const CODE_SERVER = path.join(ROOT, '.tools/code-server/node_modules/code-server/out/node/entry.js');
export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const PYTHON = path.join(ROOT, '.venv/bin/python');
export const PACKAGE = path.join(ROOT, 'artifacts/exportlens.vsix');
export const PICTURES = path.join(ROOT, 'artifacts/e2e');

/** Throws with the next step where something that the tests need is not installed. */
export function requireInstalled(...files: readonly string[]): void {
  const missing = files.filter((file) => !fs.existsSync(file));
  if (missing.length > 0) {
    throw new Error(
      `Not installed: ${missing.join(', ')}. Run \`make setup\`, and \`npm run package\` for the .vsix.`,
    );
  }
}
