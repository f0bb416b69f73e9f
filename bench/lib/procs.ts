/** CPU time and resident memory of a process and everything it started, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Linux reports times to user space in hundredths of a second whatever the kernel's own tick is. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

export interface Usage {
  pids: number[];
  /** User plus system time since start, of the processes alive now and the ended children they waited for. */
  cpuMs: number;
  rssBytes: number;
}

export interface Stat {
  pid: number;
  parent: number;
  /** Its own user and system time, and that of ended children it waited for. */
  ownMs: number;
  childrenMs: number;
  rssBytes: number;
}

/** Undefined once the process is gone. */
export function stat(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The name may hold blanks and brackets: count from its last bracket. Field 4 of stat(5) is index 1 here.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (n: number): number => Number(fields[n - 3] ?? 0);
  return {
    pid,
    parent: field(4),
    ownMs: (field(14) + field(15)) * TICK_MS,
    childrenMs: (field(16) + field(17)) * TICK_MS,
    rssBytes: field(24) * PAGE_BYTES,
  };
}

/** Sums `root` and its descendants. Zero pids when it is gone. */
export function usageOf(root: number): Usage {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => stat(Number(name)))
    .filter((s) => s !== undefined);
  const own = new Set([root]);
  for (let size = 0; size !== own.size; ) {
    size = own.size;
    for (const s of all) if (own.has(s.parent)) own.add(s.pid);
  }
  const mine = all.filter((s) => own.has(s.pid));
  return {
    pids: mine.map((s) => s.pid),
    cpuMs: mine.reduce((sum, s) => sum + s.ownMs + s.childrenMs, 0),
    rssBytes: mine.reduce((sum, s) => sum + s.rssBytes, 0),
  };
}

/** Processor time of a process by the names of its threads, milliseconds. A thread that ended is missing. */
export function threadsOf(pid: number): Map<string, number> {
  const out = new Map<string, number>();
  for (const tid of readdirSync(`/proc/${pid}/task`)) {
    const path = `/proc/${pid}/task/${tid}`;
    const [name, ms] = [readFileSync(`${path}/comm`, 'utf8').trim(), Number(readFileSync(`${path}/schedstat`, 'utf8').split(' ')[0]) / 1e6];
    out.set(name, (out.get(name) ?? 0) + ms);
  }
  return out;
}
