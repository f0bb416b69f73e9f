/** The overview page of a fleet on loopback. It only shows. */
import type { Listening } from '@actorlet/kubelet/ports/listening.ts';
import type { HttpReply, HttpRequest, Net } from '@actorlet/kubelet/ports/sockets/net.ts';
import { PageFigures, type PageFleet } from '../page/figures.ts';
import { POLICY, pageHtml } from '../page/html.ts';
import type { RunShown } from '../run.ts';

const HTML_HEADERS = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY };
/** What is shown of one node; each is a question that changes nothing. */
const OF_NODE: readonly string[] = ['statez', 'why', 'pods', 'recorder'];
/** A page of another site that was given our address under its own name is not answered. */
const OWN_HOST = /^(?:localhost|127\.0\.0\.1)(?::\d+)?$/;

export interface PageOptions {
  port: number;
  /** Null: it has not begun. */
  run(): RunShown | null;
}

export function servePage(fleet: PageFleet, net: Net, { port, run }: PageOptions): Promise<Listening> {
  const figures = new PageFigures(fleet);
  return net.serveHttp({ host: '127.0.0.1', port }, async (req): Promise<HttpReply> => {
    if (req.method !== 'GET') return { status: 405, body: 'this page only shows\n' };
    if (!OWN_HOST.test(req.headers.host ?? '')) return { status: 403, body: 'ask for localhost\n' };
    const [, first = '', , page = ''] = req.path.split('/');
    if (first === '') return { status: 200, headers: HTML_HEADERS, body: pageHtml() };
    if (first === 'fleet.json') return json(figures.now(run(), revisionIn(req)));
    if (first === 'nodes' && OF_NODE.includes(page)) return fleet.front.handleAdmin(req);
    return { status: 404, body: `there is ${req.path} not\n` };
  });
}

function json(value: object): HttpReply {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) };
}

/** -1: the asker has no facts yet. */
function revisionIn({ query }: HttpRequest): number {
  const asked = Number(query.get('revision') ?? Number.NaN);
  return Number.isInteger(asked) ? asked : -1;
}
