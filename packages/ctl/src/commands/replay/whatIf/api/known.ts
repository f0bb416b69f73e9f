/**
 * What a recording tells of its API server: which objects were there, what others than the node did to them and when, what the server
 * made of what the node created, and when it was away or refused.
 */
import { isKubeObject, type KubeObject, type KubeRequest, slim } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Script } from '@actorlet/replay/src/lenient/script.ts';
import { isStop } from '@actorlet/replay/src/player/learn.ts';
import type { KnownPod } from '@actorlet/replay/src/player/pods.ts';
import { carryOut, type Route, route } from '@actorlet/world/src/kube/kubeRoutes.ts';
import { type Selector, selectorOf } from '@actorlet/world/src/kube/kubeSelectors.ts';
import { KubeStore } from '@actorlet/world/src/kube/kubeStore.ts';
import type { Resource } from '@actorlet/world/src/kube/resource.ts';
import { type Conversation, type Cut, conversationOf, type Exchange, type Heard } from './exchanges.ts';
import { Failures } from './failures.ts';
import { sameBut } from './same.ts';
import { wordsThen } from './words.ts';

/** What somebody else than the node did. `before` null: made it; `after` null: removed it. */
export interface Change {
  readonly atMs: number;
  readonly resource: Resource;
  readonly before: KubeObject | null;
  readonly after: KubeObject | null;
  /** Since the node made the object; null: the node did not make it. */
  readonly ageMs: number | null;
}
/** What the node created, and what the server made of it. */
export interface Created {
  readonly body: Readonly<Record<string, unknown>>;
  readonly object: KubeObject;
}
/** Objects that the recording tells of: all that a request asks for. */
interface Scope {
  readonly resource: Resource;
  readonly namespace: string;
  readonly query: KubeRequest['query'];
}
export interface KnownApi {
  /** In order of their versions. */
  readonly first: readonly (readonly [Resource, KubeObject])[];
  readonly changes: readonly Change[];
  /** By {@link collectionKey}. */
  readonly created: ReadonlyMap<string, readonly Created[]>;
  readonly failures: Failures;
  readonly cuts: readonly Cut[];
  /** Requests that no object answers. */
  readonly others: readonly Exchange[];
  /** Fields of a pod's status that the server was too old to know. */
  readonly leavesOut: ReadonlySet<string>;
  /** Whether the recording tells what is there. */
  tells(at: Route, query: KubeRequest['query']): boolean;
  /** How the pod was there at the end, before the daemon was told to stop. `how`: as the node saw it. */
  ends(pod: KnownPod, how: string): string;
}

export function knownApi(script: Script, wallMs: (monoMs: number) => number): KnownApi {
  const stop = script.done.find(({ input }) => isStop(input));
  return new Reader(conversationOf(script), wallMs).read(stop?.order ?? Number.POSITIVE_INFINITY);
}

/** Null: it is nothing that is played, such as a token or a review. */
export function played(request: KubeRequest): Route | null {
  try {
    const at = route(request.path);
    return at.sub === null || at.sub === 'status' || at.sub === 'resize' || at.sub === 'ephemeralcontainers' ? at : null;
  } catch {
    return null;
  }
}

const keyOf = (resource: Resource, { metadata }: KubeObject): string => `${resource.name} ${metadata.namespace ?? ''}/${metadata.name}`;
export const collectionKey = (resource: Resource, namespace: string): string => `${resource.name} ${namespace}`;

type Step = { at: Route; order: number } & ({ exchange: Exchange } | { heard: Heard });

/** Keeps what the server kept, so that whatever the node did not do itself is somebody else's. */
class Reader {
  readonly #said: Conversation;
  readonly #store: KubeStore;
  readonly #first: (readonly [Resource, KubeObject])[] = [];
  readonly #changes: Change[] = [];
  readonly #created = new Map<string, Created[]>();
  /** Versions that the node's own writes made, and UIDs that its deletions removed. */
  readonly #own = new Set<string>();
  /** The node's own writes whose answers were lost, by key: what comes of them is seen later, or never. */
  readonly #unanswered = new Map<string, { readonly at: Route; readonly request: KubeRequest; readonly atMs: number }[]>();
  /** When the node made it, by UID. */
  readonly #madeMs = new Map<string, number>();
  /** UIDs of what is no more. */
  readonly #gone = new Set<string>();
  /** Keys of objects of which it is known whether they are there. */
  readonly #keys = new Set<string>();
  readonly #scopes: Scope[] = [];
  /** Of watches whose initial events come: what they had. */
  readonly #initial = new Map<KubeRequest, Set<string>>();
  #nowMs = 0;

  constructor(said: Conversation, wallMs: (monoMs: number) => number) {
    this.#said = said;
    this.#store = new KubeStore({ newUid: () => '', wallMs: () => wallMs(this.#nowMs), forPeople: false });
  }

  /** @param stop Number of the input that told the daemon to stop. */
  read(stop: number): KnownApi {
    const { exchanges, heard, cuts } = this.#said;
    this.#store.leavesOut = leftOut(exchanges);
    const steps: Step[] = [];
    const others: Exchange[] = [];
    for (const exchange of exchanges) {
      const at = played(exchange.request);
      if (at === null) others.push(exchange);
      if (at === null) continue;
      steps.push({ at, order: exchange.order, exchange });
      this.#noteOwn(at, exchange);
    }
    for (const one of heard) {
      const at = played(one.request);
      if (at !== null) steps.push({ at, order: one.order, heard: one });
    }
    let ends: KnownApi['ends'] | null = null;
    for (const step of steps.sort((a, b) => a.order - b.order)) {
      if (step.order > stop) ends ??= wordsThen(this.#store);
      if ('heard' in step) this.#hear(step.at, step.heard);
      else if (!step.exchange.isWatch) this.#answered(step.at, step.exchange);
    }
    return {
      first: this.#first.sort(([, a], [, b]) => versionOf(a) - versionOf(b)),
      leavesOut: this.#store.leavesOut,
      ...{ changes: this.#changes, created: this.#created, failures: new Failures(exchanges), cuts, others },
      ...{ tells: (at, query) => this.#tells(at, query), ends: ends ?? wordsThen(this.#store) },
    };
  }

  #noteOwn(at: Route, { request, isWatch, answer, atMs }: Exchange): void {
    if (isWatch || request.verb === 'GET') return;
    const { resource, namespace, name } = at;
    if (!answer.ok && answer.failure.outcome === 'unknown') {
      const key = `${resource.name} ${namespace}/${name ?? nameIn(request.body)}`;
      this.#unanswered.set(key, [...(this.#unanswered.get(key) ?? []), { at, request, atMs }]);
    }
    if (!answer.ok || !isKubeObject(answer.body)) return;
    const object = answer.body;
    this.#own.add(versionKey(resource, object));
    if (isOver(request, object) && name !== null) this.#own.add(String(object.metadata.uid));
  }

  #hear({ resource, namespace }: Route, { request, atMs, said }: Heard): void {
    this.#nowMs = atMs;
    const scope = { resource, namespace, query: request.query };
    const initial = this.#initial.get(request) ?? new Set();
    this.#initial.set(request, initial);
    if (said === 'SYNCED') {
      this.#lacks(scope, initial, Number.POSITIVE_INFINITY);
      this.#scopes.push(scope);
      return;
    }
    const object = known(resource, said.object);
    if (said.isInitial) initial.add(keyOf(resource, object));
    const { uid = '' } = object.metadata;
    if (said.type === 'DELETED') {
      if (!this.#own.has(uid)) this.#goes(resource, object);
      else this.#takes(resource, object);
    } else if (!this.#own.has(versionKey(resource, object)) && !(this.#own.has(uid) && isEnding(object)))
      this.#sees(resource, object, said.isInitial);
  }

  #answered(at: Route, { request, answer, settledMs }: Exchange): void {
    this.#nowMs = settledMs;
    const { resource, namespace, name } = at;
    if (!answer.ok) {
      const there = name === null ? undefined : this.#find(resource, namespace, name);
      if (name !== null && request.verb === 'GET' && answer.failure.code === 404) {
        this.#keys.add(`${resource.name} ${namespace}/${name}`);
        if (there !== undefined) this.#goes(resource, there);
      }
      return;
    }
    const { body } = answer;
    if (request.verb === 'GET' && name === null) this.#lists(at, request, body);
    else if (isKubeObject(body)) {
      const object = known(resource, body);
      if (request.verb === 'GET') this.#sees(resource, object, true);
      else if (request.verb === 'POST') this.#made(at, request, object);
      else this.#wrote(at, request, object);
    }
  }

  #lists({ resource, namespace }: Route, { query }: KubeRequest, body: unknown): void {
    if (!isRecord(body) || !Array.isArray(body.items)) return;
    const metadata = isRecord(body.metadata) ? body.metadata : {};
    const keys = new Set<string>();
    for (const item of body.items.filter(isKubeObject)) {
      const object = known(resource, item);
      keys.add(keyOf(resource, object));
      if (!this.#own.has(versionKey(resource, object))) this.#sees(resource, object, true);
    }
    // A page is not all there is.
    if (query?.continue !== undefined || (metadata.continue ?? '') !== '') return;
    const scope = { resource, namespace, query };
    this.#lacks(scope, keys, Number(metadata.resourceVersion ?? Number.POSITIVE_INFINITY));
    this.#scopes.push(scope);
  }

  /** What a list of all of them does not have is gone, unless it is newer. */
  #lacks({ resource, namespace, query }: Scope, keys: ReadonlySet<string>, version: number): void {
    const matches = matchesOf(resource, query, namespace);
    for (const object of this.#store.list(resource.name))
      if (matches(object) && !keys.has(keyOf(resource, object)) && versionOf(object) <= version) this.#goes(resource, object);
  }

  /** @param wasThere It was not made just now, as far as is known. */
  #sees(resource: Resource, object: KubeObject, wasThere: boolean): void {
    const key = keyOf(resource, object);
    const { uid = '', namespace = '', name } = object.metadata;
    const is = this.#find(resource, namespace, name);
    if (this.#gone.has(uid) || (is !== undefined && versionOf(object) <= versionOf(is))) return;
    if (is !== undefined && is.metadata.uid !== uid) this.#goes(resource, is);
    const before = is?.metadata.uid === uid ? is : null;
    if (before === null && wasThere && !this.#isNew(resource, object)) this.#first.push([resource, object]);
    else if ((before === null || !sameBut(before, object)) && !this.#isOwn(key, before, object)) this.#changed(resource, before, object);
    this.#keys.add(key);
    this.#store.load([[resource, object]]);
  }

  /** Whether a write of the node made it so, though no answer said it. */
  #isOwn(key: string, before: KubeObject | null, after: KubeObject): boolean {
    const asked = this.#unanswered.get(key) ?? [];
    const found = asked.find(({ request, atMs }) => {
      if (atMs > this.#nowMs || request.verb === 'DELETE') return false;
      if (before === null) return request.verb === 'POST';
      const own = request.verb === 'POST' ? null : this.#tried(request);
      return own !== null && sameBut(own, after);
    });
    if (found === undefined) return false;
    this.#unanswered.set(
      key,
      asked.filter((one) => one !== found),
    );
    if (before === null) this.#made(found.at, found.request, after);
    return true;
  }

  /** What a write makes of an object as it is. Null: it would be refused. */
  #tried(request: KubeRequest): KubeObject | null {
    const clock = { wallMs: () => 0 } as never;
    const own = carryOut(this.#store, clock, { ...request, query: { ...request.query, dryRun: 'All' } });
    return own.ok && isKubeObject(own.body) ? own.body : null;
  }

  /** It is known that it was not there. */
  #isNew(resource: Resource, object: KubeObject): boolean {
    return (
      this.#keys.has(keyOf(resource, object)) ||
      this.#scopes.some((scope) => scope.resource === resource && matchesOf(resource, scope.query, scope.namespace)(object))
    );
  }

  #changed(resource: Resource, before: KubeObject | null, after: KubeObject | null): void {
    // The node says them, and reads none.
    if (resource.name === 'events') return;
    const madeMs = this.#madeMs.get(String((before ?? after)?.metadata.uid));
    this.#changes.push({ atMs: this.#nowMs, resource, before, after, ageMs: madeMs === undefined ? null : this.#nowMs - madeMs });
  }

  #goes(resource: Resource, object: KubeObject): void {
    const { uid = '', namespace = '', name } = object.metadata;
    if (this.#gone.has(uid)) return;
    const is = this.#find(resource, namespace, name);
    this.#changed(resource, is?.metadata.uid === uid ? is : object, null);
    this.#takes(resource, object);
  }

  #takes(resource: Resource, { metadata: { uid = '', namespace = '', name } }: KubeObject): void {
    this.#gone.add(uid);
    if (this.#find(resource, namespace, name)?.metadata.uid === uid) this.#store.take(resource, { namespace, name });
  }

  #made({ resource, namespace }: Route, { body }: KubeRequest, object: KubeObject): void {
    const key = collectionKey(resource, namespace);
    const all = this.#created.get(key) ?? [];
    all.push({ body: isRecord(body) ? body : {}, object });
    this.#created.set(key, all);
    this.#madeMs.set(String(object.metadata.uid), this.#nowMs);
    this.#keys.add(keyOf(resource, object));
    const is = this.#find(resource, object.metadata.namespace ?? '', object.metadata.name);
    if (is === undefined || versionOf(is) < versionOf(object)) this.#store.load([[resource, object]]);
  }

  /** Also tells what others wrote before, which the node did not hear of. */
  #wrote({ resource, namespace, name }: Route, request: KubeRequest, object: KubeObject): void {
    const key = keyOf(resource, object);
    this.#keys.add(key);
    const before = this.#find(resource, namespace, name ?? '');
    if (before === undefined) {
      if (request.verb !== 'DELETE' && !this.#gone.has(String(object.metadata.uid))) {
        this.#first.push([resource, object]);
        this.#store.load([[resource, object]]);
      }
      return;
    }
    if (isOver(request, object)) {
      this.#takes(resource, object);
      return;
    }
    if (versionOf(object) <= versionOf(before)) return;
    const own = this.#tried(request);
    if (own !== null && !sameBut(own, object)) this.#changed(resource, own, object);
    this.#store.load([[resource, object]]);
  }

  #find({ name: resource }: Resource, namespace: string, name: string): KubeObject | undefined {
    return this.#store.find(resource, namespace, name);
  }

  #tells({ resource, namespace, name }: Route, query: KubeRequest['query']): boolean {
    const only = name ?? onlyOne(query);
    if (only !== null && this.#keys.has(`${resource.name} ${namespace}/${only}`)) return true;
    return this.#scopes.some((scope) => {
      if (scope.resource !== resource || (scope.namespace !== '' && scope.namespace !== namespace)) return false;
      const { fieldSelector = '', labelSelector = '' } = scope.query ?? {};
      const isAll = fieldSelector === '' && labelSelector === '';
      // The node asks for its own pods alone.
      if (name !== null) return isAll || resource.name === 'pods' || onlyOne(scope.query) === name;
      return isAll || (fieldSelector === (query?.fieldSelector ?? '') && labelSelector === (query?.labelSelector ?? ''));
    });
  }
}

/** The name of the only object that is asked for; null: there may be more. */
export function onlyOne(query: KubeRequest['query']): string | null {
  return /(?:^|,)metadata\.name=([^,]+)/.exec(query?.fieldSelector ?? '')?.[1] ?? null;
}

function nameIn(body: unknown): string {
  return isRecord(body) && isRecord(body.metadata) ? String(body.metadata.name ?? '') : '';
}

/** Fields that the node wrote, and that no answer had. */
function leftOut(exchanges: readonly Exchange[]): Set<string> {
  const [sent, kept] = [new Set<string>(), new Set<string>()];
  for (const { request, answer } of exchanges) {
    if (request.verb !== 'PATCH' || !/\/pods\/[^/]+\/status$/.test(request.path) || !answer.ok) continue;
    for (const name of statusFields(request.body)) sent.add(name);
    for (const name of statusFields(answer.body)) kept.add(name);
  }
  return new Set([...sent].filter((name) => !kept.has(name)));
}

/** Of a pod's status, its conditions and its containers. */
function statusFields(pod: unknown): string[] {
  if (!isRecord(pod) || !isRecord(pod.status)) return [];
  const filled = (o: Readonly<Record<string, unknown>>): string[] =>
    Object.keys(o).filter((name) => !name.startsWith('$') && o[name] !== null && !(Array.isArray(o[name]) && o[name].length === 0));
  const members = Object.entries(pod.status).flatMap(([name, value]) =>
    Array.isArray(value) && (name === 'conditions' || name.toLowerCase().endsWith('containerstatuses')) ? value.filter(isRecord) : [],
  );
  return [pod.status, ...members].flatMap(filled);
}

function matchesOf(resource: Resource, query: KubeRequest['query'], namespace: string): Selector['matches'] {
  try {
    return selectorOf(resource, query, namespace).matches;
  } catch {
    return () => false;
  }
}

/** As the server keeps it. Members of a list do not say what they are. */
function known({ apiVersion, kind }: Resource, object: KubeObject): KubeObject {
  return { ...slim(object), apiVersion, kind };
}

function versionOf({ metadata }: KubeObject): number {
  return Number(metadata.resourceVersion ?? 0);
}

function versionKey(resource: Resource, object: KubeObject): string {
  return `${keyOf(resource, object)} ${object.metadata.resourceVersion ?? ''}`;
}

/** A deletion that removed it: nothing is left to wait for. */
function isOver({ verb, body, path }: KubeRequest, { metadata }: KubeObject): boolean {
  const waits = Array.isArray(metadata.finalizers) && metadata.finalizers.length > 0;
  const isPod = played({ verb, path })?.resource.name === 'pods';
  return verb === 'DELETE' && !waits && (!isPod || (isRecord(body) && body.gracePeriodSeconds === 0));
}

/** The server takes its grace away on the way to removing it. */
function isEnding({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0;
}
