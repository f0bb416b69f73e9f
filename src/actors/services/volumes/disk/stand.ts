/**
 * What the volume of a claim is called on disk. The API says it once: a daemon that finds the volume again asks nobody. It is
 * written before anything is made of the volume, and goes last.
 */

import { isPathName, type PathName } from '../../../../machines/pod/pathName.ts';
import { LOCAL_VOLUME } from '../../../../machines/pod/volumes/kinds/claim.ts';
import { PERSISTENT_KINDS } from '../../../../machines/pod/volumes/kinds.ts';
import {
  isSameStand,
  markerDir,
  markersDir,
  type Stand,
  type VolumeRef,
  volumeRef,
  wrappedName,
} from '../../../../machines/pod/volumes/volumePaths.ts';
import { listIfThere, ownTextIfThere, unlinkIfThere } from '../../../../ports/ifThere.ts';
import type { VolumeTools } from '../kind.ts';
import { NEW, rmdirIfEmpty, writeWhole } from './files.ts';
import { DIR_MODE } from './limits.ts';

type Disk = Pick<VolumeTools, 'ports' | 'facts'>;

/** Beside the marker of the volume: `PLUGIN/NAME`, and `/GROUP` where it names one. */
const FILE = 'stands';
const BYTES_MAX = 1_024;

/** The file \`stands\` of a claim's volume. Null: nothing was made of the volume yet. */
export async function readStand({ ports: { fs }, facts }: Disk, ref: VolumeRef): Promise<Stand | null> {
  const text = await ownTextIfThere(fs, `${markerDir(facts().rootDir, ref)}/${FILE}`, BYTES_MAX);
  return text === null ? null : standIn(text);
}
function standIn(text: string): Stand | null {
  const [plugin = '', name = '', group = '', ...more] = text.split('/');
  const known = PERSISTENT_KINDS.some((kind) => kind.plugin === plugin);
  if (!known || more.length > 0 || !isPathName(name) || !/^\d*$/.test(group)) return null;
  return { plugin, name, ...(group === '' ? {} : { group: Number(group) }) };
}

/** One after the other, of all that may be done at one place. */
export function alone<T>(o: VolumeTools, { uid }: VolumeRef, at: Stand, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return o.csi.ledger.run(`stand ${uid}/${at.plugin}/${at.name}`, signal, work);
}

export async function writeStand(o: Disk, ref: VolumeRef, stand: Stand): Promise<void> {
  const { fs } = o.ports;
  const there = await readStand(o, ref);
  if (there !== null && isSameStand(there, stand) && there.group === stand.group) return;
  const marker = markerDir(o.facts().rootDir, ref);
  await fs.mkdirp(marker, DIR_MODE);
  const { plugin, name, group } = stand;
  await writeWhole(fs, `${marker}/${FILE}`, [plugin, name, ...(group === undefined ? [] : [group])].join('/'));
}
export async function removeStand({ ports: { fs }, facts }: Disk, ref: VolumeRef): Promise<void> {
  const marker = markerDir(facts().rootDir, ref);
  for (const name of [`${FILE}${NEW}`, FILE]) await unlinkIfThere(fs, `${marker}/${name}`);
  await rmdirIfEmpty(fs, marker);
}

/** Claims' volumes of a pod, by what an earlier daemon has written down. */
export async function standsOf(o: Disk, uid: PathName): Promise<(VolumeRef & { stands: Stand })[]> {
  const found: (VolumeRef & { stands: Stand })[] = [];
  for (const marker of await listIfThere(o.ports.fs, markersDir(o.facts().rootDir, uid))) {
    const name = wrappedName(marker);
    if (name === null) continue;
    const ref = volumeRef(uid, LOCAL_VOLUME, name);
    const stands = await readStand(o, ref);
    if (stands !== null) found.push({ ...ref, stands });
  }
  return found;
}
