/** What is to be done about one pod's object in the API, from everything known of it: one pure step (pod lifecycle 2.7, 7.5). */

import { isOlder } from '../kube/request.ts';
import type { Pod } from '../kube/types.ts';
import { ANNOTATION_HASH, ANNOTATION_MIRROR, ANNOTATION_SOURCE, fullName } from '../pod/names.ts';
import { isMirror, isTerminal } from '../pod/phase.ts';
import type { ProbeLedger } from '../pod/probes/probes.ts';
import { isRefused, isWanted, type PodRecord } from '../pods/manager/messages.ts';
import { mergeStatus } from '../pods/status/manager.ts';
import type { StatusEntry } from '../pods/status/messages.ts';
import type { ApiPodsView, NodeView } from './messages.ts';
import { isOvertaken, passing, type Wait, withTimesOf } from './passing.ts';
import { ownPart, saysNothingNew, statusPatch, withoutUnknown } from './statusPatch.ts';

/** What this writer remembers of its own writes. */
export interface Written {
  /** UID of the object it was written to: a mirror has another than its pod. */
  apiUid: string;
  /** Version of the status entry. */
  version: number;
  /** Own part of the object's status right after the write: the server may drop fields it does not know. */
  own: string;
  /** The patch's status: what of it the answer does not show, the server will not have. */
  sent: Readonly<Record<string, unknown>>;
  /** What this object was ever sent that the server does not know, as it was sent last. */
  leftOut: Readonly<Record<string, unknown>>;
  /** Patches of this version in a row, up to this one. */
  tries: number;
}
/** Patches of one version that leave a difference before it is the server that will not have it. */
const TRIES_MAX = 2;
export interface WriterFacts {
  uid: string;
  record: PodRecord | undefined;
  entry: StatusEntry | undefined;
  records: ReadonlyMap<string, PodRecord> | undefined;
  sourcesReady: boolean;
  api: ApiPodsView | undefined;
  node: NodeView | undefined;
  /** Last results by container id. Absent: what follows from them is not waited for. */
  probes?: ProbeLedger | undefined;
  written: Written | null;
  /** Newest object that a write of ours returned. */
  latest: Pod | null;
  /** The static pod this UID was when it was last known. */
  last: Pod | null;
  /** UIDs of objects that are known to be gone, though the watch may still show them. */
  gone: ReadonlySet<string>;
  nowWallMs: number;
  /** What would be overtaken soon has waited its time. */
  held?: boolean;
  /** Writes in a row that came to another version of the object than they were made for. */
  conflicts?: number;
}
/** An object that changes all the time is written to all the same. */
const CONFLICTS_MAX = 3;

export type WriterPlan =
  /** Nothing is left anywhere, or the pod is over and the API has all there is to say: what comes later starts another writer. */
  | { kind: 'end' }
  | { kind: 'rest' }
  /** Something that this waits for does not wake it. */
  | { kind: 'wait'; why: string }
  /** There is something to say that the next change will say again. */
  | { kind: 'hold'; why: string; wait: Wait }
  | {
      kind: 'patch';
      target: Pod;
      body: { metadata: { uid: string; resourceVersion?: string }; status: Record<string, unknown> };
      version: number;
    }
  | { kind: 'delete'; target: Pod; why: string }
  | { kind: 'createMirror'; body: Record<string, unknown>; namespace: string }
  | { kind: 'deleteMirror'; target: Pod; why: string };

export function decideWrite(f: WriterFacts): WriterPlan {
  const plan = planned(f);
  return plan.kind === 'rest' && isSettled(f) ? { kind: 'end' } : plan;
}

/**
 * A node may have thousands of pods that ended or were refused: none keeps a writer that knows nothing another would not see at
 * once. What it knows is what it wrote and the watch has not shown, what the server leaves out, and the mirror of a static pod.
 */
function isSettled(f: WriterFacts): boolean {
  const { entry, record, written } = f;
  if (f.api?.synced !== true || entry?.finished !== true || !isTerminal(entry.status.phase)) return false;
  if (f.latest !== null || f.gone.size > 0) return false;
  if (record !== undefined && isStatic(record)) return mirrorOf(record.pod, f) === undefined;
  const shown = f.api.byUid.get(f.uid);
  if (shown === undefined || isMirror(shown) || (written !== null && Object.keys(written.leftOut).length > 0)) return false;
  return patchOf({ ...f, written: null, held: true }, shown) === null;
}

function planned(f: WriterFacts): WriterPlan {
  if (f.api?.synced !== true) return { kind: 'rest' };
  const shown = f.gone.has(f.uid) ? undefined : f.api.byUid.get(f.uid);
  if (shown !== undefined && isMirror(shown)) return orphan(f, shown);
  const { record } = f;
  if (record !== undefined && record.source !== 'api') return record.source === 'runtime' ? { kind: 'rest' } : forStatic(f, record);
  if (record === undefined && shown === undefined && f.last !== null) {
    const mirror = mirrorOf(f.last, f);
    if (mirror !== undefined) return orphan(f, mirror);
  }
  const target = shown === undefined ? undefined : newest(shown, f.latest);
  if (target === undefined) return record === undefined && f.entry === undefined ? { kind: 'end' } : { kind: 'rest' };
  return forObject(f, target);
}

/** A mirror pod: it goes with its static pod, and with nothing else. */
function orphan(f: WriterFacts, mirror: Pod): WriterPlan {
  if (!f.sourcesReady) return { kind: 'wait', why: 'not every source has delivered: nobody knows yet whether this mirror pod is wanted' };
  const owned = [...(f.records?.values() ?? [])].some((r) => isStatic(r) && fullName(r.pod) === fullName(mirror));
  return owned ? { kind: 'rest' } : { kind: 'deleteMirror', target: mirror, why: 'its static pod is gone' };
}

function isStatic(r: PodRecord): boolean {
  return r.source === 'file' || r.source === 'http';
}

/** The mirror pod of this name, if the API server shows one. */
export function mirrorOf(pod: Pod, f: Pick<WriterFacts, 'api' | 'gone'>): Pod | undefined {
  for (const p of f.api?.byUid.values() ?? []) if (!f.gone.has(p.metadata.uid) && isMirror(p) && fullName(p) === fullName(pod)) return p;
  return undefined;
}

function forStatic(f: WriterFacts, record: PodRecord): WriterPlan {
  const { pod } = record;
  const shown = mirrorOf(pod, f);
  const made = f.latest !== null && !f.gone.has(f.latest.metadata.uid) && isMirror(f.latest) ? f.latest : undefined;
  const mirror = shown === undefined ? made : newest(shown, f.latest);
  // A successor of the same name waits until its predecessor is gone; so does its mirror.
  const waits = record.worker?.phase === 'waiting' && record.worker.reason === 'WaitingForPredecessor';
  if (mirror === undefined) {
    if (!isWanted(record) || isRefused(record) || waits) return { kind: 'rest' };
    if (f.node === undefined || f.node.uid === '') return { kind: 'wait', why: 'the node is not registered yet' };
    if (f.node.deleting) return { kind: 'wait', why: 'the node is being deleted' };
    return { kind: 'createMirror', namespace: pod.metadata.namespace, body: mirrorBody(pod, f.node) };
  }
  if (waits) return { kind: 'rest' };
  if (mirror.metadata.deletionTimestamp) return { kind: 'deleteMirror', target: mirror, why: 'somebody deleted it' };
  if (isWanted(record) && !mirrors(mirror, pod)) return { kind: 'deleteMirror', target: mirror, why: 'it mirrors another definition' };
  return patchOf(f, mirror) ?? { kind: 'rest' };
}

/**
 * Whether the mirror is of this definition. One that another agent made says its hash of the same text, which is the UID
 * that its pod has here since it was taken over.
 */
export function mirrors(mirror: Pod, pod: Pod): boolean {
  const said = mirror.metadata.annotations?.[ANNOTATION_MIRROR];
  if (said === (pod.metadata.annotations?.[ANNOTATION_HASH] ?? pod.metadata.uid)) return true;
  const images = (p: Pod) => JSON.stringify(p.spec.containers.map((c) => [c.name, c.image]));
  // A manifest may pin a UID and have been edited since.
  return said === pod.metadata.uid && images(mirror) === images(pod);
}

function forObject(f: WriterFacts, target: Pod): WriterPlan {
  const patch = patchOf(f, target);
  if (patch !== null) return patch;
  const finished = f.entry?.finished === true;
  if (target.metadata.deletionTimestamp && finished && isTerminal(target.status.phase))
    return { kind: 'delete', target, why: 'nothing of it is left on this node' };
  return { kind: 'rest' };
}

function patchOf(f: WriterFacts, target: Pod): WriterPlan | null {
  const { entry, written } = f;
  if (entry === undefined) return null;
  const ours = written !== null && written.apiUid === target.metadata.uid && written.version === entry.version;
  // Written, and nobody has changed our part since.
  const stands = ours && written.own === ownPart(target.status);
  if (stands && written.tries >= TRIES_MAX) return null;
  const merged = mergeStatus(target.status, entry.status, {
    couldHaveRunning: !entry.stopped,
    nowWallMs: f.nowWallMs,
    mayBeginAnew: isMirror(target),
  });
  // The first status of a static pod may be from before the API server was heard: it knew no times, and those after it go on from it.
  const next = isMirror(target) ? withTimesOf(target.status, merged) : merged;
  const leftOut = written?.apiUid === target.metadata.uid ? written.leftOut : {};
  const status = withoutUnknown(statusPatch(target.status, next), target.status, leftOut);
  // What the server left out of it is not sent again. The rest is, once: a patch says only what differs from the object as it was
  // known, and an earlier one, late, may have changed that.
  if (status === null || (stands && saysNothingNew(status, written.sent))) return null;
  if (f.held !== true && f.probes !== undefined && isOvertaken({ pod: f.record?.pod ?? target, target, next, probes: f.probes }))
    return { kind: 'hold', wait: 'long', why: 'its probes have found more than its status tells' };
  const wait = f.held === true ? null : passing({ target, next, patch: status, finished: entry.finished });
  if (wait !== null) {
    return {
      kind: 'hold',
      wait,
      why: target.metadata.deletionTimestamp ? 'its last status is about to follow' : 'its containers are about to start',
    };
  }
  const body = { metadata: precondition(f, target, status), status };
  return { kind: 'patch', target, body, version: entry.version };
}

/**
 * A request whose answer is lost may be carried out late, after the next one has ended the pod. So a phase that is not the last
 * is written only over the version that was read: a terminal one is never taken back.
 */
function precondition(f: WriterFacts, { metadata }: Pod, status: Readonly<Record<string, unknown>>) {
  const { uid, resourceVersion } = metadata;
  const mayTakeBack = (status.phase === 'Pending' || status.phase === 'Running') && (f.conflicts ?? 0) < CONFLICTS_MAX;
  return mayTakeBack && resourceVersion ? { uid, resourceVersion } : { uid };
}

/** The later of two versions of one object. */
function newest(shown: Pod, latest: Pod | null): Pod {
  if (latest === null || latest.metadata.uid !== shown.metadata.uid) return shown;
  return isOlder(shown.metadata.resourceVersion ?? '', latest.metadata.resourceVersion ?? '') ? latest : shown;
}

function mirrorBody(pod: Pod, node: NodeView): Record<string, unknown> {
  const { name, namespace, labels, annotations } = pod.metadata;
  const hash = annotations?.[ANNOTATION_HASH] ?? pod.metadata.uid;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [ANNOTATION_SOURCE]: annotations?.[ANNOTATION_SOURCE] ?? 'file', [ANNOTATION_MIRROR]: hash },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid, controller: true }],
    },
    spec: pod.spec,
  };
}
