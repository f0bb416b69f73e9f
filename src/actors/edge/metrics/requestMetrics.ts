/** The kubelet's request metrics around a handler: kubelet_http_* (spec: boot and node 8.2). */
import type { Ports } from '../../../ports/ports.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE']);
/** Prometheus' own default buckets, which the kubelet uses here. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LABELS = ['method', 'path', 'server_type', 'long_running'] as const;
/** The kubelet's list. Port-forwards and logs that are followed are not in it. */
const LONG_RUNNING: ReadonlySet<string> = new Set(['exec', 'attach', 'debug']);

export interface RequestMetricsOptions {
  serverType: 'readonly' | 'readwrite';
  /** First path segments that get a label of their own; anything else is `other`, so a scanner cannot make series. */
  known: readonly string[];
}

export function withRequestMetrics(
  ports: Pick<Ports, 'metrics' | 'clock'>,
  o: RequestMetricsOptions,
  handler: (req: HttpRequest) => Promise<HttpReply>,
): (req: HttpRequest) => Promise<HttpReply> {
  const total = ports.metrics.counter(
    'kubelet_http_requests_total',
    'Number of the http requests received since the server started',
    LABELS,
  );
  const seconds = ports.metrics.histogram(
    'kubelet_http_requests_duration_seconds',
    'Duration in seconds to serve http requests',
    SECONDS,
    LABELS,
  );
  const inflight = ports.metrics.gauge('kubelet_http_inflight_requests', 'Number of the inflight http requests', LABELS);
  const known = new Set(o.known);
  const now = new Map<string, number>();
  const step = (labels: { method: string; path: string; server_type: string; long_running: string }, by: number) => {
    const key = `${labels.method} ${labels.path}`;
    const n = (now.get(key) ?? 0) + by;
    now.set(key, n);
    inflight.set(n, labels);
  };
  return async (req) => {
    const path = pathLabel(req.path, known);
    const labels = {
      method: METHODS.has(req.method) ? req.method : 'other',
      path,
      server_type: o.serverType,
      long_running: String(LONG_RUNNING.has(path)),
    };
    const startMs = ports.clock.monoMs();
    total.inc(labels);
    step(labels, 1);
    const end = (): void => {
      step(labels, -1);
      seconds.observe((ports.clock.monoMs() - startMs) / 1000, labels);
    };
    try {
      const reply = await handler(req);
      if (lasts(reply) && !req.signal.aborted) req.signal.addEventListener('abort', end, { once: true });
      else end();
      return reply;
    } catch (error) {
      end();
      throw error;
    }
  };
}

/** The answer goes on after its head, as a stream or as a connection that is handed on. The request's signal tells its end. */
function lasts({ body, relay }: HttpReply): boolean {
  return relay !== undefined || !(typeof body === 'string' || body instanceof Uint8Array);
}

function pathLabel(path: string, known: ReadonlySet<string>): string {
  const [first = '', second = ''] = path.split('/').filter((s) => s !== '');
  const label = first === 'metrics' && second !== '' ? `metrics/${second}` : first;
  return known.has(label) ? label : 'other';
}
