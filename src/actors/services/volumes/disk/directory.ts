/** Directories of volumes: made, mounted on, marked as set up in full, and taken down. */

import { type MountEntry, mountsAt } from '../../../../machines/host/mountinfo.ts';
import { mayHang, unmountSteps } from '../../../../machines/host/unmounting.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import { markerDir, subPathsDir, type VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import { tmpfsBytes } from '../../../../machines/pod/volumes/volumes.ts';
import { codeOf, messageOf } from '../../../../machines/text/errors.ts';
import { listIfThere, rmdirIfFree, textIfThere, unlinkIfThere } from '../../../../ports/ifThere.ts';
import type { FileInfo, HostFs, Ports } from '../../../../ports/ports.ts';
import { directoryOf, mounterOf, type VolumeTools } from '../kind.ts';
import { lstatIfThere, NEW, removeVolume, rmdirIfEmpty, rmdirIfThere, writeWhole } from './files.ts';
import { DIR_MODE, mountCall, parentOf } from './limits.ts';

type Disk = Pick<VolumeTools, 'ports' | 'facts'>;
/** Mounts something on a directory of ours; null: it lies on the disk. */
export type Mount = ((path: string) => Promise<void>) | null;

/** Mounts one over another at one path, of which somebody took part: more are not undone in one go. */
const STACKED_MOUNTS_MAX = 8;
const VOLUME_MODE = 0o777;
const MARKER_BYTES_MAX = 64 * 1024;
/** Beside the marker of a claim's volume: the size that its file system uses. */
export const SIZE_FILE = 'size';

/** True when it was not there before. */
export async function setUpDirectory(o: Disk, ref: VolumeRef, mount: Mount): Promise<boolean> {
  const { fs } = o.ports;
  const dir = directoryOf(o, ref);
  const found = await lstatIfThere(fs, dir);
  const ready = await isReady(o, ref);
  if (ready && mount === null && found?.kind === 'dir') return false;
  const mounted = found?.kind === 'dir' && (await isMounted(o, dir, found));
  if (ready && mount !== null && mounted) return false;
  if (ready) await unlinkIfThere(fs, `${markerDir(o.facts().rootDir, ref)}/ready`);
  await fs.mkdirp(parentOf(dir), DIR_MODE);
  await fs.mkdirp(dir, VOLUME_MODE);
  if (!mounted) {
    // mkdir passes through the umask.
    await fs.chmod(dir, VOLUME_MODE);
    await mount?.(dir);
  }
  await markReady(o, ref);
  return true;
}

/** Files in memory. `sizeLimitBytes` null: as many as the pod may have. */
export function inMemory(
  o: Disk & Pick<VolumeTools, 'swappable'>,
  of: { pod: Pod; sizeLimitBytes: number | null },
  signal: AbortSignal,
): Mount {
  return async (path) => {
    const bytes = tmpfsBytes(of.pod, of.sizeLimitBytes, o.facts().allocatable.memory);
    const size = bytes === null ? [] : [`size=${bytes}`];
    const request = { type: 'tmpfs', source: 'tmpfs', path };
    try {
      // Secrets must not reach a swap device; kernels before 6.3 do not know the option.
      await mounterOf(o).mount({ ...request, options: [...size, 'noswap'] }, mountCall(signal));
    } catch (error) {
      if (['ETIMEDOUT', 'ECANCELED'].includes(codeOf(error)) || signal.aborted) throw error;
      await mounterOf(o).mount({ ...request, options: size }, mountCall(signal));
      o.swappable();
    }
  };
}

/** The kernel writes a table of thousands of mounts anew for each reader: it is asked only where devices do not tell. */
async function isMounted(o: Disk, dir: string, { dev }: FileInfo): Promise<boolean> {
  const parent = await lstatIfThere(o.ports.fs, parentOf(dir));
  return (parent !== null && parent.dev !== dev) || mountsAt(await mountsNear(o, dir), dir).length > 0;
}
async function mountsNear(o: Disk, at: string) {
  const { rootDir } = o.facts();
  const pods = `${rootDir}/pods`;
  return (await o.ports.mounter?.list(at.startsWith(`${pods}/`) ? pods : rootDir, at)) ?? [];
}

/** It was set up in full. */
export async function isReady({ ports: { fs }, facts }: Disk, ref: VolumeRef): Promise<boolean> {
  return (await lstatIfThere(fs, `${markerDir(facts().rootDir, ref)}/ready`)) !== null;
}
/** `at`: where it stands, where that is not its directory. */
export async function markReady({ ports: { fs }, facts }: Disk, ref: VolumeRef, at = ''): Promise<void> {
  const marker = markerDir(facts().rootDir, ref);
  await fs.mkdirp(marker, DIR_MODE);
  if (at === '') await fs.writeFile(`${marker}/ready`, at);
  else await writeWhole(fs, `${marker}/ready`, at);
}
/** What {@link markReady} was told. Null: it was not set up in full. */
export function readyAt(
  { ports: { fs }, facts }: { ports: Pick<Ports, 'fs'>; facts(): Pick<NodeFacts, 'rootDir'> },
  ref: VolumeRef,
): Promise<string | null> {
  return textIfThere(fs, `${markerDir(facts().rootDir, ref)}/ready`, MARKER_BYTES_MAX);
}
/** Two volumes of a pod stand as one. */
export async function copyMarker({ ports: { fs }, facts }: Disk, { from, to }: { from: VolumeRef; to: VolumeRef }): Promise<void> {
  const { rootDir } = facts();
  const text = await fs.readFile(`${markerDir(rootDir, from)}/ready`, { bytesMax: MARKER_BYTES_MAX, own: true });
  await fs.mkdirp(markerDir(rootDir, to), DIR_MODE);
  await writeWhole(fs, `${markerDir(rootDir, to)}/ready`, text);
}
/** The first step of taking down: a look in between sees a volume that is not set up. */
export async function unmark({ ports: { fs }, facts }: Disk, ref: VolumeRef): Promise<void> {
  await removeMarker(fs, markerDir(facts().rootDir, ref));
}

export async function removeMarker(fs: HostFs, marker: string): Promise<void> {
  const files = ['ready', SIZE_FILE];
  for (const file of files) await unlinkIfThere(fs, `${marker}/${file}`);
  if (await rmdirIfFree(fs, marker)) return;
  for (const file of files) await unlinkIfThere(fs, `${marker}/${file}${NEW}`);
  await rmdirIfEmpty(fs, marker);
}

/** The directory of a volume that is ours, what is mounted there, and what is in it. */
export async function takeDownDirectory(o: Disk, ref: VolumeRef, signal: AbortSignal): Promise<void> {
  await removeDirectory(o, ref, signal);
  for (const dir of [directoryOf(o, ref), markerDir(o.facts().rootDir, ref)]) await rmdirIfEmpty(o.ports.fs, parentOf(dir));
}
/** The directory that it shares with volumes of its kind stays: others may be set up there just now. */
export async function removeDirectory(o: Disk, ref: VolumeRef, signal: AbortSignal): Promise<void> {
  await unmark(o, ref);
  await removeAll(o, directoryOf(o, ref), signal);
}

/** The mount table is long, and read as seldom as can be: a directory that can be removed has nothing in it and nothing mounted on it. */
async function removeAll(o: Disk, dir: string, signal: AbortSignal): Promise<void> {
  const { fs } = o.ports;
  for (let unmounted = 0; ; unmounted++) {
    if (await rmdirIfFree(fs, dir)) return;
    const mounts = await mountsNear(o, dir);
    const stack = mountsAt(mounts, dir);
    if (stack.length === 0) return removeVolume(fs, dir, mounts);
    if (unmounted === STACKED_MOUNTS_MAX) throw stillMounted(dir);
    await unmountTopmost(o, stack, signal);
  }
}

/** A directory of ours on which something of somebody else's is mounted: it goes only when it is empty. */
export async function takeDownMount(o: Disk, ref: VolumeRef, signal: AbortSignal): Promise<void> {
  const dir = directoryOf(o, ref);
  await unmark(o, ref);
  await unmountAll(o, dir, signal);
  await rmdirIfThere(o.ports.fs, dir);
  await rmdirIfEmpty(o.ports.fs, parentOf(dir));
}

export async function unmountAll(o: Disk, path: string, signal: AbortSignal): Promise<void> {
  for (let i = 0; i < STACKED_MOUNTS_MAX; i++) {
    const stack = mountsAt(await mountsNear(o, path), path);
    if (stack.length === 0) return;
    await unmountTopmost(o, stack, signal);
  }
  throw stillMounted(path);
}

/** What umount(8) says is not what it did: it may hang, or fail, when the mount is gone. The table tells. */
async function unmountTopmost(o: Disk, stack: readonly MountEntry[], signal: AbortSignal): Promise<void> {
  const topmost = stack.at(-1);
  if (topmost === undefined) return;
  const { path, type, source } = topmost;
  const mounter = mounterOf(o);
  let why: unknown;
  for (const { way, timeoutMs } of unmountSteps(type)) {
    try {
      const call = { timeoutMs, signal };
      return await (way === 'plain' ? mounter.unmount(path, type, call) : mounter.detach(path, way, call));
    } catch (error) {
      why = error;
      if (mountsAt(await mountsNear(o, path), path).length < stack.length) return;
      signal.throwIfAborted();
    }
  }
  if (!mayHang(type)) throw why;
  throw new Error(
    `${path} is still mounted (${type} of ${source}), which neither lazy nor forced unmounting has changed: ${messageOf(why)}`,
  );
}
const stillMounted = (path: string): Error => new Error(`${path} is still mounted after ${STACKED_MOUNTS_MAX} unmounts`);

/** What was bound of this volume for containers, by us or by an earlier agent. */
export async function cleanSubPaths(o: Disk, ref: VolumeRef, signal: AbortSignal): Promise<void> {
  const { fs } = o.ports;
  const dir = subPathsDir(o.facts().rootDir, ref);
  // Most pods have none.
  if (await rmdirIfFree(fs, parentOf(dir))) return;
  for (const container of await listIfThere(fs, dir)) {
    const parts = (await listIfThere(fs, `${dir}/${container}`)).map((index) => `${dir}/${container}/${index}`);
    // Side by side: each may take its time.
    await Promise.all(parts.map((path) => unmountAll(o, path, signal)));
    for (const path of parts) {
      const info = await lstatIfThere(fs, path);
      if (info?.kind === 'dir') await fs.rmdir(path);
      else await unlinkIfThere(fs, path);
    }
    await rmdirIfEmpty(fs, `${dir}/${container}`);
  }
  await rmdirIfEmpty(fs, dir);
  await rmdirIfEmpty(fs, parentOf(dir));
}
