/** `secret`, `configMap`, `downwardAPI` and `projected`: files that the node writes, and writes again when their sources change. */

import type { Files } from '../../../../machines/pod/volumes/kinds/files/files.ts';
import type { VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import { nestedMountPoints } from '../../../../machines/pod/volumes/volumes.ts';
import type { Payload } from '../../../../machines/services/volumes/payload.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { inTurn } from '../../../../ports/turns.ts';
import { cleanSubPaths, inMemory, removeDirectory, setUpDirectory, takeDownDirectory } from '../disk/directory.ts';
import { giveOwnTree } from '../disk/group.ts';
import { writeAtomically } from '../files/atomicWriter.ts';
import { askObjects, type FilesJob, keysOf, payloadOf } from '../files/objectFiles.ts';
import { directoryOf, type InlineActs, mounterOf, type VolumeTools } from '../kind.ts';

/** A volume of objects with more keys than this waits for others of such. */
const KEYS_AT_ONCE_MAX = 1_000;
const LARGE_PAYLOADS = 'payloads of many files';
const NESTED_MODE = 0o755;

export const files: { inline: InlineActs<Files> } = {
  inline: {
    /** Fetch, build, and only then touch the disk. What is there stays when a refresh fails. */
    async setUp(o, job, signal) {
      const objects = await askObjects(o.objects, job, signal);
      const write = async (): Promise<void> => {
        signal.throwIfAborted();
        await writeFiles(o, { ...job, payload: payloadOf(o, job, objects) }, signal);
      };
      // Many pods can name one object of tens of thousands of keys: what they hold is built and written for one at a time.
      if (o.objects === null || keysOf(objects) <= KEYS_AT_ONCE_MAX) await write();
      else await inTurn(o.objects, LARGE_PAYLOADS, write);
      return null;
    },
    takeDown: takeDownDirectory,
  },
};

async function writeFiles(o: VolumeTools, job: FilesJob & { payload: Payload }, signal: AbortSignal): Promise<void> {
  const { volume, pod, source, payload } = job;
  const dir = directoryOf(o, volume);
  const fresh = await setUpDirectory(o, volume, source.memory ? inMemory(o, { pod, sizeLimitBytes: null }, signal) : null);
  try {
    const nestedIn = nestedMountPoints(pod, volume.name);
    if (!nestedIn.ok) throw new Error(nestedIn.message);
    for (const nested of nestedIn.value) await o.ports.fs.mkdirp(`${dir}/${nested}`, NESTED_MODE);
    const gid = pod.spec.securityContext?.fsGroup ?? null;
    const written = await writeAtomically({ ...o.ports, mounter: mounterOf(o) }, { dir, payload, gid });
    if (fresh && gid !== null) await giveOwnTree(o, { pod, dir, readOnly: true });
    if (written) o.log.debug({ uid: volume.uid, volume: volume.name, files: payload.size }, 'files of a volume written');
  } catch (error) {
    if (job.first && fresh) await undo(o, { volume, cause: error }, signal);
    throw error;
  }
}

async function undo(o: VolumeTools, { volume, cause }: { volume: VolumeRef; cause: unknown }, signal: AbortSignal): Promise<void> {
  try {
    await cleanSubPaths(o, volume, signal);
    await removeDirectory(o, volume, signal);
  } catch (error) {
    throw new AggregateError([cause, error], `${messageOf(cause)}; and taking it down again: ${messageOf(error)}`);
  }
}
