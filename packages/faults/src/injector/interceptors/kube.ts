/** The API server behind the fault injector: requests that are delayed, refused, lost or late, a partition, bad watches. */

import { type KubeFailure, type KubeRequest, type KubeResult, statusFailure } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi, KubeCallOptions, KubeWatch } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { type ApiSubject, apiSubject } from '../../subjects.ts';
import type { ActiveFault, ActiveFaultOf, ActiveFaults, FaultOf } from '../activeFaults.ts';
import { override, pause } from './pause.ts';

const EXPIRED = JSON.stringify({
  type: 'ERROR',
  object: { kind: 'Status', code: 410, reason: 'Expired', message: 'injected fault' },
});

interface KubeOptions {
  activeFaults: ActiveFaults;
  clock: Clock;
}

export function interceptKube(kube: KubeApi, o: KubeOptions): KubeApi {
  const intercepted = new InterceptedKube(kube, o);
  return override(kube, {
    request: (request, opts) => intercepted.request(request, opts),
    watch: (request, opts) => intercepted.watch(request, opts),
  });
}

class InterceptedKube {
  readonly #kube: KubeApi;
  readonly #activeFaults: ActiveFaults;
  readonly #clock: Clock;

  constructor(kube: KubeApi, { activeFaults, clock }: KubeOptions) {
    this.#kube = kube;
    this.#activeFaults = activeFaults;
    this.#clock = clock;
  }

  async request(request: KubeRequest, opts: KubeCallOptions): Promise<KubeResult> {
    if (this.#activeFaults.size === 0) return this.#kube.request(request, opts);
    const s = apiSubject(request);
    const cutOff = this.#partition(wordsOf(s));
    if (cutOff !== undefined) return { ok: false, failure: await this.#silence(s, opts, cutOff.healed) };
    const hit = this.#activeFaults.first('api.call', wordsOf(s), (f) => this.#fits(f.select, s));
    return hit === undefined ? this.#kube.request(request, opts) : this.#struck(hit, request, { s, opts });
  }

  async watch(request: Pick<KubeRequest, 'path' | 'query'>, opts: KubeCallOptions): Promise<KubeWatch> {
    const s = apiSubject({ ...request, verb: 'watch' });
    const cutOff = this.#partition(wordsOf(s));
    if (cutOff !== undefined) return { ok: false, failure: await this.#silence(s, opts, cutOff.healed) };
    const refused = this.#activeFaults.first('api.call', wordsOf(s), (f) => f.action === 'error' && this.#fits(f.select, s));
    if (refused !== undefined) return { ok: false, failure: refusal(refused.fault.status) };
    const opened = await this.#kube.watch(request, opts);
    return opened.ok ? { ok: true, lines: this.#lines(opened.lines, s, opts.signal) } : opened;
  }

  #partition(what: string): ActiveFault | undefined {
    return this.#activeFaults.first('api.partition', what, () => true);
  }

  #fits(select: FaultOf<'api.call'>['select'], s: ApiSubject): boolean {
    const { any, one } = this.#activeFaults.match;
    return one(select.verbs, s.verb) && any(select.resources, s.resource) && any(select.namespaces, s.namespace) && any(select.pods, s.pod);
  }

  async #struck(hit: ActiveFaultOf<'api.call'>, request: KubeRequest, { s, opts }: Call): Promise<KubeResult> {
    const { fault, healed } = hit;
    switch (fault.action) {
      case 'error':
        return { ok: false, failure: refusal(fault.status) };
      case 'delay':
        return this.#delayed(request, { s, opts }, { delayMs: fault.delayMs, healed });
      case 'lost-without-effect':
        break;
      case 'lost-with-effect':
        void this.#behindTheBack(request, opts);
        break;
      case 'late-effect':
        // Healed before its time, it does not happen any more.
        void pause(this.#clock, fault.delayMs, { healed }).then((end) => (end === 'time' ? this.#behindTheBack(request, opts) : undefined));
    }
    return { ok: false, failure: await this.#silence(s, opts, healed) };
  }

  async #delayed(
    request: KubeRequest,
    { s, opts }: Call,
    { delayMs, healed }: { delayMs: number; healed: AbortSignal },
  ): Promise<KubeResult> {
    const began = this.#clock.monoMs();
    const waitMs = opts.timeoutMs === null ? delayMs : Math.min(delayMs, opts.timeoutMs);
    const end = await pause(this.#clock, waitMs, { healed, givenUp: opts.signal });
    const leftMs = opts.timeoutMs === null ? null : opts.timeoutMs - (this.#clock.monoMs() - began);
    // Nothing has reached the server yet.
    if (end === 'given-up')
      return { ok: false, failure: { code: 0, reason: 'Aborted', message: 'given up (injected fault)', outcome: 'failed' } };
    if (leftMs !== null && leftMs <= 0) return { ok: false, failure: await this.#silence(s, opts, healed) };
    return this.#kube.request(request, { ...opts, timeoutMs: leftMs });
  }

  /** No answer comes: until the caller's time is over, or until the fault is healed. */
  async #silence(s: ApiSubject, opts: KubeCallOptions, healed: AbortSignal): Promise<KubeFailure> {
    const end = await pause(this.#clock, opts.timeoutMs, { healed, givenUp: opts.signal });
    const outcome = writes(s) ? 'unknown' : 'failed';
    if (end === 'given-up') return { code: 0, reason: 'Aborted', message: 'given up while no answer came (injected fault)', outcome };
    const why = end === 'time' ? `no answer within ${opts.timeoutMs} ms` : 'the answer was lost';
    return { code: 0, reason: 'Timeout', message: `injected fault: ${why}`, outcome };
  }

  /** Reaches the server; the answer reaches nobody. */
  #behindTheBack(request: KubeRequest, opts: KubeCallOptions): Promise<KubeResult> {
    return this.#kube.request(request, { ...opts, signal: new AbortController().signal });
  }

  async *#lines(real: AsyncIterable<string>, s: ApiSubject, signal: AbortSignal): AsyncGenerator<string> {
    for await (const line of real) {
      const cutOff = this.#partition(wordsOf(s));
      // What was on its way arrives when the network is whole again.
      if (cutOff !== undefined && (await pause(this.#clock, null, { healed: cutOff.healed, givenUp: signal })) === 'given-up') return;
      const hit = this.#activeFaults.first('api.watch', wordsOf(s), (f) => this.#activeFaults.match.any(f.select.resources, s.resource));
      switch (hit?.fault.action) {
        case 'silence':
          if ((await pause(this.#clock, null, { healed: hit.healed, givenUp: signal })) === 'given-up') return;
          break;
        case 'truncate':
          throw new Error('the watch ended inside a line (injected fault)');
        case 'close':
          return;
        case 'expire':
          yield EXPIRED;
          return;
        case 'delay':
          if ((await pause(this.#clock, hit.fault.delayMs, { healed: hit.healed, givenUp: signal })) === 'given-up') return;
          break;
        case 'duplicate':
          yield line;
          break;
        case undefined:
          break;
      }
      yield line;
    }
  }
}

interface Call {
  s: ApiSubject;
  opts: KubeCallOptions;
}

function wordsOf({ verb, resource }: ApiSubject): string {
  return `${verb} ${resource}`;
}

function writes({ verb }: ApiSubject): boolean {
  return verb !== 'get' && verb !== 'list' && verb !== 'watch';
}

/** The server's own refusal: nothing happened. */
function refusal(status: number): KubeFailure {
  return { ...statusFailure({ kind: 'Status', message: 'injected fault' }, status), outcome: 'failed' };
}
