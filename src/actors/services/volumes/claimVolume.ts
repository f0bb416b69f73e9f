/** Volumes of claims: what a claim stands for is bound to a directory of ours, or its device linked, and given to the group of its pod (resources and volumes 8.18). */

import { mountsAt } from '../../../machines/host/mountinfo.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../machines/nodeFacts.ts';
import { deviceLink, LOCAL_VOLUME, markerDir, volumePath } from '../../../machines/pod/volumes/volumePaths.ts';
import type { HostPathType, PodVolume } from '../../../machines/pod/volumes/volumes.ts';
import type { CsiVolume } from '../../../machines/services/volumes/csi/volume.ts';
import type { SetUpDone } from '../../../machines/services/volumes/volumeMachine.ts';
import type { Mounter } from '../../../ports/machine/mounter.ts';
import type { Logger, Ports } from '../../../ports/ports.ts';
import type { ClaimSource } from './claims.ts';
import { standing } from './csi/place.ts';
import { lstatIfThere, unlinkIfThere } from './files.ts';

const MOUNT_TIMEOUT_MS = 60_000;
/** One look at a foreign path. */
const LOOK_TIMEOUT_MS = 10_000;
/** A tree of many files takes its time. */
const GROUP_TIMEOUT_MS = 600_000;
const DIR_MODE = 0o750;

export interface ClaimVolumeOptions {
  ports: Ports;
  mounter: Mounter;
  log: Logger;
  facts(): NodeFacts;
  /** Null on a node without an API. */
  claims: ClaimSource | null;
  warn(pod: Pod, reason: string, message: string): void;
  checkHostPath(path: string, type: HostPathType): Promise<void>;
  /** Of a volume that a driver serves. */
  setUpCsi(csi: CsiVolume): Promise<SetUpDone>;
}
interface ClaimJob {
  volume: PodVolume;
  pod: Pod;
  source: Extract<PodVolume['source'], { kind: 'claim' }>;
}

/** The API is asked only where the volume does not stand in full yet: a daemon that finds it needs nobody. */
export async function setUpClaim(
  o: ClaimVolumeOptions,
  { volume, pod, source, first }: ClaimJob & { first: boolean },
  signal: AbortSignal,
): Promise<SetUpDone | null> {
  const { fs } = o.ports;
  const { rootDir } = o.facts();
  const dir = volumePath(rootDir, volume);
  const marker = markerDir(rootDir, volume);
  const mounted = mountsAt(await o.mounter.list(`${rootDir}/pods`, dir), dir).length > 0;
  const ready = (await lstatIfThere(fs, `${marker}/ready`)) !== null;
  if (mounted && ready) return null;
  const linked = { at: deviceLink(rootDir, volume), readOnly: source.readOnly, device: true, republish: false };
  if (source.block && ready && (await lstatIfThere(fs, linked.at)) !== null) return linked;
  const served = await standing(o, volume, signal);
  if (served !== null && (first || !served.republish)) return served;
  if (o.claims === null) throw new Error('this node has no API to ask for a claim');
  const { claim, readOnly, block } = source;
  const found = await o.claims({ pod, volume: volume.name, claim, readOnly, block }, signal);
  if (!found.ok) throw new Error(found.message);
  if (found.value.kind === 'csi') return o.setUpCsi(found.value.csi);
  const { kind, path, type } = found.value;
  if (block) {
    const is = await o.mounter.kindOf(path, { timeoutMs: LOOK_TIMEOUT_MS, signal });
    if (is !== 'block') throw new Error(`path "${path}" is not a block device`);
    await fs.mkdirp(linked.at.slice(0, linked.at.lastIndexOf('/')), DIR_MODE);
    await unlinkIfThere(fs, linked.at);
    await fs.symlink(path, linked.at);
    await fs.mkdirp(marker, DIR_MODE);
    await fs.writeFile(`${marker}/ready`, '');
    return linked;
  }
  if (!mounted) {
    if (kind === 'hostPath') await o.checkHostPath(path, type);
    const is = await o.mounter.kindOf(path, { timeoutMs: LOOK_TIMEOUT_MS, signal });
    if (is === 'absent') throw new Error(`path "${path}" does not exist`);
    if (is !== 'dir') throw new Error(`path "${path}" is not a directory`);
    await fs.mkdirp(dir.slice(0, dir.lastIndexOf('/')), DIR_MODE);
    await fs.mkdirp(dir, DIR_MODE);
    await o.mounter.mount({ type: '', source: path, path: dir, options: ['bind'] }, { timeoutMs: MOUNT_TIMEOUT_MS, signal });
  }
  if (kind === 'local' && !source.readOnly) await giveToGroup(o, { pod, volume, dir }, signal);
  await fs.mkdirp(marker, DIR_MODE);
  await fs.writeFile(`${marker}/ready`, '');
  return null;
}

/** Not where another pod has it: that one's group would be taken away. */
async function giveToGroup(
  o: ClaimVolumeOptions,
  { pod, volume, dir }: { pod: Pod; volume: PodVolume; dir: string },
  signal: AbortSignal,
): Promise<void> {
  const { fsGroup: gid, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
  if (gid === undefined) return;
  const mounts = await o.mounter.list(`${o.facts().rootDir}/pods`);
  const [mine] = mountsAt(mounts, dir);
  const shared = mounts.some(
    (m) => m.path !== dir && m.path.includes(`/volumes/${LOCAL_VOLUME}/`) && m.root === mine?.root && m.source === mine.source,
  );
  if (shared) {
    const message = `The requested fsGroup is ${gid}, but the volume ${volume.name} is mounted by another pod of this node. The volume may not be shareable.`;
    return o.warn(pod, 'AlreadyMountedVolume', message);
  }
  const of = { gid, onRootMismatch: fsGroupChangePolicy === 'OnRootMismatch' };
  const { left } = await o.mounter.giveToGroup(dir, of, { timeoutMs: GROUP_TIMEOUT_MS, signal });
  if (left !== '') o.log.warn({ dir, gid, err: left }, 'files of a volume could not be given to the group of its pod');
}
