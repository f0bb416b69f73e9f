/** What fsGroup asks: volumes are given to the group of their pod (resources and volumes 8.16). Links are never followed. */

import type { Pod } from '../../../../machines/kube/types.ts';
import { groupMode } from '../../../../machines/services/volumes/atomic.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import type { Mounter } from '../../../../ports/machine/mounter.ts';
import type { HostFs, Logger, Ports } from '../../../../ports/ports.ts';
import { mounterOf, type VolumeTools } from '../kind.ts';
import { groupCall } from './limits.ts';

/** After this, the user of the pod is told what it waits for, */
const SAY_MS = 30_000;
/** and so often again. */
const SAY_AGAIN_MS = 60_000;

interface Group {
  gid: number;
  readOnly: boolean;
}

/** One path of ours. */
export async function giveToGroup(o: { fs: HostFs; mounter: Mounter }, path: string, of: Group): Promise<void> {
  const info = await o.fs.lstat(path);
  if (info.kind === 'symlink') return;
  await o.mounter.chown(path, { gid: of.gid });
  await o.fs.chmod(path, groupMode(info.mode, { dir: info.kind === 'dir', readOnly: of.readOnly }));
}

/** A directory of ours and all below it. What cannot be given is logged, and does not stop it (trap 57). */
export async function giveOwnTree(o: Pick<VolumeTools, 'ports' | 'log'>, of: { pod: Pod; dir: string; readOnly: boolean }): Promise<void> {
  const gid = of.pod.spec.securityContext?.fsGroup;
  if (gid === undefined) return;
  const failed = (path: string, error: unknown) => {
    o.log.warn({ path, gid, err: messageOf(error) }, 'a file of a volume could not be given to the group of its pod');
  };
  await giveTree({ fs: o.ports.fs, mounter: mounterOf(o), failed }, of.dir, { gid, readOnly: of.readOnly });
}
/** The directory itself comes last. */
async function giveTree(
  o: { fs: HostFs; mounter: Mounter; failed(path: string, error: unknown): void },
  dir: string,
  of: Group,
): Promise<void> {
  try {
    for (const name of await o.fs.readdir(dir)) {
      const path = `${dir}/${name}`;
      const info = await o.fs.lstat(path);
      if (info.kind === 'dir') await giveTree(o, path, of);
      else
        try {
          await giveToGroup(o, path, of);
        } catch (error) {
          o.failed(path, error);
        }
    }
    await giveToGroup(o, dir, of);
  } catch (error) {
    o.failed(dir, error);
  }
}

/** What belongs to somebody else, by a helper; `fsGroupChangePolicy` is honoured. */
export async function giveForeignTree(
  o: { ports: Pick<Ports, 'mounter' | 'clock'>; log: Logger; warn: VolumeTools['warn'] },
  { pod, dir }: { pod: Pod; dir: string },
  signal: AbortSignal,
): Promise<void> {
  const { fsGroup: gid, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
  if (gid === undefined) return;
  const { clock } = o.ports;
  const shown = dir.slice(Math.max(0, dir.indexOf(pod.metadata.uid)));
  const hint = 'With fsGroupChangePolicy OnRootMismatch, a volume that belongs to the group already is left as it is.';
  let files = 0;
  const say = () => {
    const message = `The files of ${shown} are being given to group ${gid}, and this takes long: ${files} are done. ${hint}`;
    o.warn(pod, 'VolumePermissionChangeInProgress', message);
    next = clock.setTimeout(say, SAY_AGAIN_MS);
  };
  let next = clock.setTimeout(say, SAY_MS);
  const count = (done: number) => {
    files = done;
  };
  try {
    const onRootMismatch = fsGroupChangePolicy === 'OnRootMismatch';
    const { left } = await mounterOf(o).giveToGroup(dir, { gid, onRootMismatch }, groupCall(signal, count));
    if (left !== '') o.log.warn({ dir, gid, err: left }, 'files of a volume could not be given to the group of its pod');
  } finally {
    clock.clearTimeout(next);
  }
}
