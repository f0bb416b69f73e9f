/** Where volumes of pods stand on disk (resources and volumes 8.2). Pure. */

import { type PathName, pathName } from '../pathName.ts';

export interface VolumeRef {
  uid: PathName;
  /** As in directory names: `kubernetes.io~empty-dir`. */
  plugin: string;
  /** Name in the pod. */
  name: PathName;
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
  return `${podDir(rootDir, ref.uid)}/volumes/${ref.plugin}/${ref.name}`;
}
/** In a pod's directory: links to devices that its containers are given, as VOLUME below the plugin. */
export const VOLUME_DEVICES = 'volumeDevices';
/** Link to the device of a claim. */
export function deviceLink(rootDir: string, ref: VolumeRef, plugin: string = ref.plugin): string {
  return `${podDir(rootDir, ref.uid)}/${VOLUME_DEVICES}/${plugin}/${ref.name}`;
}
/** Where the reference keeps the markers of all volumes: those of other plugins live in a wrapped emptyDir there. */
const MARKERS = 'kubernetes.io~empty-dir';
/** Directory whose file `ready` says that a volume was set up in full. */
export function markerDir(rootDir: string, ref: VolumeRef): string {
  return `${podDir(rootDir, ref.uid)}/plugins/${MARKERS}/${ref.plugin === MARKERS ? '' : 'wrapped_'}${ref.name}`;
}
/** In a pod's directory: parts of its volumes, bound for its containers. */
export const SUB_PATHS = 'volume-subpaths';
/** All sub-path binds of one volume; below it CONTAINER/INDEX. */
export function subPathsDir(rootDir: string, uid: PathName, volume: PathName): string {
  return `${podDir(rootDir, uid)}/${SUB_PATHS}/${volume}`;
}
export function volumeKey(ref: VolumeRef): string {
  return `${ref.uid}/${ref.plugin}/${ref.name}`;
}

/** Directories of a plugin have a `~` where its name has a `/`. */
export function pluginName(directory: string): string {
  return directory.replace('~', '/');
}
