/**
 * The Csi port: plugins beside this node, each on a unix socket of its own. Every call dials anew, so that a driver that
 * was started over is met as it is now.
 */
import type { CsiMethod, CsiRequest, CsiResponse, PluginInfo } from '../../machines/wire/csi.ts';

export interface CsiCall {
  timeoutMs: number;
  signal: AbortSignal;
}

/** As programs of Go print a status of gRPC: callers look for it in messages. */
export function rpcError({ code, details }: { code: number; details: string }): string {
  return `rpc error: code = ${CODE_NAMES[code] ?? code} desc = ${details}`;
}

/** What a plugin answered in place of a result, or that it did not answer. */
export class CsiError extends Error {
  readonly method: string;
  /** gRPC status code. */
  readonly code: number;
  readonly details: string;
  constructor(o: { method: string; code: number; details: string }) {
    super(rpcError(o));
    this.name = 'CsiError';
    this.method = o.method;
    this.code = o.code;
    this.details = o.details;
  }
}
/** As the reference writes them. */
export const CODE_NAMES: readonly string[] = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
];

/** Rejects with {@link CsiError}. */
export interface Csi {
  /** Asks the plugin that listens at that socket. */
  getInfo(socket: string, call: CsiCall): Promise<PluginInfo>;
  /** What became of its registration; `error` '' where it succeeded. */
  notify(socket: string, status: { pluginRegistered: boolean; error: string }, call: CsiCall): Promise<void>;
  call<M extends CsiMethod>(endpoint: string, method: M, request: CsiRequest<M>, call: CsiCall): Promise<CsiResponse<M>>;
}
