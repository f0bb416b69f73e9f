/**
 * Volumes of drivers, unpublished and, with the last pod that has them, unstaged. `vol_data.json` goes when nothing is left
 * that it could tell of, so every step may be repeated.
 */

import { mountsAt, mountsBelow } from '../../../../machines/host/mountinfo.ts';
import { deviceLink, type VolumeRef, volumeKey, volumePath } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { VolumeData } from '../../../../machines/services/volumes/csi/data.ts';
import { csiPath, csiRef, VOL_DATA } from '../../../../machines/services/volumes/csi/volume.ts';
import { unlinkIfThere } from '../../../../ports/ifThere.ts';
import { removeMarker, unmountAll } from '../disk/directory.ts';
import { lstatIfThere, removeVolume, rmdirIfEmpty, rmdirIfThere } from '../disk/files.ts';
import { lookCall, mountCall, parentOf } from '../disk/limits.ts';
import { type Driver, driverNamed } from './calls.ts';
import { type CsiOptions, type Place, placeOf, readData, removeData, volumesOnDisk } from './place.ts';

export interface Leftover {
  ref: VolumeRef;
  place: Place;
  data: VolumeData;
}

/** `ref`: of a volume that a driver may have served; the name is all that is known of it. */
export async function takeDownCsi(o: CsiOptions, ref: VolumeRef, signal: AbortSignal): Promise<void> {
  const { fs } = o.ports;
  const { rootDir } = o.facts();
  const dir = volumePath(rootDir, csiRef(ref));
  const data = await readData(fs, rootDir, ref);
  if (data === null) await removeNothing(o, ref);
  else {
    const device = `${data.driver}^${data.handle}`;
    await o.ledger.run(device, signal, () => unpublish(o, { ref, data, place: placeOf(o, ref, data) }, signal));
  }
  await rmdirIfEmpty(fs, parentOf(dir));
  o.ledger.labels.delete(volumeKey(csiRef(ref)));
  if (o.ledger.release(volumeKey(ref))) o.inUseChanged();
}

/** No driver was asked to publish here, or what was has been taken back: only what is empty may go. */
async function removeNothing(o: CsiOptions, ref: VolumeRef): Promise<void> {
  const { fs } = o.ports;
  const { rootDir } = o.facts();
  const dir = volumePath(rootDir, csiRef(ref));
  await removeLink(o, deviceLink(rootDir, csiRef(ref)));
  if ((await lstatIfThere(fs, dir))?.kind !== 'dir') return;
  const mounts = await o.mounter.list(rootDir, dir);
  const [mount] = mountsAt(mounts, dir).concat(mountsBelow(mounts, dir));
  if (mount !== undefined)
    throw new Error(`${mount.path} is still mounted (${mount.type}), and ${dir}/${VOL_DATA} does not say which driver did it`);
  await rmdirIfThere(fs, `${dir}/mount`);
  await removeData(fs, dir);
  await rmdirIfThere(fs, dir);
}

async function unpublish(o: CsiOptions, leftover: Leftover, signal: AbortSignal): Promise<void> {
  const { data, place } = leftover;
  const driver = driverNamed(o, data.driver, { who: 'unmounter.TearDownAt failed to get CSI client', of: leftover.ref });
  // This goes first: a look in between sees a volume that is not set up.
  await removeMarker(o.ports.fs, place.marker);
  if (data.block) await removeBound(o, leftover, signal);
  await driver.call('NodeUnpublishVolume', { volumeId: data.handle, targetPath: place.target }, signal);
  // What is known of a device lies in `stageDir`, staged or not.
  const staged = (await lstatIfThere(o.ports.fs, data.block ? place.staging : place.stageDir)) !== null;
  await removeLeftovers(o, leftover, staged ? { driver, signal } : null);
}

/** A kubelet that had the node before has bound the device, too, and holds it by a loop device. */
async function removeBound(o: CsiOptions, { ref }: Leftover, signal: AbortSignal): Promise<void> {
  const { fs } = o.ports;
  const { bound } = csiPath.block(o.facts().rootDir, csiRef(ref).name);
  const path = `${bound}/${ref.uid}`;
  if ((await lstatIfThere(fs, path)) === null) return;
  const loops = await o.mounter.tool('losetup', ['--noheadings', '--output', 'NAME', '--associated', path], lookCall(signal));
  for (const loop of loops.out.split('\n').map((line) => line.trim())) {
    if (loop.startsWith('/dev/')) await o.mounter.tool('losetup', ['--detach', loop], mountCall(signal));
  }
  await unmountAll(o, path, signal);
  await unlinkIfThere(fs, path);
  await rmdirIfEmpty(fs, bound);
}

/** Nothing is published there any more. The device goes with the last pod that has it; `stage` null: nothing was staged. */
export async function removeLeftovers(
  o: CsiOptions,
  { ref, place, data }: Leftover,
  stage: { driver: Driver; signal: AbortSignal } | null,
): Promise<void> {
  const { fs } = o.ports;
  await removeTarget(o, place, data);
  const others = (await volumesOnDisk(fs, o.facts().rootDir)).filter(
    (v) => volumeKey(v.ref) !== volumeKey(csiRef(ref)) && v.data.driver === data.driver && v.data.handle === data.handle,
  );
  if (others.length === 0) await unstage(o, { place, data }, stage);
  if (data.block) return removeLink(o, place.link);
  await removeData(fs, place.dir);
  await rmdirIfThere(fs, place.dir);
}
async function removeLink({ ports: { fs } }: CsiOptions, link: string): Promise<void> {
  await unlinkIfThere(fs, link);
  await rmdirIfEmpty(fs, parentOf(link));
}

export async function removeTarget(o: CsiOptions, { target }: Place, { block }: VolumeData): Promise<void> {
  const { fs } = o.ports;
  if (mountsAt(await o.mounter.list(o.facts().rootDir, target), target).length > 0) {
    throw new Error(`${target} is still mounted, although the driver has unpublished it; nothing is removed`);
  }
  if (!block) return rmdirIfThere(fs, target);
  await unlinkIfThere(fs, target);
  await rmdirIfEmpty(fs, parentOf(target));
}

async function unstage(
  o: CsiOptions,
  { place, data }: Pick<Leftover, 'place' | 'data'>,
  stage: { driver: Driver; signal: AbortSignal } | null,
): Promise<void> {
  const { fs } = o.ports;
  o.ledger.staged.delete(`${data.driver}^${data.handle}`);
  if (stage !== null && (await stage.driver.capabilities(stage.signal)).has('STAGE_UNSTAGE_VOLUME')) {
    await stage.driver.call('NodeUnstageVolume', { volumeId: data.handle, stagingTargetPath: place.staging }, stage.signal);
  }
  if (mountsAt(await o.mounter.list(o.facts().rootDir, place.staging), place.staging).length > 0) {
    throw new Error(`${place.staging} is still mounted, although the driver has unstaged it; nothing is removed`);
  }
  if ((await lstatIfThere(fs, place.stageDir)) === null) return;
  // A driver may leave files of its own beside a device that it has staged.
  if (data.block) await removeVolume(fs, place.staging, []);
  else await rmdirIfThere(fs, place.staging);
  await removeData(fs, place.stageDir);
  await rmdirIfThere(fs, place.stageDir);
  if (data.block) await rmdirIfEmpty(fs, parentOf(place.stageDir));
}
