/** Disks of the machine: their file systems and what they did, from mountinfo and /proc/diskstats. Pure. */
import { parseMountinfo } from '../../host/mountinfo.ts';
import type { FsRoom } from './stats.ts';

/** What a block device did since the start of the machine. */
export interface DiskIo {
  reads: number;
  readsMerged: number;
  sectorsRead: number;
  readSeconds: number;
  writes: number;
  writesMerged: number;
  sectorsWritten: number;
  writeSeconds: number;
  inProgress: number;
  ioSeconds: number;
  /** The time of each operation in progress, added up. */
  weightedSeconds: number;
}
export interface Disk {
  device: string;
  room?: FsRoom;
  io?: DiskIo;
}
export interface DiskMount {
  device: string;
  path: string;
}

const DISK_TYPES: ReadonlySet<string> = new Set(['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'f2fs']);
/** A node with more disks tells of these. */
const DISKS_MAX = 32;
const MS_PER_S = 1000;

/** Block devices with a mounted file system, each once. */
export function diskMounts(mountinfo: string): DiskMount[] {
  const found = new Map<string, DiskMount>();
  for (const { source, path, type, root } of parseMountinfo(mountinfo)) {
    if (!source.startsWith('/dev/') || !DISK_TYPES.has(type) || found.size >= DISKS_MAX) continue;
    // The root of the file system is seen before its parts that are mounted elsewhere.
    if (!found.has(source) || root === '/') found.set(source, { device: source, path });
  }
  return [...found.values()];
}

/** What the file system that a path is on was mounted from; undefined where no mount is above it. */
export function deviceAt(mountinfo: string, path: string): string | undefined {
  let best: { path: string; source: string } | undefined;
  for (const entry of parseMountinfo(mountinfo)) {
    const above = entry.path === '/' || entry.path === path || path.startsWith(`${entry.path}/`);
    // The later of two mounts at the same place hides the earlier one.
    if (above && entry.path.length >= (best?.path.length ?? 0)) best = entry;
  }
  return best?.source;
}

/** By the name below `/dev`, from `/proc/diskstats`. Times there are in milliseconds. */
export function diskIo(diskstats: string): ReadonlyMap<string, DiskIo> {
  const found = new Map<string, DiskIo>();
  for (const line of diskstats.split('\n')) {
    const [, , name, ...texts] = line.trim().split(/\s+/);
    const [reads, readsMerged, sectorsRead, readMs, writes, writesMerged, sectorsWritten, writeMs, inProgress, ioMs, weightedMs] =
      texts.map(Number);
    if (name === undefined || reads === undefined || weightedMs === undefined || texts.some((t) => !/^\d+$/.test(t))) continue;
    found.set(`/dev/${name}`, {
      ...{ reads, readsMerged: readsMerged ?? 0, sectorsRead: sectorsRead ?? 0, readSeconds: (readMs ?? 0) / MS_PER_S },
      ...{ writes: writes ?? 0, writesMerged: writesMerged ?? 0, sectorsWritten: sectorsWritten ?? 0 },
      ...{ writeSeconds: (writeMs ?? 0) / MS_PER_S, inProgress: inProgress ?? 0, ioSeconds: (ioMs ?? 0) / MS_PER_S },
      weightedSeconds: weightedMs / MS_PER_S,
    });
  }
  return found;
}
