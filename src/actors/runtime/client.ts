/** The typed way to the CRI link: what other actors use instead of building `cri.call` by hand. Holds nothing. */

import { deadlineMs, RUNTIME_REQUEST_TIMEOUT_MS } from '../../machines/runtime/cri/deadlines.ts';
import { type CriEvent, type CriFailure, type CriResult, criAddr } from '../../machines/runtime/cri/messages.ts';
import type { ReplyTo } from '../../machines/supervision/address.ts';
import type { CriMethod, CriRequest, CriResponse } from '../../machines/wire/criCalls.ts';
import { CRI_METHODS } from '../../machines/wire/criMethods.ts';
import { CriError } from '../../ports/ports.ts';
import type { Registry } from '../supervision/types.ts';

/** How much longer than a read's own deadline its asker waits: the link enforces the deadline, this only bounds a bug. */
const READ_ALLOWANCE_MS = 10_000;
/**
 * The registry's `ask` wants a number. For calls without a deadline, and for acts, whose turn may come late (a predecessor
 * may be stopping with a long grace), only the signal or the end of the link ends the wait.
 */
const FOREVER_MS = 2 ** 31 - 1;

export interface CriCall<M extends CriMethod = CriMethod> {
  method: M;
  request: CriRequest<M>;
  /** Replaces the rule of the deadline table; null = none. */
  timeoutMs?: number | null;
}

/** Writes one call with its request checked against its method: `criCall('StopContainer', { containerId, timeout: 2 })`. */
export function criCall<M extends CriMethod>(method: M, request: CriRequest<M>, timeoutMs?: number | null): CriCall {
  return { method, request, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
}

export interface CriClient {
  /** A read, or a change that is of no pod's life (an image goes, a log is opened anew): at once, unfenced. @throws CriError */
  read<M extends CriMethod>(
    method: M,
    request: CriRequest<M>,
    o?: { timeoutMs?: number | null; signal?: AbortSignal },
  ): Promise<CriResponse<M>>;
  /**
   * One fenced act of a pod: its calls run in parallel, it starts when no other act of that UID is in flight, and
   * resolves when all of its calls really ended. Never rejects: a refused or lost act answers with one failure per call.
   * Aborting the signal cancels the act. `incarnation` null: of no worker (garbage collection), never refused for age.
   */
  act(uid: string, incarnation: number | null, calls: readonly CriCall[], o?: { signal?: AbortSignal }): Promise<readonly CriResult[]>;
  /** A fenced act of one call. @throws CriError */
  mutate<M extends CriMethod>(
    uid: string,
    incarnation: number | null,
    call: { method: M; request: CriRequest<M>; timeoutMs?: number | null },
    o?: { signal?: AbortSignal },
  ): Promise<CriResponse<M>>;
  /**
   * Waits until no act of that UID is in flight; acts of older incarnations are refused from then on. Resolves with
   * the link's monotonic time. @throws CriError when refused, lost or aborted.
   */
  fence(uid: string, incarnation: number, o?: { signal?: AbortSignal }): Promise<{ monoMs: number }>;
}

/** gRPC's CANCELLED, DEADLINE_EXCEEDED and UNAVAILABLE: it would answer nothing else either. */
const SAYS_NOTHING: readonly number[] = [1, 4, 14];
/** The runtime answered, and refuses or does not know this call. */
export function isRefusal(error: unknown): error is CriError {
  return error instanceof CriError && !SAYS_NOTHING.includes(error.code);
}

/** Codes for ends that no runtime answered: ABORTED for a refusal, UNAVAILABLE for a link that went away, CANCELLED. */
const REFUSED = 10;
const LOST = 14;
const CANCELLED = 1;

function toError(failure: CriFailure): CriError {
  return new CriError({ method: failure.method, code: failure.code, outcome: failure.outcome, details: failure.details });
}

/** `runtimeRequestTimeoutMs`: config field runtimeRequestTimeout, default 2 minutes. */
export function criClient(registry: Registry, o: { runtimeRequestTimeoutMs?: number } = {}): CriClient {
  const requestTimeoutMs = o.runtimeRequestTimeoutMs ?? RUNTIME_REQUEST_TIMEOUT_MS;

  async function ask(
    calls: readonly CriCall[],
    fence: { uid?: string; incarnation?: number | null },
    signal: AbortSignal | undefined,
  ): Promise<readonly CriResult[]> {
    const timed = calls.map((c) => ({
      method: c.method,
      request: c.request,
      timeoutMs: c.timeoutMs === undefined ? deadlineMs(c.method, c.request, requestTimeoutMs) : c.timeoutMs,
    }));
    const longest = timed.reduce<number | null>((max, c) => (max === null || c.timeoutMs === null ? null : Math.max(max, c.timeoutMs)), 0);
    const fail = (code: number, details: string, mayHaveHappened: boolean): readonly CriResult[] =>
      timed.map(({ method }) => ({
        ok: false,
        error: { method, code, details, outcome: mayHaveHappened && CRI_METHODS[method].mutating ? 'unknown' : 'failed' },
      }));
    if (signal?.aborted) return fail(CANCELLED, 'given up before it was sent', false);
    const answer = await registry.ask(
      criAddr,
      (replyTo: ReplyTo<readonly CriResult[]>): CriEvent => ({
        type: 'cri.call',
        ...(fence.uid === undefined ? {} : { uid: fence.uid }),
        ...(fence.incarnation === undefined || fence.incarnation === null ? {} : { incarnation: fence.incarnation }),
        calls: timed,
        replyTo,
      }),
      {
        timeoutMs: longest === null || fence.uid !== undefined ? FOREVER_MS : longest + READ_ALLOWANCE_MS,
        ...(signal === undefined ? {} : { signal }),
      },
    );
    if (answer.kind === 'reply') return answer.value;
    if (answer.kind === 'refused') return fail(REFUSED, answer.reason, false);
    return fail(signal?.aborted ? CANCELLED : LOST, answer.reason, true);
  }

  function only<M extends CriMethod>(method: M, results: readonly CriResult[]): CriResponse<M> {
    const result = results[0];
    if (result === undefined) throw new CriError({ method, code: LOST, outcome: 'unknown', details: 'the CRI link gave no answer' });
    if (!result.ok) throw toError(result.error);
    // The link answers what the port gave for this very method.
    return result.value as CriResponse<M>;
  }

  return {
    read: async (method, request, opts = {}) => only(method, await ask([criCall(method, request, opts.timeoutMs)], {}, opts.signal)),
    act: (uid, incarnation, calls, opts = {}) => ask(calls, incarnation === null ? { uid } : { uid, incarnation }, opts.signal),
    mutate: async (uid, incarnation, call, opts = {}) =>
      only(call.method, await ask([criCall(call.method, call.request, call.timeoutMs)], { uid, incarnation }, opts.signal)),
    fence: async (uid, incarnation, opts = {}) => {
      const answer = await registry.ask(
        criAddr,
        (replyTo: ReplyTo<{ monoMs: number }>): CriEvent => ({ type: 'cri.fence', uid, incarnation, replyTo }),
        { timeoutMs: FOREVER_MS, ...(opts.signal === undefined ? {} : { signal: opts.signal }) },
      );
      if (answer.kind === 'reply') return answer.value;
      const method = 'fence';
      if (answer.kind === 'refused') throw new CriError({ method, code: REFUSED, outcome: 'failed', details: answer.reason });
      throw new CriError({ method, code: opts.signal?.aborted ? CANCELLED : LOST, outcome: 'failed', details: answer.reason });
    },
  };
}
