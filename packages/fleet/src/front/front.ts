/**
 * One port for the APIs of all nodes. A request names its node in its path (`/nodes/NAME/stats/summary`), or the API server does
 * (`X-Forwarded-Uri` of its proxy), or it names a pod (`/containerLogs/NAMESPACE/POD/...`). Each node then does with it what it does
 * with requests on a port of its own: it authenticates, authorizes and answers.
 */

import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { Listening } from '@actorlet/kubelet/ports/listening.ts';
import type { HttpReply, HttpRequest, Net } from '@actorlet/kubelet/ports/sockets/net.ts';
import { renderTree } from '@actorlet/shown/src/tree.ts';

type Handler = (req: HttpRequest) => Promise<HttpReply>;

/** Paths of the kubelet's API that go on with a namespace and a pod. */
const OF_PODS: readonly string[] = ['containerLogs', 'exec', 'attach', 'portForward', 'run', 'checkpoint'];
/** As the API server's proxy forwards it: `/api/v1/nodes/NAME/proxy/...`, the name perhaps with a scheme and a port. */
const FORWARDED = /^\/api\/v1\/nodes\/(?:https?:)?([^/:]+)(?::[^/]*)?\/proxy(?:\/|$)/;

export class Front {
  readonly #nodes = new Map<string, Handler>();
  /** What `actorctl` asks of each node. */
  readonly #admin = new Map<string, Handler>();
  readonly #address: string;
  readonly #nodeOfPod: (namespace: string, pod: string) => string | undefined;

  readonly #state: () => ActorView;

  /** `state`: of the tree of the fleet. */
  constructor(o: { address: string; nodeOfPod(namespace: string, pod: string): string | undefined; state(): ActorView }) {
    this.#address = o.address;
    this.#state = o.state;
    this.#nodeOfPod = o.nodeOfPod;
  }

  /** The network of one node: what it serves is served here. */
  of(node: string, net: Net): Net {
    return { ...net, serveHttp: (at, handler) => this.#serve('port' in at ? this.#nodes : this.#admin, node, handler) };
  }

  readonly handle: Handler = async (req) => {
    const [, first = '', second = '', ...rest] = req.path.split('/');
    if (first === 'nodes') return this.#pass(second, { ...req, path: `/${rest.join('/')}` });
    const forwarded = FORWARDED.exec(req.headers['x-forwarded-uri'] ?? '')?.[1];
    if (forwarded !== undefined) return this.#pass(forwarded, req);
    const node = OF_PODS.includes(first) ? this.#nodeOfPod(second, rest[0] ?? '') : undefined;
    if (node !== undefined) return this.#pass(node, req);
    if (OF_PODS.includes(first)) return { status: 404, body: `no node of this fleet has the pod ${second}/${rest[0] ?? ''}\n` };
    return { status: 404, body: 'this port serves a fleet of nodes: name one in the path, /nodes/NAME/pods\n' };
  };

  /** Of the admin sockets of all nodes: `/nodes/NAME/why`. Of the fleet itself: `/statez`, its tree. */
  readonly handleAdmin: Handler = async (req) => {
    const [, first, node = '', ...rest] = req.path.split('/');
    if (first === 'nodes') return this.#pass(node, { ...req, path: `/${rest.join('/')}` }, this.#admin);
    if (first === 'statez' && node === '') return this.#statez(req);
    return { status: 404, body: '404: this is a fleet of nodes: say which one with --node NAME\n' };
  };

  #statez({ query }: HttpRequest): HttpReply {
    const state = this.#state();
    if (query.has('text')) return { status: 200, body: `${renderTree(state).join('\n')}\n` };
    return { status: 200, headers: { 'content-type': 'application/json' }, body: `${JSON.stringify(state)}\n` };
  }

  async #pass(node: string, req: HttpRequest, to: ReadonlyMap<string, Handler> = this.#nodes): Promise<HttpReply> {
    const handler = to.get(node);
    return handler?.(req) ?? { status: 404, body: `the node ${node} is not of this fleet, or its daemon does not run\n` };
  }

  async #serve(nodes: Map<string, Handler>, node: string, handler: Handler): Promise<Listening> {
    nodes.set(node, handler);
    return {
      address: `${this.#address}/nodes/${node}`,
      close: async () => {
        if (nodes.get(node) === handler) nodes.delete(node);
      },
    };
  }
}
