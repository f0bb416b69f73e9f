/**
 * What people are shown of a node, as pages: of the admin socket, and of the HTTPS server for callers who may do everything. Answers come
 * from published views, the tree and the flight recorder.
 */

import { json, type Route, text } from '@actorlet/kubelet/actors/edge/answers/answers.ts';
import { liveMoment } from '@actorlet/kubelet/actors/edge/answers/liveMoment.ts';
import type { Inspect } from '@actorlet/kubelet/actors/edge/server.ts';
import type { Extension, ExtensionHost } from '@actorlet/kubelet/actors/extension.ts';
import type { ActorCtx } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { KubeletConfiguration } from '@actorlet/kubelet/machines/config/config.ts';
import { findPod, recordMeant } from '@actorlet/kubelet/machines/edge/findPod.ts';
import type { ServerEvent } from '@actorlet/kubelet/machines/edge/messages.ts';
import { logFileOf } from '@actorlet/kubelet/machines/edge/podLogs.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import type { HttpReply, HttpRequest } from '@actorlet/kubelet/ports/sockets/net.ts';
import { actorPathOf, json as jsonPage, podsAnswer, type ShownPage, shownPage, withPods } from './moment/pages.ts';
import { nodePage } from './nodePage.ts';
import { renderTree } from './tree.ts';

const OF_THE_SOCKET = ['/healthz', '/chart', '/timeline', '/deaths', '/disagreements'] as const;

type Host = Pick<ExtensionHost, 'inspect'> & { config: { config: Pick<KubeletConfiguration, 'podLogsDir'> } };

export function shownPages({ inspect, config: { config } }: Host): Required<Pick<Extension, 'pages' | 'routes'>> {
  return {
    pages: { get: (ctx) => ownPages(ctx, inspect), tree: () => renderTree(inspect.state()) },
    routes: (ctx, faults) => {
      const now = (): Moment => liveMoment({ registry: ctx.registry, inspect, clock: ctx.ports.clock, faults });
      return {
        get: {
          ...ownPages(ctx, inspect),
          ...Object.fromEntries(OF_THE_SOCKET.map((path) => [path, (req: HttpRequest) => shown(path, now(), req)])),
          '/node': () => json(nodePage(now(), inspect.identity?.kubeconfig)),
          '/pods': (req) => podsPage(now(), req),
          '/logs': (req) => logFile(ctx, { m: now(), podLogsDir: config.podLogsDir, req }),
        },
      };
    },
  };
}

function shown(path: string, m: Moment, req: HttpRequest): HttpReply {
  return replyOf(shownPage(path, req.query, m) ?? { status: 404, json: false, body: '404: Page Not Found' });
}
function replyOf({ status, body, json: isJson }: ShownPage): HttpReply {
  if (isJson) return { status, headers: { 'content-type': 'application/json' }, body: `${body}\n` };
  return status === 503 ? { status, headers: { 'retry-after': '1' }, body } : text(body, status);
}

/** Pages that need nothing but views and the tree: both servers have them. */
function ownPages(ctx: ActorCtx<ServerEvent>, inspect: Inspect): Record<'/statez' | '/recorder' | '/events' | '/why', Route> {
  const now = (): Moment => liveMoment({ registry: ctx.registry, inspect, clock: ctx.ports.clock, faults: null });
  const page =
    (path: string): Route =>
    (req) =>
      shown(path, now(), req);
  return {
    '/statez': page('/statez'),
    '/events': page('/events'),
    '/why': page('/why'),
    '/recorder': (req) => recorderPage(now(), inspect, req),
  };
}

/** With `next=N` as JSON: the entries from number N on, and where to go on. */
function recorderPage(m: Moment, inspect: Inspect, req: HttpRequest): HttpReply {
  if (!req.query.has('next') || inspect.recorderFrom === undefined) return shown('/recorder', m, req);
  const number = (name: string): number | null => {
    const value = Number(req.query.get(name) ?? Number.NaN);
    return Number.isInteger(value) && value > 0 ? value : null;
  };
  const asked = req.query.get('path') ?? '';
  const filter = asked === '' ? {} : { path: actorPathOf(m, asked) };
  return json(inspect.recorderFrom(number('next') ?? 0, { ...filter, limit: number('limit') ?? FOLLOWED_LINES_MAX }));
}
/** Lines of one answer to a follower that names no limit. */
const FOLLOWED_LINES_MAX = 2_000;

/** With labels, which go to who may open this socket, and into no recording or page. `?full`: with the whole pod. `?uid=`: one pod. */
function podsPage(m: Moment, req: HttpRequest): HttpReply {
  const page = withPods(m, (view) => {
    const statuses = m.read(statusesView);
    const answer = podsAnswer(m, view);
    const whole = (uid: string) => {
      const pod = view.records.get(uid)?.pod;
      return pod === undefined ? undefined : { ...pod, status: statuses?.get(uid)?.status ?? pod.status };
    };
    const uid = req.query.get('uid');
    const chosen = uid === null ? answer.pods : answer.pods.filter((line) => line.uid === uid);
    const pods = chosen.map((line) => ({
      ...line,
      labels: view.records.get(line.uid)?.pod.metadata.labels ?? {},
      ...(req.query.has('full') ? { pod: whole(line.uid) } : {}),
    }));
    return jsonPage({ ...answer, pods });
  });
  return replyOf(page);
}

function logFile(ctx: ActorCtx<ServerEvent>, o: { m: Moment; podLogsDir: string; req: HttpRequest }): HttpReply {
  const page = withPods(o.m, ({ records }) => {
    const query = o.req.query.get('pod') ?? '';
    const found = findPod(query, records);
    const refused = (status: number, why: string): ShownPage => ({ status, json: false, body: `${status}: ${why}\n` });
    if (found.kind === 'many') return refused(400, `${query} fits several pods: ${found.names.join(', ')}`);
    if (found.kind === 'none') return refused(404, `no pod called ${JSON.stringify(query)} on this node${recordMeant(query, records)}`);
    const file = logFileOf({
      record: found.record,
      status: ctx.registry.read(statusesView)?.value.get(found.uid)?.status,
      container: o.req.query.get('container') ?? '',
      previous: o.req.query.has('previous'),
      podLogsDir: o.podLogsDir,
    });
    return file.ok ? jsonPage(file) : refused(file.status, file.reason);
  });
  return replyOf(page);
}
