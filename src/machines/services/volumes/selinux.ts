/**
 * Volumes mounted with an SELinux label (KEP-1710), so that the runtime need not label them file by file: which label, and
 * whether a node may do so. Pure.
 */

import type { SELinuxOptions } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { containersWithMounts } from '../../pod/volumes/mounting.ts';

export interface SelinuxInput {
  pod: Pod;
  /** Name in the pod. */
  volume: string;
  accessModes: readonly string[];
  /** `seLinuxMount` of the driver's object. */
  driverSupports: boolean;
  /** Gate SELinuxMount: volumes of every access mode, and not of ReadWriteOncePod alone. */
  allModes: boolean;
  /** Label of files of containers on this host, of four parts. */
  fileLabel: string;
}
export interface SelinuxLabel {
  /** What the pod asks for, '' = nothing. */
  wanted: string;
  /** What the volume is mounted with, '' = nothing. */
  mounted: string;
  /** Volumes of this access mode are mounted with labels: what contradicts is an error, and not only counted. */
  enforced: boolean;
}

/**
 * The label of files for a container with these options. '' without a level: the runtime then chooses one that nobody else knows.
 * As for the runtime, role and type of the process are not those of its files.
 */
function labelOf(options: SELinuxOptions, fileLabel: string): string {
  const [user = '', role = '', type = ''] = fileLabel.split(':');
  return options.level === undefined || options.level === '' ? '' : `${options.user || user}:${role}:${type}:${options.level}`;
}

export function selinuxLabel(o: SelinuxInput): SelinuxLabel | { refused: string; enforced: boolean } {
  const enforced = o.allModes || (o.accessModes.length === 1 && o.accessModes[0] === 'ReadWriteOncePod');
  const ofPod = o.pod.spec.securityContext;
  const users = containersWithMounts(o.pod).filter((c) => (c.volumeMounts ?? []).some((m) => m.name === o.volume));
  const options = users.map((c) => c.securityContext?.seLinuxOptions ?? ofPod?.seLinuxOptions).filter((s) => s !== undefined);
  const labels = [...new Set(options.map((s) => labelOf(s, o.fileLabel)))].sort();
  if (labels.length > 1) return { refused: `multiple SELinux labels found: ${labels.join(',')}`, enforced };
  const wanted = ofPod?.seLinuxChangePolicy === 'Recursive' || !o.driverSupports ? '' : (labels[0] ?? '');
  return { wanted, mounted: enforced ? wanted : '', enforced };
}

/** A comma in a label does not end the option. */
export function contextOption(label: string): string {
  return `context="${label}"`;
}

/** As metrics name the access mode: the widest of them. */
export function modeShown(accessModes: readonly string[]): string {
  const shown = [
    ['ReadWriteMany', 'RWX'],
    ['ReadOnlyMany', 'ROX'],
    ['ReadWriteOnce', 'RWO'],
    ['ReadWriteOncePod', 'RWOP'],
  ] as const;
  return shown.find(([mode]) => accessModes.includes(mode))?.[1] ?? 'inline';
}
