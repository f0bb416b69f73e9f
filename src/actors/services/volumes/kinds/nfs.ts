/** `nfs`: mounted and unmounted by a helper with a deadline. A server may not answer, so only the mount table is asked what stands. */

import { mountsAt } from '../../../../machines/host/mountinfo.ts';
import { exportOf, mountProblem, type Nfs } from '../../../../machines/pod/volumes/kinds/nfs.ts';
import type { VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import { codeOf, messageOf } from '../../../../machines/text/errors.ts';
import { servedAt } from '../disk/claimed.ts';
import { isReady, markReady, takeDownMount } from '../disk/directory.ts';
import { DIR_MODE, parentOf, serverCall } from '../disk/limits.ts';
import { directoryOf, type InlineActs, mounterOf, type PersistentActs, type VolumeTools } from '../kind.ts';

export const nfs: { inline: InlineActs<Nfs>; persistent: PersistentActs<Nfs> } = {
  inline: {
    async setUp(o, { volume, source }, signal) {
      const dir = directoryOf(o, volume);
      const mounted = mountsAt(await mounterOf(o).list(`${o.facts().rootDir}/pods`, dir), dir).length > 0;
      if (mounted && (await isReady(o, volume))) return null;
      if (!mounted) await mount(o, { volume, source }, signal);
      await markReady(o, volume);
      return null;
    },
    takeDown: takeDownMount,
  },
  // A claim unmounts what is mounted on its directory, whatever it is.
  persistent: {
    async setUp(o, { volume, behind, source, mounted }, signal) {
      if (source.block) throw new Error('an NFS volume has no device');
      if (!mounted) await mount(o, { volume, source: behind }, signal);
      await markReady(o, volume);
      return servedAt(directoryOf(o, volume), source);
    },
  },
};

async function mount(o: VolumeTools, { volume, source }: { volume: VolumeRef; source: Nfs }, signal: AbortSignal): Promise<void> {
  const path = directoryOf(o, volume);
  await o.ports.fs.mkdirp(parentOf(path), DIR_MODE);
  await o.ports.fs.mkdirp(path, DIR_MODE);
  const { options } = source;
  try {
    await mounterOf(o).mount({ type: 'nfs', source: exportOf(source), path, options }, serverCall(signal));
  } catch (error) {
    throw new Error(mountProblem(source, { code: codeOf(error), message: messageOf(error) }));
  }
}
