/** Which files of a cgroup say what, in either version of the kernel's interface (resources 1.3, 1.4). Pure. */
import { type GroupValues, NO_LIMIT } from './values.ts';

export interface GroupFile {
  /** Names the hierarchy of the first version; the second has one for all. */
  controller: string;
  file: string;
}
export interface GroupWrite extends GroupFile {
  value: string;
}
/** How the machine keeps cgroups. */
export interface GroupLayout {
  version: 1 | 2;
  controllers: readonly string[];
  /** Sizes that the kernel limits, as it writes them (`2MB`); none without its controller. */
  pageSizes: readonly string[];
}

const SHARES_MIN = 2;
const SHARES_MAX = 262_144;
const WEIGHT_MAX = 10_000;

/** The kernel's first weight of processor time as its second; 0: none is written. */
function cpuWeight(shares: number): number {
  if (shares <= 0) return 0;
  if (shares >= SHARES_MAX) return WEIGHT_MAX;
  return 1 + Math.floor(((Math.max(SHARES_MIN, shares) - SHARES_MIN) * (WEIGHT_MAX - 1)) / (SHARES_MAX - SHARES_MIN));
}

/** Backwards. */
function sharesOfWeight(weight: number): number {
  return SHARES_MIN + Math.floor(((weight - 1) * (SHARES_MAX - SHARES_MIN)) / (WEIGHT_MAX - 1));
}

/** In the order in which they are written: a period before its quota. */
export function groupWrites(values: GroupValues, { version, controllers }: Pick<GroupLayout, 'version' | 'controllers'>): GroupWrite[] {
  const writes = version === 1 ? first(values) : second(values);
  return writes.filter((w) => controllers.includes(w.controller));
}

function first({ cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes, pids, hugePages }: GroupValues): GroupWrite[] {
  return [
    ...some('cpu', 'cpu.shares', cpuShares),
    ...some('cpu', 'cpu.cfs_period_us', cpuPeriodUs),
    ...some('cpu', 'cpu.cfs_quota_us', cpuQuotaUs),
    ...some('memory', 'memory.limit_in_bytes', memoryBytes),
    ...some('pids', 'pids.max', pids, 'max'),
    ...Object.entries(hugePages ?? {}).map(([size, bytes]) => write('hugetlb', `hugetlb.${size}.limit_in_bytes`, String(bytes))),
  ];
}

function second({
  cpuShares = 0,
  cpuQuotaUs,
  cpuPeriodUs,
  memoryBytes,
  memoryMinBytes,
  memoryLowBytes,
  pids,
  hugePages,
}: GroupValues): GroupWrite[] {
  const weight = cpuWeight(cpuShares);
  const quota = cpuQuotaUs === NO_LIMIT ? 'max' : String(cpuQuotaUs);
  return [
    ...(weight === 0 ? [] : [write('cpu', 'cpu.weight', String(weight))]),
    ...(cpuQuotaUs === undefined ? [] : [write('cpu', 'cpu.max', cpuPeriodUs === undefined ? quota : `${quota} ${cpuPeriodUs}`)]),
    ...some('memory', 'memory.max', memoryBytes, 'max'),
    ...(memoryMinBytes === undefined ? [] : [write('memory', 'memory.min', String(memoryMinBytes))]),
    ...(memoryLowBytes === undefined ? [] : [write('memory', 'memory.low', String(memoryLowBytes))]),
    ...some('pids', 'pids.max', pids, 'max'),
    ...Object.entries(hugePages ?? {}).map(([size, bytes]) => write('hugetlb', `hugetlb.${size}.max`, String(bytes))),
  ];
}

function write(controller: string, file: string, value: string): GroupWrite {
  return { controller, file, value };
}

/** 0 is no limit that anything could live with, and is not written. */
function some(controller: string, file: string, value: number | undefined, none = String(NO_LIMIT)): GroupWrite[] {
  if (value === undefined || value === 0) return [];
  return [write(controller, file, value === NO_LIMIT ? none : String(value))];
}

/** What the processes of a group hold of memory now. */
export function usageFile(version: 1 | 2): GroupFile {
  return { controller: 'memory', file: version === 1 ? 'memory.usage_in_bytes' : 'memory.current' };
}

/** Files of a group that tell its present values: those that a resize may change. */
export function valueFiles(version: 1 | 2): readonly GroupFile[] {
  return version === 1
    ? [
        { controller: 'cpu', file: 'cpu.shares' },
        { controller: 'cpu', file: 'cpu.cfs_quota_us' },
        { controller: 'memory', file: 'memory.limit_in_bytes' },
      ]
    : [
        { controller: 'cpu', file: 'cpu.weight' },
        { controller: 'cpu', file: 'cpu.max' },
        { controller: 'memory', file: 'memory.max' },
      ];
}

/** The first version's word for "no limit" of memory is the largest number of whole pages. */
const UNLIMITED_BYTES = 2 ** 62;

/** Values in the texts of {@link valueFiles}, in their order. What cannot be read is not limited. */
export function presentValues(version: 1 | 2, [weight = '', quota = '', memory = '']: readonly string[]): GroupValues {
  const number = (text: string): number => (/^-?\d+$/.test(text.trim()) ? Number(text) : NO_LIMIT);
  const [shares, bytes] = [number(weight), number(memory)];
  const quotaUs = number(quota.trim().split(' ')[0] ?? '');
  return {
    cpuShares: version === 1 ? Math.max(SHARES_MIN, shares) : sharesOfWeight(Math.max(1, shares)),
    cpuQuotaUs: quotaUs <= 0 ? NO_LIMIT : quotaUs,
    memoryBytes: bytes < 0 || bytes >= UNLIMITED_BYTES ? NO_LIMIT : bytes,
  };
}
