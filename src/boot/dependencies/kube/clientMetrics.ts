/** What the node asks of the API server and how it goes, as client-go counts it: `rest_client_*`. */
import type { Metrics } from '../../../ports/ports.ts';

const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** In place of a status code where there was no answer. */
const NO_ANSWER = '<error>';

export interface ClientMetrics {
  /** Gives what is to be called with the status code, or null, when the head of the answer is there or will not come; once counts. */
  began(method: string, nowMs: () => number): (code: number | null) => void;
}

/** `host`: of the API server, with its port. */
export function clientMetrics(metrics: Metrics, host: string): ClientMetrics {
  const total = metrics.counter('rest_client_requests_total', 'Requests to the API server, by code, method and host', [
    'code',
    'method',
    'host',
  ]);
  const duration = metrics.histogram(
    'rest_client_request_duration_seconds',
    'Request latency in seconds. Broken down by verb, and host.',
    SECONDS,
    ['verb', 'host'],
  );
  return {
    began(method, nowMs) {
      const beganMs = nowMs();
      let counted = false;
      return (code) => {
        if (counted) return;
        counted = true;
        total.inc({ code: code === null ? NO_ANSWER : String(code), method, host });
        duration.observe((nowMs() - beganMs) / 1000, { verb: method, host });
      };
    },
  };
}
