/** How a pod is named, by whom it came, and which annotations say so. Pure. */

import type { Pod } from '../kube/types.ts';
import { isRecord } from '../shape/conform.ts';

import type { PathName } from './pathName.ts';
import { podDir } from './volumes/volumePaths.ts';

export const ANNOTATION_SOURCE = 'kubernetes.io/config.source';
export const ANNOTATION_SEEN = 'kubernetes.io/config.seen';
export const ANNOTATION_HASH = 'kubernetes.io/config.hash';
export const ANNOTATION_MIRROR = 'kubernetes.io/config.mirror';

/** JSON with sorted keys: equal for equal data, whatever order it was written in. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (isRecord(value)) {
    const fields = Object.keys(value)
      .filter((k) => value[k] !== undefined)
      .sort()
      .map((k) => `${JSON.stringify(k)}:${canonicalJson(value[k])}`);
    return `{${fields.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

export function fullName(pod: { metadata: { name: string; namespace: string } }): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}`;
}

export function podRef(pod: Pod): PodRef {
  return { uid: pod.metadata.uid, name: pod.metadata.name, namespace: pod.metadata.namespace };
}

/** Without putting the names together: for loops over every pod. */
export function sameName(a: Pod, b: Pod): boolean {
  return a.metadata.name === b.metadata.name && a.metadata.namespace === b.metadata.namespace;
}

/** Its source has deleted it: it is wound down, whatever it was before. */
export function isLeaving(pod: Pod): boolean {
  const at = pod.metadata.deletionTimestamp;
  return at !== undefined && at !== null;
}

/** How pods named their profiles before there was a field: this, and the name of the container. */
export const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';

export const APPARMOR_UNCONFINED = 'unconfined';

/** The file on the node that is mounted at /etc/hosts of the pod's containers. */
export function etcHostsPath(rootDir: string, uid: PathName): string {
  return `${podDir(rootDir, uid)}/etc-hosts`;
}

/** On every sandbox this agent makes: tells its static pods from those of another agent, whose UIDs mean something else. */
export const ANNOTATION_AGENT = 'actorlet.dev/agent';

export interface PodRef {
  uid: string;
  name: string;
  namespace: string;
}

/** The oldest first, as the reference does; static pods have no creation time and keep their order. */
export function byCreation(a: Pod, b: Pod): number {
  const at = a.metadata.creationTimestamp ?? '';
  const bt = b.metadata.creationTimestamp ?? '';
  return at < bt ? -1 : at > bt ? 1 : 0;
}
