/** Pods that stay too long where they should only pass through. Pure. */
import type { PodRecord } from '../../pods/manager/messages.ts';
import type { WorkerSummary } from '../../pods/workers/messages.ts';
import { type Death, loopOf, type StuckAt } from './messages.ts';

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
  wordsOf(uid: string, worker: WorkerSummary): Pick<WorkerSummary, 'state' | 'reason'>;
  /** Its image is being pulled: the last that was said of it. */
  isPulling(uid: string, container: string): boolean;
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
    let standing: Standing = same ? held : { ...place, sinceMs: o.nowMs, told: false };
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

function placeOf(uid: string, { state, worker }: PodRecord, { wordsOf, isPulling }: Stuckness): Pick<Standing, 'at' | 'container'> | null {
  if (state.is === 'quarantined') return { at: 'quarantined', container: '' };
  if (worker === null) return null;
  if (worker.phase === 'terminating') return { at: 'terminating', container: '' };
  if (worker.phase === 'terminated') return { at: 'unmounting', container: '' };
  const { reason } = wordsOf(uid, worker);
  const at = STATES[reason];
  if (at !== undefined) return { at, container: '' };
  for (const { name, state: is, reason: why } of worker.containers) {
    if (is === 'waiting' && why === CREATING) return { at: isPulling(uid, name) ? 'pulling' : 'creating', container: name };
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
