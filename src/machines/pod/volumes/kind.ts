/**
 * What a kind of volume is, to all that decide: as pods name it, as a PersistentVolume names it, or both. Code for every kind
 * reads the list (`kinds.ts`) and names none of them. What is done for a kind stands in `actors/services/volumes/kinds`. Pure.
 */

import type { ObjectQuery } from '../../kube/objects.ts';
import type { Pod } from '../../kube/types.ts';
import type { Volume } from '../../kube/volumeTable.ts';
import type { PullPolicy } from '../../kube/words.ts';
import type { Built } from '../../result.ts';
import type { FieldRule } from '../fieldRule.ts';
import type { MountedVolume } from './containerMounts.ts';

type Fields = Record<string, unknown>;

/** A volume of this kind in a pod's specification. */
export interface InlineKind<S extends { kind: string }> {
  /** The `kind` of what the fields below come to. */
  readonly kind: S['kind'];
  /** Its name in directories: `kubernetes.io~empty-dir`. */
  readonly plugin: string;
  /** What people read in place of the plugin's name. */
  readonly shown?: string;
  /** Fields of a volume that stand for it, and what their content comes to. */
  readonly fields: Readonly<Record<string, (content: Fields) => Built<S>>>;
  /** What the node does about each field. Paths begin below the volume. */
  readonly rules: readonly FieldRule[];
  /**
   * `here`: in a directory of ours, which is set up and taken down. `elsewhere`: only what is bound of it for containers is
   * ours. `nowhere`: the runtime mounts it.
   */
  readonly stands: 'here' | 'elsewhere' | 'nowhere';
  /** Its content belongs to somebody else and may block: only helpers with a deadline touch it, and the node does not count it as its own. */
  readonly foreign: boolean;
  /** Its content can change while the pod runs, so it is set up again when its pod or its sources change. */
  readonly refreshes: boolean;
  /** Containers write to it, and what they wrote goes with the pod. */
  readonly scratch?: true;
  /** Only an API server can say what it is: a static pod has no such volume. */
  readonly fromApi?: true;
  /** Paths of parts of a volume that only an API server could resolve; `path`: of the content. */
  apiReferences?(content: Fields, path: string): string[];
  /** Fills in what the API server would. In place. */
  defaults?(content: Fields): void;
  /** What is wrong with it beyond its shape. */
  problems?(content: Fields): { field: string; what: string }[];
  /** What containers are given, where setting it up said nothing else. `dir`: the volume's directory. */
  mounted(source: S, dir: string): MountedVolume;
  /** Objects that its content is made of. */
  references?(source: S): Extract<ObjectQuery, { name: string }>[];
  /** Its content follows the cluster's trust anchors. */
  namesTrustAnchors?(source: S): boolean;
  image?(source: S): { reference: string; policy: PullPolicy };
  /** Containers can be given a device of it. Absent: they cannot. */
  readonly device?: { is(source: S): boolean; of(source: S): S };
  /** Its bytes are the pod's own use of the node's disk. */
  onDisk?(volume: Volume | undefined): boolean;
  /** The cluster can give it more room, which the node has to make use of. Absent: never. */
  grows?(source: S): boolean;
  /** Name of the claim behind it. */
  claimName?(volume: Volume, pod: Pod): string | null;
}

interface OfPersistent {
  /** Its name. */
  volume: string;
  /** The claim's in the pod. */
  readOnly: boolean;
  /** Options in its specification, or in the annotation that came before. */
  mountOptions: readonly string[];
  /** It is of an old plugin, and was translated. */
  migrated: boolean;
}
/** A volume of this kind behind a claim. */
export interface PersistentKind<P extends { kind: string }> {
  /** The field of a PersistentVolume's specification, and of what it comes to. */
  readonly field: P['kind'];
  /** After "neither", where a node has no plugin for a volume. */
  readonly named: string;
  /** Its name in directories. */
  readonly plugin: string;
  /** It does something about `mountOptions`. */
  readonly mountOptions: boolean;
  /** `spec`: whole, with access modes, mount options and capacity. */
  decode(spec: Fields, of: OfPersistent): Built<P>;
}
