/** Pods that stay too long where they should only pass through. Pure. */
import type { PodRecord } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { WorkerSummary } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { type Death, loopOf, type StuckAt } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';

/** Where a pod is, and since when without a break. */
export interface Standing {
  at: StuckAt;
  container: string;
  sinceMs: number;
  /** It has its bundle. */
  told: boolean;
}
export type Standings = ReadonlyMap<string, Standing>;

export interface Stuckness {
  nowMs: number;
  /** How long a pod may be pulling, mounting and so on; and how much longer than its grace period it may take to end. */
  afterMs: number;
  /** What its worker's statechart says now: a worker does not report each state. */
  wordsOf(uid: string, worker: WorkerSummary): Pick<WorkerSummary, 'state' | 'reason' | 'sinceMs'>;
  /** The last event about the start of a container. */
  lastSaid(uid: string, container: string): { reason: string; atMs: number } | undefined;
}

const DEFAULT_GRACE_S = 30;

/** Whether this pod may be on its way: cheap, asked of each pod at each look. */
export function mayBeStuck({ state, worker }: PodRecord): boolean {
  if (state.is === 'quarantined') return true;
  if (worker === null || worker.phase === 'finished') return false;
  return worker.phase !== 'syncing' || worker.containers.length === 0 || worker.containers.some((c) => c.state === 'waiting');
}

/** A look at all pods: where each stands now, and those that have stood there too long. */
export function lookAt(
  before: Standings,
  records: ReadonlyMap<string, PodRecord>,
  o: Stuckness,
): { standings: Standings; stuck: { uid: string; standing: Standing }[] } {
  const standings = new Map<string, Standing>();
  const stuck: { uid: string; standing: Standing }[] = [];
  for (const [uid, record] of records) {
    const place = mayBeStuck(record) ? placeOf(uid, record, o) : null;
    if (place === null) continue;
    const held = before.get(uid);
    const same = held !== undefined && held.at === place.at && held.container === place.container;
    // Not before it was seen here: a clock may have been set back.
    let standing: Standing = same ? held : { ...place, sinceMs: Math.min(place.sinceMs, o.nowMs), told: false };
    if (!standing.told && o.nowMs - standing.sinceMs >= limitMs(record, standing.at, o.afterMs)) {
      standing = { ...standing, told: true };
      stuck.push({ uid, standing });
    }
    standings.set(uid, standing);
  }
  return { standings, stuck };
}

function limitMs({ pod }: PodRecord, at: StuckAt, afterMs: number): number {
  if (at === 'quarantined') return 0;
  if (at !== 'terminating') return afterMs;
  return (pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_S) * 1000 + afterMs;
}

function placeOf(uid: string, { state, worker }: PodRecord, { nowMs, wordsOf, lastSaid }: Stuckness): Omit<Standing, 'told'> | null {
  if (state.is === 'quarantined') return { at: 'quarantined', container: '', sinceMs: nowMs };
  if (worker === null) return null;
  const { reason, sinceMs } = wordsOf(uid, worker);
  if (worker.phase === 'terminating') return { at: 'terminating', container: '', sinceMs };
  if (worker.phase === 'terminated') return { at: 'unmounting', container: '', sinceMs };
  const at = STATES[reason];
  if (at !== undefined) return { at, container: '', sinceMs };
  for (const { name, state: is, reason: why } of worker.containers) {
    if (is !== 'waiting' || why !== CREATING) continue;
    const last = lastSaid(uid, name);
    return { at: last?.reason === 'Pulling' ? 'pulling' : 'creating', container: name, sinceMs: last?.atMs ?? nowMs };
  }
  return null;
}
const STATES: Readonly<Record<string, StuckAt>> = {
  MountingVolumes: 'mounting',
  FailedMount: 'mounting',
  PreparingResourceClaims: 'mounting',
  CreatingSandbox: 'sandbox',
  CreatePodSandboxError: 'sandbox',
  NetworkNotReady: 'sandbox',
};
/** What a status says of a container whose image is pulled, or which is created. */
const CREATING = 'ContainerCreating';

/** `death`: the pod's, with nothing said of it yet. */
export function stuckDeath(death: Death, { at, container, sinceMs }: Standing, nowMs: number): Death {
  const told: Death = { ...death, container, reason: at, sinceMs, atMs: nowMs };
  return { ...told, key: `${loopOf(told)} ${at} ${sinceMs}` };
}
