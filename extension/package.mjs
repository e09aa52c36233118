// Packages the extension into artifacts/exportlens.vsix, and fails when the package holds anything unexpected.
import { createVSIX, listFiles } from '@vscode/vsce';
import { existsSync, mkdirSync, statSync } from 'node:fs';

const OUT = 'artifacts/exportlens.vsix';
const EXPECTED = new Set([
  'package.json',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
  'extension/dist/extension.js',
  'extension/dist/licenses.txt',
  'media/icon.png',
]);

mkdirSync('artifacts', { recursive: true });
await createVSIX({
  packagePath: OUT,
  dependencies: false,
  allowMissingRepository: true,
  // The readme's pictures and links point into the repository; there is no public address to rewrite them to yet.
  rewriteRelativeLinks: false,
});
const files = await listFiles({ dependencies: false });
const unexpected = files.filter((file) => !EXPECTED.has(file));
const missing = [...EXPECTED].filter((file) => !files.includes(file) && existsSync(file));
if (unexpected.length > 0 || missing.length > 0) {
  console.error(`The package is not what it should be: unexpected ${unexpected}; missing ${missing}.`);
  process.exit(1);
}
console.log(`${OUT} (${Math.round(statSync(OUT).size / 1000)} kB)`);
