/** `hostPath`: only looked at. Containers are given the path itself, so the runtime binds it with all that is mounted below. */

import type { HostPath, HostPathType } from '../../../../machines/pod/volumes/kinds/hostPath.ts';
import type { PathKind } from '../../../../ports/machine/mounter.ts';
import { linkBehindClaim, servedAt } from '../disk/claimed.ts';
import { markReady, readyAt } from '../disk/directory.ts';
import { lookCall } from '../disk/limits.ts';
import { type InlineActs, mounterOf, type PersistentActs, type VolumeTools } from '../kind.ts';

const DIR_MODE = 0o755;
const FILE_MODE = 0o644;

export const hostPath: { inline: InlineActs<HostPath>; persistent: PersistentActs<HostPath> } = {
  inline: {
    async setUp(o, { source }, signal) {
      await check(o, source, signal);
      return null;
    },
    root: (_o, _ref, { path }) => Promise.resolve(path),
  },
  persistent: {
    async setUp(o, job, signal) {
      const { behind, source, volume } = job;
      const { path } = behind;
      if (source.block) return linkBehindClaim(o, { ...job, path }, signal);
      await check(o, behind, signal);
      await markReady(o, volume, path);
      return servedAt(path, source);
    },
    root: async (o, ref) => (await readyAt(o, ref)) || null,
  },
};

async function check(o: VolumeTools, { path, type }: HostPath, signal: AbortSignal): Promise<void> {
  if (type === '') return;
  const mounter = mounterOf(o);
  const call = lookCall(signal);
  let kind = await mounter.kindOf(path, call);
  if (kind === 'absent' && type === 'DirectoryOrCreate') await mounter.makeDir(path, DIR_MODE, call);
  else if (kind === 'absent' && type === 'FileOrCreate') await mounter.makeFile(path, FILE_MODE, call);
  if (kind === 'absent' && type.endsWith('OrCreate')) kind = await mounter.kindOf(path, call);
  const [wanted, words] = KINDS_OF_PATHS[type];
  if (kind !== wanted) throw new Error(`hostPath type check failed: ${path} is not a ${words}`);
}

const KINDS_OF_PATHS: Record<Exclude<HostPathType, ''>, [PathKind, string]> = {
  DirectoryOrCreate: ['dir', 'directory'],
  Directory: ['dir', 'directory'],
  FileOrCreate: ['file', 'file'],
  File: ['file', 'file'],
  Socket: ['socket', 'socket file'],
  CharDevice: ['char', 'character device'],
  BlockDevice: ['block', 'block device'],
};
