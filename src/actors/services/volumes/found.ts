/** Volumes that an earlier daemon left on disk. */

import { isPathName, type PathName } from '../../../machines/pod/pathName.ts';
import {
  CSI,
  HOST_PATH,
  LOCAL_VOLUME,
  OWN_PLUGINS,
  podDir,
  SUB_PATHS,
  VOLUME_DEVICES,
  type VolumeRef,
  volumeKey,
  volumeRef,
} from '../../../machines/pod/volumes/volumePaths.ts';
import { csiPath, uniqueName } from '../../../machines/services/volumes/csi/volume.ts';
import type { Logger, Ports } from '../../../ports/ports.ts';
import { type CsiOptions, readData } from './csi/place.ts';
import { listIfThere, lstatIfThere } from './files.ts';

interface Disk {
  fs: Ports['fs'];
  log: Logger;
  ledger: CsiOptions['ledger'];
  rootDir: string;
}

export interface FoundVolumes {
  found: VolumeRef[];
  /** So many are of kinds that this node does not know; they are left alone. */
  strange: number;
}

export async function foundVolumes(disk: Disk): Promise<FoundVolumes> {
  const { fs, rootDir } = disk;
  const found: VolumeRef[] = [];
  let strange = 0;
  for (const uid of (await listIfThere(fs, `${rootDir}/pods`)).filter(isPathName)) {
    const { found: own, strange: others } = await volumesOf(disk, uid);
    found.push(...own);
    strange += others;
    // Of a volume that lies elsewhere only this is there, and a power failure may have left no more of others.
    const parts = `${podDir(rootDir, uid)}/${SUB_PATHS}`;
    for (const name of await listDir(fs, parts)) {
      if (!own.some((ref) => ref.name === name)) found.push(volumeRef(uid, HOST_PATH, name));
    }
  }
  return { found, strange };
}

async function volumesOf(disk: Disk, uid: PathName): Promise<FoundVolumes> {
  const { fs, log, rootDir } = disk;
  const found: VolumeRef[] = [];
  let strange = 0;
  const volumes = `${podDir(rootDir, uid)}/volumes`;
  for (const plugin of await listDir(fs, volumes)) {
    if (!OWN_PLUGINS.includes(plugin)) {
      log.warn({ uid, plugin }, 'a volume of a kind this node does not know is left alone');
      strange += (await listDir(fs, `${volumes}/${plugin}`)).length;
      continue;
    }
    for (const name of (await listIfThere(fs, `${volumes}/${plugin}`)).filter(isPathName)) {
      found.push(plugin === CSI ? await csiVolume(disk, uid, name) : { uid, plugin, name });
    }
  }
  for (const name of await listDir(fs, `${podDir(rootDir, uid)}/${VOLUME_DEVICES}/${LOCAL_VOLUME}`)) {
    found.push(volumeRef(uid, LOCAL_VOLUME, name));
  }
  return { found, strange };
}

/** A volume that was attached for us must stay so until it is taken down. One behind a claim goes by the name of claims. */
async function csiVolume({ fs, ledger, rootDir }: Disk, uid: PathName, name: PathName): Promise<VolumeRef> {
  const data = await readData(fs, csiPath.dir(rootDir, uid, name));
  const ref = { uid, plugin: data?.lifecycle === 'Persistent' ? LOCAL_VOLUME : CSI, name };
  if (data?.attached === true) ledger.use(volumeKey(ref), uniqueName(data));
  return ref;
}

/** A file or a link in its place holds nothing. */
async function listDir(fs: Ports['fs'], path: string): Promise<PathName[]> {
  return (await lstatIfThere(fs, path))?.kind === 'dir' ? (await listIfThere(fs, path)).filter(isPathName) : [];
}
