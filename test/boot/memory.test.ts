import { realpathSync } from 'node:fs';
import { expect, it } from 'vitest';
import { codeRanges, releaseStartPages } from '../../src/boot/process/memory.ts';

const MAPS = [
  '00400000-00401000 r--p 00000000 fe:00 11 /opt/node',
  '00401000-00501000 r-xp 00001000 fe:00 11 /opt/node',
  '00501000-00601000 rw-p 00101000 fe:00 11 /opt/node',
  '7f0000000000-7f0000100000 r-xp 00000000 fe:00 12 /lib/libc.so.6',
  '7f0000200000-7f0000300000 r-xp 00000000 00:00 0 ',
].join('\n');

it('names only the executable part of the program itself', () => {
  expect(codeRanges(MAPS, '/opt/node')).toEqual([{ start: 0x401000n, bytes: 0x100000n }]);
  expect(codeRanges(MAPS, '/opt/other')).toEqual([]);
});

it('a process that gave its start pages back goes on running', () => {
  const given = releaseStartPages(realpathSync(process.execPath));
  expect(given).toBe(process.platform === 'linux');
  expect(JSON.parse(JSON.stringify({ still: ['here'] }))).toEqual({ still: ['here'] });
});
