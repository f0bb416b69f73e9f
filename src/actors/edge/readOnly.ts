/**
 * State held: an open TCP port, request counts.
 * Lost on restart: requests in progress.
 * Rebuilt from: nothing needed; answers come from published views and the tree.
 */
import { addr, view } from '../../machines/protocol.ts';
import type { ServerEvent } from '../../machines/server.ts';
import type { HttpReply, HttpRequest } from '../kernel/ports.ts';
import type { ActorCtx, ActorSpec } from '../kernel/types.ts';
import { type Checks, healthRoutes, kubeletChecks } from './healthChecks.ts';
import { addNodeMetrics, type BuildInfo } from './nodeMetrics.ts';
import { podList } from './podList.ts';
import { withRequestMetrics } from './requestMetrics.ts';
import { type Inspect, json, router, serverSpec, text } from './server.ts';
import { readView, staleHeaders } from './views.ts';

export interface ReadOnlyOptions {
  host: string;
  port: number;
  inspect: Inspect;
  nodeName: string;
  build: BuildInfo;
  /** `syncFrequency` of the configuration. */
  syncFrequencyMs: number;
  /** Named in errors about the address. Default `--read-only-port`. */
  flag?: string;
  /** Replaces the kubelet's three checks; for tests. */
  checks?: Checks;
}

/** Prefixes that only the authenticated server answers. */
const DEBUGGING = ['/run/', '/exec/', '/attach/', '/portForward/', '/containerLogs/', '/runningpods/', '/debug/pprof/', '/logs/'];

/** The kubelet's read-only port: /healthz, /pods, /metrics, and nothing that is not the reference's. */
export function readOnlyServerSpec(o: ReadOnlyOptions): ActorSpec<ServerEvent> {
  return serverSpec({
    id: 'readOnly',
    at: { host: o.host, port: o.port },
    flag: o.flag ?? '--read-only-port',
    handler: (ctx) => readOnlyHandler(ctx, o),
  });
}

function readOnlyHandler(ctx: ActorCtx<ServerEvent>, o: ReadOnlyOptions): (req: HttpRequest) => Promise<HttpReply> {
  const { metrics } = ctx.ports;
  addNodeMetrics(metrics, { registry: ctx.registry, state: o.inspect.state, nodeName: o.nodeName, build: o.build });
  const from = { registry: ctx.registry, state: o.inspect.state };
  const route = router({
    any: healthRoutes(o.checks ?? kubeletChecks({ state: o.inspect.state, syncFrequencyMs: o.syncFrequencyMs })),
    get: {
      '/pods': () => {
        const pods = readView(from, view.pods, addr.podManager.path);
        if (!pods.ok) return pods.reply;
        return json(podList(pods.value, ctx.registry.read(view.statuses)?.value), { headers: staleHeaders(pods.stale) });
      },
      '/metrics': async () => ({
        status: 200,
        headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
        body: await metrics.render(),
      }),
    },
  });
  return withRequestMetrics(ctx.ports, { serverType: 'readonly', known: ['healthz', 'pods', 'metrics'] }, async (req) =>
    DEBUGGING.some((prefix) => req.path.startsWith(prefix) || `${req.path}/` === prefix)
      ? text('Debug endpoints are disabled.\n', 405)
      : route(req),
  );
}
