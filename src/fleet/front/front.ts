/**
 * One port for the APIs of all nodes. A request names its node in its path (`/nodes/NAME/stats/summary`), or the API server does
 * (`X-Forwarded-Uri` of its proxy), or it names a pod (`/containerLogs/NAMESPACE/POD/...`). Each node then does with it what it does
 * with requests on a port of its own: it authenticates, authorizes and answers.
 */
import type { Listening } from '../../ports/listening.ts';
import type { HttpReply, HttpRequest, Net } from '../../ports/ports.ts';

type Handler = (req: HttpRequest) => Promise<HttpReply>;

/** Paths of the kubelet's API that go on with a namespace and a pod. */
const OF_PODS: readonly string[] = ['containerLogs', 'exec', 'attach', 'portForward', 'run', 'checkpoint'];
/** As the API server's proxy forwards it: `/api/v1/nodes/NAME/proxy/...`, the name perhaps with a scheme and a port. */
const FORWARDED = /^\/api\/v1\/nodes\/(?:https?:)?([^/:]+)(?::[^/]*)?\/proxy(?:\/|$)/;

export class Front {
  readonly #nodes = new Map<string, Handler>();
  readonly #address: string;
  readonly #nodeOfPod: (namespace: string, pod: string) => string | undefined;

  constructor(o: { address: string; nodeOfPod(namespace: string, pod: string): string | undefined }) {
    this.#address = o.address;
    this.#nodeOfPod = o.nodeOfPod;
  }

  /** The network of one node: what it serves is served here. */
  of(node: string, net: Net): Net {
    return { ...net, serveHttp: (at, handler) => ('port' in at ? this.#serve(node, handler) : net.serveHttp(at, handler)) };
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

  async #pass(node: string, req: HttpRequest): Promise<HttpReply> {
    const handler = this.#nodes.get(node);
    return handler?.(req) ?? { status: 404, body: `the node ${node} is not of this fleet, or its daemon does not run\n` };
  }

  async #serve(node: string, handler: Handler): Promise<Listening> {
    this.#nodes.set(node, handler);
    return {
      address: `${this.#address}/nodes/${node}`,
      close: async () => {
        if (this.#nodes.get(node) === handler) this.#nodes.delete(node);
      },
    };
  }
}
