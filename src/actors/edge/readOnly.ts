/**
 * State held: an open TCP port, request counts.
 * Lost on restart: requests in progress.
 * Rebuilt from: nothing needed; answers come from published views and the tree.
 */

import type { ServerEvent } from '../../machines/edge/messages.ts';
import { podManagerAddr, podsView } from '../../machines/pods/manager/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';

import type { HttpReply, HttpRequest } from '../../ports/sockets/net.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { router, text } from './answers/answers.ts';
import { podListReply } from './answers/podList.ts';
import { readView, staleHeaders } from './answers/views.ts';
import { withRequestMetrics } from './metrics/requestMetrics.ts';
import { specOfServer } from './server.ts';
import { type FigureOptions, figurePages, METRICS_PATHS } from './stats/figures.ts';

export interface ReadOnlyOptions extends FigureOptions {
  host: string;
  port: number;
  /** Named in errors about the address. Default `--read-only-port`. */
  flag?: string;
}

/** Prefixes that only the authenticated server answers. */
const DEBUGGING = ['/run/', '/exec/', '/attach/', '/portForward/', '/containerLogs/', '/runningpods/', '/debug/pprof/', '/logs/'];

/** The kubelet's read-only port: /healthz, /pods, /stats/summary, /metrics and its pages, and nothing that is not the reference's. */
export function readOnlyServerSpec(o: ReadOnlyOptions): ActorSpec<ServerEvent> {
  return specOfServer({
    id: 'readOnly',
    at: { host: o.host, port: o.port },
    flag: o.flag ?? '--read-only-port',
    handler: (ctx) => readOnlyHandler(ctx, o),
  });
}

function readOnlyHandler(ctx: ActorCtx<ServerEvent>, o: ReadOnlyOptions): (req: HttpRequest) => Promise<HttpReply> {
  const figures = figurePages(ctx, o);
  const from = { registry: ctx.registry, stateAt: o.inspect.stateAt };
  const route = router({
    any: { ...figures.health, '/stats/summary': figures.summary },
    get: {
      '/pods': () => {
        const pods = readView(from, podsView, podManagerAddr.path);
        if (!pods.ok) return pods.reply;
        const statuses = ctx.registry.read(statusesView)?.value;
        return podListReply(ctx.ports, { pods: pods.value, statuses, headers: staleHeaders(pods.stale) });
      },
      '/metrics': figures.metrics(''),
      '/metrics/cadvisor': figures.metrics('cadvisor'),
      '/metrics/probes': figures.metrics('probes'),
      '/metrics/resource': figures.metrics('resource'),
      '/metrics/slis': figures.metrics('slis'),
    },
  });
  return withRequestMetrics(
    ctx.ports,
    { serverType: 'readonly', known: ['healthz', 'pods', 'stats', 'metrics', ...METRICS_PATHS] },
    async (req) =>
      DEBUGGING.some((prefix) => req.path.startsWith(prefix) || `${req.path}/` === prefix)
        ? text('Debug endpoints are disabled.\n', 405)
        : route(req),
  );
}
