/**
 * The API source: the pods that the cluster wants on this node, by list and watch.
 *
 * State held: every pod of this node as the API server last showed it, and the version the watch stands at.
 * Lost on restart: both.
 * Rebuilt from: one list. While the API server is away, what it showed last stays with podConfig.
 */

import type { ListWatchContext } from '../../../machines/api/listWatchMachine.ts';
import { type ApiSourceEvent, apiAddr, apiView } from '../../../machines/api/messages.ts';
import { decideWrite, type WriterPlan } from '../../../machines/api/podWriterDecide.ts';
import { shareData } from '../../../machines/data/sharedData.ts';
import { SharedMap } from '../../../machines/data/sharedMap.ts';
import { type KubeObject, kubePath, objectKey, UNREADABLE } from '../../../machines/kube/request.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { fullName } from '../../../machines/pod/names.ts';
import { unsafeName } from '../../../machines/pod/pathName.ts';
import { isMirror } from '../../../machines/pod/phase.ts';
import { LEFT_ALONE_ANNOTATION, shellOf } from '../../../machines/pod/setAside.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { podConfigAddr, type SourceError } from '../../../machines/pods/podConfig/messages.ts';
import { toApiPod, withOwnParts } from '../../../machines/pods/sources/apiPod.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { isRecord } from '../../../machines/shape/conform.ts';
import { listWatch, oncePerObject } from '../../api/client.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { type StartMeter, startMeter } from './startMeter.ts';

export interface ApiSourceOptions {
  nodeName: string;
  /** Takes the initial state from a watch (gate `WatchListClient`). */
  streams: boolean;
}

/** `api` under `node/pods/sources`. */
export function apiSourceSpec(o: ApiSourceOptions): ActorSpec<ApiSourceEvent> {
  return {
    id: 'api',
    type: 'actor',
    mailbox: { capacity: 16, key: (e) => e.type },
    start: (ctx) => {
      const source = new Source(ctx);
      let last: KubeObject | undefined;
      return listWatch(ctx, {
        streams: o.streams,
        what: `pods of node ${o.nodeName}`,
        path: kubePath.pods,
        query: { fieldSelector: `spec.nodeName=${o.nodeName}` },
        shared: (object) => {
          // Most pods of a node have the tolerations and volumes of another.
          last = shareData(last, withStatusOf(ctx, object));
          return last;
        },
        deliver: (context) => source.deliver(context),
      });
    },
  };
}

/** What the API server shows is most often what this node said. */
function withStatusOf({ registry }: ActorCtx<ApiSourceEvent>, object: KubeObject): KubeObject {
  const { status, metadata } = object;
  const ours = registry.read(statusesView)?.value.get(metadata.uid ?? '')?.status;
  if (ours === undefined || !isRecord(status) || object[UNREADABLE] !== undefined) return object;
  return { ...object, status: withOwnParts(status, ours) };
}

/** What one incarnation has made of the API server's objects: a change of some does not cost a look at all. */
class Source {
  readonly #ctx: ActorCtx<ApiSourceEvent>;
  readonly #meter: StartMeter;
  readonly #podOf = oncePerObject(toApiPod);
  #byUid = SharedMap.of<string, Pod>();
  /** What stands for a pod of which no version could be read: what runs of it goes on. By UID. */
  readonly #leftAlone = new Map<string, Pod>();
  /** UID to the key of the object that has it. */
  readonly #holders = new Map<string, string>();
  /** By the key of the object. */
  readonly #errors = new Map<string, SourceError>();
  /** Keys of objects whose UID another one holds. */
  readonly #twins = new Set<string>();

  constructor(ctx: ActorCtx<ApiSourceEvent>) {
    this.#ctx = ctx;
    this.#meter = startMeter(ctx);
    // A source that begins anew has heard nothing yet.
    if (ctx.registry.read(apiView.podsHeard) === undefined) this.#heard();
    const { metrics, clock } = ctx.ports;
    const silent = metrics.gauge(
      'actorlet_pod_source_silent_seconds',
      'Time since the API server last said anything about the pods of this node.',
    );
    metrics.onCollect(() => {
      const atMs = ctx.registry.read(apiView.podsHeard)?.value.atMonoMs ?? clock.monoMs();
      silent.set((clock.monoMs() - atMs) / 1000);
    }, ctx.path);
  }

  #heard(): void {
    this.#ctx.publish(apiView.podsHeard, { atMonoMs: this.#ctx.ports.clock.monoMs() });
  }

  deliver(context: ListWatchContext): void {
    this.#heard();
    const { registry, ports, path } = this.#ctx;
    const first = registry.read(apiView.pods)?.value.synced !== true;
    // A bookmark changes nothing, but a first list does even when it is empty.
    if (context.changed.length === 0 && !first && context.heard) {
      const known = registry.read(apiView.pods)?.value;
      if (known !== undefined) this.#ctx.publish(apiView.pods, { ...known, resourceVersion: context.resourceVersion });
      for (const [uid, kind] of plans(this.#ctx)) {
        if (kind !== 'rest' && kind !== 'end' && kind !== 'wait') registry.send(apiAddr.podWriters, { type: 'pod.write', uid });
      }
      return;
    }
    this.#take(context);
    const byUid = this.#byUid;
    this.#ctx.publish(apiView.pods, { synced: true, byUid, resourceVersion: context.resourceVersion });
    if (!first)
      this.#meter.saw(
        context.changed.flatMap((object) => this.#podOf(object) ?? []),
        byUid,
      );
    const names = context.changed.slice(0, 3).map((c) => `${c.metadata.namespace ?? ''}/${c.metadata.name}`);
    const more = context.changed.length > names.length ? ` and ${context.changed.length - names.length} more` : '';
    const what = first ? 'the API server gave its first list' : `the API server changed ${names.join(', ')}${more}`;
    const wanted: Pod[] = [...this.#leftAlone.values()];
    for (const pod of byUid.values()) if (!isMirror(pod)) wanted.push(pod);
    registry.send(podConfigAddr, {
      type: 'source.set',
      source: 'api',
      pods: wanted,
      errors: [...this.#errors.values()],
      causes: [{ atMs: ports.clock.wallMs(), by: path, what }],
    });
    const concerns = concerned(this.#ctx, { context, first, byUid, podOf: this.#podOf });
    // A writer that has nothing more to write may have something to forget.
    for (const [uid, kind] of plans(this.#ctx, concerns)) {
      if (kind !== 'rest') registry.send(apiAddr.podWriters, { type: 'pod.write', uid });
    }
  }

  #take(context: ListWatchContext): void {
    const byUid = SharedMap.draft(this.#byUid);
    for (const changed of context.changed) {
      const key = objectKey(changed);
      const { uid } = changed.metadata;
      if (uid === undefined) continue;
      this.#leftAlone.delete(uid);
      // Gone, or its name belongs to another pod by now.
      if (context.items.get(key)?.metadata.uid !== uid) this.#letGo(byUid, uid, key);
    }
    for (const changed of context.changed) {
      const unreadable = context.unreadable.get(objectKey(changed));
      this.#errors.delete(objectKey(changed));
      if (unreadable === undefined) continue;
      this.#errors.set(objectKey(changed), errorOf(changed, unreadable));
      const left = context.items.has(objectKey(changed)) ? null : leftAlone(changed, unreadable);
      if (left !== null) this.#leftAlone.set(left.metadata.uid, left);
    }
    for (const key of new Set([...context.changed.map(objectKey), ...this.#twins])) {
      if (this.#twins.delete(key)) this.#errors.delete(key);
      const now = context.items.get(key);
      if (now === undefined) continue;
      const pod = this.#podOf(now);
      const refused = this.#refusal(pod, key);
      if (pod !== null && refused === null) {
        this.#holders.set(pod.metadata.uid, key);
        byUid.set(pod.metadata.uid, pod);
      } else {
        if (now.metadata.uid !== undefined) this.#letGo(byUid, now.metadata.uid, key);
        this.#errors.set(key, errorOf(now, `${refused}; it is not run`));
      }
    }
    this.#byUid = byUid.finish();
  }

  #letGo(byUid: { delete(uid: string): unknown }, uid: string, key: string): void {
    if (this.#holders.get(uid) !== key) return;
    this.#holders.delete(uid);
    byUid.delete(uid);
  }

  /** Why an object is no pod of this node. */
  #refusal(pod: Pod | null, key: string): string | null {
    if (pod === null) return 'it has no UID, no namespace or no containers';
    const holder = this.#holders.get(pod.metadata.uid) ?? key;
    if (holder === key) return unsafeName(pod);
    this.#twins.add(key);
    return `pod ${holder} has its UID`;
  }
}

/** `fullName`: it is told of the pod that runs, if one does. */
function errorOf({ metadata: { name, namespace = '' } }: KubeObject, message: string): SourceError {
  return { where: `pod ${namespace}/${name} in the API`, message, fullName: `${name}_${namespace}` };
}

/** An unreadable pod, as far as it is named. Null: the object is deleted, or not named in full. */
function leftAlone({ metadata }: KubeObject, why: string): Pod | null {
  const { uid, namespace, deletionTimestamp } = metadata;
  if (uid === undefined || namespace === undefined || deletionTimestamp !== undefined) return null;
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, uid, namespace }, spec: { containers: [] }, status: {} };
  return shellOf(pod, why, LEFT_ALONE_ANNOTATION);
}

/**
 * What a writer that knows nothing would do about each of these pods; without `uids` about every one. So a writer is woken where
 * there is something to do: not for a pod that has no status here yet, and not by its own patch when the watch shows it.
 *
 * All are looked at about once a minute, when a bookmark says that nothing is missing here: a writer that was lost over its
 * work has forgotten it, and nothing that happens later need remind it (a mirror whose static pod is gone, the final deletion
 * of a pod, the last status of one that has ended).
 */
function plans({ registry, ports }: ActorCtx<ApiSourceEvent>, uids?: ReadonlySet<string>): [uid: string, WriterPlan['kind']][] {
  const pods = registry.read(podsView)?.value;
  const entries = registry.read(statusesView)?.value;
  const api = registry.read(apiView.pods)?.value;
  const node = registry.read(apiView.node)?.value;
  const common = { records: pods?.records, sourcesReady: pods?.sourcesReady === true, api, node, nowWallMs: ports.clock.wallMs() };
  const fresh = { written: null, latest: null, last: null, gone: new Set<string>() };
  const all = uids ?? new Set([...(pods?.records.keys() ?? []), ...(entries?.keys() ?? []), ...(api?.byUid.keys() ?? [])]);
  return [...all].map((uid) => {
    const { kind } = decideWrite({ ...common, ...fresh, uid, record: pods?.records.get(uid), entry: entries?.get(uid) });
    return [uid, kind];
  });
}

/** The pods whose writers should look: those that changed, and the static pods whose mirrors did. */
function concerned(
  ctx: ActorCtx<ApiSourceEvent>,
  o: { context: ListWatchContext; first: boolean; byUid: ReadonlyMap<string, Pod>; podOf(object: KubeObject): Pod | null },
): ReadonlySet<string> {
  const uids = new Set<string>();
  const mirrors = new Set<string>();
  for (const object of o.context.changed) {
    const pod = o.podOf(object);
    if (pod === null) continue;
    uids.add(pod.metadata.uid);
    if (isMirror(pod)) mirrors.add(fullName(pod));
  }
  if (o.first) for (const uid of o.byUid.keys()) uids.add(uid);
  const records = ctx.registry.read(podsView)?.value.records;
  if (mirrors.size > 0 || o.first) {
    for (const [uid, r] of records ?? []) if (r.source !== 'api' && (o.first || mirrors.has(fullName(r.pod)))) uids.add(uid);
  }
  return uids;
}
