/** `fc`: a disk behind a Fibre Channel card of this node, named by a pod or by a PersistentVolume. */

import { type Built, built, refused } from '../../../result.ts';
import { listOf, textOf } from '../../../shape/lenient.ts';
import { isLun, LUN_RANGE, mountable } from './mountable.ts';

/** By the names of its targets and its number there, or by names of its own. */
export type FcDisk = { by: 'target'; wwns: readonly string[]; lun: number } | { by: 'id'; wwids: readonly string[] };
export interface Fc {
  kind: 'fc';
  disk: FcDisk;
  fsType: string;
  /** Options of mount(8). */
  options: readonly string[];
}

/** Names become names of files. */
const isName = (name: string): boolean => /^[^\s/\0]{1,128}$/.test(name) && name !== '.' && name !== '..';

export const fc = mountable<Fc>({
  kind: 'fc',
  fields: ['targetWWNs', 'lun', 'wwids', 'fsType', 'readOnly'],
  problems: ({ targetWWNs, wwids, lun }) => [
    ...(listOf(targetWWNs).length + listOf(wwids).length > 0
      ? []
      : [{ field: 'targetWWNs', what: 'must specify either targetWWNs or wwids' }]),
    ...(listOf(targetWWNs).length === 0 || isLun(lun) ? [] : [{ field: 'lun', what: LUN_RANGE }]),
  ],
  decode,
  labelled: true,
});

function decode(content: Record<string, unknown>, options: readonly string[]): Built<Fc> {
  const wwns = listOf(content.targetWWNs).map(textOf);
  // Links of udev have no spaces.
  const wwids = listOf(content.wwids).map((id) => textOf(id).replaceAll(' ', '_'));
  const wrong = [...wwns, ...wwids].find((name) => !isName(name));
  if (wrong !== undefined) return refused(`fc: "${wrong}" is not the name of a disk`);
  const disk: FcDisk | null =
    wwns.length > 0 && isLun(content.lun) ? { by: 'target', wwns, lun: content.lun } : wwids.length > 0 ? { by: 'id', wwids } : null;
  if (disk === null) return refused('fc: no fc disk information found');
  return built({ kind: 'fc', disk, fsType: textOf(content.fsType) || 'ext4', options });
}
