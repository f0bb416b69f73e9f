/** What is done for each kind of volume: a line for each. What the kinds are is in the list of `machines/pod/volumes/kinds.ts`. */

import { PERSISTENT_KINDS, type PersistentSource, type VolumeSource } from '../../../machines/pod/volumes/kinds.ts';
import type { BehindClaims, InlineActs, PersistentActs } from './kind.ts';
import { claim } from './kinds/claim.ts';
import { csi } from './kinds/csi.ts';
import { emptyDir } from './kinds/emptyDir.ts';
import { fc } from './kinds/fc.ts';
import { files } from './kinds/files.ts';
import { hostPath } from './kinds/hostPath.ts';
import { image } from './kinds/image.ts';
import { iscsi } from './kinds/iscsi.ts';
import { local } from './kinds/local.ts';
import { nfs } from './kinds/nfs.ts';

type Acts<K extends string> = (K extends VolumeSource['kind'] ? { inline: InlineActs<VolumeSource & { kind: K }> } : unknown) &
  (K extends PersistentSource['kind'] ? { persistent: PersistentActs<PersistentSource & { kind: K }> } : unknown);

const KINDS = { emptyDir, local, iscsi, fc, hostPath, image, claim, csi, files, nfs } satisfies {
  [K in VolumeSource['kind'] | PersistentSource['kind']]: Acts<K>;
};

const INLINE: Readonly<Record<VolumeSource['kind'], { inline: InlineActs<VolumeSource> }>> = KINDS;
const PERSISTENT: Readonly<Record<PersistentSource['kind'], { persistent: PersistentActs<PersistentSource> }>> = KINDS;

export const inlineActs = (kind: VolumeSource['kind']): InlineActs<VolumeSource> => INLINE[kind].inline;
export const behindClaims: BehindClaims = {
  of: (kind) => PERSISTENT[kind].persistent,
  at: (plugin) => PERSISTENT_KINDS.filter((k) => k.plugin === plugin).map(({ field }) => PERSISTENT[field].persistent),
};
