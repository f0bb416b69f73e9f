/** What is asked of the API server for the nodes, counted by verb and resource. A watch that all share counts once. */
import { type KubeRequest, kubePath } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';

export class Calls {
  /** `PATCH pods/status`: how often. */
  readonly byKind = new Map<string, number>();
  total = 0;

  /** That way, with each request and each opening of a watch counted. `done`: told of requests that the API server carried out. */
  counting(kube: KubeApi, done: (request: KubeRequest) => void = () => {}): KubeApi {
    return {
      server: kube.server,
      request: async (request, opts) => {
        this.#count(request.verb, request.path);
        const result = await kube.request(request, opts);
        if (result.ok) done(request);
        return result;
      },
      watch: (request, opts) => {
        this.#count('WATCH', request.path);
        return kube.watch(request, opts);
      },
      closeConnections: (of) => kube.closeConnections(of),
      reload: async () => kube.reload?.(),
      close: () => kube.close(),
    };
  }

  #count(verb: string, path: string): void {
    const kind = `${verb} ${resourceOf(path)}`;
    this.total += 1;
    this.byKind.set(kind, (this.byKind.get(kind) ?? 0) + 1);
  }
}

/** `pods/status` of `/api/v1/namespaces/default/pods/web/status`; the path itself where it is none of a resource. */
export function resourceOf(path: string): string {
  const [, rest] = /^\/(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/(.+)$/.exec(path) ?? [];
  if (rest === undefined) return path;
  const parts = rest.split('/');
  const [resource = '', , sub] = parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts;
  return sub === undefined ? resource : `${resource}/${sub}`;
}

/** As they are counted. A list is a GET. */
export const VERBS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'WATCH'] as const;

/** All that a node may ask for: what has a path of its own in the API, and what follows. */
export const RESOURCES: readonly string[] = [
  ...new Set(Object.values(kubePath).map((path) => resourceOf(typeof path === 'string' ? path : path('x', 'x')))),
  ...['persistentvolumeclaims/status', 'tokenreviews', 'subjectaccessreviews'],
  ...['certificatesigningrequests', 'podcertificaterequests', 'clustertrustbundles'],
];
