/** Answers that every server gives, and a small router. */
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';

/** Below a path that is known, as the reference's router says it. */
export const NOT_FOUND: HttpReply = { status: 404, body: '404: Page Not Found' };
/** Of a path that nobody has, as Go's own router says it. */
export const NOWHERE: HttpReply = { status: 404, body: '404 page not found\n' };
export const METHOD_NOT_ALLOWED: HttpReply = { status: 405, body: '405: Method Not Allowed' };
export const isGet = (req: HttpRequest): boolean => req.method === 'GET' || req.method === 'HEAD';

export function json(value: unknown, o: { status?: number; headers?: Record<string, string> } = {}): HttpReply {
  return {
    status: o.status ?? 200,
    headers: { 'content-type': 'application/json', ...o.headers },
    body: `${JSON.stringify(value)}\n`,
  };
}
export function text(body: string, status = 200): HttpReply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body };
}

export type Route = (req: HttpRequest) => HttpReply | Promise<HttpReply>;
/** Path to its GET handler; `any` routes take every method. */
export interface Routes {
  get: Readonly<Record<string, Route>>;
  any?: Readonly<Record<string, Route>>;
  /** As `any`, for the path and everything one level below it. */
  below?: Readonly<Record<string, Route>>;
}
/** A trailing slash does not matter. Unknown path: 404; known path with another method: 405. */
export function router(routes: Routes): (req: HttpRequest) => Promise<HttpReply> {
  const get = new Map(Object.entries(routes.get));
  const any = new Map(Object.entries(routes.any ?? {}));
  const below = new Map(Object.entries(routes.below ?? {}));
  return async (req) => {
    const path = req.path.length > 1 && req.path.endsWith('/') ? req.path.slice(0, -1) : req.path;
    const free = any.get(path) ?? below.get(path) ?? below.get(path.slice(0, path.lastIndexOf('/')));
    if (free !== undefined) return free(req);
    const route = get.get(path);
    if (route === undefined) return NOWHERE;
    if (req.method !== 'GET' && req.method !== 'HEAD') return METHOD_NOT_ALLOWED;
    return route(req);
  };
}
