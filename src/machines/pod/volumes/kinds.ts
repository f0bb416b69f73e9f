/**
 * The kinds of volumes that this node has: a line for each. What is done for a kind is in the list of
 * `actors/services/volumes/kinds.ts`. Pure.
 */

import type { Volume } from '../../kube/volumeTable.ts';
import type { InlineKind, PersistentKind } from './kind.ts';
import { claim } from './kinds/claim.ts';
import { csi } from './kinds/csi.ts';
import { emptyDir } from './kinds/emptyDir.ts';
import { fc } from './kinds/fc.ts';
import { configMap } from './kinds/files/configMap.ts';
import { downwardApi } from './kinds/files/downwardApi.ts';
import { projected } from './kinds/files/projected.ts';
import { secret } from './kinds/files/secret.ts';
import { hostPath } from './kinds/hostPath.ts';
import { image } from './kinds/image.ts';
import { inTree } from './kinds/inTree/inTree.ts';
import { iscsi } from './kinds/iscsi.ts';
import { local } from './kinds/local.ts';
import { nfs } from './kinds/nfs.ts';

/** A volume is of the first kind whose field it has. */
const KINDS = [emptyDir, local, hostPath, image, claim, csi, nfs, iscsi, fc, configMap, secret, downwardApi, projected, ...inTree] as const;

/** A volume that names no kind is taken for one of these, by the API server too. */
export const ASSUMED_FIELD = 'emptyDir';

type Each = (typeof KINDS)[number];
/** What a volume in a pod comes to. */
export type VolumeSource = Each extends infer K ? (K extends { inline: InlineKind<infer S> } ? S : never) : never;
/** What a PersistentVolume comes to. */
export type PersistentSource = Each extends infer K ? (K extends { persistent: PersistentKind<infer P> } ? P : never) : never;

export const INLINE_KINDS: readonly InlineKind<VolumeSource>[] = KINDS.flatMap((k) => ('inline' in k ? [k.inline] : []));
export const PERSISTENT_KINDS: readonly PersistentKind<PersistentSource>[] = KINDS.flatMap((k) =>
  'persistent' in k ? [k.persistent] : [],
);

const BY_FIELD = new Map(INLINE_KINDS.flatMap((k) => Object.keys(k.fields).map((field) => [field, k])));
// Kinds that come to the same, or stand in directories of the same name, are the same after that: the first of them counts.
const LAST_FIRST = [...INLINE_KINDS].reverse();
const BY_PLUGIN = new Map(LAST_FIRST.map((k) => [k.plugin, k]));
const BY_SOURCE = new Map(LAST_FIRST.map((k) => [k.kind, k]));

/** By its field in a volume; undefined: there is no plugin for it. */
export const kindOfField = (field: string): InlineKind<VolumeSource> | undefined => BY_FIELD.get(field);
/** By its name in directories. */
export const kindOfPlugin = (plugin: string): InlineKind<VolumeSource> | undefined => BY_PLUGIN.get(plugin);

export function kindOf({ kind }: VolumeSource): InlineKind<VolumeSource> {
  const found = BY_SOURCE.get(kind);
  if (found === undefined) throw new Error(`volumes of kind "${kind}" are on no list`);
  return found;
}

/** Fields of volumes to which containers write, and which go with the pod. */
export const SCRATCH_FIELDS = INLINE_KINDS.filter((kind) => kind.scratch).flatMap((kind) => Object.keys(kind.fields));

/** Whether what containers write to this volume goes with the pod. */
export function isScratch(volume: Volume): boolean {
  return has(volume, ({ scratch }) => scratch === true);
}

/** It is made on the node: what else a pod mounts may keep it waiting. */
export function isMadeHere(volume: Volume): boolean {
  return has(volume, ({ stands, foreign }) => stands === 'here' && !foreign);
}

function has(volume: Volume, is: (kind: InlineKind<VolumeSource>) => boolean): boolean {
  return INLINE_KINDS.some((kind) => is(kind) && Object.keys(kind.fields).some((field) => volume[field] !== undefined));
}
