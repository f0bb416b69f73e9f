/**
 * The size for which the file system of a claim's volume was set up, or to which it was grown on this node. It lies beside the
 * marker of the volume: the claim's own status may be of another node's doing.
 */

import { QUANTITY_CHARS_MAX } from '../../../../machines/kube/quantity.ts';
import { markerDir, type VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import { codeOf } from '../../../../machines/text/errors.ts';
import { SIZE_FILE } from '../disk/directory.ts';
import { writeWhole } from '../disk/files.ts';
import { DIR_MODE } from '../disk/limits.ts';
import type { VolumeTools } from '../kind.ts';

type Disk = Pick<VolumeTools, 'ports' | 'facts'>;

/** A quantity; null: it is not known. */
export async function readSize({ ports: { fs }, facts }: Disk, ref: VolumeRef): Promise<string | null> {
  try {
    const path = `${markerDir(facts().rootDir, ref)}/${SIZE_FILE}`;
    const text = new TextDecoder().decode(await fs.readFile(path, { bytesMax: QUANTITY_CHARS_MAX, own: true }));
    return text === '' ? null : text;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EFBIG', 'EINVAL'].includes(codeOf(error))) return null;
    throw error;
  }
}
export async function writeSize({ ports: { fs }, facts }: Disk, ref: VolumeRef, size: string): Promise<void> {
  const marker = markerDir(facts().rootDir, ref);
  await fs.mkdirp(marker, DIR_MODE);
  await writeWhole(fs, `${marker}/${SIZE_FILE}`, size);
}
