// Bundles the extension into extension/dist/ and, beside it, the tests that run inside the extension host.
import { build, context } from 'esbuild';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';

const production = process.argv.includes('--production');
const shared = {
  bundle: true,
  platform: 'node',
  format: 'cjs',
  // The Node of the oldest VS Code that package.json names.
  target: 'node20',
  external: ['vscode'],
  sourcemap: !production,
  minify: production,
  metafile: true,
  logLevel: 'warning',
};
const extension = {
  ...shared,
  entryPoints: ['extension/src/extension.ts'],
  outfile: 'extension/dist/extension.js',
};
const hostTests = {
  ...shared,
  entryPoints: ['extension/test/host/suite.ts'],
  outfile: 'extension/dist/test/suite.js',
};

if (process.argv.includes('--watch')) {
  for (const options of [extension, hostTests]) {
    await (await context(options)).watch();
  }
} else {
  const { metafile } = await build(extension);
  writeFileSync('extension/dist/licenses.txt', licences(metafile));
  await build(hostTests);
}

/** The licences of the packages that went into the bundle, as they ask to be carried along. */
function licences({ inputs }) {
  const folders = Object.keys(inputs).flatMap((file) => {
    const match = /^(?:.*node_modules\/)(?:@[^/]+\/)?[^/]+/.exec(file);
    return match === null ? [] : [match[0]];
  });
  const parts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    const file = readdirSync(folder).find((each) => /^licen[sc]e/i.test(each));
    const text =
      file !== undefined && existsSync(`${folder}/${file}`) ? readFileSync(`${folder}/${file}`, 'utf8') : '';
    return `${name} ${version} (${license})\n\n${text.trim()}\n`;
  });
  return parts.join(`\n${'-'.repeat(80)}\n\n`);
}
