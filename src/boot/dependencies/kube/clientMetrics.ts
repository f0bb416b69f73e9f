/** What the node asks of the API server and how it goes, as client-go counts it: `rest_client_*`. */
import type { Metrics } from '../../../ports/ports.ts';

const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** From 64 bytes to 16 MiB. */
const BYTES = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];
/** In place of a status code where there was no answer. */
const NO_ANSWER = '<error>';

export interface ClientMetrics {
  /** It waited so long for its turn under the rate limit, seconds. */
  limited(verb: string, seconds: number): void;
  /**
   * A request with a body of so many bytes is sent. Gives what is to be called with the status code, or null, when the head of
   * the answer is there or will not come; once counts.
   */
  began(method: string, o: { bodyBytes: number; nowMs: () => number }): (code: number | null) => void;
  /** A whole answer was read; the lines of a watch are none. */
  answered(verb: string, bytes: number): void;
  /** What was answered so, or not at all (null), is sent once more. */
  retried(verb: string, code: number | null): void;
}

/** `host`: of the API server, with its port. */
export function clientMetrics(metrics: Metrics, host: string): ClientMetrics {
  const total = metrics.counter('rest_client_requests_total', 'Requests to the API server, by code, method and host', [
    'code',
    'method',
    'host',
  ]);
  const retries = metrics.counter('rest_client_request_retries_total', 'Requests to the API server that were sent once more', [
    'code',
    'verb',
    'host',
  ]);
  const byVerb = (name: string, help: string, buckets: readonly number[]) =>
    metrics.histogram(`rest_client_${name}`, help, buckets, ['verb', 'host']);
  const duration = byVerb('request_duration_seconds', 'Request latency in seconds. Broken down by verb, and host.', SECONDS);
  const waited = byVerb(
    'rate_limiter_duration_seconds',
    "Seconds that a request waited for its turn under this node's rate limit",
    SECONDS,
  );
  const sent = byVerb('request_size_bytes', 'Bytes of the bodies of requests to the API server', BYTES);
  const received = byVerb('response_size_bytes', 'Bytes of the bodies of answers of the API server, watches left out', BYTES);
  // One object for each verb: these are looked up for every request.
  const known = new Map<string, { verb: string; host: string }>();
  const of = (verb: string): { verb: string; host: string } => {
    const labels = known.get(verb) ?? { verb, host };
    known.set(verb, labels);
    return labels;
  };
  const codeOf = (code: number | null): string => (code === null ? NO_ANSWER : String(code));
  return {
    limited: (verb, seconds) => waited.observe(seconds, of(verb)),
    began(method, { bodyBytes, nowMs }) {
      const beganMs = nowMs();
      sent.observe(bodyBytes, of(method));
      let counted = false;
      return (code) => {
        if (counted) return;
        counted = true;
        total.inc({ code: codeOf(code), method, host });
        duration.observe((nowMs() - beganMs) / 1000, of(method));
      };
    },
    answered: (verb, bytes) => received.observe(bytes, of(verb)),
    retried: (verb, code) => retries.inc({ code: codeOf(code), verb, host }),
  };
}
