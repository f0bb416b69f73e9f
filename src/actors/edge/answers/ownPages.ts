/** Pages of our own: the admin socket and the HTTPS server answer them. */

import type { Moment } from '@actorlet/shown/src/moment/moment.ts';
import { actorPathOf, type ShownPage, shownPage } from '@actorlet/shown/src/moment/pages.ts';
import type { ServerEvent } from '../../../machines/edge/messages.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import type { Inspect } from '../server.ts';
import { json, type Route, text } from './answers.ts';
import { liveMoment } from './liveMoment.ts';

export function shown(path: string, m: Moment, req: HttpRequest): HttpReply {
  return replyOf(shownPage(path, req.query, m) ?? { status: 404, json: false, body: '404: Page Not Found' });
}
export function replyOf({ status, body, json: isJson }: ShownPage): HttpReply {
  if (isJson) return { status, headers: { 'content-type': 'application/json' }, body: `${body}\n` };
  return status === 503 ? { status, headers: { 'retry-after': '1' }, body } : text(body, status);
}

/** The pages of our own that need nothing but views and the tree; the HTTPS server has them too, behind authorization. */
export function ownPages(ctx: ActorCtx<ServerEvent>, inspect: Inspect): Record<'/statez' | '/recorder' | '/events' | '/why', Route> {
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
