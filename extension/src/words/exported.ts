// How an export went, in one sentence for a notification.

import * as path from 'node:path';
import type { ExportReport, Failure, TargetOutcome } from '../protocol';

/** Kinds of failure whose message comes from torch or a target, as it raised it. */
const TORCHS_WORDS = new Set(['export', 'lower', 'run']);

/** The sentence for the report of an export of `model`. */
export function describeExport(model: string, report: ExportReport): string {
  return report.ok ? describeSuccess(model, report) : describeFailure(model, report);
}

function describeSuccess(model: string, { mode, torch, targets }: ExportReport): string {
  const done = targets.filter((target) => target.status === 'ok');
  const names = done.map((target) => target.name).join(', ');
  const seconds = done.reduce((sum, target) => sum + (target.seconds ?? 0), 0);
  const bytes = done.reduce((sum, target) => sum + (target.bytes ?? 0), 0);
  const facts = [
    difference(done),
    bytes > 0 ? size(bytes) : '',
    mode === null ? '' : `${mode} mode`,
    torch === null ? '' : `torch ${torch}`,
  ];
  return `${model} is exported for ${names} in ${seconds.toFixed(1)} s: ${facts.filter((fact) => fact !== '').join(', ')}.`;
}

function describeFailure(model: string, { failure, findings, targets, meaning }: ExportReport): string {
  const bad = targets.find((target) => target.status !== 'ok' && target.failure !== null);
  const cause = failure ?? bad?.failure ?? null;
  if (cause === null) {
    return `${model} does not export; the log says why.`;
  }
  const where = failure === null && bad !== undefined ? ` for ${bad.name}` : '';
  const [finding] = findings;
  const line =
    finding === undefined ? '' : ` (${path.basename(finding.filename)}, line ${finding.location.row})`;
  return `${model} ${whatHappened(cause.kind, where)}${line}${why(cause, meaning)}`;
}

/** Why, in words for people. torch's own words are for the report and the line, not for a notification. */
function why({ kind, message }: Failure, meaning: string | null): string {
  if (meaning !== null) {
    return `: ${endedSentence(firstSentence(meaning))}`;
  }
  return TORCHS_WORDS.has(kind)
    ? '. The report and the line itself have what torch says.'
    : `: ${firstSentence(message)}`;
}

function endedSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** What a kind of failure means for the model, after its name. */
function whatHappened(kind: string, where: string): string {
  switch (kind) {
    case 'import':
      return 'cannot be imported';
    case 'construct':
      return 'cannot be made from these constructor arguments';
    case 'inputs':
      return 'has no usable example inputs';
    case 'eager':
      return 'fails before any export, in plain PyTorch';
    case 'lower':
      return `exports, but cannot be lowered${where}`;
    case 'run':
      return `exports, but the result does not run${where}`;
    case 'mismatch':
      return `exports, but gives other numbers than in plain PyTorch${where}`;
    case 'timeout':
      return `was stopped at the time limit${where}`;
    case 'memory':
      return `needs more memory than it may use${where}`;
    case 'crash':
      return `ended the process that exported it${where}`;
    case 'unavailable':
      return `cannot be exported${where} here`;
    default:
      return `does not export${where}`;
  }
}

function difference(done: readonly TargetOutcome[]): string {
  const errors = done.flatMap((target) => (target.max_abs_error === null ? [] : [target.max_abs_error]));
  if (errors.length === 0) {
    return '';
  }
  const worst = Math.max(...errors);
  return worst === 0 ? 'equal to eager' : `differs from eager by at most ${worst.toPrecision(2)}`;
}

/** A number of bytes as people write it. */
export function size(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB'];
  const power = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const amount = bytes / 1000 ** power;
  return `${power === 0 || amount >= 1000 ? Math.round(amount) : amount.toPrecision(3)} ${units[power] ?? ''}`;
}

/** The first line that says something, short enough for a notification; the report and the log have it whole. */
export function firstSentence(text: string, limit = 240): string {
  const line =
    text
      .split('\n')
      .find((each) => each.trim() !== '')
      ?.trim() ?? '';
  return line.length <= limit ? line : `${line.slice(0, limit - 1).trimEnd()}…`;
}
