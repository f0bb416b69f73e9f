/** The supervision tree and the pods as flat rows, and what changed between two looks. */

import { type PodRecord, type PodsView, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { type StatusView, statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { lostPeers } from '@actorlet/shown/src/moment/lostPeers.ts';
import { summarizePods } from '@actorlet/shown/src/pods/podSummary.ts';
import { treeHealth } from '@actorlet/shown/src/treeHealth.ts';
import type { ActorRow, PodRow } from './frames.ts';
import { podOf } from './podOf.ts';

/** Since-times of rows are computed from ages: less than this apart they are the same moment. */
const SINCE_JITTER_MS = 50;

/** Rows of `root` and all below it. `lost`: by path, what its actor works with and cannot reach. */
export function actorRows(
  root: ActorView,
  o: { nowMs: number; lost: ReadonlyMap<string, string>; podName(uid: string): string | undefined },
): ActorRow[] {
  const bad = new Set(treeHealth(root, o.lost).flatMap((h) => (h.ok ? [] : [h.path])));
  const rows: ActorRow[] = [];
  const visit = (a: ActorView, parent: string) => {
    const last = a.path.slice(a.path.lastIndexOf('/') + 1);
    const pod = podOf(a.path);
    rows.push({
      path: a.path,
      parent,
      name: nameOf(last, pod, o.podName(pod)),
      type: a.type,
      lifecycle: a.lifecycle,
      state: a.state,
      reason: a.reason,
      message: a.message,
      sinceMs: Math.round(o.nowMs - a.ageMs),
      restarts: a.restarts,
      incarnation: a.incarnation,
      ok: !bad.has(a.path),
      mail:
        a.mailbox === undefined
          ? null
          : {
              depth: a.mailbox.depth,
              depthMax: a.mailbox.depthMax,
              oldestAtMs: a.mailbox.depth === 0 ? 0 : Math.round(o.nowMs - a.mailbox.oldestAgeMs),
              coalesced: a.mailbox.coalesced,
              dropped: a.mailbox.dropped,
              suspended: a.mailbox.suspended,
            },
      error: o.lost.get(a.path) ?? a.lastError ?? '',
      pod,
      ...(o.lost.has(a.path) ? { lost: true } : {}),
    });
    for (const child of a.children) visit(child, a.path);
  };
  visit(root, root.path.slice(0, Math.max(0, root.path.lastIndexOf('/'))));
  return rows;
}

/** Children of the probe manager are named `UID/CONTAINER/TYPE` in one part or several. */
function nameOf(last: string, pod: string, name: string | undefined): string {
  if (pod === '' || name === undefined) return last;
  return last === pod ? name : last.replace(pod, name);
}

type Shown = Pick<Moment, 'read' | 'stateAt' | 'nowMs'>;

/** All rows of actors at one moment. */
export function allActorRows(m: Moment): ActorRow[] {
  return actorRows(m.state(), { nowMs: m.nowMs, lost: lostPeers(m), podName: podNamesOf(m) });
}
export function podNamesOf(m: Pick<Moment, 'read'>): (uid: string) => string | undefined {
  const records = m.read(podsView)?.records;
  return (uid) => records?.get(uid)?.pod.metadata.name;
}

/** `only`: these alone. */
export function podRows(m: Shown, only?: Iterable<string>): PodRow[] {
  const pods = m.read(podsView);
  if (pods === undefined) return [];
  const wanted = only === undefined ? pods : { ...pods, records: new Map([...only].flatMap((uid) => recordOf(pods, uid))) };
  const known = { statuses: m.read(statusesView), nowMs: m.nowMs, actorAt: (path: string) => m.stateAt(path) };
  return summarizePods(wanted, known).map(({ ageMs, ...row }) => ({ ...row, seenAtMs: Math.round(m.nowMs - ageMs) }));
}
function recordOf({ records }: PodsView, uid: string): [string, PodRecord][] {
  const record = records.get(uid);
  return record === undefined ? [] : [[uid, record]];
}

/** The pods, and which of them are others than at the last look: views share what has not changed. */
export class PodLook {
  readonly #rows = new Rows<PodRow>((r) => r.uid);
  #records: PodsView['records'] = new Map();
  #statuses: StatusView | undefined;

  get all(): PodRow[] {
    return this.#rows.all;
  }

  /** `moved`: actors that are in another state, by path: the words of a row are its worker's. */
  update(m: Shown, movedPaths: readonly string[]): { changed: PodRow[]; gone: string[] } {
    const records = m.read(podsView)?.records ?? new Map();
    const statuses = m.read(statusesView);
    const moved = new Set(movedPaths.map(podOf).filter((uid) => uid !== ''));
    const [before, statusesBefore] = [this.#records, this.#statuses];
    if (records === before && statuses === statusesBefore && moved.size === 0) return { changed: [], gone: [] };
    this.#records = records;
    this.#statuses = statuses;
    const others: string[] = [];
    for (const [uid, record] of records) {
      if (before.get(uid) !== record || statusesBefore?.get(uid) !== statuses?.get(uid) || moved.has(uid)) others.push(uid);
    }
    const gone = [...before.keys()].filter((uid) => !records.has(uid));
    this.#rows.drop(gone);
    return { changed: this.#rows.patch(podRows(m, others)), gone };
  }
}

/** Remembers what was sent, by key; times that only jitter are no change. */
export class Rows<R extends object> {
  readonly #key: (row: R) => string;
  #known = new Map<string, R>();

  constructor(key: (row: R) => string) {
    this.#key = key;
  }

  get all(): R[] {
    return [...this.#known.values()];
  }

  /** These are all that there are. */
  update(rows: readonly R[]): { changed: R[]; gone: string[] } {
    const before = this.#known;
    this.#known = new Map();
    const changed = rows.flatMap((row) => this.#take(row, before) ?? []);
    return { changed, gone: [...before.keys()].filter((key) => !this.#known.has(key)) };
  }

  get(key: string): R | undefined {
    return this.#known.get(key);
  }
  drop(keys: readonly string[]): void {
    for (const key of keys) this.#known.delete(key);
  }

  /** The others are as before. */
  patch(rows: readonly R[]): R[] {
    return rows.flatMap((row) => this.#take(row, this.#known) ?? []);
  }

  /** Null: it is as it was known. */
  #take(row: R, before: ReadonlyMap<string, R>): R | null {
    const key = this.#key(row);
    const known = before.get(key);
    const same = known !== undefined && isSame(row, known);
    const now = known === undefined ? row : same ? known : withTimesOf(row, known);
    this.#known.set(key, now);
    return same ? null : now;
  }
}

const TIMES = new Set(['sinceMs', 'seenAtMs', 'oldestAtMs']);
const jitters = (key: string, now: unknown, then: unknown): boolean =>
  typeof now === 'number' && typeof then === 'number' && TIMES.has(key) && Math.abs(now - then) < SINCE_JITTER_MS;

function isSame(now: unknown, then: unknown, key = ''): boolean {
  if (now === then || jitters(key, now, then)) return true;
  if (typeof now !== 'object' || typeof then !== 'object' || now === null || then === null) return false;
  const keys = Object.keys(now);
  return keys.length === Object.keys(then).length && keys.every((k) => isSame(Reflect.get(now, k), Reflect.get(then, k), k));
}

/** The new row, with the times of before where they only jitter. */
function withTimesOf<T extends object>(now: T, then: T): T {
  const out = { ...now };
  for (const [key, value] of Object.entries(now)) {
    const before: unknown = Reflect.get(then, key);
    if (jitters(key, value, before)) Reflect.set(out, key, before);
    else if (key === 'mail' && typeof value === 'object' && value !== null && typeof before === 'object' && before !== null)
      Reflect.set(out, key, withTimesOf(value, before));
  }
  return out;
}
