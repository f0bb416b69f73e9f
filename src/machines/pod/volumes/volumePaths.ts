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

export const EMPTY_DIR = 'kubernetes.io~empty-dir';
export const HOST_PATH = 'kubernetes.io~host-path';
export const CONFIG_MAP = 'kubernetes.io~configmap';
export const SECRET = 'kubernetes.io~secret';
export const DOWNWARD_API = 'kubernetes.io~downward-api';
/** Of a claim, whatever its volume is: what it stands for is bound to a directory of ours. Of one that a driver serves nothing is there. */
export const LOCAL_VOLUME = 'kubernetes.io~local-volume';
/** Holds `vol_data.json` and the directory at which the driver publishes. */
export const CSI = 'kubernetes.io~csi';
/** Not on disk: the runtime mounts it. */
export const IMAGE = 'kubernetes.io~image';
export const PROJECTED = 'kubernetes.io~projected';

/** Plugins whose volumes are directories of ours, so that a name on disk is all that is needed to take them down. */
export const OWN_PLUGINS: readonly string[] = [EMPTY_DIR, CONFIG_MAP, SECRET, DOWNWARD_API, PROJECTED, LOCAL_VOLUME, CSI];

export function podDir(rootDir: string, uid: PathName): string {
  return `${rootDir}/pods/${uid}`;
}
/** Of the files in which a container leaves a last message. */
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
/** Directory whose file `ready` says that a volume was set up in full. Volumes of files live in a wrapped emptyDir. */
export function markerDir(rootDir: string, ref: VolumeRef): string {
  return `${podDir(rootDir, ref.uid)}/plugins/${EMPTY_DIR}/${ref.plugin === EMPTY_DIR ? '' : 'wrapped_'}${ref.name}`;
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

/** As a person is told: the volume of a claim has one name here, whether it is a local one or a driver's. */
export function pluginShown({ plugin }: VolumeRef): string {
  return plugin === LOCAL_VOLUME ? 'persistentVolumeClaim' : pluginName(plugin);
}

/** Directories of a plugin have a `~` where its name has a `/`. */
export function pluginName(directory: string): string {
  return directory.replace('~', '/');
}
