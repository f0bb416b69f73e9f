/** The CRI mounts of a container's volumes (resources and volumes 8.20). Pure. */
import type { Mount } from '../cri.ts';
import type { Container } from '../k8s.ts';
import { type Built, built, refused } from '../pods/config/result.ts';

/** A volume that is set up, as containers are given it. */
export interface MountedVolume {
  hostPath: string;
  /** No container can write it, whatever its mount says. */
  readOnly: boolean;
  /** Ours to relabel. */
  managed: boolean;
}
const PROPAGATION = {
  None: 'PROPAGATION_PRIVATE',
  HostToContainer: 'PROPAGATION_HOST_TO_CONTAINER',
  Bidirectional: 'PROPAGATION_BIDIRECTIONAL',
} as const;

/**
 * In the order of the manifest. A volume that is not set up refuses the container, and so does a part of one that is not
 * bound. `parts`: where parts are, by index of their mount.
 */
export function containerMounts(
  container: Container,
  mounted: ReadonlyMap<string, MountedVolume>,
  parts: ReadonlyMap<number, string> = new Map(),
): Built<Mount[]> {
  const mounts: Mount[] = [];
  for (const [index, m] of (container.volumeMounts ?? []).entries()) {
    const volume = mounted.get(m.name);
    if (volume === undefined) return refused(`cannot find volume "${m.name}" to mount into container "${container.name}"`);
    const part = parts.get(index);
    // An expression that comes to nothing is the whole volume.
    if ((m.subPath ?? '') !== '' && part === undefined) {
      return refused(`failed to prepare subPath for volumeMount "${m.name}" of container "${container.name}"`);
    }
    mounts.push({
      containerPath: m.mountPath.startsWith('/') ? m.mountPath : `/${m.mountPath}`,
      hostPath: part ?? volume.hostPath,
      readonly: m.readOnly === true || volume.readOnly,
      selinuxRelabel: volume.managed,
      propagation: PROPAGATION[m.mountPropagation ?? 'None'],
    });
  }
  return built(mounts);
}
