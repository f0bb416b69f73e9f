/** Releases the ids of pods that have ended, and of those whose directory is gone. */

import { isPathName } from '../../machines/pod/pathName.ts';
import { podDir } from '../../machines/pod/volumes/volumePaths.ts';
import { removingDirs } from '../../machines/reclaim/messages.ts';
import { MAPPING_FILE, userNamespaceClaims } from '../../machines/reclaim/userNamespaces.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { ifThere, listIfThere, unlinkIfThere } from '../../ports/ifThere.ts';
import type { ActorCtx } from '../supervision/types.ts';

/**
 * `known`: a worker may be about to make the directory. `over`: its worker has finished, so nothing of it runs or will. One that
 * fails is tried again after the next removal or end.
 */
export async function giveBackUserNamespaces(
  ctx: Pick<ActorCtx, 'ports' | 'log' | 'publish'>,
  { rootDir, known, over }: { rootDir: string; known(uid: string): boolean; over(uid: string): boolean },
): Promise<void> {
  const { fs } = ctx.ports;
  const { dir, owner } = userNamespaceClaims(rootDir);
  try {
    for (const name of await listIfThere(fs, dir)) {
      const path = `${dir}/${name}`;
      const uid = owner(await fs.readlink(path));
      if (uid === null || !isPathName(uid) || (known(uid) && !over(uid))) continue;
      // A worker that is only now coming up waits with its directory until this is over.
      ctx.publish(removingDirs, new Set([uid]));
      const pod = podDir(rootDir, uid);
      const stands = (await ifThere(fs.lstat(pod))) !== null;
      // What is written there would be believed: it goes first.
      if (stands && over(uid)) {
        await unlinkIfThere(fs, `${pod}/${MAPPING_FILE}`);
        await fs.fsyncDir(pod);
      }
      if (over(uid) || (!stands && !known(uid))) await unlinkIfThere(fs, path);
    }
  } catch (error) {
    const err = messageOf(error);
    ctx.log.warn({ dir, err }, 'ids of pods that are gone cannot be released yet; tried again later');
  } finally {
    ctx.publish(removingDirs, new Set());
  }
}
