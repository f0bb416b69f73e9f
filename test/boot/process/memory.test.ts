import { realpathSync } from 'node:fs';
import { expect, it } from 'vitest';
import { constantRanges, HeapCollector, ownHeap, releaseMemory, unchangedRanges } from '../../../src/boot/process/memory.ts';

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
  expect(unchangedRanges({ start: 0x400000n, bytes: 0x7000n }, new Uint32Array(pagemap.buffer))).toEqual([
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

/** A process of which everything is set by hand. */
function fakeHeap(grownBytes?: number) {
  const state = { heapMiB: 50, cpuMs: 0, nowMs: 0, collected: 0, growthPercent: 0, leftMiB: 45 };
  const source = {
    usedBytes: () => state.heapMiB << 20,
    residentBytes: () => state.heapMiB << 20,
    cpuMs: () => state.cpuMs,
    monoMs: () => state.nowMs,
    collect: (how: 'everything' | 'quickly') => {
      state.collected += 1;
      state.heapMiB = how === 'everything' ? 40 : state.leftMiB;
    },
    limitGrowth: (percent: number) => {
      state.growthPercent = percent;
    },
  };
  const collector = new HeapCollector(source, grownBytes);
  /** Ten seconds later, of which so many milliseconds were work. */
  const look = (workMs: number, heapMiB?: number) => {
    state.nowMs += 10_000;
    state.cpuMs += workMs;
    if (heapMiB !== undefined) state.heapMiB = heapMiB;
    return collector.look();
  };
  const lookInBurst = (heapMiB: number) => {
    state.heapMiB = heapMiB;
    return collector.lookInBurst();
  };
  return { state, look, lookInBurst };
}

it('collects the heap once the start, or a burst of work, is over', () => {
  const { state, look } = fakeHeap();
  expect(look(6_000)).toBe(false);
  expect(look(200)).toBe(true);
  expect(look(9_000, 180)).toBe(false);
  for (let i = 0; i < 4; i++) expect(look(9_000)).toBe(false);
  expect(look(100)).toBe(true);
  expect(state.collected).toBe(2);
});

it('collects at rest what has grown by less where it is told so, once a minute', () => {
  const at = (grownBytes?: number) => {
    const { look } = fakeHeap(grownBytes);
    return [look(200), ...Array.from({ length: 12 }, () => look(100, 45))].map(Number).join('');
  };
  expect(at()).toBe('1000000000000');
  expect(at(4 << 20)).toBe('1000001000001');
});

it('collects the heap in the middle of a burst each time that it has grown by 16 MiB', () => {
  const { state, lookInBurst } = fakeHeap();
  expect([55, 60, 65].map(lookInBurst)).toEqual([false, false, false]);
  expect(lookInBurst(66)).toBe(true);
  expect([50, 60].map(lookInBurst)).toEqual([false, false]);
  // The pages of what was collected went back meanwhile.
  expect([42, 57, 58].map(lookInBurst)).toEqual([false, false, true]);
  expect(state.collected).toBe(2);
});

it('leaves a large heap to V8, which is told to collect it early, until it is small again', () => {
  const { state, lookInBurst } = fakeHeap();
  state.leftMiB = 64;
  expect(lookInBurst(80)).toBe(true);
  expect([64, 90, 200].map(lookInBurst)).toEqual([false, false, false]);
  expect(state).toMatchObject({ collected: 1, growthPercent: 30 });
  expect(lookInBurst(60)).toBe(false);
  expect(state).toMatchObject({ collected: 1, growthPercent: 200 });
  expect(lookInBurst(76)).toBe(true);
});

it('leaves a heap alone that has hardly grown, and collects no more often than every 60 s', () => {
  const { look } = fakeHeap();
  expect(look(0)).toBe(true);
  for (let i = 0; i < 20; i++) expect(look(0, 55)).toBe(false);
  expect(look(0, 57)).toBe(true);
  const later = Array.from({ length: 6 }, () => look(0, 90));
  expect(later).toEqual([false, false, false, false, false, true]);
});

it('asks V8 only where it was started so that it can be asked', () => {
  const heap = ownHeap(() => 0);
  expect(heap === null).toBe(globalThis.gc === undefined);
});
