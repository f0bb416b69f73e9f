/**
 * One watch for each kind of object, for all nodes of a process. A watch of `spec.nodeName=N` or of the node N is served from one
 * watch of all pods or nodes, by the name of the node; equal watches are one. The API server then has a handful of watches instead of
 * some six for each node. A node still lists what is its own, in its own name.
 */
import { INITIAL_EVENTS_END } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi, KubeCallOptions, KubeWatch } from '@actorlet/kubelet/ports/kube.ts';
import type { WatchEvent } from './messages.ts';
import { Subscription, versionOf } from './subscription.ts';
import { Upstream } from './upstream.ts';

type Asked = { path: string; query?: Readonly<Record<string, string>> };

/** What is watched for all, and which of it is this node's; `node` null: everything. */
interface Source {
  path: string;
  fieldSelector: string;
  node: string | null;
}

const LIST_PAGE_MAX = 500;

export class SharedWatches {
  readonly #kube: KubeApi;
  readonly #send: (event: WatchEvent) => void;
  readonly #upstreams = new Map<string, Upstream>();

  /** `kube` may list and watch what all nodes may. `send`: to `watches.ts`. */
  constructor(kube: KubeApi, send: (event: WatchEvent) => void) {
    this.#kube = kube;
    this.#send = send;
  }

  /** Watches there are at the API server. */
  get count(): number {
    return this.#upstreams.size;
  }

  /** The way of one node, with its watches from here. */
  connect(own: KubeApi): KubeApi {
    return {
      server: own.server,
      request: (request, opts) => own.request(request, opts),
      watch: (request, opts) => this.#watch(own, request, opts),
      closeConnections: (of) => own.closeConnections(of),
      reload: async () => own.reload?.(),
      close: () => own.close(),
    };
  }

  async #watch(own: KubeApi, asked: Asked, opts: KubeCallOptions): Promise<KubeWatch> {
    const upstream = this.#upstreamOf(asked);
    const subscription = new Subscription(opts.signal, (of) => upstream.remove(of));
    upstream.add(sourceOf(asked).node, subscription);
    const { sendInitialEvents, resourceVersion = '' } = asked.query ?? {};
    if (sendInitialEvents !== 'true') {
      // It goes on from a version: what came since is still known, or the watcher is told to begin anew.
      if (!upstream.replay(resourceVersion, subscription)) subscription.expire();
      return { ok: true, lines: subscription.lines() };
    }
    const unopened = await upstream.opened(opts.signal);
    const refused =
      unopened === null ? await this.#initial(own, { asked, opts, into: subscription }) : { ok: false as const, failure: unopened };
    if (refused === null) return { ok: true, lines: subscription.lines() };
    subscription.close();
    return refused;
  }

  /** What there is, as the API server itself sends it first, and the bookmark behind it. Null: done. */
  async #initial(own: KubeApi, o: { asked: Asked; opts: KubeCallOptions; into: Subscription }): Promise<KubeWatch | null> {
    const { path, query = {} } = o.asked;
    const selected = query.fieldSelector === undefined ? {} : { fieldSelector: query.fieldSelector };
    for (let next = ''; ; ) {
      const page = { ...selected, limit: String(LIST_PAGE_MAX), ...(next === '' ? {} : { continue: next }) };
      const listed = await own.request({ verb: 'GET', path, query: page }, o.opts);
      if (!listed.ok) return listed;
      const { items, metadata } = isRecord(listed.body) ? listed.body : {};
      for (const object of Array.isArray(items) ? items : []) o.into.push({ type: 'ADDED', object });
      next = isRecord(metadata) && typeof metadata.continue === 'string' ? metadata.continue : '';
      if (next !== '') continue;
      const resourceVersion = isRecord(metadata) ? String(metadata.resourceVersion ?? '') : '';
      o.into.push({ type: 'BOOKMARK', object: { metadata: { resourceVersion, annotations: { [INITIAL_EVENTS_END]: 'true' } } } });
      o.into.begin(versionOf(resourceVersion));
      return null;
    }
  }

  #upstreamOf(asked: Asked): Upstream {
    const { path, fieldSelector } = sourceOf(asked);
    const key = keyOf(path, fieldSelector);
    let upstream = this.#upstreams.get(key);
    if (upstream === undefined) {
      upstream = new Upstream({
        ...{ kube: this.#kube, path, fieldSelector },
        nodeOf: path === NODES ? (metadata) => metadata.name : (_, object) => (isRecord(object.spec) ? object.spec.nodeName : undefined),
        ended: () => {
          this.#upstreams.delete(key);
          this.#send({ type: 'watch.close', key });
        },
      });
      this.#upstreams.set(key, upstream);
      this.#send({ type: 'watch.open', key, upstream });
    }
    return upstream;
  }
}

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/pods';

/** Also the name of its actor, so it has no slash: `pods?spec.nodeName!=`. */
function keyOf(path: string, fieldSelector: string): string {
  const resource = path.replace(/^\/(?:api\/v1|apis)\//, '').replaceAll('/', ':');
  return fieldSelector === '' ? resource : `${resource}?${fieldSelector}`;
}

function sourceOf({ path, query = {} }: Asked): Source {
  const { fieldSelector = '' } = query;
  const [field, value] = fieldSelector.split('=');
  if (path === PODS && field === 'spec.nodeName') return { path, fieldSelector: 'spec.nodeName!=', node: value ?? '' };
  if (path === NODES && field === 'metadata.name') return { path, fieldSelector: '', node: value ?? '' };
  return { path, fieldSelector, node: null };
}
