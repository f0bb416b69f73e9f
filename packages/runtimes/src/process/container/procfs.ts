/** What /proc says about processes. Reads are synchronous: procfs answers from memory. */
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcStat {
  pid: number;
  /** One letter: `Z` is a zombie. */
  state: string;
  ppid: number;
  pgrp: number;
  session: number;
  /** Own user and system time, clock ticks. */
  ticks: number;
  /** Time of children that were waited for, clock ticks. */
  childTicks: number;
  /** Start, in clock ticks since boot: with the pid and the boot id, a process's identity. */
  startTicks: number;
  rssPages: number;
}

/** USER_HZ, fixed at 100 in the ABI of every Linux architecture Node runs on. */
export const TICK_NS = 10_000_000;

function parseStat(text: string): ProcStat | null {
  // The command name is in parentheses and may hold anything, so fields are counted from the last ')'.
  const close = text.lastIndexOf(')');
  if (close < 0) return null;
  const f = text.slice(close + 2).split(' ');
  const n = (field: number): number => Number(f[field - 3] ?? '0');
  return {
    pid: Number.parseInt(text, 10),
    state: f[0] ?? '',
    ppid: n(4),
    pgrp: n(5),
    session: n(6),
    ticks: n(14) + n(15),
    childTicks: n(16) + n(17),
    startTicks: n(22),
    rssPages: n(24),
  };
}

/** Null when there is no such process. */
export function readStat(pid: number): ProcStat | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return null;
  }
}

/** Every process of this PID namespace that was there during the call. */
export function scanProcesses(): ProcStat[] {
  const found: ProcStat[] = [];
  for (const name of readdirSync('/proc')) {
    const first = name.charCodeAt(0);
    if (first < 49 || first > 57) continue;
    const stat = readStat(Number(name));
    if (stat !== null) found.push(stat);
  }
  return found;
}

/** Whether the process was started with `NAME=value` in its environment; false where it may not be read. */
export function hasEnv(pid: number, entry: string): boolean {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`.includes(`\0${entry}\0`);
  } catch {
    return false;
  }
}

/** Its arguments as the kernel holds them, NULs and all: a forked process has its parent's until it executes something. */
export function argumentsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}

/** Whether it has a handler for the signal: the first process of a PID namespace hears of no other. */
export function catches(pid: number, signo: number): boolean {
  try {
    const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '0';
    return ((BigInt(`0x${mask}`) >> BigInt(signo - 1)) & 1n) === 1n;
  } catch {
    return false;
  }
}

export function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
}

export interface ProcId {
  pid: number;
  startTicks: number;
  bootId: string;
}
/** Same process, not a later one that was given its pid; a zombie is no longer alive. */
export function isAlive(id: ProcId, currentBootId: string): boolean {
  const stat = id.bootId === currentBootId ? readStat(id.pid) : null;
  return stat !== null && stat.startTicks === id.startTicks && stat.state !== 'Z' && stat.state !== 'X';
}

/** The shim's session and everything descended from the shim; without the shim itself and without zombies. */
export function familyOf(shimPid: number, all: readonly ProcStat[]): ProcStat[] {
  const members = new Set<number>([shimPid]);
  for (let size = 0; size !== members.size; ) {
    size = members.size;
    for (const p of all) if (p.session === shimPid || members.has(p.ppid)) members.add(p.pid);
  }
  return all.filter((p) => p.pid !== shimPid && p.state !== 'Z' && members.has(p.pid));
}

/**
 * The family, and whatever left it but still carries the container's mark in its environment. Only younger processes
 * than the shim can; their environments are read one by one, so this is for a container's end, not for statistics.
 * A shim that is gone has a family only while nobody else was given its pid (the kernel keeps the number of a session
 * that has members), and none in another boot.
 */
export function processesOf(shim: ProcId, mark: string, all: readonly ProcStat[]): ProcStat[] {
  if (shim.bootId !== bootId()) return [];
  const holder = all.find((p) => p.pid === shim.pid);
  const family = new Set(holder === undefined || holder.startTicks === shim.startTicks ? familyOf(shim.pid, all) : []);
  const strayed = (p: ProcStat): boolean =>
    p.startTicks >= shim.startTicks && p.pid !== shim.pid && p.pid !== process.pid && p.state !== 'Z' && hasEnv(p.pid, mark);
  return all.filter((p) => family.has(p) || strayed(p));
}

/** The process's first child that is not a zombie; null when there is none. */
export function firstChild(pid: number): number | null {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
    return children === ''
      ? null
      : (children
          .split(' ')
          .map(Number)
          .find((c) => (readStat(c)?.state ?? 'Z') !== 'Z') ?? null);
  } catch {
    // A kernel without that file: ask everybody for their parent instead.
    return scanProcesses().find((p) => p.ppid === pid && p.state !== 'Z')?.pid ?? null;
  }
}

/** Sends a signal; a process that is already gone is no error. Other errors (EPERM) are thrown. */
export function signal(pid: number, signo: number | NodeJS.Signals): boolean {
  try {
    process.kill(pid, signo);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
