import { realpathSync } from 'node:fs';
import { expect, it } from 'vitest';
import { constantRanges, releaseMemory, unchangedRanges } from '../../src/boot/process/memory.ts';

const MAPS = [
  '00400000-00401000 r--p 00000000 fe:00 11 /opt/node',
  '00401000-00501000 r-xp 00001000 fe:00 11 /opt/node',
  '00501000-00601000 rw-p 00101000 fe:00 11 /opt/node',
  '7f0000000000-7f0000100000 r-xp 00000000 fe:00 12 /lib/libc.so.6',
  '7f0000200000-7f0000300000 r-xp 00000000 00:00 0 ',
].join('\n');

it('names only the parts of the program itself that nobody writes to', () => {
  expect(constantRanges(MAPS, '/opt/node')).toEqual([
    { start: 0x400000n, bytes: 0x1000n },
    { start: 0x401000n, bytes: 0x100000n },
  ]);
  expect(constantRanges(MAPS, '/opt/other')).toEqual([]);
});

it('leaves pages out that are a copy of their own', () => {
  const [absent, ofFile, copied, swapped] = [0n, (1n << 63n) | (1n << 61n), 1n << 63n, 1n << 62n];
  const pagemap = BigUint64Array.from([ofFile, absent, copied, ofFile, ofFile, swapped, absent]);
  expect(unchangedRanges({ start: 0x400000n, bytes: 0x7000n }, pagemap)).toEqual([
    { start: 0x400000n, bytes: 0x2000n },
    { start: 0x403000n, bytes: 0x2000n },
    { start: 0x406000n, bytes: 0x1000n },
  ]);
});

it('a process that gave its start pages back goes on running', () => {
  const given = releaseMemory(realpathSync(process.execPath));
  expect(given).toBe(process.platform === 'linux');
  expect(JSON.parse(JSON.stringify({ still: ['here'] }))).toEqual({ still: ['here'] });
});
