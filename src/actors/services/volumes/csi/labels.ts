/** SELinux labels with which volumes of drivers are mounted, and what is counted of them. */

import type { Pod } from '../../../../machines/kube/types.ts';
import type { CsiVolume } from '../../../../machines/pod/volumes/kinds/csi.ts';
import { type VolumeRef, volumeKey } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { DriverRules } from '../../../../machines/services/volumes/csi/driver.ts';
import { csiRef } from '../../../../machines/services/volumes/csi/volume.ts';
import { modeShown, selinuxLabel } from '../../../../machines/services/volumes/selinux.ts';
import type { Metrics } from '../../../../ports/ports.ts';
import { type CsiOptions, volumesOnDisk } from './place.ts';

interface LabelJob {
  ref: VolumeRef;
  pod: Pod;
  csi: CsiVolume;
  rules: DriverRules;
}

/** The label to mount with, '' = none. Rejects where the pod contradicts itself, or another pod that has the volume. */
export async function mountLabel(o: CsiOptions, job: LabelJob, device: string): Promise<string> {
  const { ref, pod, csi, rules } = job;
  const { selinux } = o.facts();
  if (selinux === undefined || csi.lifecycle === 'Ephemeral' || csi.block) return '';
  const count = (what: Counted, labels: Record<string, string>) => counted(o, what, labels);
  const access_mode = modeShown(csi.accessModes);
  const label = selinuxLabel({
    ...{ pod, volume: ref.name, accessModes: csi.accessModes, driverSupports: rules.seLinuxMount },
    ...{ allModes: selinux.allModes, fileLabel: selinux.fileLabel },
  });
  const contradicts = (what: 'pod' | 'volume', message: string, labels: Record<string, string>): void => {
    count(`${what}${label.enforced ? 'Errors' : 'Warnings'}`, labels);
    if (label.enforced) throw new Error(message);
  };
  if ('refused' in label) {
    contradicts('pod', label.refused, { access_mode });
    return '';
  }
  const volume_plugin = `kubernetes.io/csi/${csi.driver}`;
  const others = (await volumesOnDisk(o.ports.fs, o.facts().rootDir)).filter(
    (v) => v.ref.uid !== ref.uid && `${v.data.driver}^${v.data.handle}` === device,
  );
  for (const other of others) {
    const held = o.ledger.labels.get(volumeKey(other.ref)) ?? other.data.context;
    if (!rules.seLinuxMount || held === label.wanted) continue;
    const message = `conflicting SELinux labels of volume ${ref.name}: "${held}" and "${label.wanted}"`;
    contradicts('volume', message, { volume_plugin, access_mode });
  }
  o.ledger.labels.set(volumeKey(csiRef(ref)), label.wanted);
  if (label.wanted !== '') count('admitted', { volume_plugin, access_mode });
  return label.mounted;
}

const OF_MODE = ['access_mode'] as const;
const OF_PLUGIN = ['volume_plugin', 'access_mode'] as const;
const COUNTED = {
  podErrors: {
    name: 'volume_manager_selinux_pod_context_mismatch_errors_total',
    help: 'Attempts at volumes that containers of a pod use with different SELinux labels. The pod cannot start.',
    labels: OF_MODE,
  },
  podWarnings: {
    name: 'volume_manager_selinux_pod_context_mismatch_warnings_total',
    help: 'Volumes that containers of a pod use with different SELinux labels. With SELinuxMount they would be errors.',
    labels: OF_MODE,
  },
  volumeErrors: {
    name: 'volume_manager_selinux_volume_context_mismatch_errors_total',
    help: 'Attempts at volumes that are mounted with the SELinux label of another pod. The pod cannot start.',
    labels: OF_PLUGIN,
  },
  volumeWarnings: {
    name: 'volume_manager_selinux_volume_context_mismatch_warnings_total',
    help: 'Volumes that another pod uses with another SELinux label. With SELinuxMount they would be errors.',
    labels: OF_PLUGIN,
  },
  admitted: {
    name: 'volume_manager_selinux_volumes_admitted_total',
    help: 'Volumes whose SELinux label contradicts nothing.',
    labels: OF_PLUGIN,
  },
} as const;
type Counted = keyof typeof COUNTED;

/** Families that have no series before something is counted. */
export function addLabelFamilies(metrics: Metrics): void {
  for (const { name, help, labels } of Object.values(COUNTED)) metrics.gauge(name, help, labels);
}

/** Gauges that only grow, as in the reference. */
function counted(o: Pick<CsiOptions, 'ports' | 'ledger'>, what: Counted, labels: Record<string, string>): void {
  const { name, help, labels: names } = COUNTED[what];
  const key = JSON.stringify([name, labels]);
  const value = (o.ledger.counts.get(key) ?? 0) + 1;
  o.ledger.counts.set(key, value);
  o.ports.metrics.gauge(name, help, names).set(value, labels);
}
