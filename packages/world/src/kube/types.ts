/** The simulated API server, as the rest of the world sees it. */
import type { KubeRequest, KubeResult } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimCertificate, SimCredentials } from '../identity/certificates.ts';
import type { Power } from '../time.ts';
import type { KubeStore } from './kubeStore.ts';

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

export type WhichWatches = (request: KubeRequest) => boolean;

export interface SimKube {
  readonly store: KubeStore;
  /** The server's own, which is right. */
  wallMs(): number;
  trouble: KubeTrouble;
  initialEvents: InitialEvents;
  /** Etcd tells of its progress, as kubeadm starts it: bookmarks come where nothing changed, too. */
  progress: boolean;
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
  /** Ends open watches: as a server that restarts, or in the middle of a line. `which`: default all. */
  cutWatches(how: 'close' | 'truncate', which?: WhichWatches): void;
  /** Open watches hang for ever. */
  silenceWatches(): void;
  openWatches(): number;
  /** A partition heals: what waited in open streams arrives. */
  heal(): void;
}

export interface KubeDaemon {
  power: Power;
  clock: Clock;
  node?: string;
  credentials?: SimCredentials;
}
