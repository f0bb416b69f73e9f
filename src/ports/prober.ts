/**
 * The port of network probes: one question to one address over a connection of its own. No retries, no redirects, no
 * judgement. How long to wait is the caller's: an aborted signal ends a call at once.
 */

export interface ProbeAnswer {
  status: number;
  /** The Location header, null where there is none. */
  location: string | null;
  /** Cut, without an error, at `bytesMax`. */
  body: Uint8Array;
  /** Why the body could not be read to its end (or to `bytesMax`); null when it could. */
  bodyError: string | null;
}

/** An HTTPS question was answered without TLS: very likely by a plain HTTP server. */
export class PlainAnswerError extends Error {
  override readonly name = 'PlainAnswerError';
}

export interface Prober {
  /**
   * One GET, TLS not verified, no proxy, no compression, connection closed after it. `host` replaces the Host header.
   * Rejects when there was no answer: refused, reset, aborted, not HTTP.
   * @throws PlainAnswerError
   */
  httpGet(
    url: string,
    o: { headers: Record<string, string[]>; host: string | null; bytesMax: number; signal: AbortSignal },
  ): Promise<ProbeAnswer>;
  /** Resolves once the connection stands; it is closed at once. */
  tcpDial(at: { host: string; port: number }, o: { signal: AbortSignal }): Promise<void>;
  /**
   * grpc.health.v1.Health/Check without TLS. `status` is the number of its ServingStatus. Never rejects: without an answer
   * there is a gRPC status code and what it says.
   */
  grpcHealth(
    at: { host: string; port: number },
    o: { service: string; userAgent: string; signal: AbortSignal },
  ): Promise<{ ok: true; status: number } | { ok: false; code: number; details: string }>;
}
