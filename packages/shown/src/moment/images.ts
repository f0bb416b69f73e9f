/** Images of the node, by their names: who uses them, and in which order the collector takes the others. Pure. */

import type { ContainerStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { isRefused, type PodRecord, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { imageLedger, imagesOfPod, wholeName } from '@actorlet/kubelet/machines/reclaim/imageGc/imageGc.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';

export interface ShownImage {
  id: string;
  /** Tags, else digests; none: it lost the last one. */
  names: readonly string[];
  sizeBytes: number;
  pinned: boolean;
  /** `namespace/name` of pods that name it or run it. */
  usedBy: readonly string[];
  /** -1: it was never seen to be used. */
  unusedMs: number;
  /** -1: it was there before the daemon. */
  foundMs: number;
}

/** Those that are used last; of the others the one that the collector takes first is the first. */
export function imagesOf(m: Moment): ShownImage[] {
  const users = usersOf(m);
  const since = (ms: number): number => (Number.isFinite(ms) ? Math.max(0, Math.round(m.monoMs - ms)) : -1);
  return [...(m.read(imageLedger)?.records ?? [])]
    .map(([id, { names, sizeBytes, pinned, lastUsedMs, firstDetectedMs }]) => {
      const refs = [id, ...names, ...names.map(wholeName)];
      const usedBy = [...new Set(refs.flatMap((ref) => [...(users.get(ref) ?? [])]))].sort();
      return { id, names: tagsOf(names), sizeBytes, pinned, usedBy, unusedMs: since(lastUsedMs), foundMs: since(firstDetectedMs) };
    })
    .sort((a, b) => Number(a.usedBy.length > 0) - Number(b.usedBy.length > 0) || order(b.unusedMs) - order(a.unusedMs));
}

/** One that was never used is the first. */
function order(unusedMs: number): number {
  return unusedMs < 0 ? Number.POSITIVE_INFINITY : unusedMs;
}

/** Digests say little to a person, where there are tags. */
function tagsOf(names: readonly string[]): readonly string[] {
  const tags = names.filter((name) => !name.includes('@'));
  return tags.length > 0 ? tags : names;
}

/** Pods by what they call their images: as their definitions do, and as the runtime said of their containers. */
function usersOf(m: Moment): ReadonlyMap<string, ReadonlySet<string>> {
  const users = new Map<string, Set<string>>();
  const statuses = m.read(statusesView);
  for (const [uid, record] of m.read(podsView)?.records ?? []) {
    if (isOver(record)) continue;
    const { namespace, name } = record.pod.metadata;
    const status = statuses?.get(uid)?.status;
    const told = [
      ...(status?.initContainerStatuses ?? []),
      ...(status?.containerStatuses ?? []),
      ...(status?.ephemeralContainerStatuses ?? []),
    ];
    for (const ref of [...imagesOfPod(record.pod).map(wholeName), ...told.flatMap(idsOf)]) {
      const known = users.get(ref) ?? new Set();
      users.set(ref, known.add(`${namespace}/${name}`));
    }
  }
  return users;
}
function isOver(record: PodRecord): boolean {
  return record.worker?.phase === 'finished' || (isRefused(record) && record.worker === null);
}
/** Some runtimes put a scheme before the id. */
function idsOf({ imageID }: ContainerStatus): string[] {
  return imageID ? [imageID, imageID.replace(/^[a-z-]+:\/\//, '')] : [];
}
