/** System calls of a process, its threads and what it starts, as `strace -c -f` counts them while it is attached. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type CallCounts = Readonly<Record<string, number>>;

const ATTACHED = /attached/;
const ATTACH_TIMEOUT_MS = 10_000;

/** Begins to count; the returned function ends it. */
export async function countSystemCalls(pid: number): Promise<() => Promise<CallCounts>> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-bench-strace-'));
  const file = join(dir, 'counts');
  const strace = spawn('strace', ['-c', '-f', '-o', file, '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise<void>((resolve) => strace.once('exit', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`strace did not attach to ${pid}`)), ATTACH_TIMEOUT_MS);
    let said = '';
    strace.once('error', reject);
    strace.once('exit', (code) => reject(new Error(`strace ended with ${code}: ${said}`)));
    strace.stderr.setEncoding('utf8').on('data', (part: string) => {
      said += part;
      if (!ATTACHED.test(said)) return;
      clearTimeout(late);
      resolve();
    });
  });
  return async () => {
    strace.kill('SIGINT');
    await ended;
    const text = readFileSync(file, 'utf8');
    rmSync(dir, { recursive: true });
    return parse(text);
  };
}

/** Columns: % time, seconds, usecs/call, calls, errors (may be empty), name. */
function parse(text: string): CallCounts {
  const rows = [...text.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$/gm)];
  return Object.fromEntries(rows.filter(([, , name]) => name !== 'total').map(([, calls, name = '']) => [name, Number(calls)]));
}

/** What calls are for, as far as their names say it. */
const GROUPS: readonly (readonly [string, RegExp])[] = [
  ['processes', /^(execve|clone|clone3|fork|vfork|wait4|waitid|pidfd_open|pidfd_send_signal|kill|tgkill)$/],
  ['waiting and waking', /^(futex|epoll_.*wait|poll|ppoll|nanosleep|clock_nanosleep|sched_yield|restart_syscall|timerfd_.*|pselect6)$/],
  ['memory', /^(mmap|munmap|mprotect|madvise|brk|mremap)$/],
  ['signals', /^(rt_sig.*|sigaltstack)$/],
  ['sockets', /^(socket|connect|accept4?|bind|listen|send.*|recv.*|setsockopt|getsockopt|getsockname|getpeername|shutdown|socketpair)$/],
  ['mounts', /^(mount|umount2?|move_mount|open_tree|fsopen|fsmount|fsconfig|mount_setattr|statmount|listmount)$/],
  ['reads and writes', /^(read|write|readv|writev|pread64|pwrite64)$/],
  [
    'files and folders',
    /^(open.*|close|.*stat.*|statx|access|faccessat2?|mkdir.*|rmdir|unlink.*|rename.*|getdents64|readlink.*|symlink.*|link.*|fchmod.*|fchown.*|chmod|chown|fsync|fdatasync|lseek|utimensat|getxattr|lgetxattr|fallocate|ftruncate|inotify.*)$/,
  ],
];

/** The same counts by {@link GROUPS}, the rest as `other`. */
export function byGroup(counts: CallCounts): Record<string, number> {
  const groups: Record<string, number> = {};
  for (const [name, calls] of Object.entries(counts)) {
    const group = GROUPS.find(([, names]) => names.test(name))?.[0] ?? 'other';
    groups[group] = (groups[group] ?? 0) + calls;
  }
  return groups;
}
