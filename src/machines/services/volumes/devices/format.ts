/** What is done with a block device before its file system is mounted: looked at, checked, and made only where there is nothing. Pure. */

import { type Built, built, refused } from '../../../result.ts';

/** What a program of the host said, whatever its exit code. */
export interface ToolAnswer {
  code: number;
  out: string;
  err: string;
}
interface ToolCall {
  tool: string;
  args: readonly string[];
}

const NOTHING_FOUND = 2;
const PARTITIONS = 'unknown data, probably partitions';

export function looking(device: string): ToolCall {
  return { tool: 'blkid', args: ['-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device] };
}

/** blkid says the same of a device with nothing on it and of one that it cannot read: whether its start can be read is asked apart. */
export function reading(device: string): ToolCall {
  return { tool: 'dd', args: [`if=${device}`, 'of=/dev/null', 'bs=1M', 'count=4'] };
}
export function isRead({ code, err }: ToolAnswer, device: string): Built<null> {
  return code === 0 ? built(null) : refused(`${device} cannot be read, so nothing is done to it: ${err.trim()}`);
}

/** '' where nothing was found. */
export function contentOf({ code, out, err }: ToolAnswer, device: string): Built<string> {
  const said = [out, err].map((t) => t.trim()).filter((t) => t !== '');
  if (code === NOTHING_FOUND && said.length === 0) return built('');
  if (code !== 0)
    return refused(`what is on ${device} is not known, so nothing is done to it: blkid ended with ${code}: ${said.join('; ')}`);
  const fields = new Map(
    out.split('\n').flatMap((line): [string, string][] => {
      const at = line.indexOf('=');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1).trim()]];
    }),
  );
  if (fields.has('PTTYPE')) return built(PARTITIONS);
  const type = fields.get('TYPE') ?? '';
  return type === ''
    ? refused(`what is on ${device} is not known, so nothing is done to it: blkid said ${JSON.stringify(out)}`)
    : built(type);
}

/** The call that prepares a device for its mount. Null: the device is mounted as it is. */
export function preparing(o: { content: string; device: string; fsType: string; readOnly: boolean }): Built<ToolCall | null> {
  const { content, device, fsType, readOnly } = o;
  if (content === '') {
    if (readOnly) return refused(`cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`);
    if (!/^[a-z][a-z0-9.]*$/.test(fsType)) return refused(`fsType "${fsType}" is not the name of a file system`);
    const flags = /^ext[34]$/.test(fsType) ? ['-F', '-m0'] : fsType === 'xfs' ? ['-f'] : [];
    return built({ tool: `mkfs.${fsType}`, args: [...flags, device] });
  }
  if (content === PARTITIONS) return refused(`${device} has a table of partitions and no file system: it is left as it is`);
  return built(readOnly ? null : { tool: 'fsck', args: ['-a', device] });
}

const FSCK_UNCORRECTED = 4;
/** Whether a device may be mounted after fsck. Above 4 the check itself failed, which says nothing of the disk. */
export function checked({ code, out, err }: ToolAnswer, device: string): Built<null> {
  if ((code & FSCK_UNCORRECTED) !== 0 && code < 8) {
    return refused(`'fsck' found errors on device ${device} but could not correct them: ${[out, err].join('').trim()}`);
  }
  return built(null);
}
