/**
 * The inspection server: the page, its feed, and the two xstate inspectors' protocols, all on one loopback port. It is no
 * actor: it shows the tree from outside, also while the edge layer restarts. Reading needs nothing but this machine;
 * acting needs a flag of the daemon and the token, which only the admin socket (0600) tells.
 */

import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { faultRoute } from '@actorlet/faults/src/injector/route.ts';
import { SCENARIO_BYTES_MAX } from '@actorlet/faults/src/read/decode.ts';
import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import { Bridge } from '../bridges/bridge.ts';
import { Hub } from '../feed/hub.ts';
import { PageServer, reply } from '../server/pageServer.ts';

import { hostFigures } from './host.ts';
import { type LogsFrom, lastLines } from './logs.ts';
import { actOnPod, type PodAct, type PodActsOver } from './podActs.ts';

const ASK_TIMEOUT_MS = 5_000;
const JSON_TYPE = { 'content-type': 'application/json' };
const ACTS_BYTES_MAX = 4_096;
const NO_ACTS = '403: this page may not act on pods; that is allowed by starting the daemon with --actorlet-inspect-actions\n';
const NO_TOKEN = '403: open the page with `actorctl ui`, which gives it the right to act and to read logs\n';

/** Address of the inspection page; the token lets its reader act on the node. */
export interface PageAddress {
  url: string;
  token: string;
}

export interface InspectorServer extends Disposable {
  readonly hub: Hub;
}

/** Listens, now or once the port is free. `onListen` is told the address. Without `logs` the page shows none, without `pods` it acts on none. */
export async function serveInspector(
  node: Inspected,
  { at, logs, pods = null }: { at: string; logs?: LogsFrom; pods?: PodActsOver | null },
  onListen: (page: PageAddress) => void,
): Promise<InspectorServer> {
  const hub = new Hub(node, (onFrame) => hostFigures(onFrame, node.log), { actsOnPods: pods !== null });
  const acts = new Acts(node, { logs: logs ?? null, pods });
  const server = new PageServer({
    log: node.log,
    targets: { feed: hub, stately: new Bridge('stately', node), classic: new Bridge('classic', node) },
    api: {
      inject: (req, res) => acts.answer(req, res),
      logs: (req, res) => acts.logs(req, res),
      pod: (req, res) => acts.onPod(req, res),
    },
  });
  const cut = at.lastIndexOf(':');
  const host = at.slice(0, cut).replace(/^\[|\]$/g, '');
  await server.listen({ host, port: Number(at.slice(cut + 1)), flag: '--actorlet-inspect' }, (url) => onListen({ url, token: acts.token }));
  return { hub, [Symbol.dispose]: () => server[Symbol.dispose]() };
}

/** What the page may do to the node. */
class Acts {
  readonly #node: Inspected;
  readonly #logsFrom: LogsFrom | null;
  readonly #pods: PodActsOver | null;
  readonly token = randomBytes(24).toString('base64url');

  constructor(node: Inspected, { logs, pods }: { logs: LogsFrom | null; pods: PodActsOver | null }) {
    this.#node = node;
    this.#logsFrom = logs;
    this.#pods = pods;
  }

  /** `POST /api/pod/restart`, `POST /api/pod/delete`. JSON, since no form of a foreign page can send that. */
  async onPod(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const act = /^\/api\/pod\/(restart|delete)$/.exec(req.url ?? '')?.[1] as PodAct | undefined;
    if (act === undefined) return reply(res, 404, '404: Page Not Found\n');
    if (req.method !== 'POST') return reply(res, 405, '405: Method Not Allowed\n');
    if (this.#pods === null) return reply(res, 403, NO_ACTS);
    if (!this.#isTrusted(req)) return reply(res, 403, NO_TOKEN);
    if (req.headers['content-type'] !== 'application/json') return reply(res, 415, '415: what is to be done is sent as application/json\n');
    const body = await read(req, ACTS_BYTES_MAX);
    if (body === null) return reply(res, 413, `413: what is to be done has at most ${ACTS_BYTES_MAX} bytes\n`);
    const { status, ...answer } = await actOnPod(this.#node, this.#pods, { act, body });
    reply(res, status, JSON.stringify(answer), JSON_TYPE);
  }

  /** As `/inject` of the admin socket. A reader of the page may see what is injected. */
  async answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const id = /^\/api\/inject\/([\w.-]+)$/.exec((req.url ?? '').split('?', 1)[0] ?? '')?.[1] ?? '';
    const { method = '' } = req;
    if (!(id === '' ? ['GET', 'POST'] : ['DELETE']).includes(method)) return reply(res, 405, '405: Method Not Allowed\n');
    const { faults, tree } = this.#node;
    if (method === 'GET' && faults === null) return reply(res, 200, JSON.stringify({ injections: [] }), JSON_TYPE);
    const refused = method === 'GET' ? null : this.#refusal(req);
    if (refused !== null) return reply(res, 403, refused);
    const scenario = await read(req, SCENARIO_BYTES_MAX);
    if (scenario === null) return reply(res, 413, `413: a scenario has at most ${SCENARIO_BYTES_MAX} bytes\n`);
    const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
    const headers = { 'content-type': 'application/yaml' };
    const asked = { method, path: `/inject/${id}`, query: new URLSearchParams(), headers, body: Buffer.from(scenario), signal };
    const answer = await faultRoute({ registry: tree.registry }, asked, faults);
    reply(res, answer.status, String(answer.body), answer.headers);
  }

  /** What a container wrote may be secret: it is for those who may ask the admin socket. */
  async logs(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.method !== 'GET') return reply(res, 405, '405: Method Not Allowed\n');
    if (!this.#knowsToken(req.headers['x-actorlet-token'])) return reply(res, 403, NO_TOKEN);
    if (this.#logsFrom === null) return reply(res, 404, '404: this node shows no logs here\n');
    const { searchParams } = new URL(req.url ?? '/', 'http://page');
    const { status, text } = await lastLines(this.#node, this.#logsFrom, searchParams);
    reply(res, status, text);
  }

  /** Null: it may. Otherwise why not. */
  #refusal(req: IncomingMessage): string | null {
    if (this.#node.faults === null) return '403: fault injection is off on this node; it is allowed by --actorlet-fault-injection\n';
    return this.#isTrusted(req) ? null : NO_TOKEN;
  }

  /** A page of this server, which `actorctl ui` opened. The server has seen to it that the origin is its own. */
  #isTrusted(req: IncomingMessage): boolean {
    return req.headers.origin !== undefined && this.#knowsToken(req.headers['x-actorlet-token']);
  }

  #knowsToken(given: string | string[] | undefined): boolean {
    const bytes = Buffer.from(typeof given === 'string' ? given : '');
    const own = Buffer.from(this.token);
    return bytes.length === own.length && timingSafeEqual(bytes, own);
  }
}

/** Null: too large. */
async function read(req: IncomingMessage, bytesMax: number): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
