/** Names of cgroups (resources 1.4): a name is a list of components from the root on, whatever the driver makes of it. Pure. */

import type { KubeletConfiguration } from '../../config/config.ts';
import type { Pod } from '../../kube/types.ts';
import type { GroupDriver } from '../../nodeFacts.ts';
import { type QosClass, qosClass } from '../../pod/resources/qos.ts';

export type GroupName = readonly string[];

/** Below `cgroupRoot`; holds everything that belongs to pods. */
const KUBEPODS = 'kubepods';
/** Classes with a group of their own. A Guaranteed pod stands right below `kubepods` (trap 14). */
export const TIERS = ['burstable', 'besteffort'] as const;
export type Tier = (typeof TIERS)[number];

const POD_PREFIX = 'pod';
const SLICE = '.slice';

/** Name of a path such as `/` or `/nodes/a`, which is not escaped. */
export function rootName(cgroupRoot: string): GroupName {
  return cgroupRoot.split('/').filter((part) => part !== '');
}

export function kubepodsName(cgroupRoot: string): GroupName {
  return [...rootName(cgroupRoot), KUBEPODS];
}

export function tierName(kubepods: GroupName, tier: Tier): GroupName {
  return [...kubepods, tier];
}

export function podGroupName(kubepods: GroupName, pod: Pod): GroupName {
  const tier = tierOf(qosClass(pod));
  return [...(tier === null ? kubepods : tierName(kubepods, tier)), `${POD_PREFIX}${pod.metadata.uid}`];
}

/** The class's group below `kubepods`. Null: pods of the class are right below `kubepods`. */
function tierOf(qos: QosClass): Tier | null {
  return qos === 'Burstable' ? 'burstable' : qos === 'BestEffort' ? 'besteffort' : null;
}

/** UID in the last component of a name; null: it is no pod's. */
export function uidOf(component: string): string | null {
  const uid = component.startsWith(POD_PREFIX) ? component.slice(POD_PREFIX.length) : '';
  return uid === '' ? null : uid;
}

/** Name of a configured group that is not ours (`kubeReservedCgroup`): a path, or with systemd a slice with or without its parents. */
export function configuredName(path: string, driver: GroupDriver): GroupName {
  if (driver === 'cgroupfs') return rootName(path);
  const slice = path.split('/').at(-1) ?? '';
  const stem = slice.endsWith(SLICE) ? slice.slice(0, -SLICE.length) : slice;
  return stem === '-' ? [] : stem.split('-').flatMap((part) => (part === '' ? [] : part.replaceAll('_', '-')));
}

/** The slice that a path ends in, a unit of systemd; null: it is no slice. */
export function sliceOf(path: string): string | null {
  const last = path.split('/').at(-1) ?? '';
  return last.endsWith(SLICE) ? last : null;
}

/** Where a group is below each hierarchy, and what the runtime is told as `cgroup_parent`. */
export function groupPath(name: GroupName, driver: GroupDriver): string {
  return driver === 'systemd' ? systemdPath(name) : `/${name.join('/')}`;
}

/** Slice that services are in where nothing else is said; a sandbox without a parent is refused by runc. */
const SYSTEM_SLICE = 'system.slice';

/** What the runtime is told as `cgroup_parent` where pods have no groups of their own; undefined: it chooses. */
export function plainParent(cgroupRoot: string, driver: GroupDriver): string | undefined {
  const root = rootName(cgroupRoot);
  if (root.length > 0) return groupPath(root, driver);
  return driver === 'systemd' ? `/${SYSTEM_SLICE}` : undefined;
}

/**
 * A slice is named after all that it is below, so every prefix of the name is a directory of its own (trap 15). A dash
 * parts components, therefore it may not be in one.
 */
function systemdPath(name: GroupName): string {
  const escaped = name.map((part) => part.replaceAll('-', '_'));
  return `/${escaped.map((_, i) => `${escaped.slice(0, i + 1).join('-')}${SLICE}`).join('/')}`;
}

/**
 * The component that a directory stands for: of a slice the last one, its dashes restored. One with an underscore of its
 * own comes back with a dash: names of components have none.
 */
export function componentOf(directory: string, driver: GroupDriver): string {
  if (driver === 'cgroupfs' || !directory.endsWith(SLICE)) return directory;
  return (directory.slice(0, -SLICE.length).split('-').at(-1) ?? '').replaceAll('_', '-');
}

type GroupsConfig = Pick<KubeletConfiguration, 'cgroupsPerQOS' | 'cgroupRoot'>;

/** Path of the group of all pods; undefined where there is none, or the runtime has not said its driver. */
export function podsGroup({ cgroupsPerQOS, cgroupRoot }: GroupsConfig, driver: GroupDriver | undefined): string | undefined {
  return cgroupsPerQOS && driver !== undefined ? groupPath(kubepodsName(cgroupRoot), driver) : undefined;
}

/** The same of one pod. */
export function podGroup({ cgroupsPerQOS, cgroupRoot }: GroupsConfig, driver: GroupDriver | undefined, pod: Pod): string | undefined {
  return cgroupsPerQOS && driver !== undefined ? groupPath(podGroupName(kubepodsName(cgroupRoot), pod), driver) : undefined;
}
