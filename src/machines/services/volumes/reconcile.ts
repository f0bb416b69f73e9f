/** Desired and actual volumes as plain data, and what follows from comparing them with what the node knows. Pure. */
import type { Pod } from '../../kube/types.ts';
import { isLeaving } from '../../pod/names.ts';
import type { RuntimePodsView } from '../../pod/runtime/seen.ts';
import type { MountedVolume } from '../../pod/volumes/containerMounts.ts';
import { kindOf } from '../../pod/volumes/kinds.ts';
import { type VolumeRef, volumeKey, volumePath } from '../../pod/volumes/volumePaths.ts';
import { type PodVolume, podVolumes, redefined } from '../../pod/volumes/volumes.ts';
import { isRefused, isWanted, type PodsView } from '../../pods/manager/messages.ts';
import { type Built, built, refused } from '../../result.ts';
import type { VolumeSummary } from './messages.ts';
import type { BoundPart, SubPathPart } from './subPaths.ts';
import type { SetUpDone, VolumePhase } from './volumeMachine.ts';

/** A pod whose worker asked for its volumes and has not released them. */
export interface Desired {
  pod: Pod;
  /** When its files are compared with their sources again. */
  refreshAtMonoMs: number;
}
export interface Actual {
  ref: VolumeRef;
  phase: VolumePhase;
  error: string;
  sinceMs: number;
  /** Where it stands, where that does not follow from its name. */
  done: SetUpDone | null;
}
export type DesiredState = ReadonlyMap<string, Desired>;
/** By `volumeKey`. */
export type ActualState = ReadonlyMap<string, Actual>;

export interface Look {
  pods: PodsView | undefined;
  listed: RuntimePodsView | undefined;
  nowMonoMs: number;
}
/** What a look went by. */
export interface Looked extends Pick<Look, 'pods' | 'listed'> {
  desired: DesiredState;
  actual: ActualState;
}

/** Whether a look would find anything since the last one: another state of things, or a pod whose time has come. */
export function isLookDue(now: Looked, last: Looked | null, nowMonoMs: number): boolean {
  const { desired, actual } = now;
  if (desired.size === 0 && actual.size === 0) return last !== null && last.desired.size + last.actual.size > 0;
  const same = last?.desired === desired && last.actual === actual && last.pods === now.pods && last.listed === now.listed;
  return !same || [...desired.values()].some((d) => d.refreshAtMonoMs <= nowMonoMs);
}

export interface Reconciled {
  /** Pods whose volumes nobody wants: down with them. */
  drop: string[];
  /** Found on disk, and their pods run on: set up again, which changes nothing where all is well. */
  want: { uid: string; pod: Pod }[];
  /** The pod changed, or its time has come. Not of a pod that is being deleted: nothing new is started of it. */
  refresh: { uid: string; pod: Pod }[];
  /** Pods that nobody minds, and since which monotonic ms that was seen. */
  unminded: ReadonlyMap<string, number>;
}

/** A container that runs, or was made and may start, still uses what it was given. */
function inUse(listed: RuntimePodsView, uid: string): boolean {
  return listed.pods.get(uid)?.containers.some((c) => c.state !== 'exited') === true;
}

/**
 * Nothing is dropped before every source has delivered and the runtime was listed: until then an unknown pod may only be
 * one we have not been told of. And only on a listing that began after the pod was seen to be nobody's: an older one need
 * not show what its worker, which is gone since, had started.
 */
export function reconcile(o: {
  desired: DesiredState;
  actual: ActualState;
  look: Look;
  /** As the last call gave it. */
  unminded: ReadonlyMap<string, number>;
}): Reconciled {
  const { desired, actual, look } = o;
  const unminded = new Map<string, number>();
  const result: Reconciled = { drop: [], want: [], refresh: [], unminded };
  const { pods, listed } = look;
  if (pods === undefined) return result;
  const uids = new Set([...desired.keys(), ...[...actual.values()].map((a) => a.ref.uid)]);
  for (const uid of uids) {
    const record = pods.records.get(uid);
    const nobody = record === undefined || (isRefused(record) && record.worker === null);
    if (nobody) {
      if (!pods.sourcesReady) continue;
      const sinceMs = o.unminded.get(uid) ?? look.nowMonoMs;
      unminded.set(uid, sinceMs);
      if (listed !== undefined && listed.atMonoMs > sinceMs && !inUse(listed, uid)) result.drop.push(uid);
      continue;
    }
    const entry = desired.get(uid);
    if (entry === undefined) {
      const runs = record.worker?.phase === 'syncing' && isWanted(record) && record.source !== 'runtime';
      if (runs && volumesOfPod(actual, uid).some((a) => a.phase === 'uncertain')) result.want.push({ uid, pod: record.pod });
    } else if (
      isWanted(record) &&
      !isLeaving(record.pod) &&
      (redefined(entry.pod, record.pod) || entry.refreshAtMonoMs <= look.nowMonoMs)
    ) {
      result.refresh.push({ uid, pod: record.pod });
    }
  }
  return result;
}

export function volumesOfPod(actual: ActualState, uid: string): Actual[] {
  return [...actual.values()].filter((a) => a.ref.uid === uid);
}

/** Key of what another agent has left, and a claim's volume now is. Null: nothing. */
export function takenOver(actual: ActualState, { key, done }: { key: string; done: SetUpDone | null }): string | null {
  const ref = actual.get(key)?.ref;
  if (done?.stands === undefined || ref === undefined) return null;
  const left = volumeKey({ uid: ref.uid, ...done.stands });
  return left !== key && actual.get(left)?.phase === 'uncertain' ? left : null;
}

export function isMounted(phase: VolumePhase | undefined): boolean {
  return phase === 'mounted' || phase === 'stale';
}

/** Pods whose volumes are being taken down, and which nobody has asked for since: no container of theirs runs. */
export function leavingPods({ desired, actual }: { desired: DesiredState; actual: ActualState }): string[] {
  const goes = ({ ref, phase }: Actual) => (phase === 'unmounting' || phase === 'unmountFailed') && !desired.has(ref.uid);
  return [...actual.values()].filter(goes).map(({ ref }) => ref.uid);
}

/** A volume that is being taken down, or was released, has no parts. */
export function boundParts(
  { desired, actual }: { desired: DesiredState; actual: ActualState },
  { uid, container, parts }: { uid: string; container: string; parts: readonly SubPathPart[] },
): Built<BoundPart[]> {
  const pod = desired.get(uid)?.pod;
  const volumes = pod === undefined ? [] : podVolumes(pod).volumes;
  const found: BoundPart[] = [];
  for (const part of parts) {
    const volume = volumes.find((v) => v.name === part.volume && isMounted(actual.get(volumeKey(v))?.phase));
    if (volume === undefined) return refused(`cannot find volume "${part.volume}" to mount into container "${container}"`);
    found.push({ ...part, volume, container });
  }
  return built(found);
}

/** Wanted volumes of a pod that are not set up, by name. */
export function unmountedNames(pod: Pod, actual: ActualState, keyOf: (v: PodVolume) => string): string[] {
  return podVolumes(pod)
    .volumes.filter((v) => !isMounted(actual.get(keyOf(v))?.phase))
    .map((v) => v.name)
    .sort();
}

/** What containers of the pod are given, by volume name. */
export function mountedVolumes(pod: Pod, actual: ActualState, rootDir: string): Map<string, MountedVolume> {
  return new Map(podVolumes(pod).volumes.map((v) => [v.name, mountedVolume(v, actual.get(volumeKey(v))?.done ?? null, rootDir)]));
}
function mountedVolume(v: PodVolume, done: SetUpDone | null, rootDir: string): MountedVolume {
  if (done !== null) {
    const { at, readOnly, device, labelled, stands } = done;
    return {
      ...{ hostPath: at, readOnly, managed: !readOnly && labelled !== false },
      ...(device ? { device: true as const } : {}),
      ...(stands?.group === undefined ? {} : { group: stands.group }),
    };
  }
  return kindOf(v.source).mounted(v.source, volumePath(rootDir, v));
}

/** The words of the reference at the end of its wait. `unknown`: of these it could not be found out what they are. */
export function timedOut(o: { unmounted: readonly string[]; unattached: readonly string[]; unknown: readonly string[] }): string {
  const [unmounted, unattached, unknown] = [o.unmounted, o.unattached, o.unknown].map((names) => `[${names.join(' ')}]`);
  return (
    `Unable to attach or mount volumes: unmounted volumes=${unmounted}, unattached volumes=${unattached}, ` +
    `failed to process volumes=${unknown}: context deadline exceeded`
  );
}

/** A copy that lacks this key. */
export function without<V>(of: ReadonlyMap<string, V>, key: string): Map<string, V> {
  const rest = new Map(of);
  rest.delete(key);
  return rest;
}

/** When the files of a pod are compared with their sources again: after `refreshMs`, lengthened by up to half. */
export function refreshAt(refreshMs: number, { monoMs, random }: { monoMs: number; random: number }): number {
  return monoMs + refreshMs * (1 + 0.5 * random);
}

/** What others may see of a pod's volumes. */
export function summaries(
  actual: ActualState,
  servedBy: (ref: VolumeRef, key: string) => { plugin: string },
): Map<string, VolumeSummary[]> {
  const result = new Map<string, VolumeSummary[]>();
  for (const [key, a] of actual) {
    const { name, plugin } = a.ref;
    const stands = a.done?.stands ?? a.ref.stands;
    const entry: VolumeSummary = {
      name,
      plugin,
      state: a.phase,
      message: a.error,
      sinceMs: a.sinceMs,
      servedBy: servedBy(a.ref, key).plugin,
    };
    if (stands !== undefined) entry.stands = stands;
    const list = result.get(a.ref.uid);
    if (list === undefined) result.set(a.ref.uid, [entry]);
    else list.push(entry);
  }
  return result;
}
