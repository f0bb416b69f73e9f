/**
 * Devices that pods of this node share: one is attached and mounted once, bound for each pod, and goes with the last. What is
 * done with one device is done one after the other. Each step looks at what there is first, so all of it may be repeated.
 */

import { type MountEntry, mountsAt } from '../../../../machines/host/mountinfo.ts';
import { isPathName } from '../../../../machines/pod/pathName.ts';
import type { Claim } from '../../../../machines/pod/volumes/kinds/claim.ts';
import { markerDir, type VolumeRef, volumeKey, volumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import {
  DEVICE_RECORD,
  type DeviceRecord,
  decodeDeviceRecord,
  encodeDeviceRecord,
} from '../../../../machines/services/volumes/devices/record.ts';
import type { SetUpDone } from '../../../../machines/services/volumes/volumeMachine.ts';
import { listIfThere, ownTextIfThere, unlinkIfThere } from '../../../../ports/ifThere.ts';
import { bind, linkBehindClaim, unlinkDevice } from '../disk/claimed.ts';
import { unmark, unmountAll } from '../disk/directory.ts';
import { rmdirIfEmpty, rmdirIfThere } from '../disk/files.ts';
import { DIR_MODE, parentOf } from '../disk/limits.ts';
import { directoryOf, mounterOf, type VolumeTools } from '../kind.ts';
import { formatAndMount } from './format.ts';

const RECORD_BYTES_MAX = 16 * 1024;

export interface SharedDevice {
  /** Where it is mounted for all pods. Records and locks name it so, too. */
  global: string;
  /** What the cluster calls it, where it attaches it; else ''. */
  attached: string;
  fsType: string;
  /** Options of mount(8); `ro` among them where nothing may be written. */
  options: readonly string[];
  /** Its path, once it is there. */
  attach(): Promise<string>;
}
interface Kind {
  /** Directory of the node in which its devices are mounted. */
  root: string;
  /** The last pod that had it has gone, and nothing is mounted any more. What is left in `global` is its own. */
  detach?(global: string): Promise<void>;
}

/** Binds it to the directory of the volume. */
export async function setUpShared(
  o: VolumeTools,
  { volume, device }: { volume: VolumeRef; device: SharedDevice },
  signal: AbortSignal,
): Promise<void> {
  const { fs } = o.ports;
  const mounter = mounterOf(o);
  const dir = directoryOf(o, volume);
  const { global, fsType, options } = device;
  await o.csi.ledger.run(global, signal, async () => {
    const isMounted = async (path: string) => mountsAt(await mounter.list(o.facts().rootDir, path), path).length > 0;
    const bound = await isMounted(dir);
    if (!bound) {
      await fs.mkdirp(parentOf(dir), DIR_MODE);
      await fs.mkdirp(dir, DIR_MODE);
    }
    await writeRecord(o, volume, device);
    if (!(await isMounted(global))) {
      const path = await device.attach();
      await fs.mkdirp(global, DIR_MODE);
      await formatAndMount(o, { device: path, path: global, fsType, options }, signal);
    }
    await bind(o, { from: global, dir, options, bound }, signal);
  });
}

/** Containers are given the device itself. */
export async function linkShared(
  o: VolumeTools,
  { device, ...job }: { volume: VolumeRef; source: Claim; device: Omit<SharedDevice, 'fsType' | 'options'> },
  signal: AbortSignal,
): Promise<SetUpDone> {
  return o.csi.ledger.run(device.global, signal, async () => {
    // By its directory the volume is found after a crash.
    await o.ports.fs.mkdirp(directoryOf(o, job.volume), DIR_MODE);
    await writeRecord(o, job.volume, device);
    return linkBehindClaim(o, { ...job, path: await device.attach() }, signal);
  });
}

/** False: the volume has no device of that kind. */
export async function takeDownShared(o: VolumeTools, { ref, kind }: { ref: VolumeRef; kind: Kind }, signal: AbortSignal): Promise<boolean> {
  const { fs } = o.ports;
  const dir = directoryOf(o, ref);
  const known = await globalOf(o, ref, kind.root);
  if (known === null) return false;
  const { global } = known;
  await o.csi.ledger.run(global, signal, async () => {
    await unmark(o, ref);
    await unlinkDevice(o, ref);
    await unmountAll(o, dir, signal);
    if (!(await isUsed(o, ref, global))) {
      await unmountAll(o, global, signal);
      await kind.detach?.(global);
      await rmdirIfThere(fs, global);
      await rmdirIfEmpty(fs, parentOf(global));
    }
    await removeRecord(o, ref);
  });
  return true;
}

/** A volume that was attached for this node must stay so until it is taken down: after a restart its record says it. */
export async function stillAttached(o: VolumeTools, ref: VolumeRef): Promise<VolumeRef> {
  const record = await readRecord(o, ref);
  if (record !== null && record.attached !== '') o.csi.ledger.use(volumeKey(ref), record.attached);
  return ref;
}

/** Another agent wrote no record: what is mounted on the volume is mounted there too. */
async function globalOf(o: VolumeTools, ref: VolumeRef, root: string): Promise<DeviceRecord | null> {
  const record = await readRecord(o, ref);
  if (record !== null) return record.global.startsWith(`${root}/`) ? record : null;
  const { rootDir } = o.facts();
  const dir = directoryOf(o, ref);
  const mine = mountsAt(await mounterOf(o).list(`${rootDir}/pods`, dir), dir).at(-1);
  if (mine === undefined) return null;
  const there = (await mounterOf(o).list(root)).find((m) => sameDevice(m, mine) && m.path !== root);
  return there === undefined ? null : { global: there.path, attached: '' };
}
const sameDevice = (a: MountEntry, b: MountEntry): boolean => a.source === b.source && a.type === b.type && a.source.startsWith('/dev/');

/** By another pod's record, or by a mount that another agent made for a pod. */
async function isUsed(o: VolumeTools, ref: VolumeRef, global: string): Promise<boolean> {
  const { fs } = o.ports;
  const { rootDir } = o.facts();
  for (const uid of (await listIfThere(fs, `${rootDir}/pods`)).filter(isPathName)) {
    const markers = parentOf(markerDir(rootDir, volumeRef(uid, ref.plugin, ref.name)));
    for (const marker of await listIfThere(fs, markers)) {
      const own = `${markers}/${marker}` === markerDir(rootDir, ref);
      if (!own && (await recordAt(o, `${markers}/${marker}`))?.global === global) return true;
    }
  }
  const mounts = await mounterOf(o).list(rootDir);
  const [mine] = mountsAt(mounts, global);
  return mine !== undefined && mounts.some((m) => m.path.startsWith(`${rootDir}/pods/`) && sameDevice(m, mine));
}

async function writeRecord(o: VolumeTools, ref: VolumeRef, { global, attached }: DeviceRecord): Promise<void> {
  const { fs } = o.ports;
  const marker = markerDir(o.facts().rootDir, ref);
  const there = await recordAt(o, marker);
  if (there?.global === global && there.attached === attached) return;
  await fs.mkdirp(marker, DIR_MODE);
  const fresh = `${marker}/${DEVICE_RECORD}.new`;
  await fs.writeFile(fresh, encodeDeviceRecord({ global, attached }), { fsync: true });
  await fs.rename(fresh, `${marker}/${DEVICE_RECORD}`);
}
function readRecord(o: VolumeTools, ref: VolumeRef): Promise<DeviceRecord | null> {
  return recordAt(o, markerDir(o.facts().rootDir, ref));
}
async function recordAt(o: VolumeTools, marker: string): Promise<DeviceRecord | null> {
  const text = await ownTextIfThere(o.ports.fs, `${marker}/${DEVICE_RECORD}`, RECORD_BYTES_MAX);
  return text === null ? null : decodeDeviceRecord(text, o.facts().rootDir);
}
async function removeRecord(o: VolumeTools, ref: VolumeRef): Promise<void> {
  const { fs } = o.ports;
  const marker = markerDir(o.facts().rootDir, ref);
  for (const name of [`${DEVICE_RECORD}.new`, DEVICE_RECORD]) await unlinkIfThere(fs, `${marker}/${name}`);
  await rmdirIfEmpty(fs, marker);
}
