/** The CRI mounts of a container's volumes (resources and volumes 8.20). Pure. */

import type { Container, VolumeMount } from '../../kube/podTable.ts';
import { type Built, built, refused } from '../../result.ts';
import type { Device, ImageSpec, Mount } from '../../wire/cri.ts';

/** A volume that is set up, as containers are given it. */
export interface MountedVolume {
  hostPath: string;
  /** No container can write it, whatever its mount says. */
  readOnly: boolean;
  /** Ours to relabel. */
  managed: boolean;
  /** It is an image, which the runtime mounts itself: there is no path. */
  image?: true;
  /** It is a device, not a directory. */
  device?: true;
  /** Its users need this group. */
  group?: number;
}
export interface MountOptions {
  /** Where parts of volumes are bound, by index of their mount; of an image the path in it. */
  parts?: ReadonlyMap<number, string>;
  /** Images that were pulled for volumes, by name of the volume. */
  images?: ReadonlyMap<string, ImageSpec>;
  /** The runtime can make mounts below a mount read-only, too. */
  recursiveReadOnly?: boolean;
}
const PROPAGATION = {
  None: 'PROPAGATION_PRIVATE',
  HostToContainer: 'PROPAGATION_HOST_TO_CONTAINER',
  Bidirectional: 'PROPAGATION_BIDIRECTIONAL',
} as const;

/** Whether mounts below it become read-only, too. In words of the reference. */
export function recursively(m: VolumeMount, supported: boolean): Built<boolean> {
  const mode = m.recursiveReadOnly ?? 'Disabled';
  const unresolved = (why: string) => refused(`failed to resolve recursive read-only mode: ${why}`);
  const because = (why: string) => unresolved(`volume "${m.name}" requested recursive read-only mode, but it is ${why}`);
  if (mode === 'Disabled') return built(false);
  if (m.readOnly !== true) return because('not read-only');
  if ((m.mountPropagation ?? 'None') !== 'None') return because(`not compatible with propagation "${m.mountPropagation}"`);
  if (mode === 'IfPossible') return built(supported);
  if (mode !== 'Enabled') return unresolved(`unknown recursive read-only mode "${mode}"`);
  return supported ? built(true) : because('not supported by the runtime');
}

/** In the order of the manifest. A volume that is not set up refuses the container, and so does a part of one that is not bound. */
export function containerMounts(
  container: Container,
  mounted: ReadonlyMap<string, MountedVolume>,
  { parts = new Map(), images = new Map(), recursiveReadOnly = false }: MountOptions = {},
): Built<Mount[]> {
  const mounts: Mount[] = [];
  for (const [index, m] of (container.volumeMounts ?? []).entries()) {
    const volume = mounted.get(m.name);
    const image = images.get(m.name);
    if (volume === undefined || volume.device === true || (volume.image === true && image === undefined)) {
      return refused(`cannot find volume "${m.name}" to mount into container "${container.name}"`);
    }
    const part = parts.get(index);
    // An expression that comes to nothing is the whole volume.
    if ((m.subPath ?? '') !== '' && part === undefined) {
      return refused(`failed to prepare subPath for volumeMount "${m.name}" of container "${container.name}"`);
    }
    const recursive = recursively(m, recursiveReadOnly);
    if (!recursive.ok) return recursive;
    const from =
      volume.image === true && image !== undefined
        ? { hostPath: '', image, ...(part === undefined ? {} : { imageSubPath: part }) }
        : { hostPath: part ?? volume.hostPath };
    mounts.push({
      containerPath: m.mountPath.startsWith('/') ? m.mountPath : `/${m.mountPath}`,
      ...from,
      readonly: m.readOnly === true || volume.readOnly,
      selinuxRelabel: volume.managed,
      propagation: PROPAGATION[m.mountPropagation ?? 'None'],
      ...(recursive.value ? { recursiveReadOnly: true } : {}),
    });
  }
  return built(mounts);
}

/** The devices of volumes that a container names; in words of the reference. */
export function containerDevices(container: Container, mounted: ReadonlyMap<string, MountedVolume>): Built<Device[]> {
  const devices: Device[] = [];
  for (const { name, devicePath } of container.volumeDevices ?? []) {
    const volume = mounted.get(name);
    if (volume?.device !== true) return refused(`cannot find volume "${name}" to pass into container "${container.name}"`);
    if (!devicePath.startsWith('/')) return refused(`error DevicePath "${devicePath}" must be an absolute path`);
    devices.push({ containerPath: devicePath, hostPath: volume.hostPath, permissions: volume.readOnly ? 'r' : 'mrw' });
  }
  return built(devices);
}
