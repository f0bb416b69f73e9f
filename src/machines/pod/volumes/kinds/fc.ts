/** `fc`: a disk behind a Fibre Channel card of this node, named by a pod or by a PersistentVolume. */

import { type Built, built, refused } from '../../../result.ts';
import { isRecord } from '../../../shape/conform.ts';
import { listOf, textOf } from '../../../shape/lenient.ts';
import { honoured } from '../../fieldRule.ts';
import type { InlineKind, PersistentKind } from '../kind.ts';

/** By the names of its targets and its number there, or by names of its own. */
export type FcDisk = { by: 'target'; wwns: readonly string[]; lun: number } | { by: 'id'; wwids: readonly string[] };
export interface Fc {
  kind: 'fc';
  disk: FcDisk;
  fsType: string;
  /** Options of mount(8). */
  options: readonly string[];
}

const LUN_MAX = 255;
/** Names become names of files. */
const isName = (name: string): boolean => /^[^\s/\0]{1,128}$/.test(name) && name !== '.' && name !== '..';
const isLun = (lun: unknown): lun is number => Number.isInteger(lun) && Number(lun) >= 0 && Number(lun) <= LUN_MAX;

const PLUGIN = 'kubernetes.io~fc';

export const fc: { inline: InlineKind<Fc>; persistent: PersistentKind<Fc> } = {
  inline: {
    kind: 'fc',
    plugin: PLUGIN,
    fields: { fc: (content) => decode(content, { readOnly: content.readOnly === true, mountOptions: [] }) },
    rules: honoured('fc.targetWWNs', 'fc.lun', 'fc.wwids', 'fc.fsType', 'fc.readOnly'),
    stands: 'here',
    foreign: true,
    refreshes: false,
    problems: ({ targetWWNs, wwids, lun }) => [
      ...(listOf(targetWWNs).length + listOf(wwids).length > 0
        ? []
        : [{ field: 'targetWWNs', what: 'must specify either targetWWNs or wwids' }]),
      ...(listOf(targetWWNs).length === 0 || isLun(lun) ? [] : [{ field: 'lun', what: `must be between 0 and ${LUN_MAX}` }]),
    ],
    mounted: ({ options }, dir) => ({ hostPath: dir, readOnly: options.includes('ro'), managed: !options.includes('ro') }),
  },
  persistent: {
    field: 'fc',
    named: 'fc',
    plugin: PLUGIN,
    mountOptions: true,
    decode: (spec, of) => decode(isRecord(spec.fc) ? spec.fc : {}, of),
  },
};

function decode(content: Record<string, unknown>, of: { readOnly: boolean; mountOptions: readonly string[] }): Built<Fc> {
  const wwns = listOf(content.targetWWNs).map(textOf);
  // Links of udev have no spaces.
  const wwids = listOf(content.wwids).map((id) => textOf(id).replaceAll(' ', '_'));
  const wrong = [...wwns, ...wwids].find((name) => !isName(name));
  if (wrong !== undefined) return refused(`fc: "${wrong}" is not the name of a disk`);
  const disk: FcDisk | null =
    wwns.length > 0 && isLun(content.lun) ? { by: 'target', wwns, lun: content.lun } : wwids.length > 0 ? { by: 'id', wwids } : null;
  if (disk === null) return refused('fc: no fc disk information found');
  const options = [...new Set([...of.mountOptions, ...(of.readOnly ? ['ro'] : [])])].sort();
  return built({ kind: 'fc', disk, fsType: textOf(content.fsType) || 'ext4', options });
}
