/** What a pod's volumes ask for, decoded from the loose shape of the manifest. Pure. */

import type { Container } from '../../kube/podTable.ts';
import { quantityToInteger } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import type { Volume } from '../../kube/volumeTable.ts';
import type { PullPolicy } from '../../kube/words.ts';
import { type Built, built, refused } from '../../result.ts';
import { isRecord } from '../../shape/conform.ts';
import { trimEndOf } from '../../text/trim.ts';
import { heldLimit } from '../resources/podLevel.ts';
import { INLINE_KINDS, kindOf, kindOfPlugin, type VolumeSource } from './kinds.ts';
import { containersWithMounts, deviceVolumes, mountedVolumes, usedVolumes } from './mounting.ts';
import { pluginName, type VolumeRef, volumeRef } from './volumePaths.ts';

export interface PodVolume extends VolumeRef {
  source: VolumeSource;
}
export type Decoded = { ok: true; volume: PodVolume } | { ok: false; message: string };

/** A source this node has no plugin for is refused here too, so that a missing check elsewhere never starts half a pod. */
export function decodeVolume(uid: string, volume: Volume): Decoded {
  const { name } = volume;
  for (const { fields, plugin } of INLINE_KINDS) {
    for (const [field, decode] of Object.entries(fields)) {
      const content = volume[field];
      if (!isRecord(content)) continue;
      const source = decode(content);
      return source.ok ? { ok: true, volume: { ...volumeRef(uid, plugin, name), source: source.value } } : source;
    }
  }
  return refused(`volumes of kind "${Object.keys(volume).find((k) => k !== 'name') ?? 'none'}" are not there yet`);
}

/** Images that a container mounts, each once, in the order of the pod's volumes. */
export function mountedImages(pod: Pod, container: Container): { volume: string; reference: string; policy: PullPolicy }[] {
  const mounted = new Set((container.volumeMounts ?? []).map((m) => m.name));
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const decoded = mounted.has(volume.name) ? decodeVolume(pod.metadata.uid, volume) : undefined;
    if (decoded?.ok !== true) return [];
    const { source } = decoded.volume;
    const image = kindOf(source).image?.(source);
    return image === undefined ? [] : [{ volume: volume.name, ...image }];
  });
}

export interface PodVolumes {
  readonly volumes: readonly PodVolume[];
  /** What is wrong with volumes that cannot be decoded. */
  readonly failed: readonly { name: string; message: string }[];
}
/** Pods are never changed in place. Each is asked about some ten times while its volumes are set up. */
const DECODED = new WeakMap<Pod, PodVolumes>();
export function podVolumes(pod: Pod): PodVolumes {
  const known = DECODED.get(pod);
  if (known !== undefined) return known;
  const decoded = decodeVolumes(pod);
  DECODED.set(pod, decoded);
  return decoded;
}
function decodeVolumes(pod: Pod): PodVolumes {
  const used = usedVolumes(pod);
  const devices = deviceVolumes(pod);
  const mounted = mountedVolumes(pod);
  const result: { volumes: PodVolume[]; failed: { name: string; message: string }[] } = { volumes: [], failed: [] };
  for (const volume of pod.spec.volumes ?? []) {
    if (!used.has(volume.name)) continue;
    const decoded = decodeVolume(pod.metadata.uid, volume);
    if (!decoded.ok) result.failed.push({ name: volume.name, message: decoded.message });
    else if (!devices.has(volume.name)) result.volumes.push(decoded.volume);
    else {
      const { source } = decoded.volume;
      const { device } = kindOf(source);
      const refuse = (message: string) => result.failed.push({ name: volume.name, message });
      if (device === undefined) refuse('only the volume of a claim can be a device');
      else if (mounted.has(volume.name)) refuse('it is both in volumeMounts and in volumeDevices');
      else result.volumes.push({ ...decoded.volume, source: device.of(source) });
    }
  }
  return result;
}

/**
 * Volumes are made of a pod's definition and metadata. Its status comes back from the API server after each of our own writes,
 * and a burst of pods would have every file of theirs looked at for each of them.
 */
export function redefined(before: Pod, after: Pod): boolean {
  return before.spec !== after.spec || before.metadata !== after.metadata;
}

/** Containers are given the device of it. */
export function isDevice({ source }: PodVolume): boolean {
  return kindOf(source).device?.is(source) === true;
}

/** The plugin's name as people read it. */
export function pluginShown({ plugin }: Pick<VolumeRef, 'plugin'>): string {
  return kindOfPlugin(plugin)?.shown ?? pluginName(plugin);
}

/** Content that can change while the pod runs. */
export function refreshes(source: VolumeSource): boolean {
  return kindOf(source).refreshes;
}

/**
 * Size of a tmpfs, bytes: the least of the node's memory, the limit that the pod as a whole is held to, and the volume's own
 * limit. Null: none of them is known.
 */
export function tmpfsBytes(pod: Pod, sizeLimitBytes: number | null, allocatableMemory: Quantity | undefined): number | null {
  const held = quantityToInteger(heldLimit(pod, 'memory'));
  const podLimit = held > 0 ? held + quantityToInteger(pod.spec.overhead?.memory) : 0;
  const known = [quantityToInteger(allocatableMemory), podLimit, sizeLimitBytes ?? 0].filter((n) => n > 0);
  return known.length === 0 ? null : Math.min(...known);
}

/** The one user of all init and app containers, or null. */
export function commonUser(pod: Pod): number | null {
  const users = new Set(
    [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(
      (c) => c.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser ?? null,
    ),
  );
  const [user] = users;
  return users.size === 1 && user !== undefined ? user : null;
}

/** Mount points inside one volume; each of a pod's containers can name as many as it has mounts, for each of its own. */
const NESTED_MAX = 1_000;

/**
 * Directories that must exist inside a volume of files because something else is mounted below it: the volume itself is
 * mounted read-only, so the runtime could not make them. Relative to the volume.
 */
export function nestedMountPoints(pod: Pod, volume: string): Built<string[]> {
  const found = new Set<string>();
  for (const { volumeMounts = [] } of containersWithMounts(pod)) {
    const own = volumeMounts.filter((m) => m.name === volume);
    if (own.length === 0) continue;
    const others = volumeMounts.filter((m) => m.name !== volume && !partsOf(m.mountPath).includes('..'));
    const places = new Map(own.map((m) => [`${cleanPath(m.mountPath)}:${cleanPath(m.subPath ?? '')}`, m]));
    for (const { mountPath, subPath = '' } of places.values()) {
      const base = trimEndOf(mountPath, '/');
      for (const other of others) {
        if (!other.mountPath.startsWith(`${base}/`)) continue;
        const below = partsOf(other.mountPath.slice(base.length));
        if (below.length === 0) continue;
        found.add([...partsOf(subPath), ...below].join('/'));
        if (found.size > NESTED_MAX) return refused(`more than ${NESTED_MAX} mount points lie inside volume "${volume}"`);
      }
    }
  }
  return built([...found].sort());
}

const partsOf = (path: string): string[] => path.split('/').filter(Boolean);
const cleanPath = (path: string): string => partsOf(path).join('/');
