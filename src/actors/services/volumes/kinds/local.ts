/** `local` of a PersistentVolume: a directory is bound, a device mounted once and bound or linked; it is given to the group of its pod. */

import { mountsAt } from '../../../../machines/host/mountinfo.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import { LOCAL_VOLUME } from '../../../../machines/pod/volumes/kinds/claim.ts';
import type { Local } from '../../../../machines/pod/volumes/kinds/local.ts';
import type { PodVolume } from '../../../../machines/pod/volumes/volumes.ts';
import { pluginRoot } from '../../../../machines/services/volumes/devices/record.ts';
import { setUpShared, takeDownShared } from '../devices/shared.ts';
import { bindBehindClaim, linkBehindClaim } from '../disk/claimed.ts';
import { markReady } from '../disk/directory.ts';
import { giveForeignTree } from '../disk/group.ts';
import { growCall, lookCall } from '../disk/limits.ts';
import { directoryOf, mounterOf, type PersistentActs, type VolumeTools } from '../kind.ts';

const PLUGIN = 'local-volume';

export const local: { persistent: PersistentActs<Local> } = {
  persistent: {
    async setUp(o, job, signal) {
      const { behind, source, volume } = job;
      const { path } = behind;
      if (source.block) return linkBehindClaim(o, { ...job, path }, signal);
      const is = await mounterOf(o).kindOf(path, lookCall(signal));
      if (is === 'dir') await bindBehindClaim(o, job, signal);
      else if (is === 'block') {
        const global = `${mountsOf(o)}/${behind.volume}`;
        await setUpShared(o, { volume, device: { ...behind, global, attached: '', attach: async () => path } }, signal);
      } else throw new Error(`path "${path}" ${is === 'absent' ? 'does not exist' : 'is neither a directory nor a block device'}`);
      if (!source.readOnly) await giveToGroup(o, job, signal);
      await markReady(o, volume);
      return null;
    },
    takeDown: async (o, ref, signal) => void (await takeDownShared(o, { ref, kind: { root: mountsOf(o) } }, signal)),
    /** A directory has the room of the file system that it is on. */
    async grow(o, { volume, behind }, signal) {
      const is = await mounterOf(o).kindOf(behind.path, lookCall(signal));
      if (is === 'dir' || behind.block) return;
      if (is !== 'block') throw new Error('only directory and block device are supported');
      await mounterOf(o).growFileSystem(behind.path, directoryOf(o, volume), growCall(signal));
    },
  },
};

const mountsOf = (o: VolumeTools): string => `${pluginRoot(o.facts().rootDir, PLUGIN)}/mounts`;

/** Not where another pod has it: that one's group would be taken away. */
async function giveToGroup(o: VolumeTools, { pod, volume }: { pod: Pod; volume: PodVolume }, signal: AbortSignal): Promise<void> {
  const gid = pod.spec.securityContext?.fsGroup;
  if (gid === undefined) return;
  const dir = directoryOf(o, volume);
  const mounts = await mounterOf(o).list(`${o.facts().rootDir}/pods`);
  const [mine] = mountsAt(mounts, dir);
  const shared = mounts.some(
    (m) => m.path !== dir && m.path.includes(`/volumes/${LOCAL_VOLUME}/`) && m.root === mine?.root && m.source === mine.source,
  );
  if (!shared) return giveForeignTree(o, { pod, dir }, signal);
  const has = await mounterOf(o).groupOf(dir, lookCall(signal));
  if (has === gid) return;
  const message = `The requested fsGroup is ${gid}, but the volume ${volume.name} is mounted by another pod of this node and belongs to group ${has}. The volume may not be shareable.`;
  o.warn(pod, 'AlreadyMountedVolume', message);
}
