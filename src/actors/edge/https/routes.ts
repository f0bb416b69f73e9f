/** The pages of the kubelet's API by the first segment of their path, for requests that were let in already. */

import { readLogQuery } from '../../../machines/edge/https/logs/logQuery.ts';
import { flagzObject, flagzText, statuszObject, statuszText, zPageForm } from '../../../machines/edge/https/zpages.ts';
import type { ServerEvent } from '../../../machines/edge/messages.ts';
import { podManagerAddr, podsView } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { CRI_LABELS } from '../../../machines/wire/cri.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';
import { criClient } from '../../runtime/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { isGet, json, METHOD_NOT_ALLOWED, NOT_FOUND, type Route, text } from '../answers/answers.ts';
import { podListReply } from '../answers/podList.ts';
import { runtimeFailure } from '../answers/runtimeFailure.ts';
import { readView, staleHeaders } from '../answers/views.ts';
import { type FigureOptions, figurePages, isMetricsPage } from '../stats/figures.ts';
import { checkpoint } from './checkpoint.ts';
import { debugPages } from './debug.ts';
import { containerLogs } from './logs/containerLogs.ts';
import { hostLogs } from './logs/hostLogs.ts';
import { queriedLogs } from './logs/logQuery.ts';
import { findPodByName } from './pods.ts';
import { streamRoutes } from './streams.ts';

/** Pages of our own, which stand beside the kubelet. */
export interface OwnPages {
  /** Without what follows their path. */
  get(ctx: ActorCtx<ServerEvent>): Readonly<Record<string, Route>>;
  /** The actors, in lines. */
  tree(): readonly string[];
}

export interface PagesOptions extends Omit<FigureOptions, 'checks'> {
  /** `/var/log`. */
  hostLogsDir: string;
  /** enableDebuggingHandlers. */
  debugging: boolean;
  /** Gate ContainerCheckpoint. */
  checkpoints: boolean;
  /** Gate ExtendWebSocketsToKubelet. */
  webSockets: boolean;
  /** Gates ComponentStatusz and ComponentFlagz. */
  statusz: boolean;
  flagz: boolean;
  /** enableSystemLogHandler. */
  systemLogs: boolean;
  /** enableSystemLogQuery with the gate NodeLogQuery; of no effect without the handler. */
  systemLogQuery: boolean;
  /** enableProfilingHandler. */
  profiling: boolean;
  /** enableDebugFlagsHandler. */
  debugFlags: boolean;
  /** Null or absent: there are none. */
  own?: OwnPages | null;
}

/** `parts`: what follows the first segment. */
type Page = (req: HttpRequest, parts: readonly string[]) => HttpReply | Promise<HttpReply>;
export type Pages = ReadonlyMap<string, Page>;

const DEPRECATED = {
  Statusz: '299 - "This version of the statusz endpoint is deprecated. Please use a newer version."',
  Flagz: '299 - "This version of the flagz endpoint is deprecated. Please use a newer version."',
} as const;
const notAcceptable = (kind: string): HttpReply =>
  text(`406: this page is plain text, or application/json;v=v1beta1;g=config.k8s.io;as=${kind}\n`, 406);
/** What /statusz points to; and /flagz, where that is served. */
const STATUSZ_PATHS = ['/configz', '/debug', '/healthz', '/metrics'];
const WEB_SOCKETS_HELP = 'Total number of WebSocket streaming requests (exec/attach/portforward) received by the kubelet.';
const DISABLED = text('Debug endpoints are disabled.\n', 405);
const LOGS_DISABLED = text('logs endpoint is disabled.\n', 405);
export function pages(ctx: ActorCtx<ServerEvent>, o: PagesOptions): Pages {
  const figures = figurePages(ctx, o);
  const cri = criClient(ctx.registry, { runtimeRequestTimeoutMs: o.runtimeRequestTimeoutMs });
  const find = (name: { namespace: string; pod: string; uid: string }) => findPodByName({ ctx, stateAt: o.inspect.stateAt }, name);
  const table = new Map<string, Page>([
    ['healthz', (req, parts) => figures.health[['/healthz', ...parts].join('/')]?.(req) ?? NOT_FOUND],
    [
      'pods',
      alone((req) => {
        const read = readView({ registry: ctx.registry, stateAt: o.inspect.stateAt }, podsView, podManagerAddr.path);
        if (!read.ok) return read.reply;
        if (!isGet(req)) return METHOD_NOT_ALLOWED;
        const statuses = ctx.registry.read(statusesView)?.value;
        return podListReply(ctx.ports, { pods: read.value, statuses, headers: staleHeaders(read.stale) });
      }),
    ],
    ['stats', withSlash((req, parts) => (parts.join('/') === 'summary' ? figures.summary(req) : NOT_FOUND))],
    [
      'metrics',
      (req, parts) => {
        const of = parts.join('/');
        return isMetricsPage(of) ? figures.metrics(of)(req) : NOT_FOUND;
      },
    ],
  ]);
  const off = withSlash(() => DISABLED);
  const translated = o.webSockets
    ? ctx.ports.metrics.counter('kubelet_websocket_streaming_requests_total', WEB_SOCKETS_HELP, ['subresource'])
    : null;
  const streams = streamRoutes({ cri, find, translated });
  const debugging: readonly (readonly [string, Page])[] = [
    ['exec', streams.exec],
    ['attach', streams.attach],
    ['portForward', streams.portForward],
    ['run', streams.run],
    ['containerLogs', (req, parts) => containerLogs({ ctx, podLogsDir: o.podLogsDir, find }, req, parts)],
    ['runningpods', withSlash(alone((req) => (isGet(req) ? runningPods(cri, req) : METHOD_NOT_ALLOWED)))],
    [
      'logs',
      withSlash((req, parts) => {
        if (!o.systemLogs) return LOGS_DISABLED;
        const logs = { ports: ctx.ports, dir: o.hostLogsDir, linked: [o.podLogsDir] };
        const asked = o.systemLogQuery ? readLogQuery(req.query, { below: parts.length > 0 }) : { kind: 'none' as const };
        return asked.kind === 'none' ? hostLogs(logs, req, parts) : queriedLogs(logs, req, asked);
      }),
    ],
  ];
  for (const [name, page] of debugging) table.set(name, o.debugging ? page : off);
  const actors = () => o.own?.tree() ?? [];
  const debug = { profiler: ctx.ports.profiler, log: ctx.log, profiling: o.profiling, flags: o.debugFlags, actors };
  const profiles = withSlash((req, below) => (o.debugging ? debugPages(debug, req, ['pprof', ...below]) : DISABLED));
  const others: Page = (req, parts) => (o.debugging ? debugPages(debug, req, parts) : NOT_FOUND);
  table.set('debug', (req, parts) => (parts[0] === 'pprof' ? profiles(req, parts.slice(1)) : others(req, parts)));
  if (!o.debugging) return table;
  if (o.checkpoints) {
    const { rootDir, runtimeRequestTimeoutMs } = o;
    const page = { ports: { ...ctx.ports, log: ctx.log }, cri, rootDir, runtimeRequestTimeoutMs, find };
    table.set(
      'checkpoint',
      withSlash((req, parts) => checkpoint(page, req, parts)),
    );
  }
  for (const [name, page] of zPages(ctx, o)) table.set(name, page);
  table.set(
    'configz',
    alone((req) => (isGet(req) ? json({ kubeletconfig: o.inspect.configz() }) : METHOD_NOT_ALLOWED)),
  );
  // Pages of our own, for users who may do everything (nodes/proxy).
  for (const [path, route] of Object.entries(o.own?.get(ctx) ?? {})) table.set(path.slice(1), alone(getOnly(route)));
  return table;
}

/** /statusz and /flagz, where their gates are on: text, or an object for a program that asks for one. */
function* zPages(ctx: ActorCtx<ServerEvent>, o: PagesOptions): Generator<[string, Page]> {
  const shown = (kind: 'Statusz' | 'Flagz', as: { text(): string; object(apiVersion: string): object }): Page =>
    alone((req) => {
      if (!isGet(req)) return METHOD_NOT_ALLOWED;
      const form = zPageForm(req.headers.accept, kind);
      if (form === null) return notAcceptable(kind);
      if (form.text) return text(as.text());
      return json(as.object(form.apiVersion), form.deprecated ? { headers: { warning: DEPRECATED[kind] } } : {});
    });
  const { started, flagz } = o.inspect;
  if (o.statusz && started !== undefined) {
    const paths = o.flagz && flagz !== undefined ? [...STATUSZ_PATHS, '/flagz'].sort() : STATUSZ_PATHS;
    const known = { startedMs: started.wallMs, version: o.build.gitVersion, runtime: o.build.runtime ?? 'unknown', paths };
    const status = () => ({ ...known, upMs: ctx.ports.clock.monoMs() - started.monoMs });
    const forms = { text: () => statuszText(status()), object: (apiVersion: string) => statuszObject(status(), apiVersion) };
    yield ['statusz', shown('Statusz', forms)];
  }
  if (o.flagz && flagz !== undefined) {
    yield ['flagz', shown('Flagz', { text: () => flagzText(flagz()), object: (apiVersion) => flagzObject(flagz(), apiVersion) })];
  }
}

const getOnly =
  (route: Route): Route =>
  (req) =>
    isGet(req) ? route(req) : METHOD_NOT_ALLOWED;
/** Go's router leads from the name of a folder of pages to the folder. */
function withSlash(page: Page): Page {
  return (req, parts) => {
    if (parts.length > 0 || req.path.endsWith('/')) return page(req, parts);
    const location = `${req.path}/${req.query.size === 0 ? '' : `?${req.query}`}`;
    const headers = { location, 'content-type': 'text/html; charset=utf-8' };
    return { status: 307, headers, body: `<a href="${req.path}/">Temporary Redirect</a>.\n\n` };
  };
}
/** A page with nothing below it. */
function alone(route: Route): Page {
  return (req, parts) => (parts.length === 0 ? route(req) : NOT_FOUND);
}

interface RunningPod {
  metadata: object;
  spec: { containers: { name: string; image: string; resources: object }[] | null };
  status: object;
}

/** From the runtime itself: pods with a ready sandbox or a running container, with what it knows of them. */
async function runningPods(cri: ReturnType<typeof criClient>, req: HttpRequest): Promise<HttpReply> {
  try {
    const filter = { state: { state: 'CONTAINER_RUNNING' as const } };
    const [{ items }, { containers }] = await Promise.all([
      cri.read('ListPodSandbox', { filter: { state: { state: 'SANDBOX_READY' } } }, { signal: req.signal }),
      cri.read('ListContainers', { filter }, { signal: req.signal }),
    ]);
    const pods = new Map<string, RunningPod>();
    const podOf = (labels: Readonly<Record<string, string>>): RunningPod | undefined => {
      const uid = labels[CRI_LABELS.podUid];
      if (uid === undefined) return undefined;
      const metadata = { name: labels[CRI_LABELS.podName], namespace: labels[CRI_LABELS.podNamespace], uid, creationTimestamp: null };
      const pod = pods.get(uid) ?? { metadata, spec: { containers: null }, status: {} };
      pods.set(uid, pod);
      return pod;
    };
    for (const sandbox of items) if (sandbox.state === 'SANDBOX_READY') podOf(sandbox.labels);
    for (const c of containers) {
      const pod = c.state === 'CONTAINER_RUNNING' ? podOf(c.labels) : undefined;
      if (pod === undefined) continue;
      const container = { name: c.labels[CRI_LABELS.containerName] ?? '', image: c.image?.image ?? c.imageRef, resources: {} };
      pod.spec.containers = [...(pod.spec.containers ?? []), container];
    }
    return json({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items: pods.size === 0 ? null : [...pods.values()] });
  } catch (error) {
    return runtimeFailure(error);
  }
}
