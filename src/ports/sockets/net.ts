/** HTTP and TLS: what the node fetches, and where it listens. */
import type { Listening } from '../listening.ts';

/** What a TLS handshake showed of the client. `verified`: the chain stands on the client CA and was valid then. */
export type ClientCertificate =
  | { kind: 'none' }
  | { kind: 'verified'; commonName: string; organizations: readonly string[]; notAfterMs: number }
  | { kind: 'rejected'; reason: string };

export interface TlsMaterial {
  /** PEM: the leaf first, then what links it to its CA. Empty, with the key: there is none yet, and handshakes fail. */
  cert: Uint8Array;
  /** PEM. Secret. */
  key: Uint8Array;
  /** PEM bundle that client certificates must stand on; null = none is asked for. May not change between null and not null. */
  clientCa: Uint8Array | null;
}
export interface TlsServing {
  material: TlsMaterial;
  minVersion: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';
  /** OpenSSL names joined by `:`; '' = the library's own choice. Concerns TLS up to 1.2 only. */
  ciphers: string;
  /** Key exchanges by OpenSSL's names, joined by `:`; absent or '' = the library's own choice. */
  curves?: string;
  /** Gives the function that changes the material of new connections; it throws on material that does not fit together. */
  renew(apply: (material: TlsMaterial) => void): void;
}

export interface HttpRequest {
  method: string;
  /** Path without query, decoded once. */
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: Uint8Array;
  /** Aborts when the client has gone, and when the answer, or the connection that was handed on, has ended. */
  signal: AbortSignal;
  /** The connection's client certificate; absent on a server without TLS. */
  client?: ClientCertificate;
  /** Clients that share what room there is: an IPv4 address, or a network of 64 bits of IPv6; absent or '' on a unix socket. */
  peer?: string;
  /** To be called once it is known who sent this: the connection is then not among those dropped for want of room. */
  authenticated?(): void;
}
export interface HttpReply {
  status: number;
  headers?: Record<string, string>;
  body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
  /**
   * For a request that asks to switch protocols, instead of the rest: the connection is handed on to the server at this
   * URL (http, https, or `http+unix://<encoded socket path>/path`), the request sent again without credentials, and bytes
   * carried both ways until either side ends. Not honoured for an ordinary request.
   */
  relay?: string;
  /** With `relay`: the client speaks WebSocket, and the server there is spoken to in SPDY/3.1 (KEP-4006). */
  translated?: Translation;
}
/**
 * `channels`: streams of a command as numbered channels, protocol v5.channel.k8s.io. `tunnel`: frames of SPDY as messages;
 * `protocols` are those that may be spoken in it.
 */
export type Translation =
  | { kind: 'channels'; streams: Readonly<Record<'stdin' | 'stdout' | 'stderr' | 'tty', boolean>> }
  | { kind: 'tunnel'; protocols: readonly string[] };
export interface Net {
  /** GET with redirects; the body is cut with an error at `bytesMax`. */
  httpGet(
    url: string,
    opts: { headers: Record<string, string[]>; timeoutMs: number; bytesMax: number; signal: AbortSignal },
  ): Promise<{ status: number; body: Uint8Array }>;
  /**
   * Listens on TCP, with TLS where asked for, or on a unix socket (created with `mode`). Rejects with the bind error.
   * `bodyBytesMax` bounds request bodies (default 4 MiB).
   */
  serveHttp(
    at: ({ host: string; port: number; tls?: TlsServing } | { socketPath: string; mode: number }) & { bodyBytesMax?: number },
    handler: (req: HttpRequest) => Promise<HttpReply>,
  ): Promise<Listening>;
  /**
   * The health port, answered beside the main thread, so that a busy one does not delay it: /healthz and its check `ping`, which
   * fails when the main thread is stuck. Rejects as `serveHttp`. Absent in worlds of one thread.
   */
  serveHealth?(at: { host: string; port: number }): Promise<Listening>;
}
