/** Where volumes of pods stand on disk (resources and volumes 8.2). Pure. */

import { isPathName, type PathName, pathName } from '../pathName.ts';

export interface VolumeRef {
  uid: PathName;
  /** As in directory names: `kubernetes.io~empty-dir`. */
  plugin: string;
  /** Name in the pod. */
  name: PathName;
  /** What the directories of a claim's volume are called. Absent: as above. */
  stands?: Stand;
}
/** A claim's volume is called like its PersistentVolume on disk, below the plugin that serves it, as the reference does. */
export interface Stand {
  plugin: string;
  name: PathName;
  /** Group that containers need for it. */
  group?: number;
}

export function standOf({ plugin, name, stands }: VolumeRef): Stand {
  return stands ?? { plugin, name };
}
export function isSameStand(one: Stand, other: Stand): boolean {
  return one.plugin === other.plugin && one.name === other.name;
}

/** @throws UnsafeName for what was not checked where it came in. */
export function volumeRef(uid: string, plugin: string, name: string): VolumeRef {
  return { uid: pathName(uid), plugin, name: pathName(name) };
}

export function podDir(rootDir: string, uid: PathName): string {
  return `${rootDir}/pods/${uid}`;
}
/** The folder of the files in which a container leaves a last message. */
export function containerDir(rootDir: string, uid: PathName, container: PathName): string {
  return `${podDir(rootDir, uid)}/containers/${container}`;
}
export function volumePath(rootDir: string, ref: VolumeRef): string {
  const { plugin, name } = standOf(ref);
  return `${podDir(rootDir, ref.uid)}/volumes/${plugin}/${name}`;
}
/** In a pod's directory: links to devices that its containers are given, as VOLUME below the plugin. */
export const VOLUME_DEVICES = 'volumeDevices';
/** Link to the device of a claim. */
export function deviceLink(rootDir: string, ref: VolumeRef): string {
  const { plugin, name } = standOf(ref);
  return `${podDir(rootDir, ref.uid)}/${VOLUME_DEVICES}/${plugin}/${name}`;
}
/** Where the reference keeps the markers of all volumes: those of other plugins live in a wrapped emptyDir there. */
const MARKERS = 'kubernetes.io~empty-dir';
export function markersDir(rootDir: string, uid: PathName): string {
  return `${podDir(rootDir, uid)}/plugins/${MARKERS}`;
}
const WRAPPED = 'wrapped_';
/** Name in its pod of the volume whose marker this is; null: an emptyDir's. */
export function wrappedName(marker: string): string | null {
  const name = marker.slice(WRAPPED.length);
  return marker.startsWith(WRAPPED) && isPathName(name) ? name : null;
}
/** Directory whose file `ready` says that a volume was set up in full. */
export function markerDir(rootDir: string, ref: VolumeRef): string {
  return `${markersDir(rootDir, ref.uid)}/${ref.plugin === MARKERS ? '' : WRAPPED}${ref.name}`;
}
/** In a pod's directory: parts of its volumes, bound for its containers. */
export const SUB_PATHS = 'volume-subpaths';
/** All sub-path binds of one volume; below it CONTAINER/INDEX. */
export function subPathsDir(rootDir: string, ref: VolumeRef): string {
  return `${podDir(rootDir, ref.uid)}/${SUB_PATHS}/${standOf(ref).name}`;
}
export function volumeKey(ref: VolumeRef): string {
  return `${ref.uid}/${ref.plugin}/${ref.name}`;
}

/** Directories of a plugin have a `~` where its name has a `/`. */
export function pluginName(directory: string): string {
  return directory.replace('~', '/');
}
