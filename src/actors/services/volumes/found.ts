/** Volumes that an earlier daemon left on disk. */

import { isPathName, type PathName } from '../../../machines/pod/pathName.ts';
import { INLINE_KINDS, kindOfPlugin, PERSISTENT_KINDS } from '../../../machines/pod/volumes/kinds.ts';
import {
  isSameStand,
  podDir,
  SUB_PATHS,
  standOf,
  VOLUME_DEVICES,
  type VolumeRef,
  volumeRef,
} from '../../../machines/pod/volumes/volumePaths.ts';
import { listIfThere } from '../../../ports/ifThere.ts';
import type { Ports } from '../../../ports/ports.ts';
import { lstatIfThere } from './disk/files.ts';
import { standsOf } from './disk/stand.ts';
import type { InlineActs, VolumeTools } from './kind.ts';
import { inlineActs } from './kinds.ts';

export interface FoundVolumes {
  found: VolumeRef[];
  /** So many are of kinds that this node does not know; they are left alone. */
  strange: number;
}

export async function foundVolumes(o: VolumeTools): Promise<FoundVolumes> {
  const { fs } = o.ports;
  const { rootDir } = o.facts();
  const found: VolumeRef[] = [];
  let strange = 0;
  for (const uid of (await listIfThere(fs, `${rootDir}/pods`)).filter(isPathName)) {
    const { found: own, strange: others } = await volumesOf(o, uid);
    found.push(...own);
    strange += others;
    for (const name of await listDir(fs, `${podDir(rootDir, uid)}/${SUB_PATHS}`)) {
      if (!own.some((ref) => standOf(ref).name === name)) found.push(volumeRef(uid, PARTS_ALONE, name));
    }
  }
  return { found, strange };
}

/** A volume that stands elsewhere has only bound parts on the disk, and a power failure may have left no more of others. */
const PARTS_ALONE = INLINE_KINDS.find((k) => k.stands === 'elsewhere')?.plugin ?? '';

async function volumesOf(o: VolumeTools, uid: PathName): Promise<FoundVolumes> {
  const { fs } = o.ports;
  const claim = inlineActs('claim');
  const claimed = await standsOf(o, uid);
  const found: VolumeRef[] = [];
  for (const ref of claimed) found.push((await claim.found?.(o, ref)) ?? ref);
  // What no record knows another agent has made: it goes by its name on disk.
  const note = async (ref: VolumeRef, { found: known }: Pick<InlineActs<never>, 'found'>): Promise<void> => {
    // A device has a directory and a link.
    const seen = claimed.some(({ stands }) => isSameStand(stands, ref)) || found.some((f) => isSameStand(f, ref));
    if (!seen) found.push((await known?.(o, ref)) ?? ref);
  };
  let strange = 0;
  const pod = podDir(o.facts().rootDir, uid);
  for (const plugin of await listDir(fs, `${pod}/volumes`)) {
    const kind = kindOfPlugin(plugin);
    if (kind?.stands !== 'here') {
      o.log.warn({ uid, plugin }, 'a volume of a kind this node does not know is left alone');
      strange += (await listDir(fs, `${pod}/volumes/${plugin}`)).length;
      continue;
    }
    const names = (await listIfThere(fs, `${pod}/volumes/${plugin}`)).filter(isPathName);
    for (const name of names) await note({ uid, plugin, name }, inlineActs(kind.kind));
  }
  for (const { plugin } of PERSISTENT_KINDS) {
    const acts = inlineActs(kindOfPlugin(plugin)?.kind ?? 'claim');
    for (const name of await listDir(fs, `${pod}/${VOLUME_DEVICES}/${plugin}`)) await note(volumeRef(uid, plugin, name), acts);
  }
  return { found, strange };
}

/** A file or a link in its place holds nothing. */
async function listDir(fs: Ports['fs'], path: string): Promise<PathName[]> {
  return (await lstatIfThere(fs, path))?.kind === 'dir' ? (await listIfThere(fs, path)).filter(isPathName) : [];
}
