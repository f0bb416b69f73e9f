/**
 * An API server for a world without one: paths, watches and their ends, bookmarks, pages, expired history; and what
 * happens between it and a node: delays, refusals, lost answers with and without effect, partitions, silent and cut
 * watches. It outlives the daemons that talk to it.
 */

import type { KubeRequest, KubeResult } from '../../../machines/api/kube.ts';
import type { Clock, KubeApi } from '../../../ports/ports.ts';
import type { SimCertificate } from '../identity/certificates.ts';
import type { SimRng } from '../rng.ts';
import { type KubeDaemon, kubeClient } from './kubeClient.ts';
import { carryOut } from './kubeRoutes.ts';
import { KubeStore } from './kubeStore.ts';
import { KubeWatches } from './kubeWatches.ts';

/** What becomes of one request. */
export interface KubeVerdict {
  /** Before its effect. */
  delayMs: number;
  refuse?: { status: number; reason?: string; retryAfterMs?: number };
  /** No answer: without effect, with it, or with an effect that comes `lateMs` after the call. */
  lost?: 'without-effect' | 'with-effect' | 'late-effect';
  lateMs?: number;
}
/**
 * What becomes of one line of a watch. `silence`: this stream says nothing any more and stays open. `duplicate`: it comes twice.
 * `expire`: in its place comes the error that the history is gone. A delay holds back all that comes after it, too.
 */
export type WatchVerdict = 'pass' | 'silence' | 'truncate' | 'close' | 'duplicate' | 'expire' | { delayMs: number };
/**
 * What the server makes of a watch that asks for initial events. `refuse`: as one whose feature is off. `ignore`: as one so old
 * that it does not know the wish, and sends what a watch without a version gets.
 */
export type InitialEvents = 'send' | 'refuse' | 'ignore';

export interface KubeTrouble {
  verdict(request: KubeRequest): KubeVerdict;
  line(watch: { path: string }): WatchVerdict;
  /** Nothing arrives anywhere; what is open hangs. */
  partitioned: boolean;
  /** Lists come from a cache that has not heard of the last change: their version is older than what was seen. */
  behind: boolean;
  /** The server's process is not there: connections are refused, open ones were cut. */
  down: boolean;
}
export interface KubeCall {
  request: KubeRequest;
  /** The answer the server gave, whether or not it arrived; undefined while it never carried the request out. */
  code?: number;
}

export interface SimKube {
  readonly store: KubeStore;
  /** The server's own, which is right. */
  wallMs(): number;
  trouble: KubeTrouble;
  initialEvents: InitialEvents;
  /** Requests that were carried out, oldest first, watches included. */
  readonly calls: KubeCall[];
  /** A request of a daemon is about to be carried out; `node`: of which one, where it said so. */
  onRequest: ((request: KubeRequest, node: string) => void) | undefined;
  /** A daemon came with this certificate. */
  onShown: ((certificate: SimCertificate, node: string) => void) | undefined;
  /** As a user of the cluster: at once, without any trouble. */
  handle(request: KubeRequest): KubeResult;
  /** `credentials`: what it goes with; absent: something that is always good. */
  connect(daemon: KubeDaemon): KubeApi;
  /** Ends open watches: as a server that restarts, or in the middle of a line. */
  cutWatches(how: 'close' | 'truncate'): void;
  /** Open watches hang for ever. */
  silenceWatches(): void;
  openWatches(): number;
  /** A partition heals: what waited in open streams arrives. */
  heal(): void;
}

/** Calls remembered; older ones are dropped. */
const CALLS_MAX = 20_000;

const OWN_UIDS: ReadonlyMap<string, 'objects' | 'requests' | 'claims'> = new Map([
  ['configmaps', 'objects'],
  ['secrets', 'objects'],
  ['serviceaccounts', 'objects'],
  ['persistentvolumeclaims', 'claims'],
  ['persistentvolumes', 'claims'],
  ['certificatesigningrequests', 'requests'],
]);

export interface SimKubeOptions {
  clock: Clock;
  rng: SimRng;
  latencyMs(): number;
  /** Longest life of a token. Default: what is asked for. */
  tokenSecondsMax?: number | undefined;
}

export function simKube(o: SimKubeOptions): SimKube {
  return new Kube(o);
}

class Kube implements SimKube {
  trouble: KubeTrouble = { verdict: () => ({ delayMs: 0 }), line: () => 'pass', partitioned: false, behind: false, down: false };
  initialEvents: InitialEvents = 'send';
  readonly calls: KubeCall[] = [];
  onRequest: SimKube['onRequest'] = undefined;
  onShown: SimKube['onShown'] = undefined;
  readonly store: KubeStore;
  readonly #o: SimKubeOptions;
  readonly #watches: KubeWatches;

  constructor(o: SimKubeOptions) {
    this.#o = o;
    this.store = new KubeStore({ newUid: uidsFrom(o.rng), wallMs: () => o.clock.wallMs() });
    this.#watches = new KubeWatches({ kube: this, clock: o.clock, latencyMs: o.latencyMs });
  }

  wallMs(): number {
    return this.#o.clock.wallMs();
  }

  handle(request: KubeRequest): KubeResult {
    return carryOut(this.store, this.#o.clock, request, this.#o.tokenSecondsMax);
  }

  connect(daemon: KubeDaemon): KubeApi {
    const { clock, latencyMs } = this.#o;
    return kubeClient({ kube: this, watches: this.#watches, clock, latencyMs, note: (call) => this.#note(call) }, daemon);
  }

  cutWatches(how: 'close' | 'truncate'): void {
    this.#watches.cut(how);
  }

  silenceWatches(): void {
    this.#watches.silence();
  }

  openWatches(): number {
    return this.#watches.count();
  }

  heal(): void {
    this.trouble.partitioned = false;
    this.#watches.wake();
  }

  #note(call: KubeCall): void {
    this.calls.push(call);
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
  };
  return (resource) => {
    const uids = streams[OWN_UIDS.get(resource) ?? 'pods'];
    const hex = (n: number): string => Array.from({ length: n }, () => uids.int(16).toString(16)).join('');
    return `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`;
  };
}
