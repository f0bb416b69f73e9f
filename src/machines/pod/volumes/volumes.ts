/** What a pod's volumes ask for, decoded from the loose shape of the manifest. Pure. */

import type { Container, Volume } from '../../kube/podTable.ts';
import { isZeroQuantity, quantityToInteger } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import type { PullPolicy } from '../../kube/words.ts';
import { type Built, built, refused } from '../../result.ts';
import { isRecord } from '../../shape/conform.ts';
import { quoted } from '../../text/errorList.ts';
import { trimEndOf } from '../../text/trim.ts';
import { isPathName, type PathName } from '../pathName.ts';

import {
  CONFIG_MAP,
  CSI,
  DOWNWARD_API,
  EMPTY_DIR,
  HOST_PATH,
  IMAGE,
  LOCAL_VOLUME,
  PROJECTED,
  SECRET,
  type VolumeRef,
  volumeRef,
} from './volumePaths.ts';

export const HOST_PATH_TYPES = [
  '',
  'DirectoryOrCreate',
  'Directory',
  'FileOrCreate',
  'File',
  'Socket',
  'CharDevice',
  'BlockDevice',
] as const;
export type HostPathType = (typeof HOST_PATH_TYPES)[number];

export interface KeyItem {
  key: string;
  path: string;
  mode: number | null;
}
export interface DownwardItem {
  path: string;
  mode: number | null;
  fieldPath: string | null;
  resource: { containerName: string; resource: string; divisor?: Quantity } | null;
}
export type ProjectionSource =
  | { kind: 'secret' | 'configMap'; name: string; optional: boolean /** Null: every key. */; items: readonly KeyItem[] | null }
  | { kind: 'downwardAPI'; items: readonly DownwardItem[] }
  | { kind: 'token'; path: string; audience: string; expirationSeconds: number };

export type VolumeSource =
  /** `medium`: '' is the disk; `HugePages` alone leaves the size of the pages to what the pod asks for. */
  | { kind: 'emptyDir'; medium: string; sizeLimitBytes: number | null }
  | { kind: 'hostPath'; path: string; type: HostPathType }
  | { kind: 'image'; reference: string; policy: PullPolicy }
  /** `claim` null: the one that was made for this volume of this pod. `block`: containers are given the device itself. */
  | { kind: 'claim'; claim: string | null; readOnly: boolean; block: boolean }
  | { kind: 'csi'; csi: InlineCsi }
  /** Secret, config map, downward and projected volumes are all a set of files put there by us. */
  | { kind: 'files'; memory: boolean; defaultMode: number; sources: readonly ProjectionSource[] };

export interface PodVolume extends VolumeRef {
  source: VolumeSource;
}
export type Decoded = { ok: true; volume: PodVolume } | { ok: false; message: string };

/** API default of `expirationSeconds`. */
const TOKEN_SECONDS = 3_600;
const FILE_MODE = 0o644;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const modeOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);

function keyItems(value: unknown): KeyItem[] | null {
  const items = list(value).filter(isRecord);
  return items.length === 0 ? null : items.map((i) => ({ key: text(i.key), path: text(i.path), mode: modeOf(i.mode) }));
}
function downwardItems(value: unknown): DownwardItem[] {
  return list(value)
    .filter(isRecord)
    .map((i) => {
      const { fieldRef: field, resourceFieldRef: resource } = i;
      return {
        path: text(i.path),
        mode: modeOf(i.mode),
        fieldPath: isRecord(field) ? text(field.fieldPath) : null,
        resource: isRecord(resource)
          ? {
              containerName: text(resource.containerName),
              resource: text(resource.resource),
              ...(typeof resource.divisor === 'string' || typeof resource.divisor === 'number' ? { divisor: resource.divisor } : {}),
            }
          : null,
      };
    });
}
function object(kind: 'secret' | 'configMap', value: Record<string, unknown>, nameKey: string): ProjectionSource {
  return { kind, name: text(value[nameKey]), optional: value.optional === true, items: keyItems(value.items) };
}
function projection(value: unknown): ProjectionSource | string {
  if (!isRecord(value)) return 'nothing';
  const { secret, configMap, downwardAPI, serviceAccountToken: token } = value;
  if (isRecord(secret)) return object('secret', secret, 'name');
  if (isRecord(configMap)) return object('configMap', configMap, 'name');
  if (isRecord(downwardAPI)) return { kind: 'downwardAPI', items: downwardItems(downwardAPI.items) };
  if (isRecord(token)) {
    const seconds = token.expirationSeconds;
    return {
      kind: 'token',
      path: text(token.path),
      audience: text(token.audience),
      expirationSeconds: typeof seconds === 'number' ? seconds : TOKEN_SECONDS,
    };
  }
  return Object.keys(value)[0] ?? 'nothing';
}

export function isHostPathType(value: string): value is HostPathType {
  return (HOST_PATH_TYPES as readonly string[]).includes(value);
}

/** A source this node has no plugin for is refused here too, so that a missing check elsewhere never starts half a pod. */
export function decodeVolume(uid: string, volume: Volume): Decoded {
  const { name } = volume;
  const done = (plugin: string, source: VolumeSource): Decoded => ({ ok: true, volume: { ...volumeRef(uid, plugin, name), source } });
  const { emptyDir, hostPath, configMap, secret, downwardAPI, projected, image, persistentVolumeClaim: claim, csi, ephemeral } = volume;
  if (isRecord(emptyDir)) {
    const medium = text(emptyDir.medium);
    if (medium !== '' && medium !== 'Memory' && !isHugePages(medium)) return refused(`emptyDir.medium "${medium}" is not a medium`);
    const limit = emptyDir.sizeLimit;
    const bytes = typeof limit === 'string' || typeof limit === 'number' ? quantityToInteger(limit) : 0;
    return done(EMPTY_DIR, { kind: 'emptyDir', medium, sizeLimitBytes: bytes > 0 ? bytes : null });
  }
  if (isRecord(hostPath)) {
    const path = text(hostPath.path);
    const type = text(hostPath.type);
    if (!path.startsWith('/') || path.split('/').includes('..')) return refused(`hostPath.path "${path}" must be absolute, without ".."`);
    if (!isHostPathType(type)) return refused(`hostPath.type "${type}" is not a type of hostPath`);
    return done(HOST_PATH, { kind: 'hostPath', path, type });
  }
  if (isRecord(image)) {
    const reference = text(image.reference);
    if (reference === '') return refused('image.reference must be set');
    return done(IMAGE, { kind: 'image', reference, policy: pullPolicy(text(image.pullPolicy)) });
  }
  if (isRecord(claim)) {
    const name = text(claim.claimName);
    if (name === '') return refused('persistentVolumeClaim.claimName must be set');
    return done(LOCAL_VOLUME, { kind: 'claim', claim: name, readOnly: claim.readOnly === true, block: false });
  }
  if (isRecord(ephemeral)) return done(LOCAL_VOLUME, { kind: 'claim', claim: null, readOnly: false, block: false });
  if (isRecord(csi)) {
    const inline = inlineCsi(csi);
    return inline.ok ? done(CSI, { kind: 'csi', csi: inline.value }) : inline;
  }
  const files = (plugin: string, value: Record<string, unknown>, sources: readonly ProjectionSource[]): Decoded =>
    done(plugin, { kind: 'files', memory: plugin !== CONFIG_MAP, defaultMode: modeOf(value.defaultMode) ?? FILE_MODE, sources });
  if (isRecord(configMap)) return files(CONFIG_MAP, configMap, [object('configMap', configMap, 'name')]);
  if (isRecord(secret)) return files(SECRET, secret, [object('secret', secret, 'secretName')]);
  if (isRecord(downwardAPI)) return files(DOWNWARD_API, downwardAPI, [{ kind: 'downwardAPI', items: downwardItems(downwardAPI.items) }]);
  if (isRecord(projected)) {
    const sources: ProjectionSource[] = [];
    for (const value of list(projected.sources)) {
      const source = projection(value);
      if (typeof source === 'string') return refused(`projected source "${source}" is not there yet`);
      sources.push(source);
    }
    return files(PROJECTED, projected, sources);
  }
  return refused(`volumes of kind "${Object.keys(volume).find((k) => k !== 'name') ?? 'none'}" are not there yet`);
}

function pullPolicy(value: string): PullPolicy {
  return value === 'Always' || value === 'Never' ? value : 'IfNotPresent';
}

/** Images that a container mounts, each once, in the order of the pod's volumes. */
export function mountedImages(pod: Pod, container: Container): { volume: string; reference: string; policy: PullPolicy }[] {
  const mounted = new Set((container.volumeMounts ?? []).map((m) => m.name));
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const decoded = mounted.has(volume.name) ? decodeVolume(pod.metadata.uid, volume) : undefined;
    if (decoded?.ok !== true || decoded.volume.source.kind !== 'image') return [];
    const { reference, policy } = decoded.volume.source;
    return [{ volume: volume.name, reference, policy }];
  });
}

export function containersWithMounts(pod: Pod): Container[] {
  const { initContainers, containers, ephemeralContainers } = pod.spec;
  return [...(initContainers ?? []), ...containers, ...(ephemeralContainers ?? [])];
}

/** Names of volumes that some container mounts or is given the device of: others are never set up, and what they name may be missing (trap 43). */
export function usedVolumes(pod: Pod): Set<string> {
  return new Set(containersWithMounts(pod).flatMap((c) => [...(c.volumeMounts ?? []), ...(c.volumeDevices ?? [])].map((m) => m.name)));
}
/** Names of volumes whose device some container is given. */
function deviceVolumes(pod: Pod): Set<string> {
  return new Set(containersWithMounts(pod).flatMap((c) => (c.volumeDevices ?? []).map((d) => d.name)));
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
  const mounted = new Set(containersWithMounts(pod).flatMap((c) => (c.volumeMounts ?? []).map((m) => m.name)));
  const result: { volumes: PodVolume[]; failed: { name: string; message: string }[] } = { volumes: [], failed: [] };
  for (const volume of pod.spec.volumes ?? []) {
    if (!used.has(volume.name)) continue;
    const decoded = decodeVolume(pod.metadata.uid, volume);
    if (!decoded.ok) result.failed.push({ name: volume.name, message: decoded.message });
    else if (!devices.has(volume.name)) result.volumes.push(decoded.volume);
    else {
      const { source } = decoded.volume;
      const refuse = (message: string) => result.failed.push({ name: volume.name, message });
      if (source.kind !== 'claim') refuse('only the volume of a claim can be a device');
      else if (mounted.has(volume.name)) refuse('it is both in volumeMounts and in volumeDevices');
      else result.volumes.push({ ...decoded.volume, source: { ...source, block: true } });
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

/** Content that can change while the pod runs. */
export function refreshes(source: VolumeSource): boolean {
  return source.kind === 'files';
}

/**
 * Size of a tmpfs, bytes: the least of the node's memory, the pod's memory limit (where every container has one) and the
 * volume's own limit. Null: none of them is known.
 */
export function tmpfsBytes(pod: Pod, sizeLimitBytes: number | null, allocatableMemory: Quantity | undefined): number | null {
  const limits = pod.spec.containers.map((c) => quantityToInteger(c.resources?.limits?.memory));
  const podLimit = limits.every((l) => l > 0) ? limits.reduce((sum, l) => sum + l, 0) : 0;
  const known = [quantityToInteger(allocatableMemory), podLimit, sizeLimitBytes ?? 0].filter((n) => n > 0);
  return known.length === 0 ? null : Math.min(...known);
}

const HUGE_PAGES = 'HugePages';
const HUGE_PAGES_RESOURCE = 'hugepages-';

function isHugePages(medium: string): boolean {
  return medium === HUGE_PAGES || (medium.startsWith(`${HUGE_PAGES}-`) && quantityToInteger(medium.slice(HUGE_PAGES.length + 1)) > 0);
}

/**
 * Bytes of a page of the file system behind such a volume. Some container must ask for pages of the size that the medium
 * names; a medium that names none stands for the only size that is asked for.
 */
export function hugePageBytes(pod: Pod, medium: string): Built<number> {
  const asked = new Set<number>();
  for (const c of containersWithMounts(pod)) {
    for (const [name, amount] of Object.entries(c.resources?.requests ?? {})) {
      if (name.startsWith(HUGE_PAGES_RESOURCE) && !isZeroQuantity(amount)) {
        asked.add(quantityToInteger(name.slice(HUGE_PAGES_RESOURCE.length)));
      }
    }
  }
  const named = medium === HUGE_PAGES ? [...asked] : [quantityToInteger(medium.slice(HUGE_PAGES.length + 1))].filter((b) => asked.has(b));
  const [bytes] = named;
  if (bytes === undefined) return refused(`medium ${medium} is asked for, and no container requests huge pages of that size`);
  if (named.length > 1) return refused(`medium ${HUGE_PAGES} cannot be used where containers request huge pages of several sizes`);
  return built(bytes);
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

/** As it stands in a pod: what a driver makes for that pod alone. */
export interface InlineCsi {
  driver: PathName;
  readOnly: boolean;
  fsType: string;
  attributes: Readonly<Record<string, string>>;
  /** '' = none. In the pod's namespace. */
  secret: string;
}

export function inlineCsi(value: Record<string, unknown>): Built<InlineCsi> {
  const driver = text(value.driver);
  if (driver === '') return refused('csi.driver must be set');
  if (!isPathName(driver)) return refused(`csi.driver ${quoted(driver)} cannot be the name of a CSI driver`);
  const secret = isRecord(value.nodePublishSecretRef) ? text(value.nodePublishSecretRef.name) : '';
  return built({
    driver,
    readOnly: value.readOnly === true,
    fsType: text(value.fsType),
    attributes: strings(value.volumeAttributes),
    secret,
  });
}

export const strings = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(isRecord(value) ? value : {}).filter((e): e is [string, string] => typeof e[1] === 'string'));
