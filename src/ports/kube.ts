/** The API server, as a port. */
import type { KubeClass, KubeFailure, KubeRequest, KubeResult } from '../machines/kube/request.ts';

/** The API server of the cluster this node belongs to. Real: HTTPS with the credentials of the kubeconfig. */
export interface KubeApi {
  /** Where it is, as people may see it. */
  readonly server: string;
  /** Never rejects: what went wrong is a {@link KubeFailure}. An aborted call is one with reason `Aborted`. */
  request(request: KubeRequest, opts: KubeCallOptions): Promise<KubeResult>;
  /**
   * Opens a watch (`watch=true` is added) and gives its lines as they come. `timeoutMs` bounds the opening only. The
   * iterator ends when the server closes the stream, and throws when it is cut; a cut last line is never given.
   */
  watch(request: Pick<KubeRequest, 'path' | 'query'>, opts: KubeCallOptions): Promise<KubeWatch>;
  /** Drops every connection of that class; what is in flight on them fails. The next call dials again. */
  closeConnections(of: KubeClass): void;
  /** The files of its credentials were just replaced: they are read now, and connections made with the old ones end. */
  reload?(): Promise<void>;
  close(): void;
}

export type KubeWatch = { ok: true; lines: AsyncIterable<string> } | { ok: false; failure: KubeFailure };

export interface KubeCallOptions {
  /** The class whose rate limit and connections it takes: default `kube`. */
  class?: KubeClass;
  /** Milliseconds for the whole call, the wait for the rate limit included; null = none. */
  timeoutMs: number | null;
  signal: AbortSignal;
}
