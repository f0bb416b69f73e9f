/**
 * State held: a listening unix socket.
 * Lost on restart: requests in progress.
 * Rebuilt from: nothing needed; answers come from published views, the tree and the flight recorder.
 */

import type { ServerEvent } from '../../machines/edge/messages.ts';
import type { PodVolumes } from '../../machines/figures/volumeStats.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { HttpReply, HttpRequest } from '../../ports/sockets/net.ts';
import { criClient } from '../runtime/client.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { execOffer } from './admin/execOffer.ts';
import { recordRoute } from './admin/recordRoute.ts';
import { restartRoute } from './admin/restartRoute.ts';
import { json, METHOD_NOT_ALLOWED, type Route, type Routes, router, text } from './answers/answers.ts';
import { type Inspect, specOfServer } from './server.ts';
import type { FigureOptions } from './stats/figures.ts';
import { createStats } from './stats/stats.ts';

/** `faults`: how many are at work; null where none may be injected. */
export type AdminRoutes = (ctx: ActorCtx<ServerEvent>, faults: { readonly size: number } | null) => Partial<Routes>;

export interface AdminOptions {
  /** `<root-dir>/actorlet.sock`. */
  socketPath: string;
  inspect: Inspect;
  /** `podLogsDir` of the configuration, for /logs. */
  podLogsDir: string;
  /** Null where fault injection is off; absent means the same. */
  faults?: { readonly size: number } | null;
  /** Answers of what stands beside the kubelet. */
  routes?: readonly AdminRoutes[];
  /** Named in errors about the path. Default `--root-dir`, which decides it. */
  flag?: string;
  /** Where /summary has its figures from. Absent: there are none. */
  figures?: Pick<FigureOptions, 'nodeName' | 'rootDir' | 'podsAtRoot' | 'runtimeRequestTimeoutMs'>;
}

/** The admin socket (0600): what `actorctl` asks. Unlike the read-only port it gives reasons, and shapes of our own. */
export function adminServerSpec(o: AdminOptions): ActorSpec<ServerEvent> {
  return specOfServer({
    id: 'admin',
    at: { socketPath: o.socketPath, mode: 0o600 },
    flag: o.flag ?? '--root-dir',
    handler: (ctx) => adminHandler(ctx, o),
  });
}

function adminHandler(ctx: ActorCtx<ServerEvent>, o: AdminOptions): (req: HttpRequest) => Promise<HttpReply> {
  const { ports } = ctx;
  const more = (o.routes ?? []).map((routes) => routes(ctx, o.faults ?? null));
  return router({
    any: {
      '/exec': (req) => execOffer(ctx, req),
      '/debugger': (req) => debuggerRoute(ctx, req),
      '/restart': (req) => restartRoute(ctx, req),
      '/record': (req) => recordRoute(ports.inputRecorder, req),
    },
    below: Object.assign({}, ...more.map(({ below }) => below)),
    get: {
      '/page': () => pageAddress(o),
      '/summary': summaryRoute(ctx, o),
      '/configz': () => json({ kubeletconfig: o.inspect.configz() }),
      ...Object.assign({}, ...more.map(({ get }) => get)),
    },
  });
}

/** Processor and memory of the node and its pods, as /stats/summary has them. */
function summaryRoute(ctx: ActorCtx<ServerEvent>, { figures, podLogsDir, inspect: { usage } }: AdminOptions): Route {
  if (figures === undefined) return () => text('501: this node keeps no figures\n', 501);
  const { nodeName, rootDir, podsAtRoot, runtimeRequestTimeoutMs } = figures;
  const cri = criClient(ctx.registry, { runtimeRequestTimeoutMs });
  const volumes = async () => new Map<string, PodVolumes>();
  const usedCpuNs = () => ctx.ports.host.usedCpuNs?.();
  const stats = createStats({ ports: ctx.ports, cri, nodeName, rootDir, podLogsDir, volumes, podsAtRoot, usedCpuNs, usage });
  return async (req) => {
    try {
      return json(await stats.summary({ brief: true, signal: req.signal }));
    } catch (error) {
      return text(`503: the figures cannot be had: ${messageOf(error)}\n`, 503);
    }
  };
}

/** `POST`: opens the debugger and says where. `DELETE`: closes it. */
async function debuggerRoute({ ports }: ActorCtx<ServerEvent>, req: HttpRequest): Promise<HttpReply> {
  if (req.method !== 'POST' && req.method !== 'DELETE') return METHOD_NOT_ALLOWED;
  if (ports.debugger === undefined) return text('501: there is no process here to look into\n', 501);
  try {
    if (req.method === 'POST') return json(await ports.debugger.open());
    await ports.debugger.close();
    return json({});
  } catch (error) {
    return text(`503: the debugger cannot be opened: ${messageOf(error)}\n`, 503);
  }
}

function pageAddress({ inspect }: AdminOptions): HttpReply {
  const page = inspect.page?.() ?? ({ state: 'off' } as const);
  switch (page.state) {
    case 'served':
      return json({ url: page.url, token: page.token });
    case 'starting':
      return text('503: the inspection page is not there yet; ask again\n', 503);
    case 'failed':
      return text(`503: the inspection page is not served: ${page.why}\n`, 503);
    case 'off':
      return text('404: the inspection page is off; start the daemon with --actorlet-inspect\n', 404);
  }
}
