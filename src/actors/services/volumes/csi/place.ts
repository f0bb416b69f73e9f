/** Where a volume of a driver stands, and what was written down of it there. */

import { mountsAt } from '../../../../machines/host/mountinfo.ts';
import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import { CSI } from '../../../../machines/pod/volumes/kinds/csi.ts';
import { deviceLink, markerDir, type VolumeRef, volumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { DriversView } from '../../../../machines/services/plugins/messages.ts';
import { decodeVolumeData, encodeVolumeData, type VolumeData } from '../../../../machines/services/volumes/csi/data.ts';
import { csiPath, VOL_DATA } from '../../../../machines/services/volumes/csi/volume.ts';
import type { SetUpDone } from '../../../../machines/services/volumes/volumeMachine.ts';
import { isRecord } from '../../../../machines/shape/conform.ts';
import { codeOf } from '../../../../machines/text/errors.ts';
import { listIfThere, unlinkIfThere } from '../../../../ports/ifThere.ts';
import type { Mounter } from '../../../../ports/machine/mounter.ts';
import type { HostFs, Logger, Ports } from '../../../../ports/ports.ts';
import { rmdirIfEmpty } from '../disk/files.ts';
import { DIR_MODE, lookCall } from '../disk/limits.ts';
import type { CsiLedger } from './state.ts';

const DATA_BYTES_MAX = 64 * 1024;

export interface Place {
  dir: string;
  marker: string;
  /** Where the driver publishes: a directory, or the device itself. */
  target: string;
  stageDir: string;
  staging: string;
  link: string;
}

export function placeOf(
  o: { ports: Pick<Ports, 'entropy'>; facts(): NodeFacts },
  ref: VolumeRef,
  v: Pick<VolumeData, 'driver' | 'handle' | 'block'>,
): Place {
  const { rootDir } = o.facts();
  const dir = csiPath.dir(rootDir, ref.uid, ref.name);
  const hash = o.ports.entropy.sha256Hex(v.handle);
  const stageDir = csiPath.staging(rootDir, v.driver, hash);
  return {
    dir,
    marker: markerDir(rootDir, ref),
    target: v.block ? `${csiPath.blockDir(rootDir, hash)}/${ref.uid}` : `${dir}/mount`,
    stageDir,
    staging: `${stageDir}/globalmount`,
    link: deviceLink(rootDir, ref, CSI),
  };
}

export async function readData(fs: HostFs, dir: string): Promise<VolumeData | null> {
  try {
    return decodeVolumeData(new TextDecoder().decode(await fs.readFile(`${dir}/${VOL_DATA}`, { bytesMax: DATA_BYTES_MAX, own: true })));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EFBIG', 'EINVAL'].includes(codeOf(error))) return null;
    throw error;
  }
}

/** Whole or not at all: it is the only way to take the volume down again. */
export async function writeData(fs: HostFs, dir: string, data: VolumeData): Promise<void> {
  await fs.mkdirp(dir, DIR_MODE);
  const fresh = `${dir}/${VOL_DATA}.new`;
  await fs.writeFile(fresh, encodeVolumeData(data), { fsync: true });
  await fs.rename(fresh, `${dir}/${VOL_DATA}`);
}
export async function removeData(fs: HostFs, dir: string): Promise<void> {
  await unlinkIfThere(fs, `${dir}/${VOL_DATA}.new`);
  await unlinkIfThere(fs, `${dir}/${VOL_DATA}`);
}

/** What there is of volumes of drivers in all pods: by that one knows who else has a device. */
export async function volumesOnDisk(fs: HostFs, rootDir: string): Promise<{ ref: VolumeRef; data: VolumeData }[]> {
  const found: { ref: VolumeRef; data: VolumeData }[] = [];
  for (const uid of await listIfThere(fs, `${rootDir}/pods`)) {
    const plugin = `${rootDir}/pods/${uid}/volumes/${CSI}`;
    for (const name of await namesIn(fs, plugin)) {
      const data = await readData(fs, `${plugin}/${name}`);
      if (data !== null) found.push({ ref: volumeRef(uid, CSI, name), data });
    }
  }
  return found;
}
async function namesIn(fs: HostFs, dir: string): Promise<string[]> {
  try {
    return await fs.readdir(dir);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return [];
    throw error;
  }
}

/** Finds a volume that was set up in full and still stands: nobody need be asked. Null: there is something to do, or to find out. */
export async function standing(
  o: { ports: Ports; mounter: Mounter; facts(): NodeFacts },
  ref: VolumeRef,
  signal: AbortSignal,
): Promise<SetUpDone | null> {
  const { fs } = o.ports;
  const { rootDir } = o.facts();
  const data = await readData(fs, csiPath.dir(rootDir, ref.uid, ref.name));
  if (data === null) return null;
  const place = placeOf(o, ref, data);
  const marked = await readMarker(fs, place.marker);
  if (marked === null) return null;
  const { mounted, ...done } = marked;
  if (mountsAt(await o.mounter.list(rootDir, place.target), place.target).length > 0) return done;
  if (mounted) {
    // The machine was restarted: the directory is there, and nothing of the volume. It is published anew.
    await unlinkIfThere(fs, `${place.marker}/ready`);
    if (!data.block) await rmdirIfEmpty(fs, place.target);
    return null;
  }
  // A driver need not mount anything.
  const kind = await o.mounter.kindOf(place.target, lookCall(signal));
  return kind === (data.block ? 'block' : 'dir') ? done : null;
}

/** What was set up, and whether the driver mounted something for it. */
type Marked = SetUpDone & { mounted: boolean };

async function readMarker(fs: HostFs, marker: string): Promise<Marked | null> {
  try {
    const value: unknown = JSON.parse(
      new TextDecoder().decode(await fs.readFile(`${marker}/ready`, { bytesMax: DATA_BYTES_MAX, own: true })),
    );
    if (!isRecord(value) || typeof value.at !== 'string') return null;
    return {
      at: value.at,
      readOnly: value.readOnly === true,
      device: value.device === true,
      republish: value.republish === true,
      ...(value.labelled === false ? { labelled: false as const } : {}),
      mounted: value.mounted === true,
    };
  } catch (error) {
    if (error instanceof SyntaxError || codeOf(error) === 'ENOENT' || codeOf(error) === 'EINVAL') return null;
    throw error;
  }
}
export async function writeMarker(fs: HostFs, marker: string, done: Marked): Promise<void> {
  await fs.mkdirp(marker, DIR_MODE);
  await fs.writeFile(`${marker}/ready`, JSON.stringify(done));
}

export interface CsiOptions {
  ports: Ports;
  mounter: Mounter;
  log: Logger;
  facts(): NodeFacts;
  drivers(): DriversView;
  ledger: CsiLedger;
  /** Else nobody attaches volumes to this node. */
  controllerAttaches: boolean;
  /** The node has no room for another volume of that driver: the driver may name another limit now. */
  exhausted(driver: string): void;
  /** The names of what must stay attached are others now. */
  inUseChanged(): void;
}
