/** `emptyDir`. */

import { type EmptyDir, hugePageBytes } from '../../../../machines/pod/volumes/kinds/emptyDir.ts';
import type { VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { SetUpJob } from '../../../../machines/services/volumes/volumeMachine.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { inMemory, type Mount, setUpDirectory, takeDownDirectory } from '../disk/directory.ts';
import { giveOwnTree } from '../disk/group.ts';
import { mountCall } from '../disk/limits.ts';
import { assignQuota, clearQuota } from '../disk/quota.ts';
import { directoryOf, type InlineActs, mounterOf, type VolumeTools } from '../kind.ts';

export const emptyDir: { inline: InlineActs<EmptyDir> } = {
  inline: {
    async setUp(o, job, signal) {
      const { volume, pod } = job;
      const fresh = await setUpDirectory(o, volume, mediumOf(o, job, signal));
      if (fresh) await giveOwnTree(o, { pod, dir: directoryOf(o, volume), readOnly: false });
      // Users of a pod with a user namespace cannot give their files to another project.
      if (job.source.medium === '' && pod.spec.hostUsers === false) await counted(o, volume, (dir) => assignQuota(o, dir, signal));
      return null;
    },
    async takeDown(o, volume, signal) {
      await counted(o, volume, (dir) => clearQuota(o, dir, signal));
      await takeDownDirectory(o, volume, signal);
    },
  },
};

/** What a volume holds is walked where its file system does not count it. */
async function counted(o: VolumeTools, volume: VolumeRef, change: (dir: string) => Promise<unknown>): Promise<void> {
  if (o.facts().projectQuotas !== true) return;
  try {
    await change(directoryOf(o, volume));
  } catch (error) {
    o.log.warn({ uid: volume.uid, volume: volume.name, err: messageOf(error) }, 'the project quota of a volume could not be changed');
  }
}

function mediumOf(o: VolumeTools, { pod, source }: SetUpJob & { source: EmptyDir }, signal: AbortSignal): Mount {
  const { medium, sizeLimitBytes } = source;
  if (medium === '') return null;
  if (medium === 'Memory') return inMemory(o, { pod, sizeLimitBytes }, signal);
  const page = hugePageBytes(pod, medium);
  if (!page.ok) throw new Error(page.message);
  const request = { type: 'hugetlbfs', source: 'nodev', options: [`pagesize=${page.value}`] };
  return (path) => mounterOf(o).mount({ ...request, path }, mountCall(signal));
}
