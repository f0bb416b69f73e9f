/** Which pods are evicted for writing more to the node's disk than their own limits allow (resources 3.7). Pure. */

import { isZeroQuantity, quantityToInteger } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import { podTotal } from '../../pod/resources/podLevel.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
import { isRecord } from '../../shape/conform.ts';

const STORAGE = 'ephemeral-storage';

/** Bytes on the node's disk. */
export interface StorageUse {
  /** By name; one that is not there has nothing yet. */
  volumes: ReadonlyMap<string, number>;
  containers: ReadonlyMap<string, { logs: number; layer: number }>;
  /** Files of the node that its containers write. */
  served?: number;
}
/** The first limit that one pod exceeds. */
export interface Exceeded {
  /** As the metric names it. */
  signal: 'emptydirfs.limit' | 'ephemeralpodfs.limit' | 'ephemeralcontainerfs.limit';
  message: string;
}

/** Volumes on disk with a limit of their own; in memory the kernel keeps it. */
function limitedVolumes(pod: Pod): { name: string; limit: string }[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, emptyDir }) => {
    if (!isRecord(emptyDir) || (emptyDir.medium !== undefined && emptyDir.medium !== '')) return [];
    const { sizeLimit } = emptyDir;
    return (typeof sizeLimit === 'string' || typeof sizeLimit === 'number') && !isZeroQuantity(sizeLimit)
      ? [{ name, limit: String(sizeLimit) }]
      : [];
  });
}

/** It is measured only where it has any. */
export function hasStorageLimits(pod: Pod): boolean {
  return podTotal(pod, 'limits', STORAGE) !== undefined || limitedVolumes(pod).length > 0;
}

/** In the order of the reference: its volumes, the pod as a whole, its containers. Null: it keeps within all. */
export function exceeded(
  pod: Pod,
  use: StorageUse,
  o: { /** Writable layers lie on another disk. */ dedicatedImageFs: boolean },
): Exceeded | null {
  for (const { name, limit } of limitedVolumes(pod)) {
    if ((use.volumes.get(name) ?? 0) <= quantityToInteger(limit)) continue;
    return { signal: 'emptydirfs.limit', message: `Usage of EmptyDir volume "${name}" exceeds the limit "${limit}". ` };
  }
  const total = podTotal(pod, 'limits', STORAGE);
  const used = [...use.volumes.values(), ...[...use.containers.values()].map((c) => c.logs + c.layer)].reduce(
    (a, b) => a + b,
    use.served ?? 0,
  );
  if (total !== undefined && used > quantityToInteger(total)) {
    const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${total}. `;
    return { signal: 'ephemeralpodfs.limit', message };
  }
  // A sidecar runs beside them for as long (kubernetes/kubernetes#138462).
  for (const { name, resources } of [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isRestartableInit)]) {
    const limit = resources?.limits?.[STORAGE];
    const own = use.containers.get(name);
    if (limit === undefined || own === undefined) continue;
    if (own.logs + (o.dedicatedImageFs ? 0 : own.layer) <= quantityToInteger(limit)) continue;
    const message = `Container ${name} exceeded its local ephemeral storage limit "${limit}". `;
    return { signal: 'ephemeralcontainerfs.limit', message };
  }
  return null;
}
