/**
 * The size for which the file system of a claim's volume was set up, or to which it was grown on this node. It lies beside the
 * marker of the volume: the claim's own status may be of another node's doing.
 */

import { QUANTITY_CHARS_MAX } from '../../../../machines/kube/quantity.ts';
import { markerDir, type VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import { ownTextIfThere } from '../../../../ports/ifThere.ts';
import { SIZE_FILE } from '../disk/directory.ts';
import { writeWhole } from '../disk/files.ts';
import { DIR_MODE } from '../disk/limits.ts';
import type { VolumeTools } from '../kind.ts';

type Disk = Pick<VolumeTools, 'ports' | 'facts'>;

/** A quantity; null: it is not known. */
export async function readSize({ ports: { fs }, facts }: Disk, ref: VolumeRef): Promise<string | null> {
  return (await ownTextIfThere(fs, `${markerDir(facts().rootDir, ref)}/${SIZE_FILE}`, QUANTITY_CHARS_MAX)) || null;
}
export async function writeSize({ ports: { fs }, facts }: Disk, ref: VolumeRef, size: string): Promise<void> {
  const marker = markerDir(facts().rootDir, ref);
  await fs.mkdirp(marker, DIR_MODE);
  await writeWhole(fs, `${marker}/${SIZE_FILE}`, size);
}
