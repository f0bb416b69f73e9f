/** Where a volume of a driver stands, and what was written down of it there. */

import { mountsAt } from '../../../../machines/host/mountinfo.ts';
import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import { isPathName } from '../../../../machines/pod/pathName.ts';
import { CSI } from '../../../../machines/pod/volumes/kinds/csi.ts';
import {
  deviceLink,
  markerDir,
  podDir,
  VOLUME_DEVICES,
  type VolumeRef,
  volumePath,
  volumeRef,
} from '../../../../machines/pod/volumes/volumePaths.ts';
import { decodeVolumeData, encodeVolumeData, type VolumeData } from '../../../../machines/services/volumes/csi/data.ts';
import { csiPath, csiRef, VOL_DATA } from '../../../../machines/services/volumes/csi/volume.ts';
import type { SetUpDone } from '../../../../machines/services/volumes/volumeMachine.ts';
import { isRecord } from '../../../../machines/shape/conform.ts';
import { codeOf } from '../../../../machines/text/errors.ts';
import { ifThere, listIfThere, ownTextIfThere, unlinkIfThere } from '../../../../ports/ifThere.ts';
import type { Mounter } from '../../../../ports/machine/mounter.ts';
import type { HostFs, Logger, Ports } from '../../../../ports/ports.ts';
import { lstatIfThere, rmdirIfEmpty } from '../disk/files.ts';
import { DIR_MODE, lookCall } from '../disk/limits.ts';
import type { Drivers } from './calls.ts';
import type { CsiLedger } from './state.ts';

const DATA_BYTES_MAX = 64 * 1024;

export interface Place {
  /** Of the pod's volume. Holds `vol_data.json`, unless the pod has the device. */
  dir: string;
  marker: string;
  /** Where the driver publishes: a directory, or the device itself. */
  target: string;
  /** Of the node. Holds `vol_data.json`, for all pods. */
  stageDir: string;
  staging: string;
  /** To the device. It is the first thing made for a pod that has the device, and the last that goes. */
  link: string;
}

export function placeOf(
  o: { ports: Pick<Ports, 'entropy'>; facts(): Pick<NodeFacts, 'rootDir'> },
  ref: VolumeRef,
  v: Pick<VolumeData, 'driver' | 'handle' | 'block'>,
): Place {
  const { rootDir } = o.facts();
  const own = csiRef(ref);
  const named = { dir: volumePath(rootDir, own), link: deviceLink(rootDir, own), marker: markerDir(rootDir, ref) };
  if (v.block) {
    const { publish, staging, data } = csiPath.block(rootDir, own.name);
    return { ...named, target: `${publish}/${ref.uid}`, stageDir: data, staging };
  }
  const stageDir = csiPath.staging(rootDir, v.driver, o.ports.entropy.sha256Hex(v.handle));
  return { ...named, target: `${named.dir}/mount`, stageDir, staging: `${stageDir}/globalmount` };
}

/** What is known of a volume of a pod. Null: no driver serves it. */
export async function readData(fs: HostFs, rootDir: string, ref: VolumeRef): Promise<VolumeData | null> {
  const own = csiRef(ref);
  const ofFiles = await dataIn(fs, volumePath(rootDir, own));
  if (ofFiles !== null) return ofFiles;
  // A pod that has the device has a link to it. What is known of the device is the same for all pods.
  if ((await lstatIfThere(fs, deviceLink(rootDir, own)))?.kind !== 'symlink') return null;
  const ofDevice = await dataIn(fs, csiPath.block(rootDir, own.name).data);
  return ofDevice === null ? null : { ...ofDevice, block: true };
}
async function dataIn(fs: HostFs, dir: string): Promise<VolumeData | null> {
  const text = await ownTextIfThere(fs, `${dir}/${VOL_DATA}`, DATA_BYTES_MAX);
  return text === null ? null : decodeVolumeData(text);
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
  for (const uid of (await listIfThere(fs, `${rootDir}/pods`)).filter(isPathName)) {
    const pod = podDir(rootDir, uid);
    const lists = await Promise.all(['volumes', VOLUME_DEVICES].map((kind) => namesIn(fs, `${pod}/${kind}/${CSI}`)));
    for (const name of new Set(lists.flat())) {
      const ref = volumeRef(uid, CSI, name);
      const data = await readData(fs, rootDir, ref);
      if (data !== null) found.push({ ref, data });
    }
  }
  return found;
}
async function namesIn(fs: HostFs, dir: string): Promise<string[]> {
  return (await ifThere(fs.readdir(dir), ['ENOENT', 'ENOTDIR'])) ?? [];
}

/** Finds a volume that was set up in full and still stands: nobody need be asked. Null: there is something to do, or to find out. */
export async function standing(
  o: { ports: Ports; mounter: Mounter; facts(): NodeFacts },
  ref: VolumeRef,
  signal: AbortSignal,
): Promise<SetUpDone | null> {
  const { fs } = o.ports;
  const { rootDir } = o.facts();
  const data = await readData(fs, rootDir, ref);
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
  drivers: Drivers['drivers'];
  unregistered: Drivers['unregistered'];
  calls: Drivers['calls'];
  ledger: CsiLedger;
  /** Else nobody attaches volumes to this node. */
  controllerAttaches: boolean;
  /** The node has no room for another volume of that driver: the driver may name another limit now. */
  exhausted(driver: string): void;
  /** The names of what must stay attached are others now. */
  inUseChanged(): void;
}
