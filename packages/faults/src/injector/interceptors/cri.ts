/** The CRI port behind the fault injector: calls that are delayed, refused, lost or late, and a runtime that is away. */

import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CRI_METHODS } from '@actorlet/kubelet/machines/wire/criMethods.ts';
import { type Clock, type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import { codeName } from '../../describe.ts';
import { GRPC_CODES } from '../../kinds.ts';
import type { ActiveFault, ActiveFaultOf, ActiveFaults, FaultOf } from '../activeFaults.ts';
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
interface Call<M extends CriMethod> {
  req: CriRequest<M>;
  opts: CallOpts;
}

/** Codes after which nobody can say whether a mutating call had its effect. */
const UNKNOWN: readonly number[] = [GRPC_CODES.Cancelled, GRPC_CODES.DeadlineExceeded];

export function interceptCri(cri: Cri, o: CriInterceptorOptions): Cri {
  const intercepted = new InterceptedCri(cri, o);
  return override(cri, {
    call: (method, req, opts) => intercepted.call(method, req, opts),
    hints: (signal) => intercepted.hints(signal),
  });
}

class InterceptedCri {
  readonly #cri: Cri;
  readonly #o: CriInterceptorOptions;
  readonly #subjects = new CallSubjects();
  /** For each call in flight: told of a runtime that goes away. */
  readonly #open = new Set<(active: ActiveFault) => void>();
  /** For each event stream: breaks it. */
  readonly #streams = new Set<(error: Error) => void>();

  constructor(cri: Cri, o: CriInterceptorOptions) {
    this.#cri = cri;
    this.#o = o;
    o.activeFaults.onBegin('hints.cut', (active) => {
      this.#cutStreams(active);
      return active.hits;
    });
    o.activeFaults.onBegin('runtime.down', (active) => {
      for (const cut of [...this.#open]) cut(active);
      this.#cutStreams(active);
      return active.hits;
    });
  }

  async call<M extends CriMethod>(method: M, req: CriRequest<M>, opts: CallOpts): Promise<CriResponse<M>> {
    const { activeFaults } = this.#o;
    this.#refuseWhileAway(method);
    const hit =
      activeFaults.of('cri').length === 0
        ? undefined
        : activeFaults.first('cri', method, (f) => this.#fits(f.select, method, this.#subjects.of(method, req)));
    return hit === undefined ? this.#pass(method, req, opts) : this.#struck(hit, method, { req, opts });
  }

  async hints(signal: AbortSignal): ReturnType<Cri['hints']> {
    this.#refuseWhileAway('hints');
    const { activeFaults, clock } = this.#o;
    const own = new AbortController();
    const { via, stream } = await this.#cri.hints(AbortSignal.any([signal, own.signal]));
    return { via, stream: tamperedHints(stream, { activeFaults, clock, cuts: this.#streams, close: () => own.abort() }) };
  }

  #refuseWhileAway(what: string): void {
    if (this.#o.activeFaults.first('runtime.down', what, () => true) === undefined) return;
    throw failed(what, GRPC_CODES.Unavailable, 'no connection to the runtime');
  }

  #cutStreams(active: ActiveFault): void {
    for (const cut of [...this.#streams]) {
      if (this.#o.activeFaults.strikes(active, 'hints')) cut(failed('hints', GRPC_CODES.Unavailable, 'the event stream broke'));
    }
  }

  #fits(select: FaultOf<'cri'>['select'], method: CriMethod, s: CallSubject): boolean {
    const { any, one } = this.#o.activeFaults.match;
    return (
      one(select.methods, method) &&
      any(select.namespaces, s.namespace) &&
      any(select.containers, s.container) &&
      (s.pod === undefined ? any(select.pods, undefined) : this.#o.podNames(s.pod).some((name) => any(select.pods, name)))
    );
  }

  /** The call itself; a runtime that goes away meanwhile cuts it, its effect then unknown. */
  async #pass<M extends CriMethod>(method: M, req: CriRequest<M>, opts: CallOpts): Promise<CriResponse<M>> {
    const cut = new AbortController();
    let cutBy: ActiveFault | undefined;
    const onCut = (active: ActiveFault) => {
      if (!this.#o.activeFaults.strikes(active, method)) return;
      cutBy = active;
      cut.abort(new Error('the runtime went away'));
    };
    this.#open.add(onCut);
    try {
      const res = await this.#cri.call(method, req, { ...opts, signal: AbortSignal.any([opts.signal, cut.signal]) });
      this.#subjects.learn(method, req, res);
      return method === 'Status' ? this.#withNetwork(res, method) : res;
    } catch (error) {
      if (cutBy !== undefined) throw unanswered(method, GRPC_CODES.Unavailable, 'the connection to the runtime broke');
      throw error;
    } finally {
      this.#open.delete(onCut);
    }
  }

  #withNetwork<M extends CriMethod>(res: CriResponse<M>, method: M): CriResponse<M> {
    const { status } = res as CriResponse<'Status'>;
    if (status === null || this.#o.activeFaults.first('network.down', method, () => true) === undefined) return res;
    const down = { type: 'NetworkReady', status: false, reason: 'InjectedFault', message: 'injected fault: the network is down' };
    const conditions = [...status.conditions.filter((c) => c.type !== 'NetworkReady'), down];
    return { ...res, status: { ...status, conditions } };
  }

  async #struck<M extends CriMethod>(hit: ActiveFaultOf<'cri'>, method: M, call: Call<M>): Promise<CriResponse<M>> {
    const { fault, healed } = hit;
    switch (fault.action) {
      case 'error': {
        const failure = UNKNOWN.includes(fault.code) ? unanswered : failed;
        throw failure(method, fault.code, codeName(fault.code));
      }
      case 'delay':
        return this.#delayed(method, call, { delayMs: fault.delayMs, healed });
      case 'lost-without-effect':
        throw await this.#silence(method, call.opts, healed);
      case 'lost-with-effect':
        this.#behindTheBack(method, call);
        throw await this.#silence(method, call.opts, healed);
      case 'late-effect':
        // Healed before its time, it does not happen any more.
        void pause(this.#o.clock, fault.delayMs, { healed }).then((end) => {
          if (end === 'time') this.#behindTheBack(method, call);
        });
        throw await this.#silence(method, call.opts, healed);
    }
  }

  async #delayed<M extends CriMethod>(
    method: M,
    { req, opts }: Call<M>,
    { delayMs, healed }: { delayMs: number; healed: AbortSignal },
  ): Promise<CriResponse<M>> {
    const { clock } = this.#o;
    const began = clock.monoMs();
    const waitMs = opts.timeoutMs === null ? delayMs : Math.min(delayMs, opts.timeoutMs);
    const end = await pause(clock, waitMs, { healed, givenUp: opts.signal });
    if (end === 'given-up') throw failed(method, GRPC_CODES.Cancelled, 'given up while it was held back');
    const leftMs = opts.timeoutMs === null ? null : opts.timeoutMs - (clock.monoMs() - began);
    if (leftMs !== null && leftMs <= 0) throw unanswered(method, GRPC_CODES.DeadlineExceeded, `no answer within ${opts.timeoutMs} ms`);
    return this.#pass(method, req, { ...opts, timeoutMs: leftMs });
  }

  /** The call has no answer: until the deadline, or until the fault is healed. */
  async #silence(method: CriMethod, opts: CallOpts, healed: AbortSignal): Promise<CriError> {
    const end = await pause(this.#o.clock, opts.timeoutMs, { healed, givenUp: opts.signal });
    if (end === 'given-up') return unanswered(method, GRPC_CODES.Cancelled, 'given up while no answer came');
    const why = end === 'time' ? `no answer within ${opts.timeoutMs} ms` : 'the answer was lost';
    return unanswered(method, GRPC_CODES.DeadlineExceeded, why);
  }

  /** Reaches the runtime; the answer reaches nobody. */
  #behindTheBack<M extends CriMethod>(method: M, { req, opts }: Call<M>): void {
    const never = new AbortController().signal;
    this.#cri.call(method, req, { timeoutMs: opts.timeoutMs, signal: never }).then(
      (res) => this.#subjects.learn(method, req, res),
      // Its failure is as lost as its answer would be.
      () => undefined,
    );
  }
}

function failed(method: string, code: number, why: string): CriError {
  return new CriError({ method, code, outcome: 'failed', details: `injected fault: ${why}` });
}

/** A mutating call may have had its effect. */
function unanswered(method: CriMethod, code: number, why: string): CriError {
  const outcome = CRI_METHODS[method].mutating ? 'unknown' : 'failed';
  return new CriError({ method, code, outcome, details: `injected fault: ${why}` });
}
