/** `emptyDir`. */

import { type EmptyDir, hugePageBytes } from '../../../../machines/pod/volumes/kinds/emptyDir.ts';
import type { SetUpJob } from '../../../../machines/services/volumes/volumeMachine.ts';
import { inMemory, type Mount, setUpDirectory, takeDownDirectory } from '../disk/directory.ts';
import { giveOwnTree } from '../disk/group.ts';
import { mountCall } from '../disk/limits.ts';
import { directoryOf, type InlineActs, mounterOf, type VolumeTools } from '../kind.ts';

export const emptyDir: { inline: InlineActs<EmptyDir> } = {
  inline: {
    async setUp(o, job, signal) {
      const { volume, pod } = job;
      const fresh = await setUpDirectory(o, volume, mediumOf(o, job, signal));
      if (fresh) await giveOwnTree(o, { pod, dir: directoryOf(o, volume), readOnly: false });
      return null;
    },
    takeDown: takeDownDirectory,
  },
};

function mediumOf(o: VolumeTools, { pod, source }: SetUpJob & { source: EmptyDir }, signal: AbortSignal): Mount {
  const { medium, sizeLimitBytes } = source;
  if (medium === '') return null;
  if (medium === 'Memory') return inMemory(o, { pod, sizeLimitBytes }, signal);
  const page = hugePageBytes(pod, medium);
  if (!page.ok) throw new Error(page.message);
  const request = { type: 'hugetlbfs', source: 'nodev', options: [`pagesize=${page.value}`] };
  return (path) => mounterOf(o).mount({ ...request, path }, mountCall(signal));
}
