/** How the observer shares the processor with the kubelet. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism, constants, setPriority } from 'node:os';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';

/** Work of the kubelet, the runtime and the pods goes first. */
export const NICE_DEFAULT: number = constants.priority.PRIORITY_LOW;
export const NICE_MAX: number = constants.priority.PRIORITY_LOW;

/**
 * Linux keeps a priority for each thread, and a thread begins with that of the one that made it. Those that are there already are
 * looked up. A /proc of other process numbers is not asked: they would be those of other processes. Answers why it stays as it is;
 * null: it is set.
 */
export function setNice(nice: number): string | null {
  const isOwn = linkOf('/proc/self') === String(process.pid);
  for (const thread of isOwn ? readdirSync('/proc/self/task') : ['0']) {
    try {
      setPriority(Number(thread), nice);
    } catch (error) {
      // It ended meanwhile.
      if ((error as { info?: { code?: string } }).info?.code !== 'ESRCH') return messageOf(error);
    }
  }
  return null;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** How often it looks at itself, milliseconds: while it works, and at rest. */
const AT_WORK_MS = 25;
const AT_REST_MS = 250;
/** Of a core, since the look before: less is rest. */
const WORK = 1 / 10;
/** Of a core, for as long as others wait for one. */
const SHARE = 1 / 20;
/** Its start is waited for. */
const START_MS = 5_000;
/** Longest time that it stands still at once, milliseconds: its socket answers after it. */
const STILL_MS = 1_000;
/** Part of the time on a machine that is always busy, and how many milliseconds of it are saved up for a burst. */
const STILL_SHARE = 1 / 4;
const STILL_SAVED_MS = 20_000;

export interface Looked {
  monoMs: number;
  /** Processor time of this process. */
  cpuMs: number;
  /** Threads of the machine that run or want to, this one among them. */
  running: number;
}

/** For how long to stand still after what was done between two looks, milliseconds. `savedMs`: what it may. */
export function stillMs(before: Looked, now: Looked, { cores, savedMs }: { cores: number; savedMs: number }): number {
  const owedMs = now.running <= cores ? 0 : (now.cpuMs - before.cpuMs) / SHARE - (now.monoMs - before.monoMs);
  return Math.max(0, Math.min(owedMs, STILL_MS, savedMs));
}

function look(): Looked {
  const { user, system } = process.cpuUsage();
  const [, running = '0'] = / (\d+)\//.exec(readFileSync('/proc/loadavg', 'latin1')) ?? [];
  return { monoMs: performance.now(), cpuMs: (user + system) / 1000, running: Number(running) };
}

/**
 * A nice counts among the processes of one cgroup or session alone, and the weight of a pod among pods: the kubelet is in neither. So the
 * observer stands still by itself while others wait for a core. What came meanwhile it takes at once, which is less work, too. Answers
 * what ends it.
 */
export function giveWay(): () => void {
  if (process.platform !== 'linux') return () => undefined;
  const [cell, cores] = [new Int32Array(new SharedArrayBuffer(4)), availableParallelism()];
  let before: Looked;
  let savedMs = STILL_SAVED_MS;
  const again = (): void => {
    const now = look();
    savedMs = Math.min(savedMs + (now.monoMs - before.monoMs) * STILL_SHARE, STILL_SAVED_MS);
    const everyMs = now.cpuMs - before.cpuMs > (now.monoMs - before.monoMs) * WORK ? AT_WORK_MS : AT_REST_MS;
    const ms = stillMs(before, now, { cores, savedMs });
    if (ms > 0) Atomics.wait(cell, 0, 0, ms);
    savedMs -= ms;
    before = { ...now, monoMs: performance.now() };
    timer = setTimeout(again, everyMs);
  };
  let timer = setTimeout(() => {
    before = look();
    again();
  }, START_MS);
  return () => clearTimeout(timer);
}
