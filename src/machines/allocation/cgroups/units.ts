/** What systemd is told of a slice (resources 1.4): properties of its unit beside what stands in the group's files. Pure. */
import type { GroupWrite } from './files.ts';

/** D-Bus signature and value. */
type UnitValue =
  | { type: 's'; value: string }
  | { type: 'b'; value: boolean }
  | { type: 't'; value: bigint }
  | { type: 'as'; value: readonly string[] }
  | { type: 'ay'; value: readonly number[] };
export type UnitProperty = readonly [name: string, value: UnitValue];

/** systemd's word for "no limit": the largest of its numbers. */
const INFINITY = (1n << 64n) - 1n;
/** systemd counts quotas in steps of 1 % of a processor; less would become nothing. */
const QUOTA_STEP_US = 10_000n;
const SECOND_US = 1_000_000n;
/** Where the kernel is told no period. */
const DEFAULT_PERIOD_US = 100_000n;
/** systemd has CPUQuotaPeriodUSec since then. */
const QUOTA_PERIOD_SINCE = 242;
const AMOUNT = /^(?:-?\d{1,20}|max)$/;

/** Property of each file that holds one amount. */
const AMOUNTS: Readonly<Record<string, string>> = {
  'cpu.shares': 'CPUShares',
  'cpu.weight': 'CPUWeight',
  'memory.limit_in_bytes': 'MemoryLimit',
  'memory.max': 'MemoryMax',
  'memory.high': 'MemoryHigh',
  'memory.low': 'MemoryLow',
  'memory.min': 'MemoryMin',
  'memory.swap.max': 'MemorySwapMax',
  'pids.max': 'TasksMax',
};

/**
 * Every limit that systemd knows: it would take one that stands in the files alone away at its next reload. Processors
 * (`AllowedCPUs`) are the containers' alone.
 */
export function unitProperties(writes: readonly GroupWrite[], systemdVersion: number): UnitProperty[] {
  const amounts = writes.flatMap(({ file, value }): UnitProperty[] => {
    const name = AMOUNTS[file];
    return name === undefined || !AMOUNT.test(value) ? [] : [[name, { type: 't', value: amountOf(value) }]];
  });
  return [...amounts, ...quota(writes, systemdVersion)];
}

function quota(writes: readonly GroupWrite[], systemdVersion: number): UnitProperty[] {
  const find = (file: string): string | undefined => writes.find((w) => w.file === file)?.value;
  const [limit, v2Period] = find('cpu.max')?.split(' ') ?? [find('cpu.cfs_quota_us')];
  if (limit === undefined || !AMOUNT.test(limit)) return [];
  const period = v2Period ?? find('cpu.cfs_period_us');
  const periodUs = period === undefined ? DEFAULT_PERIOD_US : BigInt(period);
  const quotaUs = amountOf(limit);
  const perSecond = quotaUs === INFINITY ? INFINITY : roundUp((quotaUs * SECOND_US) / periodUs);
  return [
    ['CPUQuotaPerSecUSec', { type: 't', value: perSecond }],
    ...(period === undefined || systemdVersion < QUOTA_PERIOD_SINCE
      ? []
      : ([['CPUQuotaPeriodUSec', { type: 't', value: periodUs }]] satisfies UnitProperty[])),
  ];
}

function amountOf(text: string): bigint {
  const amount = text === 'max' ? -1n : BigInt(text);
  return amount < 0n ? INFINITY : amount;
}

function roundUp(us: bigint): bigint {
  return ((us + QUOTA_STEP_US - 1n) / QUOTA_STEP_US) * QUOTA_STEP_US;
}

/** Properties of a new slice. Its controllers are on, whatever limits it gets. Slices cannot be delegated: scopes in them are. */
export function newSlice(slice: string, version: 1 | 2): UnitProperty[] {
  const on: UnitValue = { type: 'b', value: true };
  return [
    ['Description', { type: 's', value: `Kubernetes pods: ${slice}` }],
    ['Wants', { type: 'as', value: [parentSlice(slice)] }],
    ['DefaultDependencies', { type: 'b', value: false }],
    ['MemoryAccounting', on],
    ['CPUAccounting', on],
    [version === 1 ? 'BlockIOAccounting' : 'IOAccounting', on],
    ['TasksAccounting', on],
  ];
}

/** `a-b.slice` is in `a.slice`, `a.slice` in `-.slice`. */
export function parentSlice(slice: string): string {
  const at = slice.lastIndexOf('-');
  return at <= 0 ? '-.slice' : `${slice.slice(0, at)}.slice`;
}
