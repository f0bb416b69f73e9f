/** What claims stand for on this node: a path of the node is bound to the directory of a volume, or its device linked. */

import type { Claim } from '../../../../machines/pod/volumes/kinds/claim.ts';
import { deviceLink, podDir, VOLUME_DEVICES, type VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { SetUpDone } from '../../../../machines/services/volumes/volumeMachine.ts';
import { directoryOf, mounterOf, type VolumeTools } from '../kind.ts';
import { markReady } from './directory.ts';
import { rmdirIfEmpty, unlinkIfThere } from './files.ts';
import { DIR_MODE, lookCall, mountCall, parentOf } from './limits.ts';

type Disk = Pick<VolumeTools, 'ports' | 'facts'>;

/** Where a container is given the device of a claim from. */
export function linkedDevice({ facts }: Disk, { volume, source }: { volume: VolumeRef; source: Claim }): SetUpDone {
  return { at: deviceLink(facts().rootDir, volume), readOnly: source.readOnly, device: true, republish: false };
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

export async function bindBehindClaim(o: Disk, { volume, path }: { volume: VolumeRef; path: string }, signal: AbortSignal): Promise<void> {
  const is = await mounterOf(o).kindOf(path, lookCall(signal));
  if (is === 'absent') throw new Error(`path "${path}" does not exist`);
  if (is !== 'dir') throw new Error(`path "${path}" is not a directory`);
  await mountBehindClaim(o, { volume, type: '', source: path, options: ['bind'] }, signal);
}

/** Its directory is taken down with the claim: what is mounted there goes first, and nothing in it is ever removed. */
async function mountBehindClaim(
  o: Disk,
  { volume, ...request }: { volume: VolumeRef; type: string; source: string; options: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  const { fs } = o.ports;
  const path = directoryOf(o, volume);
  await fs.mkdirp(parentOf(path), DIR_MODE);
  await fs.mkdirp(path, DIR_MODE);
  await mounterOf(o).mount({ ...request, path }, mountCall(signal));
}
