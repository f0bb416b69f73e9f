/** What the kernel offers to hold memory by, from the files that say so. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hostMemoryControl } from '../../../src/boot/dependencies/machine/memoryControl.ts';
import { tempDir } from '../helpers.ts';

const MEMINFO = 'MemTotal:        8000000 kB\nSwapCached:            0 kB\nSwapTotal:       2097148 kB\nSwapFree:        2097148 kB\n';

function host(files: Record<string, string>) {
  using dir = tempDir();
  for (const [path, text] of Object.entries({ 'proc/meminfo': MEMINFO, ...files })) {
    mkdirSync(dirname(join(dir.path, path)), { recursive: true });
    writeFileSync(join(dir.path, path), text);
  }
  return hostMemoryControl({ root: dir.path });
}
const V2 = 'sys/fs/cgroup/cgroup.controllers';
const SWAP = { swapBytes: 2_097_148 * 1024 };

describe('what a host offers to hold memory by', () => {
  it('is cgroup v2 where the root has its list of controllers, and swap where this process can be kept from it', () => {
    const own = { [V2]: 'cpu memory', 'proc/self/cgroup': '0::/system.slice/actorlet.service\n' };
    expect(host(own)).toEqual({ cgroupVersion: 2, swapController: false, ...SWAP });
    const counted = 'sys/fs/cgroup/system.slice/actorlet.service/memory.swap.max';
    expect(host({ ...own, [counted]: 'max' })).toEqual({ cgroupVersion: 2, swapController: true, ...SWAP });
  });

  it('is asked of any group where this process is in the root, which has no such file', () => {
    const root = { [V2]: 'cpu memory', 'proc/self/cgroup': '0::/\n' };
    expect(host(root).swapController).toBe(false);
    expect(host({ ...root, 'sys/fs/cgroup/init.scope/memory.max': 'max' }).swapController).toBe(false);
    expect(host({ ...root, 'sys/fs/cgroup/init.scope/memory.swap.max': 'max' }).swapController).toBe(true);
  });

  it('is cgroup v1 else, where a file of memory and swap together says the same', () => {
    expect(host({ 'sys/fs/cgroup/memory/memory.limit_in_bytes': '1' })).toEqual({ cgroupVersion: 1, swapController: false, ...SWAP });
    expect(host({ 'sys/fs/cgroup/memory/memory.memsw.limit_in_bytes': '1' })).toEqual({ cgroupVersion: 1, swapController: true, ...SWAP });
  });

  it('is nothing where nothing can be read', () => {
    expect(host({ 'proc/meminfo': '' })).toEqual({ cgroupVersion: 1, swapController: false, swapBytes: 0 });
  });
});
