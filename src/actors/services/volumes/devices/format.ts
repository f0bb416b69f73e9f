/** Mounts a block device. mkfs is called only where the device can be read and blkid finds nothing on it. */

import { checked, contentOf, isRead, looking, preparing, reading } from '../../../../machines/services/volumes/devices/format.ts';
import { codeOf, messageOf } from '../../../../machines/text/errors.ts';
import { deviceCall, formatCall, lookCall } from '../disk/limits.ts';
import { mounterOf, type VolumeTools } from '../kind.ts';

interface Mounted {
  device: string;
  path: string;
  fsType: string;
  options: readonly string[];
}

/** mount(8) failed, and the device holds another file system than was asked for. */
export class FilesystemMismatch extends Error {}

export async function formatAndMount(o: Pick<VolumeTools, 'ports' | 'log'>, of: Mounted, signal: AbortSignal): Promise<void> {
  const mounter = mounterOf(o);
  const { device, path, fsType, options } = of;
  let content = await contentSeen(o, device, signal);
  if (content === '') {
    const { tool, args } = reading(device);
    const read = isRead(await mounter.tool(tool, args, lookCall(signal)), device);
    if (!read.ok) throw new Error(read.message);
    // It can be read now: what is on it would be seen now.
    content = await contentSeen(o, device, signal);
  }
  const prepare = preparing({ content, device, fsType, readOnly: options.includes('ro') });
  if (!prepare.ok) throw new Error(prepare.message);
  if (prepare.value !== null) await run(o, { ...prepare.value, device }, signal);
  const mismatch = content !== '' && content !== fsType;
  try {
    await mounter.mount({ type: fsType, source: device, path, options: [...options, 'defaults'] }, deviceCall(signal));
  } catch (error) {
    throw mismatch ? new FilesystemMismatch(messageOf(error), { cause: error }) : error;
  }
}

async function contentSeen(o: Pick<VolumeTools, 'ports'>, device: string, signal: AbortSignal): Promise<string> {
  const { tool, args } = looking(device);
  const content = contentOf(await mounterOf(o).tool(tool, args, lookCall(signal)), device);
  if (!content.ok) throw new Error(content.message);
  return content.value;
}

async function run(
  o: Pick<VolumeTools, 'ports' | 'log'>,
  { tool, args, device }: { tool: string; args: readonly string[]; device: string },
  signal: AbortSignal,
): Promise<void> {
  const isCheck = tool === 'fsck';
  try {
    const answer = await mounterOf(o).tool(tool, args, formatCall(signal));
    if (isCheck) {
      const result = checked(answer, device);
      if (!result.ok) throw new Error(result.message);
    } else if (answer.code !== 0) throw new Error(`${tool} ${device} ended with ${answer.code}: ${answer.err.trim() || answer.out.trim()}`);
    else o.log.info({ device, tool }, 'an empty disk was given a file system');
  } catch (error) {
    // A disk is mounted without a check where there is no program for it.
    if (!isCheck || codeOf(error) !== 'ENOENT') throw error;
    o.log.warn({ device }, 'this host has no fsck; the disk is mounted unchecked');
  }
}
