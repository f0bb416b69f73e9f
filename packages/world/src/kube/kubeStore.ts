/**
 * What an API server keeps: objects with resource versions, and the history that watches replay. Optimistic conflicts,
 * preconditions, graceful deletion, finalizers and the status sub-resource are those of the real one.
 */

import { copyData } from '@actorlet/kubelet/machines/data/copyData.ts';
import { sameData } from '@actorlet/kubelet/machines/data/sameData.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { applyApiDefaults } from '@actorlet/kubelet/machines/pods/sources/defaults.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { quoted } from '@actorlet/kubelet/machines/text/errorList.ts';
import { ApiFault } from './apiFault.ts';
import { checkKind, checkName, checkPod, checkPodUpdate, readable } from './kubeChecks.ts';
import type { Pin } from './kubeSelectors.ts';
import { KubeTable } from './kubeTable.ts';
import type { Resource } from './resource.ts';
import { timestamp } from './timestamp.ts';

export interface StoreEvent {
  rv: number;
  resource: string;
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: KubeObject;
  /** Before the change; what decides whether a watch with a selector ever saw it. */
  before: KubeObject | undefined;
}

export interface DeleteOptions {
  gracePeriodSeconds?: number;
  uid?: string;
  resourceVersion?: string;
}

const RV_START = 1_000;
/** Where the history is bounded it forgets its older half at these limits. */
const HISTORY_MAX = 20_000;
/** As etcd takes them by default. */
const OBJECT_BYTES_MAX = 1_572_864;
/** Of objects, as JSON. */
const HISTORY_BYTES_MAX = 64 * 1024 * 1024;

export class KubeStore {
  readonly #objects = new Map<string, KubeTable>();
  #history: (StoreEvent & { bytes: number })[] = [];
  #historyBytes = 0;
  #rv = RV_START;
  #compacted = RV_START;
  readonly #listeners = new Set<(e: StoreEvent) => void>();
  /** Fields of a pod's status, its conditions and containers that this server is too old to know: it drops them without a word. */
  leavesOut: ReadonlySet<string> = new Set();
  readonly #newUid: (resource: string) => string;
  readonly #completed: (r: Resource, made: KubeObject) => KubeObject;
  readonly #wallMs: () => number;
  readonly #validates: boolean;
  /** Older history is forgotten at a bound. So what waits for readers must not outlive it. */
  readonly forgets: boolean;
  /** What is asked for is judged and answered, and not kept. */
  #dry = false;

  /**
   * `forPeople`: pods that make no sense are refused, and old history is forgotten. `completed`: what an object becomes that is
   * created.
   */
  constructor(o: {
    newUid: (resource: string) => string;
    wallMs: () => number;
    forPeople: boolean;
    completed?: ((r: Resource, made: KubeObject) => KubeObject) | undefined;
  }) {
    this.#completed = o.completed ?? ((_, made) => made);
    this.#validates = o.forPeople;
    this.forgets = o.forPeople;
    this.#newUid = o.newUid;
    this.#wallMs = o.wallMs;
  }

  get resourceVersion(): number {
    return this.#rv;
  }
  get compactedTo(): number {
    return this.#compacted;
  }
  onEvent(fn: (e: StoreEvent) => void): () => void {
    this.#listeners.add(fn);
    return () => void this.#listeners.delete(fn);
  }
  /** History up to now is gone: watches and pages from before it are answered with 410. */
  compact(): void {
    this.#compacted = this.#rv;
    this.#history = [];
    this.#historyBytes = 0;
  }
  /** Gives what puts this state back, as a restore of etcd does: versions are used again, and there is no history before it. */
  backup(): () => void {
    const rv = this.#rv;
    const objects = [...this.#objects].map(([resource, table]) => [resource, table.copy()] as const);
    return () => {
      this.#objects.clear();
      for (const [resource, table] of objects) this.#objects.set(resource, table.copy());
      this.#rv = rv;
      this.compact();
    };
  }
  /** What another server kept, with its UIDs and versions, beside what is there. There is no history before it. */
  load(objects: Iterable<readonly [Resource, KubeObject]>): void {
    if (this.#objects.size === 0) this.#rv = 1;
    for (const [r, object] of objects) {
      this.#table(r.name).set(keyOf(object), object);
      this.#rv = Math.max(this.#rv, versionOf(object));
    }
    this.compact();
  }
  /** The object as another server kept it. Its version is the next one where that of the object is in the past. */
  keep(r: Resource, object: KubeObject): KubeObject {
    this.#rv = Math.max(this.#rv, versionOf(object) - 1);
    return this.#put(r, object, this.find(r.name, object.metadata.namespace ?? '', object.metadata.name));
  }
  /** Removes it, whatever it waits for. */
  take(r: Resource, at: { namespace: string; name: string }): void {
    const object = this.find(r.name, at.namespace, at.name);
    if (object !== undefined) this.#remove(r, object);
  }
  find(resource: string, namespace: string, name: string): KubeObject | undefined {
    return this.#table(resource).get(`${namespace}/${name}`);
  }

  /** What `fn` writes is judged and answered, and not kept. */
  dryRun<T>(fn: () => T): T {
    this.#dry = true;
    try {
      return fn();
    } finally {
      this.#dry = false;
    }
  }
  /** The version of the last change of that kind; 0 where the history does not know it. */
  changedAt(resource: string): number {
    return this.#history.findLast((e) => e.resource === resource)?.rv ?? 0;
  }
  since(rv: number): readonly StoreEvent[] {
    return this.#history.filter((e) => e.rv > rv);
  }

  /** Sorted by namespace and name. `pin`: only those whose field has that value. */
  list(resource: string, pin?: Pin): KubeObject[] {
    return this.#table(resource).list(pin);
  }
  /** As it was at that version, by what history there is. */
  listAt(resource: string, rv: number): KubeObject[] {
    if (rv < this.#compacted) throw new ApiFault(410, 'Expired', `The resourceVersion for the provided list is too old: ${rv}`);
    const objects = new Map(this.list(resource).map((o) => [`${o.metadata.namespace ?? ''}/${o.metadata.name}`, o]));
    for (const { object, before } of this.since(rv)
      .filter((e) => e.resource === resource)
      .reverse()) {
      const key = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
      if (before === undefined) objects.delete(key);
      else objects.set(key, before);
    }
    return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, o]) => o);
  }
  get(r: Resource, namespace: string, name: string): KubeObject {
    const found = this.#table(r.name).get(`${namespace}/${name}`);
    if (found === undefined) throw new ApiFault(404, 'NotFound', `${r.name} "${name}" not found`);
    return found;
  }

  create(r: Resource, namespace: string, given: unknown): KubeObject {
    const object = copyData(readable(r, given));
    if (this.#validates) checkKind(r, object);
    const metadata = isRecord(object.metadata) ? object.metadata : {};
    const generated = typeof metadata.generateName === 'string' ? `${metadata.generateName}${this.#newUid(r.name).slice(0, 5)}` : undefined;
    const name = typeof metadata.name === 'string' && metadata.name !== '' ? metadata.name : generated;
    if (name === undefined) throw new ApiFault(422, 'Invalid', `${r.kind}: metadata.name: required`);
    const key = `${namespace}/${name}`;
    if (this.#table(r.name).get(key) !== undefined) throw new ApiFault(409, 'AlreadyExists', `${r.name} "${name}" already exists`);
    if (r.namespaced && typeof metadata.namespace === 'string' && metadata.namespace !== namespace)
      throw new ApiFault(400, 'BadRequest', 'the namespace of the object does not match the namespace of the request');
    // What only a server sets is not taken from a client.
    const { namespace: _n, deletionTimestamp: _d, deletionGracePeriodSeconds: _g, ...own } = metadata;
    const made: KubeObject = {
      ...object,
      apiVersion: r.apiVersion,
      kind: r.kind,
      metadata: {
        ...own,
        name,
        ...(r.namespaced ? { namespace } : {}),
        uid: this.#newUid(r.name),
        creationTimestamp: this.#now(),
      },
    };
    checkName(r, name);
    if (r.name === 'pods') {
      // A test's pod has what a pod must have; the rest is filled in as the real server does.
      applyApiDefaults(made as unknown as Pod);
      if (this.#validates) checkPod(made);
      made.metadata.generation = 1;
      made.status = this.#keptOf(made.status ?? { phase: 'Pending' });
    }
    return this.#put(r, this.#completed(r, made), undefined);
  }

  /** Replaces all but the status, or with `status` the status (and labels and annotations) only. */
  update(r: Resource, at: { namespace: string; name: string; status: boolean; sub?: string | null }, given: unknown): KubeObject {
    const before = this.get(r, at.namespace, at.name);
    const asked = readable(r, given);
    if (this.#validates) checkKind(r, asked);
    const askedMetadata = isRecord(asked.metadata) ? asked.metadata : {};
    const { uid, resourceVersion } = askedMetadata;
    const conflict = (what: string): ApiFault =>
      new ApiFault(409, 'Conflict', `Operation cannot be fulfilled on ${r.name} "${at.name}": ${what}`);
    if (uid !== undefined && uid !== before.metadata.uid)
      throw conflict(`Precondition failed: UID in precondition: ${String(uid)}, UID in object meta: ${before.metadata.uid ?? ''}`);
    if (askedMetadata.name !== undefined && askedMetadata.name !== before.metadata.name)
      throw new ApiFault(
        400,
        'BadRequest',
        `the name of the object (${String(askedMetadata.name)}) does not match the name on the URL (${at.name})`,
      );
    if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== before.metadata.resourceVersion)
      throw conflict('the object has been modified; please apply your changes to the latest version and try again');
    const fixed = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'generation'];
    const metadata: Record<string, unknown> = { ...copyData(askedMetadata), resourceVersion: before.metadata.resourceVersion };
    for (const field of fixed) {
      if (before.metadata[field] === undefined) delete metadata[field];
      else metadata[field] = before.metadata[field];
    }
    const hasStatus = r.name === 'pods' || r.name === 'nodes';
    const kept: Record<string, unknown> = at.status ? { spec: before.spec } : hasStatus ? { status: before.status } : {};
    const next: KubeObject = {
      ...copyData(asked),
      apiVersion: r.apiVersion,
      kind: r.kind,
      metadata: metadata as KubeObject['metadata'],
    };
    for (const [field, value] of Object.entries(kept)) {
      if (value === undefined) delete next[field];
      else next[field] = value;
    }
    if (r.name === 'pods') next.status = this.#keptOf(next.status);
    if (sameData(next, before)) return before;
    if (r.name === 'pods' && !sameData(next.spec, before.spec)) {
      if (this.#validates) {
        applyApiDefaults(next as unknown as Pod);
        checkPodUpdate(before, next, at.sub ?? '');
      }
      next.metadata.generation = Number(before.metadata.generation ?? 1) + 1;
    }
    if (next.metadata.deletionTimestamp) {
      const had = new Set(finalizersOf(before));
      const added = finalizersOf(next).filter((finalizer) => !had.has(finalizer));
      if (added.length > 0) {
        const why = `metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found ${added.join(', ')}`;
        throw new ApiFault(422, 'Invalid', `${r.kind} ${quoted(at.name)} is invalid: ${why}`);
      }
      // The last finalizer of an object that was asked to go. A pod also has its grace, which the node ends.
      if (finalizersOf(next).length === 0 && !next.metadata.deletionGracePeriodSeconds) return this.#remove(r, next);
    }
    return this.#put(r, next, before);
  }

  delete(r: Resource, at: { namespace: string; name: string }, o: DeleteOptions): KubeObject {
    const before = this.get(r, at.namespace, at.name);
    const conflict = (field: string, asked: string, held: string): ApiFault =>
      new ApiFault(
        409,
        'Conflict',
        `Operation cannot be fulfilled on ${r.name} "${at.name}": Precondition failed: ${field} in precondition: ${asked}, in object meta: ${held}`,
      );
    if (o.uid !== undefined && o.uid !== before.metadata.uid) throw conflict('UID', o.uid, before.metadata.uid ?? '');
    if (o.resourceVersion !== undefined && o.resourceVersion !== before.metadata.resourceVersion)
      throw conflict('ResourceVersion', o.resourceVersion, before.metadata.resourceVersion ?? '');
    const grace = r.name === 'pods' ? podGrace(before, o.gracePeriodSeconds) : 0;
    const asked = before.metadata.deletionTimestamp !== undefined;
    const earlier = Number(before.metadata.deletionGracePeriodSeconds ?? Number.POSITIVE_INFINITY);
    if (grace === 0 && finalizersOf(before).length === 0) return this.#remove(r, before);
    // A grace only ever shrinks.
    if (asked && grace >= earlier) return before;
    return this.#put(
      r,
      {
        ...before,
        metadata: {
          ...before.metadata,
          deletionTimestamp: this.#now(grace * 1000),
          deletionGracePeriodSeconds: grace,
          ...(r.name === 'pods' ? { generation: Number(before.metadata.generation ?? 1) + 1 } : {}),
        },
      },
      before,
    );
  }

  /** A pod's status as this server keeps it. */
  #keptOf(status: unknown): unknown {
    if (!isRecord(status)) return status;
    const known = (o: Record<string, unknown>) => Object.fromEntries(Object.entries(o).filter(([field]) => !this.leavesOut.has(field)));
    const kept = known(status);
    for (const [field, value] of Object.entries(kept)) {
      if (field !== 'conditions' && !field.toLowerCase().endsWith('containerstatuses')) continue;
      const each = field === 'conditions' ? (o: Record<string, unknown>) => ({ lastProbeTime: null, ...known(o) }) : known;
      if (Array.isArray(value)) kept[field] = value.map((o: unknown) => (isRecord(o) ? each(o) : o));
    }
    return kept;
  }

  #table(resource: string): KubeTable {
    let table = this.#objects.get(resource);
    if (table === undefined) {
      table = new KubeTable();
      this.#objects.set(resource, table);
    }
    return table;
  }
  #now(plusMs = 0): string {
    return `${timestamp(this.#wallMs() + plusMs).slice(0, 19)}Z`;
  }
  #put(r: Resource, object: KubeObject, before: KubeObject | undefined): KubeObject {
    if (this.#dry) return object;
    const bytes = this.forgets ? jsonBytes(object) : 0;
    if (bytes > OBJECT_BYTES_MAX)
      throw new ApiFault(
        413,
        'RequestEntityTooLarge',
        `${r.kind} ${quoted(object.metadata.name)} has ${bytes} bytes, more than ${OBJECT_BYTES_MAX}`,
      );
    this.#rv += 1;
    const stored: KubeObject = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#rv) } };
    this.#table(r.name).set(keyOf(stored), stored);
    this.#tell({ rv: this.#rv, resource: r.name, type: before === undefined ? 'ADDED' : 'MODIFIED', object: stored, before }, bytes);
    return stored;
  }
  #remove(r: Resource, object: KubeObject): KubeObject {
    if (this.#dry) return object;
    this.#rv += 1;
    const last: KubeObject = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#rv) } };
    this.#table(r.name).delete(keyOf(last));
    this.#tell({ rv: this.#rv, resource: r.name, type: 'DELETED', object: last, before: object }, this.forgets ? jsonBytes(last) : 0);
    return last;
  }
  #tell(e: StoreEvent, bytes: number): void {
    this.#history.push({ ...e, bytes });
    this.#historyBytes += bytes;
    if (this.forgets && (this.#history.length > HISTORY_MAX || this.#historyBytes > HISTORY_BYTES_MAX)) this.#forget();
    for (const fn of [...this.#listeners]) fn(e);
  }
  /** The older half, by number and by bytes. The last change stays, whatever its size. */
  #forget(): void {
    let count = Math.max(0, this.#history.length - HISTORY_MAX / 2);
    let left = this.#historyBytes;
    for (const [i, { bytes }] of this.#history.entries()) {
      if (i >= count && left <= HISTORY_BYTES_MAX / 2) break;
      left -= bytes;
      count = Math.max(count, i + 1);
    }
    const gone = this.#history.splice(0, Math.min(count, this.#history.length - 1));
    this.#historyBytes = this.#history.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#compacted = gone.at(-1)?.rv ?? this.#compacted;
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

function versionOf({ metadata }: KubeObject): number {
  return Number(metadata.resourceVersion ?? 0) || 0;
}

function jsonBytes(object: KubeObject): number {
  return Buffer.byteLength(JSON.stringify(object));
}

function finalizersOf(object: KubeObject): unknown[] {
  return Array.isArray(object.metadata.finalizers) ? object.metadata.finalizers : [];
}

/** A pod that no node has, or that has ended, waits for nothing. */
function podGrace(pod: KubeObject, asked: number | undefined): number {
  const spec = isRecord(pod.spec) ? pod.spec : {};
  const phase = isRecord(pod.status) ? pod.status.phase : undefined;
  if (!spec.nodeName || phase === 'Failed' || phase === 'Succeeded') return 0;
  if (asked !== undefined) return Math.max(0, asked);
  return typeof spec.terminationGracePeriodSeconds === 'number' ? spec.terminationGracePeriodSeconds : 30;
}
