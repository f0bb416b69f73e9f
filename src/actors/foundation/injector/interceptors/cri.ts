/** The CRI port behind the fault injector: calls that are delayed, refused, lost or late, and a runtime that is away. */

import type { CriMethod, CriRequest, CriResponse } from '../../../../machines/cri.ts';
import { codeName } from '../../../../machines/faults/describe.ts';
import { GRPC_CODES } from '../../../../machines/faults/kinds.ts';
import { CRI_METHODS } from '../../../../machines/runtime/cri/methods.ts';
import { type Clock, type Cri, CriError } from '../../../../ports/ports.ts';
import type { ActiveFault, ActiveFaultOf, ActiveFaults } from '../activeFaults.ts';
import { type CallSubject, CallSubjects } from './callSubject.ts';
import { tamperedHints } from './hints.ts';
import { override, pause } from './pause.ts';

/** `podNames`: the names a pattern may match for a pod called so. */
export interface CriInterceptorOptions {
  activeFaults: ActiveFaults;
  clock: Clock;
  podNames(name: string): readonly string[];
}
interface CallOpts {
  timeoutMs: number | null;
  signal: AbortSignal;
}

export function interceptCri(cri: Cri, o: CriInterceptorOptions): Cri {
  const { activeFaults, clock } = o;
  const { any, one } = activeFaults.match;
  const subjects = new CallSubjects();
  const open = new Set<(active: ActiveFault) => void>();
  const failure = (method: string, code: number, why: string, unknown: boolean): CriError =>
    new CriError({ method, code, outcome: unknown ? 'unknown' : 'failed', details: `injected fault: ${why}` });
  const mutates = (method: CriMethod): boolean => CRI_METHODS[method].mutating;

  const fits = (
    select: { methods?: readonly CriMethod[]; namespaces?: readonly string[]; pods?: readonly string[]; containers?: readonly string[] },
    method: CriMethod,
    s: CallSubject,
  ): boolean =>
    one(select.methods, method) &&
    any(select.namespaces, s.namespace) &&
    any(select.containers, s.container) &&
    (s.pod === undefined ? any(select.pods, undefined) : o.podNames(s.pod).some((name) => any(select.pods, name)));

  /** The call itself; a runtime that goes away meanwhile cuts it, its effect then unknown. */
  async function pass<M extends CriMethod>(method: M, req: CriRequest<M>, opts: CallOpts): Promise<CriResponse<M>> {
    const cut = new AbortController();
    let cutBy: ActiveFault | undefined;
    const onCut = (active: ActiveFault) => {
      if (!activeFaults.strikes(active, method)) return;
      cutBy = active;
      cut.abort(new Error('the runtime went away'));
    };
    open.add(onCut);
    try {
      const res = await cri.call(method, req, { ...opts, signal: AbortSignal.any([opts.signal, cut.signal]) });
      subjects.learn(method, req, res);
      return method === 'Status' ? withNetwork(res, method) : res;
    } catch (error) {
      if (cutBy !== undefined) throw failure(method, GRPC_CODES.Unavailable, 'the connection to the runtime broke', mutates(method));
      throw error;
    } finally {
      open.delete(onCut);
    }
  }

  function withNetwork<M extends CriMethod>(res: CriResponse<M>, method: M): CriResponse<M> {
    const { status } = res as CriResponse<'Status'>;
    if (status === null || activeFaults.first('network.down', method, () => true) === undefined) return res;
    const down = { type: 'NetworkReady', status: false, reason: 'InjectedFault', message: 'injected fault: the network is down' };
    const conditions = [...status.conditions.filter((c) => c.type !== 'NetworkReady'), down];
    return { ...res, status: { ...status, conditions } };
  }

  /** Nobody answers: until the deadline, or until the fault is healed. */
  async function silence(method: CriMethod, opts: CallOpts, healed: AbortSignal): Promise<CriError> {
    const end = await pause(clock, opts.timeoutMs, { healed, givenUp: opts.signal });
    if (end === 'given-up') return failure(method, GRPC_CODES.Cancelled, 'given up while no answer came', mutates(method));
    const why = end === 'time' ? `no answer within ${opts.timeoutMs} ms` : 'the answer was lost';
    return failure(method, GRPC_CODES.DeadlineExceeded, why, mutates(method));
  }

  async function struck<M extends CriMethod>(
    hit: ActiveFaultOf<'cri'>,
    method: M,
    call: { req: CriRequest<M>; opts: CallOpts },
  ): Promise<CriResponse<M>> {
    const { fault, healed } = hit;
    const { req, opts } = call;
    switch (fault.action) {
      case 'error':
        throw failure(method, fault.code, codeName(fault.code), mutates(method) && UNKNOWN.includes(fault.code));
      case 'delay': {
        const began = clock.monoMs();
        const waitMs = opts.timeoutMs === null ? fault.delayMs : Math.min(fault.delayMs, opts.timeoutMs);
        const end = await pause(clock, waitMs, { healed, givenUp: opts.signal });
        if (end === 'given-up') throw failure(method, GRPC_CODES.Cancelled, 'given up while it was held back', false);
        const leftMs = opts.timeoutMs === null ? null : opts.timeoutMs - (clock.monoMs() - began);
        if (leftMs !== null && leftMs <= 0)
          throw failure(method, GRPC_CODES.DeadlineExceeded, `no answer within ${opts.timeoutMs} ms`, mutates(method));
        return pass(method, req, { ...opts, timeoutMs: leftMs });
      }
      case 'lost-without-effect':
        throw await silence(method, opts, healed);
      case 'lost-with-effect':
        behindTheBack(method, req, opts.timeoutMs);
        throw await silence(method, opts, healed);
      case 'late-effect':
        // Healed before its time, it does not happen any more.
        void pause(clock, fault.delayMs, { healed }).then((end) => {
          if (end === 'time') behindTheBack(method, req, opts.timeoutMs);
        });
        throw await silence(method, opts, healed);
    }
  }

  /** Reaches the runtime; the answer reaches nobody. */
  function behindTheBack<M extends CriMethod>(method: M, req: CriRequest<M>, timeoutMs: number | null): void {
    const never = new AbortController().signal;
    cri.call(method, req, { timeoutMs, signal: never }).then(
      (res) => subjects.learn(method, req, res),
      // Its failure is as lost as its answer would be.
      () => undefined,
    );
  }

  const streams = new Set<(error: Error) => void>();
  const cutStreams = (active: ActiveFault): void => {
    for (const cut of [...streams]) {
      if (activeFaults.strikes(active, 'hints')) cut(failure('hints', GRPC_CODES.Unavailable, 'the event stream broke', false));
    }
  };
  activeFaults.onBegin('hints.cut', (active) => {
    cutStreams(active);
    return active.hits;
  });
  activeFaults.onBegin('runtime.down', (active) => {
    for (const cut of [...open]) cut(active);
    cutStreams(active);
    return active.hits;
  });
  const away = (what: string): boolean => activeFaults.first('runtime.down', what, () => true) !== undefined;
  const refused = (what: string): CriError => failure(what, GRPC_CODES.Unavailable, 'no connection to the runtime', false);

  return override(cri, {
    async call(method, req, opts) {
      if (away(method)) throw refused(method);
      const hit =
        activeFaults.of('cri').length === 0
          ? undefined
          : activeFaults.first('cri', method, (f) => fits(f.select, method, subjects.of(method, req)));
      return hit === undefined ? pass(method, req, opts) : struck(hit, method, { req, opts });
    },
    async hints(signal) {
      if (away('hints')) throw refused('hints');
      const own = new AbortController();
      const { via, stream } = await cri.hints(AbortSignal.any([signal, own.signal]));
      return { via, stream: tamperedHints(stream, { activeFaults, clock, cuts: streams, close: () => own.abort() }) };
    },
  });
}

/** Codes after which nobody can say whether a mutating call had its effect. */
const UNKNOWN: readonly number[] = [GRPC_CODES.Cancelled, GRPC_CODES.DeadlineExceeded];
