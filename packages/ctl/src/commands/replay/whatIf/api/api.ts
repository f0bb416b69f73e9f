/**
 * The simulation's API server in the place of the recorded one: it has the recorded objects with their UIDs and versions, and what the
 * node writes changes them. What others did then, they do again at its time, to the object as it is now.
 */
import {
  isKubeObject,
  type KubeObject,
  type KubeRequest,
  type KubeResult,
  type KubeVerb,
  kubePath,
} from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi, KubeCallOptions } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Otherwise } from '@actorlet/replay/src/lenient/lenient.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import type { Route } from '@actorlet/world/src/kube/kubeRoutes.ts';
import type { KubeStore } from '@actorlet/world/src/kube/kubeStore.ts';
import type { Resource } from '@actorlet/world/src/kube/resource.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { callName, type Took } from '../lives.ts';
import type { Failing } from './failures.ts';
import { type Change, type Created, collectionKey, type KnownApi, onlyOne, played } from './known.ts';
import { merged } from './merge.ts';
import { answerLike } from './others.ts';

export interface PlayedApiOptions {
  readonly clock: Clock;
  readonly seed: number;
  readonly took: Took;
  /** UIDs of pods that are left out. */
  readonly without: readonly string[];
  /** Watches say nothing. */
  readonly isSilent: boolean;
}
const ENDED: ReadonlySet<unknown> = new Set(['Succeeded', 'Failed']);

export class PlayedApi {
  /** What the node asked for, and the recording does not tell of: it was answered as if that were not there. */
  readonly untold = new Set<string>();
  readonly #known: KnownApi;
  readonly #o: PlayedApiOptions;
  readonly #kube: SimKube;
  readonly #api: KubeApi;
  /** What the node created in the recording and has not created here yet, by collection. */
  readonly #created: Map<string, Created[]>;
  /** Changes to what the node has to create first, by UID. */
  readonly #later: Map<string | undefined, Change[]>;
  /** Changes that wait until another object of this name is gone. */
  #waiting: Change[] = [];

  constructor(known: KnownApi, o: PlayedApiOptions) {
    const { clock, took } = o;
    this.#known = known;
    this.#o = o;
    this.#created = new Map([...known.created].map(([key, all]) => [key, [...all]]));
    this.#kube = simKube({ clock, rng: simRng(`api-${o.seed}`), latencyMs: () => 0, completed: (r, made) => this.#completed(r, made) });
    this.#kube.trouble = {
      ...this.#kube.trouble,
      verdict: (request) => ({ delayMs: took(callName('kube.request', [request])) }),
      line: () => (o.isSilent ? 'silence' : 'pass'),
    };
    this.store.leavesOut = known.leavesOut;
    this.#api = this.#kube.connect({ power: { on: true }, clock });
    this.store.load(known.first.filter(([, object]) => !this.#isLeftOut(object)));
    this.store.onEvent(({ type }) => {
      if (type === 'DELETED' && this.#waiting.length > 0) this.#at(0, () => this.#tryAgain());
    });
    const changes = known.changes.filter(
      ({ before, after }) => ![before, after].some((object) => object !== null && this.#isLeftOut(object)),
    );
    this.#later = Map.groupBy(
      changes.filter(({ ageMs }) => ageMs !== null),
      uidOf,
    );
    for (const change of changes) if (change.ageMs === null) this.#at(change.atMs - clock.monoMs(), () => this.#do(change));
    for (const { request, atMs, how } of known.cuts) {
      const isIt = ({ path, query }: KubeRequest) => path === request.path && query?.fieldSelector === request.query?.fieldSelector;
      this.#at(atMs - clock.monoMs(), () => this.#kube.cutWatches(how, isIt));
    }
  }

  get store(): KubeStore {
    return this.#kube.store;
  }

  readonly answers: Otherwise = (name, args) => {
    if (name === 'kube.closeConnections')
      return { result: this.#api.closeConnections(...(args as Parameters<KubeApi['closeConnections']>)) };
    if (name !== 'kube.request' && name !== 'kube.watch') return undefined;
    const isWatch = name === 'kube.watch';
    const [given, opts] = args as [KubeRequest, KubeCallOptions];
    const request: KubeRequest = isWatch ? { ...given, verb: 'GET' } : given;
    const failing = this.#known.failures.at(request, isWatch, this.#o.clock.monoMs());
    if (failing !== null) return { result: this.#fails(failing, request, opts) };
    const at = played(request);
    if (request.path === kubePath.version) return { result: this.#api.request(request, opts) };
    if (at === null) return isWatch ? undefined : { result: this.#asThen(request, opts) };
    this.#note(at, request);
    return { result: isWatch ? this.#api.watch(request, opts) : this.#api.request(request, opts) };
  };

  #at(ms: number, act: () => void): void {
    this.#o.clock.setTimeout(act, Math.max(0, ms));
  }

  #note(at: Route, { verb, path, query }: KubeRequest): void {
    const { resource, namespace } = at;
    const only = at.name ?? onlyOne(query);
    const isThere = only !== null && this.store.find(resource.name, namespace, only) !== undefined;
    if (verb !== 'GET' || isThere || this.#known.tells(at, query)) return;
    this.untold.add(at.name === null && only !== null ? `${path}/${only}` : path);
  }

  #fails({ failure, tookMs }: Failing, { verb }: KubeRequest, { signal, timeoutMs }: KubeCallOptions): Promise<KubeResult> {
    const ms = failure.reason === 'Timeout' && timeoutMs !== null ? timeoutMs : tookMs;
    return this.#after(ms, { ok: false, failure }, { verb, signal });
  }

  #after(ms: number, answer: KubeResult, { verb, signal }: { verb: KubeVerb; signal: AbortSignal }): Promise<KubeResult> {
    return new Promise((resolve) => {
      const aborted = (): void =>
        resolve({
          ...{ ok: false },
          failure: { code: 0, reason: 'Aborted', message: 'the call was given up', outcome: verb === 'GET' ? 'failed' : 'unknown' },
        });
      if (signal.aborted) aborted();
      else signal.addEventListener('abort', aborted, { once: true });
      this.#at(ms, () => resolve(answer));
    });
  }

  /** Such as a token. */
  #asThen(request: KubeRequest, opts: KubeCallOptions): Promise<unknown> {
    const { clock, took } = this.#o;
    const answer = answerLike(this.#known.others, request, clock.monoMs());
    const tookMs = took(callName('kube.request', [request]));
    if (answer !== null) return this.#after(tookMs, answer, { verb: request.verb, signal: opts.signal });
    this.untold.add(request.path);
    const failure = { code: 404, reason: 'NotFound', message: 'the recording does not tell of it', outcome: 'failed' } as const;
    return this.#fails({ failure, tookMs }, request, opts);
  }

  #isLeftOut({ metadata }: KubeObject): boolean {
    return this.#o.without.includes(String(metadata.uid));
  }

  /** As the recorded server made it: with its UID, and with what the server added. */
  #completed(resource: Resource, made: KubeObject): KubeObject {
    const all = this.#created.get(collectionKey(resource, made.metadata.namespace ?? '')) ?? [];
    const { generateName } = made.metadata;
    const isIt = ({ metadata }: KubeObject): boolean =>
      generateName === undefined ? metadata.name === made.metadata.name : metadata.generateName === generateName;
    const found = all.findIndex(({ object }) => isIt(object));
    const [then] = found < 0 ? [] : all.splice(found, 1);
    if (then === undefined) return made;
    const { resourceVersion: _, creationTimestamp: __, managedFields: ___, ...metadata } = then.object.metadata;
    const completed = merged(then.body, { ...then.object, metadata }, made);
    if (!isKubeObject(completed)) return made;
    const { uid } = metadata;
    for (const change of this.#later.get(uid) ?? []) this.#at(change.ageMs ?? 0, () => this.#do(change));
    this.#later.delete(uid);
    return completed;
  }

  #do(change: Change): void {
    const { resource, before, after } = change;
    const { namespace = '', name = '', uid } = (before ?? after)?.metadata ?? { name: '' };
    const is = this.store.find(resource.name, namespace, name);
    if (after !== null && before === null) {
      // Nobody makes a second one of that name.
      if (is === undefined) this.store.keep(resource, after);
      else if (is.metadata.uid !== uid) this.#waiting.push(change);
      return;
    }
    if (this.#waiting.some((one) => uidOf(one) === uid)) this.#waiting.push(change);
    else if (is === undefined || before === null || is.metadata.uid !== uid) return;
    else if (after === null) this.#remove(resource, before, is);
    else this.#change(resource, { before, after, is });
  }

  #tryAgain(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (const change of all) this.#do(change);
  }

  #change(resource: Resource, { before, after, is }: { before: KubeObject; after: KubeObject; is: KubeObject }): void {
    const isDeletion = before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined;
    const { namespace = '', name, deletionGracePeriodSeconds } = after.metadata;
    // The server removes one that ended at once.
    if (isDeletion && isEnded(resource, is))
      this.store.delete(resource, { namespace, name }, { gracePeriodSeconds: Number(deletionGracePeriodSeconds ?? 0) });
    else this.store.keep(resource, merged(before, after, is) as KubeObject);
  }

  /** A pod that had ended then and runs now ends first. */
  #remove(resource: Resource, before: KubeObject, is: KubeObject): void {
    const { namespace = '', name } = is.metadata;
    const wasAsked = before.metadata.deletionTimestamp !== undefined;
    if (resource.name === 'pods' && isEnded(resource, before) && !wasAsked && !isEnded(resource, is))
      this.store.delete(resource, { namespace, name }, {});
    else this.store.take(resource, { namespace, name });
  }
}

function uidOf({ before, after }: Change): string | undefined {
  return (before ?? after)?.metadata.uid;
}

function isEnded({ name }: Resource, { status }: KubeObject): boolean {
  return name === 'pods' && isRecord(status) && ENDED.has(status.phase);
}
