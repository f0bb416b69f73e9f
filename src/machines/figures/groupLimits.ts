/** The limits of a cgroup, from the kernel's files of either version. Pure. */
import { known } from './figure.ts';

/** Beyond this a limit of memory is none. */
export const UNLIMITED = 2 ** 62;

/** In bytes; 0: there is no limit, as in the reference. A file that is not there leaves its field out. */
export interface GroupLimits {
  cpuPeriodUs?: number;
  /** Null: processor time is not limited. */
  cpuQuotaUs?: number | null;
  /** In the units of the first version. */
  cpuShares?: number;
  memoryBytes?: number;
  memoryReservedBytes?: number;
  /** The first version counts memory and swap together, the second swap alone. */
  swapBytes?: number;
  /** Swap alone; null: as much as there is. */
  swapRoomBytes?: number | null;
  threads?: number;
}

/** Files of limits by controller, in the first version. */
export const V1_LIMITS = {
  cpu: ['cpu.shares', 'cpu.cfs_period_us', 'cpu.cfs_quota_us'],
  memory: ['memory.limit_in_bytes', 'memory.soft_limit_in_bytes', 'memory.memsw.limit_in_bytes'],
  pids: ['pids.max'],
} as const;
export const V2_LIMITS = ['cpu.max', 'cpu.weight', 'memory.max', 'memory.min', 'memory.swap.max', 'pids.max'] as const;

/** @param text Of the file of this name; '' where it could not be read. */
export function groupLimits(text: (name: string) => string): GroupLimits {
  const of = (...names: readonly string[]): number | undefined => {
    for (const name of names) {
      const limit = limitOf(text(name));
      if (limit !== undefined) return limit;
    }
    return undefined;
  };
  const [, quota, period] = /^(max|\d+) (\d+)\s*$/.exec(text('cpu.max')) ?? [];
  const memoryBytes = of('memory.limit_in_bytes', 'memory.max');
  return known<GroupLimits>({
    cpuPeriodUs: period === undefined ? of('cpu.cfs_period_us') : Number(period),
    cpuQuotaUs: quotaOf(quota ?? text('cpu.cfs_quota_us').trim()),
    cpuShares: of('cpu.shares') ?? sharesOf(of('cpu.weight')),
    memoryBytes,
    // A kernel that does not count swap has no file for it.
    memoryReservedBytes: of('memory.soft_limit_in_bytes', 'memory.min') ?? (memoryBytes === undefined ? undefined : 0),
    swapBytes: of('memory.memsw.limit_in_bytes', 'memory.swap.max') ?? (memoryBytes === undefined ? undefined : 0),
    swapRoomBytes: swapRoom(text, memoryBytes),
    threads: of('pids.max'),
  });
}

function limitOf(text: string): number | undefined {
  const value = text.trim();
  if (value === 'max') return 0;
  if (!/^\d+$/.test(value)) return undefined;
  return Number(value) >= UNLIMITED ? 0 : Number(value);
}

function swapRoom(text: (name: string) => string, memoryBytes: number | undefined): number | null | undefined {
  const alone = text('memory.swap.max').trim();
  if (alone !== '') return limitOf(alone) === 0 && alone !== '0' ? null : limitOf(alone);
  const both = limitOf(text('memory.memsw.limit_in_bytes'));
  if (both === undefined || memoryBytes === undefined) return undefined;
  return both === 0 || memoryBytes === 0 ? null : Math.max(0, both - memoryBytes);
}

function quotaOf(value: string): number | null | undefined {
  if (value === 'max' || value === '-1') return null;
  return /^\d+$/.test(value) ? Number(value) : undefined;
}

/** From 1..10000 to 2..262144, the linear mapping by which runtimes turn shares into weights. */
function sharesOf(weight: number | undefined): number | undefined {
  return weight === undefined || weight < 1 ? undefined : 2 + Math.floor(((weight - 1) * 262_142) / 9_999);
}
