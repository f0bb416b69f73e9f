/** Devices of disks that nobody has any more: flushed, then taken from the kernel. */

import { codeOf, messageOf } from '../../../../machines/text/errors.ts';
import { lookCall, serverCall } from '../disk/limits.ts';
import { mounterOf, type VolumeTools } from '../kind.ts';
import { multipathOf } from './sysfs.ts';

/** `names`: `sdb`. A multipath device above them goes first: while it holds them they cannot be flushed. */
export async function removeDevices(o: VolumeTools, names: readonly string[], signal: AbortSignal): Promise<void> {
  const mounter = mounterOf(o);
  const above = await multipathOf(
    o.ports.fs,
    names.map((name) => `/dev/${name}`),
  );
  if (above !== undefined) {
    const { code, err } = await mounter.tool('multipath', ['-f', above], serverCall(signal));
    if (code !== 0) throw new Error(`failed to flush multipath device ${above}: ${err.trim()}`);
  }
  for (const name of names) {
    const flushed = await mounter.tool('blockdev', ['--flushbufs', `/dev/${name}`], serverCall(signal));
    if (flushed.code !== 0) o.log.warn({ device: name, err: flushed.err.trim() }, 'a disk could not be flushed before it goes');
    try {
      await mounter.tellKernel(`/sys/block/${name}/device/delete`, '1', lookCall(signal));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw new Error(`the device ${name} cannot be removed: ${messageOf(error)}`);
    }
  }
}
