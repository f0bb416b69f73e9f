/** Which volumes of a pod its containers mount. Pure. */

import type { Container } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';

export function containersWithMounts(pod: Pod): Container[] {
  const { initContainers, containers, ephemeralContainers } = pod.spec;
  return [...(initContainers ?? []), ...containers, ...(ephemeralContainers ?? [])];
}

/** Names of volumes that some container mounts or is given the device of: others are never set up, and what they name may be missing (trap 43). */
export function usedVolumes(pod: Pod): Set<string> {
  return new Set(containersWithMounts(pod).flatMap((c) => [...(c.volumeMounts ?? []), ...(c.volumeDevices ?? [])].map((m) => m.name)));
}
/** Names of volumes whose directory some container mounts. */
export function mountedVolumes(pod: Pod): Set<string> {
  return new Set(containersWithMounts(pod).flatMap((c) => (c.volumeMounts ?? []).map((m) => m.name)));
}
/** Names of volumes whose device some container is given. */
export function deviceVolumes(pod: Pod): Set<string> {
  return new Set(containersWithMounts(pod).flatMap((c) => (c.volumeDevices ?? []).map((d) => d.name)));
}
