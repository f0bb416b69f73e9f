/** What a persistent volume claim stands for on this node (resources and volumes 8.4, 8.18), in the words of the reference. Pure. */

import { type NodeIdentityLabels, nodeMismatch } from '../../kube/nodeSelector.ts';
import type { NodeSelectorTerm } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { isPathName, type PathName } from '../../pod/pathName.ts';
import type { Claim } from '../../pod/volumes/kinds/claim.ts';
import { inlineVolume, translated } from '../../pod/volumes/kinds/inTree/inTree.ts';
import { PERSISTENT_KINDS, type PersistentSource } from '../../pod/volumes/kinds.ts';
import { type Built, built, refused } from '../../result.ts';
import { isRecord } from '../../shape/conform.ts';
import { listOf, partOf, textOf, textsOf } from '../../shape/lenient.ts';
import { quoted } from '../../text/errorList.ts';

export interface BoundClaim {
  uid: string;
  /** Name of the persistent volume. */
  volume: string;
}
/** Where the content of a persistent volume lies on this node, or who knows. */
export type ClaimedVolume = { volume: PathName; plugin: string } & PersistentSource;

/** Why no volume can be had of a claim. */
const PROBLEM = 'error processing PVC ';
export function claimProblem(claim: { namespace: string; name: string }, why: string): string {
  return `${PROBLEM}${claim.namespace}/${claim.name}: ${why}`;
}
export const isClaimProblem = (message: string): boolean => message.startsWith(PROBLEM);

const PROTECTION = 'kubernetes.io/pvc-protection';

/** Reads a PersistentVolumeClaim as the API shows it. `owner`: the pod for whose volume alone it must have been made. */
export function boundClaim(pvc: unknown, owner: Pod | null = null): Built<BoundClaim> {
  const metadata = partOf(pvc, 'metadata');
  if (owner !== null && !isControlledBy(metadata, owner)) {
    const { namespace, name } = owner.metadata;
    return refused(
      `PVC ${textOf(metadata.namespace)}/${textOf(metadata.name)} was not created for pod ${namespace}/${name} (pod is not owner)`,
    );
  }
  // One that is protected stays until its last pod has gone.
  if (metadata.deletionTimestamp !== undefined && !textsOf(metadata.finalizers).includes(PROTECTION)) {
    return refused('PVC is being deleted');
  }
  if (partOf(pvc, 'status').phase !== 'Bound') return refused('PVC is not bound');
  const volume = textOf(partOf(pvc, 'spec').volumeName);
  return volume === '' ? refused('PVC has empty pvc.Spec.VolumeName') : built({ uid: textOf(metadata.uid), volume });
}

function isControlledBy(metadata: Record<string, unknown>, { metadata: { uid } }: Pod): boolean {
  const owners = listOf(metadata.ownerReferences).filter(isRecord);
  return owners.some((o) => o.controller === true && o.uid === uid);
}

function termsOf(value: unknown): NodeSelectorTerm[] | null {
  const required = partOf(value, 'required');
  return Array.isArray(required.nodeSelectorTerms) ? required.nodeSelectorTerms.map((t) => (isTerm(t) ? t : NO_MATCH)) : null;
}

/** A term without requirements matches no node. */
const NO_MATCH: NodeSelectorTerm = {};
function isTerm(value: unknown): value is NodeSelectorTerm {
  if (!isRecord(value)) return false;
  return [value.matchExpressions, value.matchFields].every(
    (list) => list === undefined || (Array.isArray(list) && list.every(isRequirement)),
  );
}
function isRequirement(value: unknown): boolean {
  if (!isRecord(value) || typeof value.key !== 'string') return false;
  return value.values === undefined || (Array.isArray(value.values) && value.values.every((v) => typeof v === 'string'));
}

/** Group whose members may use the volume, as its PersistentVolume says in an annotation. */
const GROUP = 'pv.beta.kubernetes.io/gid';
/** The group that a PersistentVolume's annotation names. Null: the volume names none. */
export function groupOfVolume(pv: unknown): number | null {
  const text = textOf(partOf(partOf(pv, 'metadata'), 'annotations')[GROUP]);
  return /^\d{1,10}$/.test(text) ? Number(text) : null;
}

interface VolumeUse {
  /** Name of the volume in the pod. */
  name: string;
  node: NodeIdentityLabels;
  readOnly: boolean;
  /** Containers are given the device itself. */
  block: boolean;
}
export interface ClaimUse extends VolumeUse {
  claim: BoundClaim;
}
/** Reads a PersistentVolume as the API shows it. */
export function claimedVolume(pv: unknown, of: ClaimUse): Built<ClaimedVolume> {
  const { claim } = of;
  const spec = partOf(pv, 'spec');
  const { volume } = claim;
  if (!isPathName(volume)) return refused(`the name of PV ${quoted(volume)} cannot name a directory`);
  if (!isRecord(spec.claimRef)) {
    return refused(`found PV object ${volume} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`);
  }
  const holder = textOf(spec.claimRef.uid);
  if (holder !== claim.uid) {
    return refused(`found PV object ${volume} but its pv.Spec.ClaimRef.UID ${holder} does not point to claim.UID ${claim.uid}`);
  }
  const current = translated(pv);
  return current.ok ? volumeBehind(current.value, { ...of, volume, migrated: current.value !== pv }) : current;
}

/** A volume of an old plugin that stands in a pod. */
export function volumeInPod(
  source: NonNullable<Claim['inTree']>,
  of: Omit<VolumeUse, 'node'> & { name: PathName; namespace: string },
): Built<ClaimedVolume> {
  const current = inlineVolume(source, of);
  if (!current.ok) return current;
  // Identifiers of clouds have slashes, and may be too long for a directory.
  const named = textOf(partOf(current.value, 'metadata').name).replaceAll('/', '~');
  const volume = isPathName(named) ? named : of.name;
  return volumeBehind(current.value, { ...of, volume, node: { name: '', labels: {} }, migrated: true });
}

function volumeBehind(pv: unknown, of: VolumeUse & { volume: PathName; migrated: boolean }): Built<ClaimedVolume> {
  const { volume, name, node, block } = of;
  const spec = partOf(pv, 'spec');
  const isBlock = spec.volumeMode === 'Block';
  if (isBlock && !block) return refused(`volume ${name} has volumeMode Block, but is specified in volumeMounts`);
  if (!isBlock && block) return refused(`volume ${name} has volumeMode Filesystem, but is specified in volumeDevices`);
  const nodeSelectorTerms = termsOf(spec.nodeAffinity);
  if (nodeSelectorTerms !== null) {
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
    if (nodeMismatch({ containers: [], affinity: { nodeAffinity } }, node) !== null) {
      return refused('MountVolume.NodeAffinity check failed: no matching NodeSelectorTerms');
    }
  }
  const kind = PERSISTENT_KINDS.find(({ field }) => isRecord(spec[field]));
  const mountOptions = mountOptionsOf(pv, spec);
  if (kind?.mountOptions !== true && mountOptions.length > 0) {
    // A value may be a password.
    const names = mountOptions.map((option) => option.split('=', 1)[0]);
    return refused(`mount options of PV ${volume} are not honoured by this node: ${names.join(',')}`);
  }
  if (kind === undefined) {
    const kinds = PERSISTENT_KINDS.map(({ named }) => named).join(' nor ');
    return refused(`PV ${volume} is neither ${kinds}: there is no plugin for its kind of volume`);
  }
  const source = kind.decode(spec, { volume, readOnly: of.readOnly, mountOptions, migrated: of.migrated });
  return source.ok ? built({ volume, plugin: kind.plugin, ...source.value }) : source;
}

/** Where there is the annotation, it alone counts. */
const MOUNT_OPTIONS = 'volume.beta.kubernetes.io/mount-options';
function mountOptionsOf(pv: unknown, { mountOptions }: Record<string, unknown>): string[] {
  const annotated = textOf(partOf(partOf(pv, 'metadata'), 'annotations')[MOUNT_OPTIONS]);
  return (annotated === '' ? textsOf(mountOptions) : annotated.split(',')).filter((option) => option.trim() !== '');
}
