/** How mounts are taken away, and which of them may have a server that does not answer. Pure. */

import type { MountEntry } from './mountinfo.ts';

/**
 * `plain`: umount(8) as it is. `lazy`: gone from the mount table at once; the kernel cleans up when nothing uses it.
 * `forced`: lazy, and calls that wait for its server fail, those of other mounts of the same export too.
 */
export type UnmountWay = 'plain' | 'lazy' | 'forced';
interface UnmountStep {
  way: UnmountWay;
  timeoutMs: number;
}

/** A local unmount takes milliseconds, and minutes where much has to be written. */
const LOCAL: readonly UnmountStep[] = [{ way: 'plain', timeoutMs: 60_000 }];
/**
 * Together less than the 30 s in which a pod of a dead server has to be gone. Lazy comes before forced: pods that have the
 * same export mounted share its connection, and force would fail what they wait for.
 */
const NETWORK: readonly UnmountStep[] = [
  { way: 'plain', timeoutMs: 10_000 },
  { way: 'lazy', timeoutMs: 5_000 },
  { way: 'forced', timeoutMs: 5_000 },
];

/** A file system that asks somebody else: a server, or a program that serves it (FUSE). */
const ASKING = /^(?:nfs4?|cifs|smb3?|smbfs|ceph|glusterfs|lustre|gpfs|beegfs|afs|9p|virtiofs|fuse(?:\..+)?)$/;

export function mayHang(type: string): boolean {
  return ASKING.test(type);
}

/** Each is tried when the one before it did not take the mount away. */
export function unmountSteps(type: string): readonly UnmountStep[] {
  return mayHang(type) ? NETWORK : LOCAL;
}

/** Pods stop a server's file system for good only where nobody else on the machine has it. */
export interface Severable {
  /** A mount of it. */
  path: string;
  device: string;
}

/**
 * NFS of which each mount lies below one of `dirs`. Pods with the same export share one file system, which is severed when
 * the last of them asks. `below`: mounts of the folder in which `dirs` are; `all`: of the whole machine.
 */
export function severable(o: { dirs: readonly string[]; below: readonly MountEntry[]; all: readonly MountEntry[] }): Severable[] {
  const found = new Map<string, Severable & { count: number }>();
  for (const { path, type, device } of o.below) {
    if (!/^nfs4?$/.test(type) || !o.dirs.some((dir) => path.startsWith(`${dir}/`))) continue;
    found.set(device, { path, device, count: (found.get(device)?.count ?? 0) + 1 });
  }
  const total = (device: string): number => o.all.filter((e) => e.device === device).length;
  return [...found.values()].filter((f) => f.count === total(f.device)).map(({ path, device }) => ({ path, device }));
}

/** What has to answer for a path to answer: a server, or '' for the disks of this node. The deepest mount above the path says it. */
export function serverOf(entries: readonly MountEntry[], path: string): string {
  return serversIn(entries)(path);
}
/** The same for many paths of one table: a node can have thousands of each. */
export function serversIn(entries: readonly MountEntry[]): (path: string) => string {
  // The last of mounts one over another is seen.
  const mounts = new Map(entries.map((e) => [e.path, e]));
  return (path) => {
    for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const found = mounts.get(at);
      if (found !== undefined) return serverOfMount(found);
    }
    return serverOfMount(mounts.get('/'));
  };
}
function serverOfMount(mount: MountEntry | undefined): string {
  return mount === undefined || !mayHang(mount.type) ? '' : serverOfSource(mount.source);
}

/** The server in `server:/path`, `[fd00::1]:/path` or `//server/share`; all of another source. */
export function serverOfSource(source: string): string {
  return /^(?:\/\/)?(\[[^\]]*\]|[^:/]+)/.exec(source)?.[1] ?? source;
}
