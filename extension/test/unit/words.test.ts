import { expect, test } from 'vitest';
import type { ExportReport, TargetOutcome } from '../../src/protocol';
import { describeExport, firstSentence, size } from '../../src/words/exported';
import { describeSteps } from '../../src/words/repaired';

const torch: TargetOutcome = {
  name: 'torch',
  status: 'ok',
  seconds: 1.25,
  artifact: '/out/Net.pt2',
  bytes: 12_345,
  max_abs_error: 0,
  failure: null,
};
const report: ExportReport = {
  model: 'net.py:Net',
  torch: '2.13.0',
  mode: 'non-strict',
  ok: true,
  failure: null,
  findings: [],
  targets: [torch],
  meaning: null,
  report: null,
};

test('a success says for what, how long, how equal, how big', () => {
  expect(describeExport('Net', report)).toBe(
    'Net is exported for torch in 1.3 s: equal to eager, 12.3 kB, non-strict mode, torch 2.13.0.',
  );
});

test('several targets are summed, and the worst difference is told', () => {
  const targets = [torch, { ...torch, name: 'aoti-cpu', max_abs_error: 1.19e-7, bytes: null, seconds: null }];
  expect(describeExport('Net', { ...report, targets })).toBe(
    'Net is exported for torch, aoti-cpu in 1.3 s: differs from eager by at most 1.2e-7, 12.3 kB, non-strict mode, torch 2.13.0.',
  );
});

test.each([
  ['export', 'Net does not export. The report and the line itself have what torch says.'],
  ['import', 'Net cannot be imported: Could not guard on data'],
  ['mismatch', 'Net exports, but gives other numbers than in plain PyTorch: Could not guard on data'],
  ['timeout', 'Net was stopped at the time limit: Could not guard on data'],
])('a failure of kind %s', (kind, sentence) => {
  const failure = { stage: 'export', kind, message: 'Could not guard on data\nUser code: ...' };
  expect(describeExport('Net', { ...report, ok: false, failure, targets: [] })).toBe(sentence);
});

test('a failure says on which line', () => {
  const failure = { stage: 'export', kind: 'export', message: 'Could not guard' };
  const findings = [
    { code: 'EXP001', message: 'fails here', filename: '/models/net.py', location: { row: 21, column: 12 } },
  ];
  const meaning = '`if` on the value of tensor `x.sum() > 0`: torch.export cannot trace it';
  expect(describeExport('Net', { ...report, ok: false, failure, findings, targets: [], meaning })).toBe(
    'Net does not export (net.py, line 21): `if` on the value of tensor `x.sum() > 0`: torch.export cannot trace it.',
  );
});

test('a failure of one target names the target', () => {
  const failure = { stage: 'lower', kind: 'lower', message: 'no kernel for aten.foo' };
  const targets: TargetOutcome[] = [torch, { ...torch, name: 'aoti-cpu', status: 'failed', failure }];
  expect(describeExport('Net', { ...report, ok: false, targets })).toBe(
    'Net exports, but cannot be lowered for aoti-cpu. The report and the line itself have what torch says.',
  );
});

test.each([
  [0, '0 bytes'],
  [999, '999 bytes'],
  [1000, '1.00 kB'],
  [12_345_678, '12.3 MB'],
  [5e12, '5000 GB'],
])('%d bytes', (bytes, words) => {
  expect(size(bytes)).toBe(words);
});

test('a long message is cut at its first line', () => {
  expect(firstSentence('\n  one line  \nanother')).toBe('one line');
  expect(firstSentence('x'.repeat(500), 10)).toBe(`${'x'.repeat(9)}…`);
});

test('the steps of a repair are numbered', () => {
  const steps = [
    { kind: 'export', message: 'fails on line 9', code: 'EXL101' },
    { kind: 'fix', message: 'rewritten with torch.cond', code: null },
  ];
  expect(describeSteps('Net', { ok: true, steps, edit: null, message: 'done' })).toBe(
    'Making Net exportable: done\n  1. export EXL101: fails on line 9\n  2. fix: rewritten with torch.cond',
  );
});
