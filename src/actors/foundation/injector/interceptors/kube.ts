/** The API server behind the fault injector: requests that are delayed, refused, lost or late, a partition, bad watches. */

import { type KubeFailure, type KubeRequest, type KubeResult, statusFailure } from '../../../../machines/api/kube.ts';
import { type ApiSubject, apiSubject } from '../../../../machines/faults/subjects.ts';
import type { Select } from '../../../../machines/faults/types.ts';
import type { Clock, KubeApi, KubeCallOptions } from '../../../../ports/ports.ts';
import type { ActiveFaultOf, ActiveFaults } from '../activeFaults.ts';
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
  const { activeFaults, clock } = o;
  const { any, one } = activeFaults.match;
  const fits = (select: Select, s: ApiSubject): boolean =>
    one(select.verbs, s.verb) && any(select.resources, s.resource) && any(select.namespaces, s.namespace) && any(select.pods, s.pod);
  const wordsOf = (s: ApiSubject): string => `${s.verb} ${s.resource}`;
  const writes = (s: ApiSubject): boolean => s.verb !== 'get' && s.verb !== 'list' && s.verb !== 'watch';

  /** No answer comes: until the caller's time is over, or until the fault is healed. */
  async function silence(s: ApiSubject, opts: KubeCallOptions, healed: AbortSignal): Promise<KubeFailure> {
    const end = await pause(clock, opts.timeoutMs, { healed, givenUp: opts.signal });
    const outcome = writes(s) ? 'unknown' : 'failed';
    if (end === 'given-up') return { code: 0, reason: 'Aborted', message: 'given up while no answer came (injected fault)', outcome };
    const why = end === 'time' ? `no answer within ${opts.timeoutMs} ms` : 'the answer was lost';
    return { code: 0, reason: 'Timeout', message: `injected fault: ${why}`, outcome };
  }

  async function struck(
    hit: ActiveFaultOf<'api.call'>,
    request: KubeRequest,
    call: { s: ApiSubject; opts: KubeCallOptions },
  ): Promise<KubeResult> {
    const { fault, healed } = hit;
    const { s, opts } = call;
    const lost = async (): Promise<KubeResult> => ({ ok: false, failure: await silence(s, opts, healed) });
    switch (fault.action) {
      case 'error': {
        const failure = statusFailure({ kind: 'Status', message: 'injected fault' }, fault.status);
        return { ok: false, failure: { ...failure, outcome: 'failed' } };
      }
      case 'delay': {
        const began = clock.monoMs();
        const waitMs = opts.timeoutMs === null ? fault.delayMs : Math.min(fault.delayMs, opts.timeoutMs);
        const end = await pause(clock, waitMs, { healed, givenUp: opts.signal });
        const leftMs = opts.timeoutMs === null ? null : opts.timeoutMs - (clock.monoMs() - began);
        // Nothing has reached the server yet.
        if (end === 'given-up')
          return { ok: false, failure: { code: 0, reason: 'Aborted', message: 'given up (injected fault)', outcome: 'failed' } };
        if (leftMs !== null && leftMs <= 0) return lost();
        return kube.request(request, { ...opts, timeoutMs: leftMs });
      }
      case 'lost-without-effect':
        return lost();
      case 'lost-with-effect':
        void behindTheBack(request, opts);
        return lost();
      case 'late-effect':
        // Healed before its time, it does not happen any more.
        void pause(clock, fault.delayMs, { healed }).then((end) => (end === 'time' ? behindTheBack(request, opts) : undefined));
        return lost();
    }
  }

  /** Reaches the server; the answer reaches nobody. */
  function behindTheBack(request: KubeRequest, opts: KubeCallOptions): Promise<KubeResult> {
    return kube.request(request, { ...opts, signal: new AbortController().signal });
  }

  const partition = (what: string) => activeFaults.first('api.partition', what, () => true);

  async function* lines(real: AsyncIterable<string>, s: ApiSubject, signal: AbortSignal): AsyncGenerator<string> {
    for await (const line of real) {
      const cutOff = partition(wordsOf(s));
      // What was on its way arrives when the network is whole again.
      if (cutOff !== undefined && (await pause(clock, null, { healed: cutOff.healed, givenUp: signal })) === 'given-up') return;
      const hit = activeFaults.first('api.watch', wordsOf(s), (f) => any(f.select.resources, s.resource));
      switch (hit?.fault.action) {
        case 'silence':
          if ((await pause(clock, null, { healed: hit.healed, givenUp: signal })) === 'given-up') return;
          break;
        case 'truncate':
          throw new Error('the watch ended inside a line (injected fault)');
        case 'close':
          return;
        case 'expire':
          yield EXPIRED;
          return;
        case 'delay':
          if ((await pause(clock, hit.fault.delayMs, { healed: hit.healed, givenUp: signal })) === 'given-up') return;
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

  return override(kube, {
    async request(request, opts) {
      const s = apiSubject(request);
      const cutOff = partition(wordsOf(s));
      if (cutOff !== undefined) return { ok: false, failure: await silence(s, opts, cutOff.healed) };
      const hit = activeFaults.first('api.call', wordsOf(s), (f) => fits(f.select, s));
      return hit === undefined ? kube.request(request, opts) : struck(hit, request, { s, opts });
    },
    async watch(request, opts) {
      const s = apiSubject({ ...request, verb: 'watch' });
      const cutOff = partition(wordsOf(s));
      if (cutOff !== undefined) return { ok: false, failure: await silence(s, opts, cutOff.healed) };
      const refused = activeFaults.first('api.call', wordsOf(s), (f) => f.action === 'error' && fits(f.select, s));
      if (refused !== undefined) {
        return {
          ok: false,
          failure: { ...statusFailure({ kind: 'Status', message: 'injected fault' }, refused.fault.status), outcome: 'failed' },
        };
      }
      const opened = await kube.watch(request, opts);
      return opened.ok ? { ok: true, lines: lines(opened.lines, s, opts.signal) } : opened;
    },
  });
}
