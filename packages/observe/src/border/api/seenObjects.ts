/** Objects of the API as the tree's own lists and watches show them: nothing is asked of the server for it. */
import { isKubeObject, type KubeObject, type KubeRequest, type KubeResult, slim } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { NodeWord } from '../pace.ts';
import type { WaitEnd } from '../waiting.ts';
import { hasEnded } from './podStatus.ts';

/** Kinds that are written, by the path of their lists. */
const LISTS: ReadonlyMap<string, SeenKind> = new Map([
  ['/api/v1/pods', 'pods'],
  ['/api/v1/nodes', 'nodes'],
]);
const LEASES = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/kube-node-lease\/leases$/;
const ONE = /^\/(?:api\/v1|apis\/coordination\.k8s\.io\/v1)\/(?:namespaces\/[^/]+\/)?(pods|nodes|leases)\/[^/]+$/;

export type SeenKind = 'pods' | 'nodes' | 'leases';

/** Who is told of what is seen. */
interface Told {
  /** Of each pod that is to end, and that the API has no more. */
  ends(uid: string, o: { gone: boolean }): void;
  says(word: NodeWord): void;
}

export class SeenObjects {
  readonly #clock: Clock;
  readonly #objects: Record<SeenKind, Map<string, KubeObject>> = { pods: new Map(), nodes: new Map(), leases: new Map() };
  /** By the object that they wait for: each event concerns one. */
  readonly #waiters = new Map<string, Set<() => void>>();
  readonly #told: Told;
  /** UIDs of pods; true: it had ended when it was seen first. */
  #first = new Map<string, boolean>();

  constructor(clock: Clock, told: Told) {
    this.#clock = clock;
    this.#told = told;
  }

  all(kind: SeenKind): Iterable<KubeObject> {
    return this.#objects[kind].values();
  }
  byName(kind: SeenKind, namespace: string, name: string): KubeObject | undefined {
    return this.#objects[kind].get(`${namespace}/${name}`);
  }

  /** The kubelet had said its last word before this program looked. */
  hadEnded(uid: string): boolean {
    return this.#first.get(uid) === true;
  }

  /** From an answer to a GET. */
  learn({ path, query }: KubeRequest, result: KubeResult): void {
    if (!result.ok || !isRecord(result.body)) return;
    const kind = kindOf(path);
    const one = ONE.exec(path)?.[1] as SeenKind | undefined;
    if (one !== undefined && isKubeObject(result.body)) this.#put(one, result.body);
    if (kind === undefined || !Array.isArray(result.body.items)) return;
    // A part of a list that is read in parts says nothing of the rest.
    if (query?.continue === undefined) this.#objects[kind].clear();
    const { metadata } = result.body;
    if (kind === 'pods' && query?.continue === undefined && !(isRecord(metadata) && metadata.continue)) this.#forget(result.body.items);
    for (const item of result.body.items as readonly unknown[]) if (isKubeObject(item)) this.#put(kind, item, false);
    this.#wakeAll();
  }

  async *hearing(path: string, lines: AsyncIterable<string>): AsyncGenerator<string> {
    const kind = kindOf(path);
    for await (const line of lines) {
      if (kind !== undefined) this.#hear(kind, line);
      yield line;
    }
  }

  /** Until the objects show it. `pod`: `namespace/name`, of pods. */
  until<T>(
    { kind, pod }: { kind: SeenKind; pod?: string },
    look: () => T | undefined,
    o: { timeoutMs: number | null; signal: AbortSignal },
  ): Promise<WaitEnd<T>> {
    const key = waitKey(kind, pod);
    return new Promise((resolve) => {
      let timer: unknown;
      const end = (result: WaitEnd<T>): void => {
        const waiters = this.#waiters.get(key);
        waiters?.delete(again);
        if (waiters?.size === 0) this.#waiters.delete(key);
        if (timer !== undefined) this.#clock.clearTimeout(timer);
        o.signal.removeEventListener('abort', givenUp);
        resolve(result);
      };
      const givenUp = (): void => end({ kind: 'given up' });
      const again = (): void => {
        const value = look();
        if (value !== undefined) end({ kind: 'shown', value });
      };
      const first = look();
      if (first !== undefined) return resolve({ kind: 'shown', value: first });
      if (o.signal.aborted) return resolve({ kind: 'given up' });
      o.signal.addEventListener('abort', givenUp, { once: true });
      if (o.timeoutMs !== null) timer = this.#clock.setTimeout(() => end({ kind: 'late' }), o.timeoutMs);
      const waiters = this.#waiters.get(key) ?? new Set();
      this.#waiters.set(key, waiters.add(again));
    });
  }

  #hear(kind: SeenKind, line: string): void {
    let event: unknown;
    try {
      event = JSON.parse(line);
    } catch {
      // The tree says what is wrong with it.
      return;
    }
    if (!isRecord(event) || !isKubeObject(event.object) || event.type === 'BOOKMARK' || event.type === 'ERROR') return;
    if (event.type === 'DELETED') {
      this.#objects[kind].delete(keyOf(event.object));
      const { uid = '' } = event.object.metadata;
      if (kind === 'pods') this.#told.ends(uid, { gone: true });
      this.#first.delete(uid);
    } else this.#put(kind, event.object, false);
    this.#wake(kind, event.object);
  }

  #put(kind: SeenKind, object: KubeObject, wake = true): void {
    this.#objects[kind].set(keyOf(object), slim(object));
    const { uid = '', deletionTimestamp } = object.metadata;
    // A kubelet that has evicted it, or refused it, begins nothing of it either.
    if (kind === 'pods' && (deletionTimestamp !== undefined || hasEnded(object.status))) this.#told.ends(uid, { gone: false });
    if (kind === 'pods' && !this.#first.has(uid)) this.#first.set(uid, hasEnded(object.status));
    if (kind === 'nodes') this.#told.says(wordOf(object.status));
    if (wake) this.#wake(kind, object);
  }

  /** All but these. */
  #forget(items: readonly unknown[]): void {
    const uids = new Set(items.map((item) => (isKubeObject(item) ? item.metadata.uid : '')));
    this.#first = new Map([...this.#first].filter(([uid]) => uids.has(uid)));
  }

  #wake(kind: SeenKind, object: KubeObject): void {
    for (const look of [...(this.#waiters.get(waitKey(kind, keyOf(object))) ?? [])]) look();
  }

  #wakeAll(): void {
    for (const waiters of [...this.#waiters.values()]) for (const look of [...waiters]) look();
  }
}

function wordOf(status: unknown): NodeWord {
  const conditions: unknown = isRecord(status) ? status.conditions : undefined;
  const ready = Array.isArray(conditions) ? conditions.find((c) => isRecord(c) && c.type === 'Ready') : undefined;
  const { reason, lastHeartbeatTime = '' } = isRecord(ready) ? ready : {};
  // By its own word: whoever has not heard of it for long gives another reason, and leaves the time as it is.
  return { isReady: reason !== 'KubeletNotReady', heartbeat: String(lastHeartbeatTime) };
}
function kindOf(path: string): SeenKind | undefined {
  return LEASES.test(path) ? 'leases' : LISTS.get(path);
}
/** There is one node, and one lease. */
function waitKey(kind: SeenKind, pod = ''): string {
  return kind === 'pods' ? `pods ${pod}` : kind;
}
function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
