/** A CSI volume as a pod asks for it, and what drivers are told of it (resources and volumes 8.17). Pure. */

import { own } from '../../../data/own.ts';
import type { Pod } from '../../../kube/types.ts';
import type { PathName } from '../../../pod/pathName.ts';
import { CSI, type CsiVolume, type InlineCsi } from '../../../pod/volumes/kinds/csi.ts';
import { standOf, type VolumeRef } from '../../../pod/volumes/volumePaths.ts';
import { type Built, built, refused } from '../../../result.ts';
import type { AccessMode, VolumeCapability } from '../../../wire/csi.ts';
import type { DriverRules } from './driver.ts';

type Hash = (text: string) => string;

export function ephemeralCsi(inline: InlineCsi, of: { pod: Pod; name: string; sha256Hex: Hash }): CsiVolume {
  const { namespace, uid } = of.pod.metadata;
  const { driver, readOnly, fsType, attributes, secret } = inline;
  return {
    ...{ driver, readOnly, fsType, attributes },
    handle: `csi-${of.sha256Hex(`${uid}${of.name}`)}`,
    lifecycle: 'Ephemeral',
    mountOptions: [],
    accessModes: [],
    stageSecret: null,
    publishSecret: secret === '' ? null : { namespace, name: secret },
    expandSecret: null,
    block: false,
  };
}

export function attachmentId(of: { handle: string; driver: string; node: string; sha256Hex: Hash }): string {
  return `csi-${of.sha256Hex(`${of.handle}${of.driver}${of.node}`)}`;
}
/** As the attach controller names it in the node's status. */
export function uniqueName(v: Pick<CsiVolume, 'driver' | 'handle'>): string {
  return `kubernetes.io/csi/${v.driver}^${v.handle}`;
}

const MODES: Readonly<Record<string, [plain: AccessMode, several: AccessMode]>> = {
  ReadWriteOnce: ['SINGLE_NODE_WRITER', 'SINGLE_NODE_MULTI_WRITER'],
  ReadOnlyMany: ['MULTI_NODE_READER_ONLY', 'MULTI_NODE_READER_ONLY'],
  ReadWriteMany: ['MULTI_NODE_MULTI_WRITER', 'MULTI_NODE_MULTI_WRITER'],
  ReadWriteOncePod: ['SINGLE_NODE_WRITER', 'SINGLE_NODE_SINGLE_WRITER'],
};
export function accessMode(v: Pick<CsiVolume, 'accessModes'>, capabilities: ReadonlySet<string>): Built<AccessMode> {
  const [first = 'ReadWriteOnce'] = v.accessModes;
  const modes = own(MODES, first);
  if (modes === undefined) return refused(`access mode "${first}" is not one that CSI drivers know`);
  return built(modes[capabilities.has('SINGLE_NODE_MULTI_WRITER') ? 1 : 0]);
}

/** `group`: for the driver to give the volume to; '' = none, or it does not do that. */
export function volumeCapability(v: CsiVolume, o: { mode: AccessMode; group: string }): VolumeCapability {
  const accessMode = { mode: o.mode };
  if (v.block) return { block: {}, accessMode };
  return { mount: { fsType: v.fsType, mountFlags: v.mountOptions, volumeMountGroup: o.group }, accessMode };
}

/** What a driver may do for such volumes, in words of the reference; null where it may. */
export function lifecycleRefusal(v: CsiVolume, rules: DriverRules): string | null {
  // Inline volumes are only for drivers that say so.
  const modes = rules.lifecycleModes ?? ['Persistent'];
  if (modes.includes(v.lifecycle)) return null;
  if (rules.lifecycleModes === null) return `volume mode "${v.lifecycle}" not supported by driver ${v.driver} (no CSIDriver object)`;
  const only = modes.map((m) => JSON.stringify(m)).join(' ');
  return `volume mode "${v.lifecycle}" not supported by driver ${v.driver} (only supports [${only}])`;
}

export function podContext(v: CsiVolume, pod: Pod, rules: DriverRules): Record<string, string> {
  if (!rules.podInfoOnMount) return { ...v.attributes };
  const { name, namespace, uid } = pod.metadata;
  return {
    ...v.attributes,
    'csi.storage.k8s.io/pod.name': name,
    'csi.storage.k8s.io/pod.namespace': namespace,
    'csi.storage.k8s.io/pod.uid': uid,
    'csi.storage.k8s.io/serviceAccount.name': pod.spec.serviceAccountName ?? '',
    'csi.storage.k8s.io/ephemeral': String(v.lifecycle === 'Ephemeral'),
  };
}
export const TOKENS_KEY = 'csi.storage.k8s.io/serviceAccount.tokens';

/** Whether this node gives the files of the volume to the group of the pod. */
export function groupApplies(v: CsiVolume, rules: DriverRules, gid: number | undefined): boolean {
  if (gid === undefined || v.readOnly || v.block) return false;
  if (rules.fsGroupPolicy !== 'ReadWriteOnceWithFSType') return rules.fsGroupPolicy === 'File';
  if (v.fsType === '') return false;
  return v.lifecycle === 'Ephemeral' || v.accessModes.includes('ReadWriteOnce') || v.accessModes.includes('ReadWriteOncePod');
}

/** gRPC codes after which an operation may still be under way: Canceled, DeadlineExceeded, ResourceExhausted, Aborted, Unavailable. */
const UNCERTAIN: readonly number[] = [1, 4, 8, 10, 14];
export function isFinal(code: number): boolean {
  return !UNCERTAIN.includes(code);
}

export const csiPath = {
  /** Folder of the node for a volume of which pods have the files. */
  staging: (rootDir: string, driver: PathName, handleHash: string): string =>
    `${rootDir}/plugins/kubernetes.io/csi/${driver}/${handleHash}`,
  /**
   * Folders of the node for a volume of which pods have the device. `data`: holds `vol_data.json`. `bound`: of devices that the
   * kubelet binds once more, by pod.
   */
  block: (rootDir: string, volume: PathName) => {
    const root = `${rootDir}/plugins/kubernetes.io/csi/volumeDevices`;
    const own = `${root}/${volume}`;
    return { publish: `${root}/publish/${volume}`, staging: `${root}/staging/${volume}`, data: `${own}/data`, bound: `${own}/dev` };
  },
} as const;
/** The directory name of a driver's volume: for a claim it is the PersistentVolume's. */
export function csiRef(ref: VolumeRef): VolumeRef {
  return { uid: ref.uid, plugin: CSI, name: standOf(ref).name };
}
export const VOL_DATA = 'vol_data.json';

/** What the node must be told before a volume is attached to it. Waiting for that is nothing that went wrong. */
export const NOT_REPORTED = "Volume has not been added to the list of VolumesInUse in the node's volume status";
export const NOT_ATTACHED = 'Volume not attached according to node status';
export function isWait(message: string): boolean {
  return message.includes(NOT_REPORTED) || message.includes(NOT_ATTACHED);
}

/** A driver whose count of volumes changes has said that the node has no room for another. */
export const NO_ROOM = 'this node has no room for another volume of its driver';
/** Without the attach controller (`enableControllerAttachDetach: false`). No driver of CSI can be asked by a node, as in the reference. */
export const NO_ATTACHER = 'attaching volumes from the kubelet is not supported';
