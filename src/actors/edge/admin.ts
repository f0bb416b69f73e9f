/**
 * State held: a listening unix socket.
 * Lost on restart: requests in progress.
 * Rebuilt from: nothing needed; answers come from published views, the tree and the flight recorder.
 */

import { claimStepsView, claimsView } from '../../machines/allocation/claims/messages.ts';
import { topologyView } from '../../machines/allocation/coordinator/messages.ts';
import type { ServerEvent } from '../../machines/edge/messages.ts';
import { actorPattern } from '../../machines/faults/match.ts';
import type { PodVolumes } from '../../machines/figures/volumeStats.ts';
import { eventsView } from '../../machines/foundation/messages.ts';
import { waitingPodsView } from '../../machines/pods/admission/messages.ts';
import { type PodsView, podManagerAddr, podsView } from '../../machines/pods/manager/messages.ts';
import { manifestsView, sourceErrorsView } from '../../machines/pods/podConfig/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import { criView } from '../../machines/runtime/cri/messages.ts';
import { runtimePodsView } from '../../machines/runtime/pleg/messages.ts';
import { volumesView } from '../../machines/services/volumes/messages.ts';
import type { Explanation } from '../../machines/shown/answers.ts';
import { findPod, recordMeant, uidOf } from '../../machines/shown/findPod.ts';
import { logFileOf } from '../../machines/shown/podLogs.ts';
import { summarizePods } from '../../machines/shown/podSummary.ts';
import { renderTree } from '../../machines/shown/tree.ts';
import { treeHealth } from '../../machines/shown/treeHealth.ts';
import { explainPod } from '../../machines/shown/why/why.ts';
import { explainNode } from '../../machines/shown/why/whyNode.ts';
import { stuckVolumes } from '../../machines/shown/why/whyVolumes.ts';
import { actorsMeant, allPaths, findActor, noSuchActor } from '../../machines/supervision/actorState.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Clock } from '../../ports/ports.ts';
import type { HttpReply, HttpRequest } from '../../ports/sockets/net.ts';
import { criClient } from '../runtime/client.ts';
import type { ActorCtx, ActorSpec, Registry } from '../supervision/types.ts';
import { json, METHOD_NOT_ALLOWED, type Route, router, text } from './admin/answers.ts';
import { execOffer } from './admin/execOffer.ts';
import { type FaultsAtWork, faultRoute } from './admin/faultRoute.ts';
import { lostPeers } from './admin/lostPeers.ts';
import { nodePage } from './admin/nodePage.ts';
import { recordRoute } from './admin/recordRoute.ts';
import { readView } from './admin/views.ts';
import type { FigureOptions } from './https/stats/figures.ts';
import { createStats } from './https/stats/stats.ts';
import { type Inspect, serverSpec } from './server.ts';

export interface AdminOptions {
  /** `<root-dir>/actorlet.sock`. */
  socketPath: string;
  inspect: Inspect;
  /** `podLogsDir` of the configuration, for /logs. */
  podLogsDir: string;
  /** Null where fault injection is off; absent means the same. */
  faults?: FaultsAtWork | null;
  /** Named in errors about the path. Default `--root-dir`, which decides it. */
  flag?: string;
  /** Where /summary has its figures from. Absent: there are none. */
  figures?: Pick<FigureOptions, 'nodeName' | 'rootDir' | 'podsAtRoot' | 'runtimeRequestTimeoutMs'>;
}

/** The admin socket (0600): what `actorctl` asks. Unlike the read-only port it gives reasons, and shapes of our own. */
export function adminServerSpec(o: AdminOptions): ActorSpec<ServerEvent> {
  return serverSpec({
    id: 'admin',
    at: { socketPath: o.socketPath, mode: 0o600 },
    flag: o.flag ?? '--root-dir',
    handler: (ctx) => adminHandler(ctx, o),
  });
}

function adminHandler(ctx: ActorCtx<ServerEvent>, o: AdminOptions): (req: HttpRequest) => Promise<HttpReply> {
  const { registry, ports } = ctx;
  const from = { registry, stateAt: o.inspect.stateAt };
  const withPods = (fn: (pods: PodsView, stale: string) => HttpReply): HttpReply => {
    const pods = readView(from, podsView, podManagerAddr.path);
    return pods.ok ? fn(pods.value, pods.stale) : pods.reply;
  };
  return router({
    any: {
      '/exec': (req) => execOffer(ctx, req),
      '/debugger': (req) => debuggerRoute(ctx, req),
      '/record': (req) => recordRoute(ports.inputRecorder, req),
    },
    below: { '/inject': (req) => faultRoute(ctx, req, o.faults ?? null) },
    get: {
      ...adminPages(ctx, o.inspect),
      '/healthz': (req) => adminHealth(o, lostPeers(registry, o.inspect, ports.clock.monoMs()), req),
      '/chart': (req) => chart({ registry, inspect: o.inspect }, req),
      '/timeline': (req) => withPods((pods) => timeline(o, pods, req.query.get('pod') ?? '')),
      '/page': () => pageAddress(o),
      '/summary': summaryRoute(ctx, o),
      '/node': () => json(nodePage(registry, o.inspect)),
      '/configz': () => json({ kubeletconfig: o.inspect.configz() }),
      '/pods': (req) =>
        withPods((pods, stale) => {
          const statuses = registry.read(statusesView)?.value;
          // Labels go to who may open this socket, and into no recording or page.
          const lines = summarizePods(pods, { statuses, nowMs: ports.clock.wallMs(), actorAt: o.inspect.stateAt }).map((line) => ({
            ...line,
            labels: pods.records.get(line.uid)?.pod.metadata.labels ?? {},
          }));
          const whole = (uid: string) => {
            const pod = pods.records.get(uid)?.pod;
            return pod === undefined ? undefined : { ...pod, status: statuses?.get(uid)?.status ?? pod.status };
          };
          return json({
            stale,
            sourcesReady: pods.sourcesReady,
            unusable: unusableManifests(registry),
            lost: [...lostPeers(registry, o.inspect, ports.clock.monoMs()).values()],
            pods: req.query.has('full') ? lines.map((line) => ({ ...line, pod: whole(line.uid) })) : lines,
          });
        }),
      '/logs': (req) => withPods((pods) => logFile(ctx, { pods, podLogsDir: o.podLogsDir, req })),
    },
  });
}

/** Processor and memory of the node and its pods, as /stats/summary has them. */
function summaryRoute(ctx: ActorCtx<ServerEvent>, { figures, podLogsDir }: AdminOptions): Route {
  if (figures === undefined) return () => text('501: this node keeps no figures\n', 501);
  const { nodeName, rootDir, podsAtRoot, runtimeRequestTimeoutMs } = figures;
  const cri = criClient(ctx.registry, { runtimeRequestTimeoutMs });
  const volumes = async () => new Map<string, PodVolumes>();
  const usedCpuNs = () => ctx.ports.host.usedCpuNs?.();
  const stats = createStats({ ports: ctx.ports, cri, nodeName, rootDir, podLogsDir, volumes, podsAtRoot, usedCpuNs });
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

/** The pages of our own that need nothing but views and the tree; the HTTPS server has them too, behind authorization. */
export function adminPages(ctx: ActorCtx<ServerEvent>, inspect: Inspect): Record<'/statez' | '/recorder' | '/events' | '/why', Route> {
  const { registry, ports } = ctx;
  return {
    '/statez': (req) => (req.query.has('text') ? text(`${renderTree(inspect.state()).join('\n')}\n`) : json(inspect.state())),
    '/recorder': (req) => recorderPage({ registry, inspect }, req),
    // `?full`: each line with the whole pod and its live status, for programs; those being wound down are in it too.
    '/events': (req) => events(ctx, inspect, req),
    // Works without the pod list too: that it is missing is then the answer.
    '/why': (req) => {
      const query = req.query.get('pod') ?? '';
      if (query === 'node' || (query !== '' && query === inspect.identity?.name)) return json(whyNode(registry, inspect, ports.clock));
      if (query === '') return text('400: say which pod: /why?pod=NAME, NAMESPACE/NAME, UID or manifest file\n', 400);
      return json(
        explainPod({
          query,
          nowMs: ports.clock.wallMs(),
          monoMs: ports.clock.monoMs(),
          pods: registry.read(podsView)?.value,
          waiting: registry.read(waitingPodsView)?.value,
          statuses: registry.read(statusesView)?.value,
          events: registry.read(eventsView)?.value,
          sourceErrors: registry.read(sourceErrorsView)?.value,
          listed: registry.read(runtimePodsView)?.value.pods,
          manifests: registry.read(manifestsView)?.value,
          startedAtMs: inspect.started?.wallMs,
          cri: registry.read(criView)?.value,
          volumes: registry.read(volumesView)?.value,
          topology: registry.read(topologyView)?.value,
          claims: { records: registry.read(claimsView)?.value, steps: registry.read(claimStepsView)?.value },
          actorAt: (path) => inspect.stateAt(path),
        }),
      );
    },
  };
}

function whyNode(registry: Registry, inspect: Inspect, clock: Clock): Explanation {
  const errors = [...(registry.read(sourceErrorsView)?.value ?? [])];
  const nameOf = (uid: string) => {
    const metadata = registry.read(podsView)?.value.records.get(uid)?.pod.metadata;
    return metadata === undefined ? uid : `${metadata.namespace}/${metadata.name}`;
  };
  return explainNode({
    volumes: stuckVolumes(registry.read(volumesView)?.value ?? new Map(), clock.wallMs(), nameOf),
    known: nodePage(registry, inspect),
    state: inspect.state(),
    lost: lostPeers(registry, inspect, clock.monoMs()),
    sourceErrors: errors.flatMap(([source, list]) => list.map((e) => `${source} ${e.where}: ${e.message}`)),
    nowMs: clock.wallMs(),
  });
}

/** One line per actor, reasons given. 500 when a part or a peer that must be there is down; a crashed pod worker is a line. */
function adminHealth(o: Pick<AdminOptions, 'inspect' | 'faults'>, lost: ReadonlyMap<string, string>, req: HttpRequest): HttpReply {
  const all = treeHealth(o.inspect.state(), lost);
  const down = all.some((h) => h.down);
  const shown = req.query.has('verbose') ? all : all.filter((h) => !h.ok);
  const lines = shown.map((h) => (h.ok ? `[+]${h.path} ok` : `[-]${h.path} failed: ${h.reason}`));
  if (o.faults) lines.push(`[i]fault injection is allowed, faults at work: ${o.faults.size}`);
  if (req.query.has('json')) return json({ healthy: !down, actors: shown, faultsAtWork: o.faults?.size ?? null });
  if (!down && lines.length === 0) return text('ok');
  lines.push(down ? 'healthz check failed' : 'healthz check passed');
  return text(`${lines.join('\n')}\n`, down ? 500 : 200);
}

/** `path`, `limit`, `since` (wall milliseconds); with `next=N` as JSON: the entries from number N on, and where to go on. */
function recorderPage({ registry, inspect }: Known, req: HttpRequest): HttpReply {
  const number = (name: string): number | null => {
    const value = Number(req.query.get(name) ?? Number.NaN);
    return Number.isInteger(value) && value > 0 ? value : null;
  };
  const [limit, sinceMs] = [number('limit'), number('since')];
  const asked = req.query.get('path') ?? '';
  const path = asked === '' ? '' : actorPathOf({ registry, inspect }, asked);
  const filter = path === '' ? {} : { path };
  if (req.query.has('next') && inspect.recorderFrom !== undefined) {
    return json(inspect.recorderFrom(number('next') ?? 0, { ...filter, limit: limit ?? FOLLOWED_LINES_MAX }));
  }
  const chosen = { ...filter, ...(limit === null ? {} : { limit }), ...(sinceMs === null ? {} : { sinceMs }) };
  if (req.query.has('json')) return json({ entries: inspect.recorderEntries?.(chosen) ?? [] });
  const lines = inspect.recorder(chosen);
  // An actor that is gone may have left entries; one that was never there has none.
  if (lines.length === 0 && path !== '') {
    const state = inspect.state();
    if (findActor(state, path) === undefined) return text(`404: ${noSuchActor(state, path)}\n`, 404);
  }
  return text(lines.map((l) => `${l}\n`).join(''));
}
/** Lines of one answer to a follower that names no limit. */
const FOLLOWED_LINES_MAX = 2_000;

/** Manifests that no pod came of. */
function unusableManifests(registry: Registry): number {
  return [...(registry.read(sourceErrorsView)?.value.values() ?? [])].reduce(
    (n, errors) => n + errors.filter((e) => e.note !== true).length,
    0,
  );
}

/** What a page looks at: views, and the tree. */
interface Known {
  registry: Registry;
  inspect: Inspect;
}

/** The path of the actor that a person means; one that there is not, as it is. */
function actorPathOf({ registry, inspect }: Known, asked: string): string {
  const path = actorPattern(asked);
  if (inspect.stateAt(path) !== undefined) return path;
  const records = registry.read(podsView)?.value.records ?? new Map();
  const [only, ...others] = actorsMeant(allPaths(inspect.state()), path, (query) => uidOf(findPod(query, records)));
  return only === undefined || others.length > 0 ? path : only;
}

function timeline(o: AdminOptions, pods: PodsView, query: string): HttpReply {
  const found = findPod(query, pods.records);
  if (found.kind === 'many') return text(`400: ${query} fits several pods: ${found.names.join(', ')}\n`, 400);
  const uid = found.kind === 'one' ? found.uid : query;
  const kept = o.inspect.timeline?.(uid);
  if (kept === undefined || (found.kind === 'none' && kept.steps.length + kept.calls.length === 0)) {
    return text(
      `404: no pod called ${JSON.stringify(query)} on this node${recordMeant(query, pods.records)}; of one that is gone, give the UID\n`,
      404,
    );
  }
  const record = found.kind === 'one' ? found.record : null;
  const name = record === null ? uid : `${record.pod.metadata.namespace}/${record.pod.metadata.name}`;
  return json({ name, seenAtMs: record?.seenAtMs ?? 0, ...kept });
}

function chart({ registry, inspect }: Known, req: HttpRequest): HttpReply {
  const path = actorPathOf({ registry, inspect }, req.query.get('actor') ?? '');
  const found = inspect.chart?.(path) ?? null;
  return found === null
    ? text(`404: no state machine at ${JSON.stringify(path)} just now; actorctl tree lists the actors\n`, 404)
    : json(found);
}

function events(ctx: ActorCtx<ServerEvent>, inspect: Inspect, req: HttpRequest): HttpReply {
  const all = ctx.registry.read(eventsView)?.value ?? [];
  const sinceMs = inspect.started?.wallMs;
  const query = req.query.get('pod');
  if (query === null || query === '') return json({ sinceMs, events: all });
  const records = ctx.registry.read(podsView)?.value.records ?? new Map();
  const found = findPod(query, records);
  if (found.kind === 'many') return text(`400: ${query} fits several pods: ${found.names.join(', ')}\n`, 400);
  // A pod that is gone still has events: then its name or UID is looked for among them.
  const mine = all.filter((e) =>
    found.kind === 'one'
      ? e.pod?.uid === found.uid
      : e.pod !== undefined && (e.pod.uid === query || e.pod.name === query || `${e.pod.namespace}/${e.pod.name}` === query),
  );
  if (found.kind === 'none' && mine.length === 0)
    return text(`404: no pod and no event of a pod called ${query}${recordMeant(query, records)}\n`, 404);
  return json({ sinceMs, events: mine });
}

function logFile(ctx: ActorCtx<ServerEvent>, o: { pods: PodsView; podLogsDir: string; req: HttpRequest }): HttpReply {
  const query = o.req.query.get('pod') ?? '';
  const found = findPod(query, o.pods.records);
  if (found.kind === 'many') return text(`400: ${query} fits several pods: ${found.names.join(', ')}\n`, 400);
  if (found.kind === 'none')
    return text(`404: no pod called ${JSON.stringify(query)} on this node${recordMeant(query, o.pods.records)}\n`, 404);
  const file = logFileOf({
    record: found.record,
    status: ctx.registry.read(statusesView)?.value.get(found.uid)?.status,
    container: o.req.query.get('container') ?? '',
    previous: o.req.query.has('previous'),
    podLogsDir: o.podLogsDir,
  });
  return file.ok ? json(file) : text(`${file.status}: ${file.reason}\n`, file.status);
}
