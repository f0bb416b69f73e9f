/** What a CSI driver of a fleet has to do about claims, volumes and attachments. Pure. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { wildcard } from '../proxy/selection.ts';
import type { StorageSpec, VolumeFault } from '../spec/hardware/storage.ts';

type Fields = Record<string, unknown>;

const PROVISIONERS = ['volume.kubernetes.io/storage-provisioner', 'volume.beta.kubernetes.io/storage-provisioner'];
const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';

/** The driver that makes its volume; undefined: none of these, or not now. */
export function provisionerOf(claim: KubeObject, storage: readonly StorageSpec[]): StorageSpec | undefined {
  const { metadata } = claim;
  const spec = fieldsOf(claim.spec);
  if (metadata.deletionTimestamp !== undefined || (spec.volumeName ?? '') !== '') return undefined;
  const annotations = fieldsOf(metadata.annotations);
  const of = storage.find(({ name, driver }) => spec.storageClassName === name && PROVISIONERS.some((key) => annotations[key] === driver));
  return of?.binding === 'WaitForFirstConsumer' && annotations[SELECTED_NODE] === undefined ? undefined : of;
}

/** As an external provisioner makes it. */
export function volumeFor(claim: KubeObject, { name, driver }: StorageSpec): KubeObject {
  const { metadata } = claim;
  const { accessModes, volumeMode = 'Filesystem', resources } = fieldsOf(claim.spec);
  const { storage } = fieldsOf(fieldsOf(resources).requests);
  const handle = `pvc-${String(metadata.uid)}`;
  const { namespace, name: claimName, uid, resourceVersion } = metadata;
  return {
    ...{ apiVersion: 'v1', kind: 'PersistentVolume' },
    metadata: { name: handle, annotations: { [PROVISIONED_BY]: driver } },
    spec: {
      ...{ accessModes, volumeMode, capacity: { storage }, storageClassName: name, persistentVolumeReclaimPolicy: 'Delete' },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claimName, uid, resourceVersion },
      csi: { driver, volumeHandle: handle, ...(volumeMode === 'Filesystem' ? { fsType: 'ext4' } : {}) },
    },
  };
}

/** Its claim is gone, and its driver takes it away. */
export function isLeft(volume: KubeObject, storage: readonly StorageSpec[]): boolean {
  const { phase } = fieldsOf(volume.status);
  const by = fieldsOf(volume.metadata.annotations)[PROVISIONED_BY];
  const ofFleet = storage.some(({ driver }) => driver === by);
  const { persistentVolumeReclaimPolicy: policy } = fieldsOf(volume.spec);
  return ofFleet && phase === 'Released' && policy === 'Delete' && volume.metadata.deletionTimestamp === undefined;
}

export interface Attachment {
  name: string;
  node: string;
  /** Of a PersistentVolume; '': the volume is written out. */
  volume: string;
  isAttached: boolean;
}

/** With its driver; null: it is none of these, or it goes. */
export function attachmentOf(object: KubeObject, storage: readonly StorageSpec[]): { of: StorageSpec; attachment: Attachment } | null {
  const { attacher, nodeName, source } = fieldsOf(object.spec);
  const of = storage.find(({ driver }) => driver === attacher);
  if (of === undefined || object.metadata.deletionTimestamp !== undefined) return null;
  const { persistentVolumeName } = fieldsOf(source);
  const volume = typeof persistentVolumeName === 'string' ? persistentVolumeName : '';
  return {
    of,
    attachment: { name: object.metadata.name, node: String(nodeName), volume, isAttached: fieldsOf(object.status).attached === true },
  };
}

/** A fault that is at work. */
export interface ActiveFault {
  name: string;
  /** Null: of all. */
  nodes: ReadonlySet<string> | null;
  fault: VolumeFault;
}

/** The first that hits; undefined: none. `volume`: null where it could not be read. */
export function faultOf(
  active: Iterable<ActiveFault>,
  { node, volume: name }: Attachment,
  volume: KubeObject | null,
): ActiveFault | undefined {
  const { storageClassName, claimRef } = fieldsOf(volume?.spec);
  const { namespace, name: claim } = fieldsOf(claimRef);
  const facts = { storageClasses: String(storageClassName ?? ''), volumes: name, claims: `${String(namespace)}/${String(claim)}` };
  for (const one of active) {
    const hits = (Object.keys(facts) as (keyof typeof facts)[]).every((key) => matches(one.fault[key], facts[key]));
    if (hits && one.nodes?.has(node) !== false) return one;
  }
  return undefined;
}

function matches(patterns: readonly string[] | undefined, text: string): boolean {
  return patterns === undefined || patterns.some((pattern) => wildcard(pattern)(text));
}

function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}
