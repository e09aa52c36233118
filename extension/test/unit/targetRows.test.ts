import { expect, test } from 'vitest';
import { targetRows } from '../../src/asking/targetRows';
import type { TargetInfo } from '../../src/protocol';

const base: TargetInfo = {
  name: 'torch',
  title: 'PyTorch program',
  purpose: 'A .pt2 file for Python.',
  available: true,
  version: '2.13.0',
  install: null,
  runsHere: true,
};
const aoti: TargetInfo = { ...base, name: 'aoti-cpu', title: 'AOTInductor on CPU' };
const coreml: TargetInfo = {
  ...base,
  name: 'coreml',
  available: false,
  version: null,
  install: 'pip install coremltools',
  runsHere: false,
};
const npu: TargetInfo = { ...coreml, name: 'openvino-npu', install: null };

test('available targets come first, the preferred one at their head, all of them last', () => {
  const rows = targetRows([coreml, base, aoti], 'aoti-cpu');
  expect(rows.map((row) => row.label)).toEqual(['aoti-cpu', 'torch', 'All available targets', 'coreml']);
  expect(rows[0]?.description).toContain('your default');
  expect(rows[2]?.targets).toEqual(['torch', 'aoti-cpu']);
});

test('a missing target says what to install, and cannot be exported for', () => {
  const [missing, impossible] = targetRows([coreml, npu], 'torch');
  expect(missing).toMatchObject({
    available: false,
    targets: [],
    detail: 'To install: pip install coremltools',
  });
  expect(impossible?.detail).toMatch(/^Not possible on this machine/);
});

test('one available target has no row for all of them', () => {
  expect(targetRows([base, coreml], 'torch').map((row) => row.label)).toEqual(['torch', 'coreml']);
});

test('a preferred target that is missing is not moved', () => {
  const rows = targetRows([base, coreml], 'coreml');
  expect(rows.map((row) => row.label)).toEqual(['torch', 'coreml']);
});

test('what is lowered but not run here says so', () => {
  const [row] = targetRows([{ ...base, runsHere: false }], '');
  expect(row?.description).toBe('PyTorch program · 2.13.0 · lowered, not run here');
});
