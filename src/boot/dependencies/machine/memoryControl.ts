/** What the kernel offers to hold memory by: which cgroups there are, whether they count swap, and how much of that there is. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { MemoryControlOfHost } from '../../../ports/ports.ts';

const CGROUPS = '/sys/fs/cgroup';
const SWAP_MAX = 'memory.swap.max';
const KIB = 1024;

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** The root group has no such file: this process's own is asked, and where that is the root any group below it. */
function countsSwap(root: string): boolean {
  const own = /^0::(\/.*)$/m.exec(textOf(`${root}/proc/self/cgroup`))?.[1] ?? '/';
  if (own !== '/') return existsSync(`${root}${CGROUPS}${own}/${SWAP_MAX}`);
  try {
    return readdirSync(`${root}${CGROUPS}`, { withFileTypes: true }).some(
      (entry) => entry.isDirectory() && existsSync(`${root}${CGROUPS}/${entry.name}/${SWAP_MAX}`),
    );
  } catch {
    return false;
  }
}

/** These files answer at once. What cannot be read counts as not there. `root` is for tests. */
export function hostMemoryControl({ root = '' }: { root?: string } = {}): MemoryControlOfHost {
  const v2 = existsSync(`${root}${CGROUPS}/cgroup.controllers`);
  const kib = Number(/^SwapTotal:\s+(\d+) kB$/m.exec(textOf(`${root}/proc/meminfo`))?.[1] ?? 0);
  return {
    cgroupVersion: v2 ? 2 : 1,
    swapController: v2 ? countsSwap(root) : existsSync(`${root}${CGROUPS}/memory/memory.memsw.limit_in_bytes`),
    swapBytes: kib * KIB,
  };
}
