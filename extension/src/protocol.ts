// The requests of the language server that are ExportLens's own, and the shapes of what they carry.

import type { Range, WorkspaceEdit } from 'vscode-languageclient/node';

/** A model that a file defines, with what could be proposed for exporting it; expressions are Python source. */
export interface ModelInfo {
  readonly name: string;
  readonly uri: string;
  readonly range: Range;
  readonly init: string;
  readonly inputs: string;
  readonly kwargs: string;
  readonly dynamicShapes: string;
  /** Dynamic shapes that the model's use of its inputs suggests, for who asks for other sizes; empty where none does. */
  readonly dynamicProposed: string;
  /** Where the proposal comes from, in words; empty where there is none. */
  readonly proposedFrom: string;
}

export interface TargetInfo {
  readonly name: string;
  readonly title: string;
  readonly purpose: string;
  readonly available: boolean;
  readonly version: string | null;
  /** What to do to make the target available; null where nothing can be done on this machine. */
  readonly install: string | null;
  /** False where a program can be lowered for the target, but not run on this machine. */
  readonly runsHere: boolean;
}

/** Python expressions that say how a model is made and called. */
export interface Recipe {
  readonly init: string;
  readonly inputs: string;
  readonly kwargs: string;
  readonly dynamicShapes: string;
}

export interface ModelRequest extends Partial<Recipe> {
  readonly uri: string;
  readonly model: string;
  readonly targets: readonly string[];
  readonly mode?: string;
  /** Seconds that the export, and each target, may take. */
  readonly timeout?: number;
  readonly workDoneToken: string;
}

export interface Failure {
  readonly stage: string;
  readonly kind: string;
  readonly message: string;
}

export interface TargetOutcome {
  readonly name: string;
  /** 'skipped' where there was no program to lower. */
  readonly status: 'ok' | 'failed' | 'unavailable' | 'skipped';
  readonly seconds: number | null;
  readonly artifact: string | null;
  readonly bytes: number | null;
  readonly max_abs_error: number | null;
  readonly failure: Failure | null;
}

/** A finding as `exportlens check --output-format json` prints it; rows and columns count from 1. */
export interface ReportedFinding {
  readonly code: string;
  readonly message: string;
  readonly filename: string;
  readonly location: { readonly row: number; readonly column: number };
}

export interface ExportReport {
  readonly model: string;
  readonly torch: string | null;
  readonly mode: string | null;
  readonly ok: boolean;
  readonly failure: Failure | null;
  readonly findings: readonly ReportedFinding[];
  readonly targets: readonly TargetOutcome[];
  /** Why it failed, in words for people; null where the failure's own message says it best. */
  readonly meaning: string | null;
  /** Path of the report as one HTML page, or null where none was written. */
  readonly report: string | null;
}

export interface RepairStep {
  readonly kind: string;
  readonly message: string;
  readonly code: string | null;
}

export interface RepairReport {
  readonly ok: boolean;
  readonly steps: readonly RepairStep[];
  readonly edit: WorkspaceEdit | null;
  readonly message: string;
}

export interface VerifyRequest {
  readonly uri: string;
  readonly range: Range;
  readonly code: string;
}

export interface VerifyReport {
  readonly verified: boolean;
  readonly message: string;
}

/** What each request takes and gives. */
export interface Requests {
  'exportlens/models': { params: { uri: string }; result: { models: readonly ModelInfo[] } };
  'exportlens/targets': { params: Record<string, never>; result: { targets: readonly TargetInfo[] } };
  'exportlens/export': { params: ModelRequest; result: ExportReport };
  'exportlens/repair': { params: ModelRequest; result: RepairReport };
  'exportlens/verify': { params: VerifyRequest & { workDoneToken: string }; result: VerifyReport };
}

export type Method = keyof Requests;
