/** What volumes of pods use, as /stats/summary and /metrics say it (resources and volumes 7.6). Pure. */

import type { Pod } from '../kube/types.ts';
import type { Volume } from '../kube/volumeTable.ts';
import { type PodRef, podRef } from '../pod/names.ts';
import { INLINE_KINDS, kindOfPlugin } from '../pod/volumes/kinds.ts';
import type { VolumeRef } from '../pod/volumes/volumePaths.ts';
import type { CsiResponse } from '../wire/csi.ts';
import type { FsStats } from './figure.ts';

/** What is not known is 0, as in the reference. */
export interface VolumeUsage {
  availableBytes: number;
  capacityBytes: number;
  usedBytes: number;
  inodesFree: number;
  inodes: number;
  inodesUsed: number;
  /** What its driver thinks of it; absent where that is not asked, or the driver does not say. */
  abnormal?: boolean;
  /** Its words for that. */
  condition?: string;
}
export interface ClaimRef {
  name: string;
  namespace: string;
}
export interface VolumeStats extends FsStats {
  name: string;
  pvcRef?: ClaimRef;
  volumeHealthStats?: { abnormal: boolean };
}

/** A volume that stands, and how what it uses is found out. */
export interface MeasuredVolume {
  ref: VolumeRef;
  pod: PodRef;
  /** `tree`: its files are counted; `claim`: by its driver where one serves it, else the file system it lies on. */
  by: 'tree' | 'claim';
  /** Never changed by who uses it: counted once. */
  once: boolean;
  /** Counts as the pod's own use of the node's disk. */
  ephemeral: boolean;
  claim: ClaimRef | null;
}

/** What is measured of a volume. Null: nobody knows what such a volume uses (hostPath, images). */
export function measuredVolume(pod: Pod, ref: VolumeRef): MeasuredVolume | null {
  const kind = kindOfPlugin(ref.plugin);
  if (kind?.stands !== 'here') return null;
  const volume = pod.spec.volumes?.find((v) => v.name === ref.name);
  return {
    ref,
    pod: podRef(pod),
    by: kind.foreign ? 'claim' : 'tree',
    once: !kind.foreign && kind.scratch !== true,
    ephemeral: kind.onDisk?.(volume) === true,
    claim: volume === undefined ? null : claimOf(volume, pod),
  };
}

function claimOf(volume: Volume, pod: Pod): ClaimRef | null {
  for (const kind of INLINE_KINDS) {
    const name = kind.claimName?.(volume, pod) ?? null;
    if (name !== null) return { name, namespace: pod.metadata.namespace };
  }
  return null;
}

/** A driver's answer. `health`: its word on the volume's condition is of interest. */
export function usageOfDriver(answer: CsiResponse<'NodeGetVolumeStats'>, o: { health: boolean }): VolumeUsage {
  const of = (unit: string) => answer.usage.find((u) => u.unit === unit);
  const [bytes, inodes] = [of('BYTES'), of('INODES')];
  const condition = o.health ? answer.volumeCondition : null;
  return {
    availableBytes: whole(bytes?.available),
    capacityBytes: whole(bytes?.total),
    usedBytes: whole(bytes?.used),
    inodesFree: whole(inodes?.available),
    inodes: whole(inodes?.total),
    inodesUsed: whole(inodes?.used),
    ...(condition === null || condition === undefined ? {} : { abnormal: condition.abnormal, condition: condition.message }),
  };
}
/** Figures are unsigned in what is told: less than nothing is not known. */
function whole(text: string | undefined): number {
  const n = Number(text ?? 0);
  return Number.isFinite(n) && n > 0 ? n : 0;
}

export function volumeStats(v: MeasuredVolume, usage: VolumeUsage, time: string): VolumeStats {
  const { abnormal, condition: _, ...figures } = usage;
  return {
    time,
    ...figures,
    name: v.ref.name,
    ...(v.claim === null ? {} : { pvcRef: v.claim }),
    ...(abnormal === undefined ? {} : { volumeHealthStats: { abnormal } }),
  };
}

/** Volumes that count as the pod's own use of the node's disk, and all that is told of its volumes. */
export interface PodVolumes {
  all: readonly VolumeStats[];
  ephemeral: readonly VolumeStats[];
}

/** Families of /metrics about claims, and what each is of. */
export const VOLUME_FAMILIES: readonly { name: string; help: string; of: (s: VolumeStats) => number | undefined }[] = [
  { name: 'kubelet_volume_stats_capacity_bytes', help: 'Capacity in bytes of the volume', of: (s) => s.capacityBytes },
  { name: 'kubelet_volume_stats_available_bytes', help: 'Number of available bytes in the volume', of: (s) => s.availableBytes },
  { name: 'kubelet_volume_stats_used_bytes', help: 'Number of used bytes in the volume', of: (s) => s.usedBytes },
  { name: 'kubelet_volume_stats_inodes', help: 'Maximum number of inodes in the volume', of: (s) => s.inodes },
  { name: 'kubelet_volume_stats_inodes_free', help: 'Number of free inodes in the volume', of: (s) => s.inodesFree },
  { name: 'kubelet_volume_stats_inodes_used', help: 'Number of used inodes in the volume', of: (s) => s.inodesUsed },
  {
    name: 'kubelet_volume_stats_health_status_abnormal',
    help: 'Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy',
    of: (s) => (s.volumeHealthStats === undefined ? undefined : Number(s.volumeHealthStats.abnormal)),
  },
];

/** Each claim once, whichever pod it was measured for. */
export function claimStats(pods: Iterable<PodVolumes>): ReadonlyMap<string, VolumeStats & { pvcRef: ClaimRef }> {
  const found = new Map<string, VolumeStats & { pvcRef: ClaimRef }>();
  for (const { all } of pods) {
    for (const stats of all) {
      const { pvcRef } = stats;
      if (pvcRef === undefined) continue;
      const key = `${pvcRef.namespace}/${pvcRef.name}`;
      if (!found.has(key)) found.set(key, { ...stats, pvcRef });
    }
  }
  return found;
}
