/** Figures as the summary API writes them. */
import type { UInt64Value } from '../wire/criStats.ts';

/** A figure, or nothing where the runtime has none. */
export function figure(value: UInt64Value | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined;
  const n = Number(value.value);
  return Number.isFinite(n) ? n : undefined;
}

/** An object of these fields without those that are unknown. */
export function known<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined)) as T;
}

export function isoOfNanos(nanos: bigint): string {
  const seconds = new Date(Number(nanos / 1_000_000n)).toISOString();
  return `${seconds.slice(0, 19)}.${String(nanos % 1_000_000_000n).padStart(9, '0')}Z`;
}

export interface FsStats {
  time: string;
  availableBytes?: number;
  capacityBytes?: number;
  usedBytes?: number;
  inodesFree?: number;
  inodes?: number;
  inodesUsed?: number;
}
