/**
 * A server that is dead, under pods that are to go. No signal ends a process that waits for its writes, so their containers
 * would stay until the server is back, and the pods with them. Nothing but these writes is lost.
 */

import { severable } from '../../../../machines/host/unmounting.ts';
import { pathName } from '../../../../machines/pod/pathName.ts';
import { podDir } from '../../../../machines/pod/volumes/volumePaths.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { mounterOf, type VolumeTools } from '../kind.ts';
import { lookCall } from './limits.ts';

/** Gives up what these pods alone have mounted, where its server does not answer. Never rejects. */
export async function severDead(
  o: Pick<VolumeTools, 'ports' | 'log' | 'facts'>,
  uids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { rootDir } = o.facts();
  const about = (path: string, device: string) => ({ path, device, uids });
  try {
    const mounter = mounterOf(o);
    const [below, all] = await Promise.all([mounter.list(`${rootDir}/pods`), mounter.list('/')]);
    const found = severable({ dirs: uids.map((uid) => podDir(rootDir, pathName(uid))), below, all });
    await Promise.all(
      found.map(async ({ path, device }) => {
        try {
          if ((await mounter.sever(path, device, lookCall(signal))) === 'severed')
            o.log.warn(about(path, device), 'containers wait for a server that does not answer; it was given up, and their writes fail');
        } catch (error) {
          const err = messageOf(error);
          o.log.warn({ ...about(path, device), err }, 'containers wait for a server that does not answer; they end when it is back');
        }
      }),
    );
  } catch (error) {
    o.log.warn({ uids, err: messageOf(error) }, 'the mounts of pods whose containers do not end cannot be listed');
  }
}
