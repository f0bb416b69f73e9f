/** Processes of a cgroup, from its `cgroup.procs` and from /proc. Pure. */

export interface GroupTasks {
  processes?: number;
  threads?: number;
  /** Open files of all processes, sockets among them. */
  descriptors?: number;
  sockets?: number;
  /** Soft limit of the first process; -1: unlimited. */
  openFilesMax?: number;
}

/** Reads `cgroup.procs`. A process of another pid namespace is listed as 0. */
export function processIds(procs: string): number[] {
  return procs.split('\n').flatMap((line) => (/^[1-9]\d*$/.test(line) ? [Number(line)] : []));
}

/** Reads `/proc/PID/limits`: how many files a process may have open. */
export function openFilesMax(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+|unlimited)\s/m.exec(limits)?.[1];
  if (soft === undefined) return undefined;
  return soft === 'unlimited' ? -1 : Number(soft);
}

/** Reads `/proc/PID/status`: no more files than this are open. 0: not told. */
export function openFileSlots(status: string): number {
  return Number(/^FDSize:\s+(\d+)$/m.exec(status)?.[1] ?? 0);
}

/** A link below `/proc/PID/fd` leads to a socket. */
export function isSocket(link: string): boolean {
  return link.startsWith('socket:');
}
