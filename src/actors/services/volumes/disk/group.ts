/** What fsGroup asks: volumes are given to the group of their pod (resources and volumes 8.16). Links are never followed. */

import type { Pod } from '../../../../machines/kube/types.ts';
import { groupMode } from '../../../../machines/services/volumes/atomic.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import type { Mounter } from '../../../../ports/machine/mounter.ts';
import type { HostFs, Logger, Ports } from '../../../../ports/ports.ts';
import { mounterOf, type VolumeTools } from '../kind.ts';
import { groupCall } from './limits.ts';

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
  o: { ports: Pick<Ports, 'mounter'>; log: Logger },
  { pod, dir }: { pod: Pod; dir: string },
  signal: AbortSignal,
): Promise<void> {
  const { fsGroup: gid, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
  if (gid === undefined) return;
  const { left } = await mounterOf(o).giveToGroup(
    dir,
    { gid, onRootMismatch: fsGroupChangePolicy === 'OnRootMismatch' },
    groupCall(signal),
  );
  if (left !== '') o.log.warn({ dir, gid, err: left }, 'files of a volume could not be given to the group of its pod');
}
