/** Deadlines of CRI calls, all in one place (CRI reference 13.1). Pure. */
import type { CriMethod } from '../../wire/criCalls.ts';
import { CRI_METHODS } from '../../wire/criMethods.ts';

/** The kubelet's `runtimeRequestTimeout` default, milliseconds. */
export const RUNTIME_REQUEST_TIMEOUT_MS = 120_000;

/** Seconds a request carries in its own `timeout` field; 0 when absent or not a number. */
function ownSeconds(request: unknown): number {
  if (typeof request !== 'object' || request === null || !('timeout' in request)) return 0;
  const seconds = Number(request.timeout);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : 0;
}

/**
 * Milliseconds after which a call is given up, null = never (only its signal ends it). StopContainer waits for the
 * grace period on top, ExecSync for its command's time (0 there means the command has no limit, so the call has none).
 */
export function deadlineMs(method: CriMethod, request: unknown, runtimeRequestTimeoutMs: number): number | null {
  switch (CRI_METHODS[method].deadline) {
    case 'none':
      return null;
    case 'sandbox':
      return runtimeRequestTimeoutMs * 2;
    case 'stop':
      return runtimeRequestTimeoutMs + ownSeconds(request) * 1000;
    case 'exec': {
      const seconds = ownSeconds(request);
      return seconds === 0 ? null : runtimeRequestTimeoutMs + seconds * 1000;
    }
    case 'request':
      return runtimeRequestTimeoutMs;
  }
}
