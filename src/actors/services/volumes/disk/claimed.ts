/** What claims stand for on this node: a path of the node is bound to the directory of a volume, or its device linked. */

import type { Claim } from '../../../../machines/pod/volumes/kinds/claim.ts';
import { deviceLink, podDir, VOLUME_DEVICES, type VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { SetUpDone } from '../../../../machines/services/volumes/volumeMachine.ts';
import { unlinkIfThere } from '../../../../ports/ifThere.ts';
import { directoryOf, mounterOf, type VolumeTools } from '../kind.ts';
import { markReady } from './directory.ts';
import { rmdirIfEmpty } from './files.ts';
import { DIR_MODE, lookCall, mountCall, parentOf } from './limits.ts';

type Disk = Pick<VolumeTools, 'ports' | 'facts'>;

/** Where a container is given the device of a claim from. */
export function linkedDevice({ facts }: Disk, { volume, source }: { volume: VolumeRef; source: Claim }): SetUpDone {
  return { at: deviceLink(facts().rootDir, volume), readOnly: source.readOnly, device: true, republish: false };
}

/** The runtime labels neither what a server serves, where each file would be a call, nor what belongs to the host. */
export function servedAt(at: string, { readOnly }: Claim): SetUpDone {
  return { at, readOnly, device: false, republish: false, labelled: false };
}

export async function linkBehindClaim(
  o: Disk,
  { path, ...job }: { volume: VolumeRef; source: Claim; path: string },
  signal: AbortSignal,
): Promise<SetUpDone> {
  const { fs } = o.ports;
  const is = await mounterOf(o).kindOf(path, lookCall(signal));
  if (is !== 'block') throw new Error(`path "${path}" is not a block device`);
  const linked = linkedDevice(o, job);
  await fs.mkdirp(parentOf(linked.at), DIR_MODE);
  await unlinkIfThere(fs, linked.at);
  await fs.symlink(path, linked.at);
  await markReady(o, job.volume);
  return linked;
}

export async function unlinkDevice(o: Disk, ref: VolumeRef): Promise<void> {
  const { fs } = o.ports;
  const { rootDir } = o.facts();
  const link = deviceLink(rootDir, ref);
  await unlinkIfThere(fs, link);
  await rmdirIfEmpty(fs, parentOf(link));
  await rmdirIfEmpty(fs, `${podDir(rootDir, ref.uid)}/${VOLUME_DEVICES}`);
}

/** A directory of the node. Its claim unmounts what is mounted there, and nothing in it is ever removed. */
export async function bindBehindClaim(
  o: Disk,
  {
    volume,
    mounted,
    behind: { path, options = [] },
  }: { volume: VolumeRef; mounted: boolean; behind: { path: string; options?: readonly string[] } },
  signal: AbortSignal,
): Promise<void> {
  const { fs } = o.ports;
  const dir = directoryOf(o, volume);
  if (!mounted) {
    await fs.mkdirp(parentOf(dir), DIR_MODE);
    await fs.mkdirp(dir, DIR_MODE);
  }
  await bind(o, { from: path, dir, options, bound: mounted }, signal);
}

/** A bind takes options only when it is mounted again; a crash in between is mended here. */
export async function bind(
  o: Pick<VolumeTools, 'ports'>,
  { from, dir, options, bound }: { from: string; dir: string; options: readonly string[]; bound: boolean },
  signal: AbortSignal,
): Promise<void> {
  const mount = (...own: string[]) => mounterOf(o).mount({ type: '', source: from, path: dir, options: own }, mountCall(signal));
  if (!bound) await mount('bind', ...options.filter((option) => option === '_netdev'));
  if (options.length > 0) await mount('bind', 'remount', ...options.filter((option) => !['bind', 'remount'].includes(option)));
}
