/**
 * An API server for a world without one: paths, watches and their ends, bookmarks, pages, expired history; and what
 * happens between it and a node: delays, refusals, lost answers with and without effect, partitions, silent and cut
 * watches. It outlives the daemons that talk to it.
 */

import type { KubeObject, KubeRequest, KubeResult } from '@actorlet/kubelet/machines/kube/request.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimRng } from '../rng.ts';
import { kubeClient } from './kubeClient.ts';
import { carryOut } from './kubeRoutes.ts';
import { KubeStore } from './kubeStore.ts';
import type { Resource } from './resource.ts';
import type { InitialEvents, KubeCall, KubeDaemon, KubeTrouble, SimKube, WhichWatches } from './types.ts';
import { KubeWatches } from './watches/kubeWatches.ts';

/** Calls remembered; older ones are dropped. */
const CALLS_MAX = 20_000;

const OWN_UIDS: ReadonlyMap<string, 'objects' | 'requests' | 'claims' | 'resourceClaims'> = new Map([
  ['configmaps', 'objects'],
  ['secrets', 'objects'],
  ['serviceaccounts', 'objects'],
  ['persistentvolumeclaims', 'claims'],
  ['persistentvolumes', 'claims'],
  ['certificatesigningrequests', 'requests'],
  ['resourceclaims', 'resourceClaims'],
]);

export interface SimKubeOptions {
  clock: Clock;
  rng: SimRng;
  latencyMs(): number;
  /** Longest life of a token. Default: what is asked for. */
  tokenSecondsMax?: number | undefined;
  /**
   * People use it, for days: pods are validated, an error of its own code is answered with 500, and old calls and history are
   * forgotten. A simulation gives nodes pods that no real server lets through, and ends with such an error.
   */
  forPeople?: boolean;
  /** What an object becomes that is created. Default: what the client sent, with what each server adds. */
  completed?: (r: Resource, made: KubeObject) => KubeObject;
}

export function simKube(o: SimKubeOptions): SimKube {
  return new Kube(o);
}

class Kube implements SimKube {
  trouble: KubeTrouble = { verdict: () => ({ delayMs: 0 }), line: () => 'pass', partitioned: false, behind: false, down: false };
  initialEvents: InitialEvents = 'send';
  progress = true;
  readonly calls: KubeCall[] = [];
  onRequest: SimKube['onRequest'] = undefined;
  onShown: SimKube['onShown'] = undefined;
  readonly store: KubeStore;
  readonly #o: SimKubeOptions;
  readonly #watches: KubeWatches;

  constructor(o: SimKubeOptions) {
    this.#o = o;
    this.store = new KubeStore({
      ...{ newUid: uidsFrom(o.rng), wallMs: () => o.clock.wallMs(), forPeople: o.forPeople === true },
      completed: o.completed,
    });
    this.#watches = new KubeWatches({ kube: this, clock: o.clock, latencyMs: o.latencyMs });
  }

  wallMs(): number {
    return this.#o.clock.wallMs();
  }

  handle(request: KubeRequest): KubeResult {
    try {
      return carryOut(this.store, this.#o.clock, request, this.#o.tokenSecondsMax);
    } catch (error) {
      if (this.#o.forPeople !== true) throw error;
      return { ok: false, failure: { code: 500, reason: 'InternalError', message: messageOf(error), outcome: 'unknown' } };
    }
  }

  connect(daemon: KubeDaemon): KubeApi {
    const { clock, latencyMs } = this.#o;
    return kubeClient({ kube: this, watches: this.#watches, clock, latencyMs, note: (call) => this.#note(call) }, daemon);
  }

  cutWatches(how: 'close' | 'truncate', which?: WhichWatches): void {
    this.#watches.cut(how, which);
  }

  silenceWatches(): void {
    this.#watches.silence();
  }

  openWatches(): number {
    return this.#watches.count();
  }

  heal(): void {
    this.trouble.partitioned = false;
    this.#watches.heal();
  }

  #note(call: KubeCall): void {
    if (this.#o.forPeople === true) return;
    this.calls.push({ ...call, request: structuredClone(call.request) });
    if (this.calls.length > CALLS_MAX) this.calls.splice(0, CALLS_MAX / 2);
  }
}

/** Objects that pods name, and requests for certificates, have theirs apart: how many there are decides no pod's UID. */
function uidsFrom(rng: SimRng): (resource: string) => string {
  const streams = {
    pods: rng.fork('uids'),
    objects: rng.fork('object-uids'),
    requests: rng.fork('request-uids'),
    claims: rng.fork('claim-uids'),
    resourceClaims: rng.fork('resource-claim-uids'),
  };
  return (resource) => {
    const uids = streams[OWN_UIDS.get(resource) ?? 'pods'];
    const hex = (n: number): string => Array.from({ length: n }, () => uids.int(16).toString(16)).join('');
    return `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`;
  };
}
