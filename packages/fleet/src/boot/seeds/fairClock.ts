/**
 * A clock that does not count the time for which this process or one that it started waited for a processor. Faults and deadlines that go by
 * it meet the controller at the same moments of its work on a busy machine: the run takes longer, and comes to the same.
 */
import { readdirSync, readFileSync } from 'node:fs';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

/** How often is looked at most: a look reads a file of each thread. */
const LOOK_EVERY_MS = 50;
/** It never stands still. */
const SPEED_MIN = 0.02;
const NS_PER_MS = 1e6;

/** `waitedMs`: for how long these processes have waited so far. */
export function fairClock(clock: Clock, waitedMs: () => number = waitedHere()): Clock {
  let [realMs, fairMs, waited] = [clock.monoMs(), 0, waitedMs()];
  const now = (): number => {
    const passed = clock.monoMs() - realMs;
    if (passed < LOOK_EVERY_MS) return fairMs;
    const sum = waitedMs();
    fairMs += Math.max(passed * SPEED_MIN, passed - (sum - waited));
    realMs += passed;
    waited = sum;
    return fairMs;
  };
  return {
    wallMs: () => clock.wallMs(),
    monoMs: now,
    setTimeout(fn, ms) {
      const due = now() + ms;
      const timer: { id: unknown } = { id: undefined };
      const look = (): void => {
        const left = due - now();
        if (left > 0) timer.id = clock.setTimeout(look, Math.max(left, LOOK_EVERY_MS));
        else fn();
      };
      timer.id = clock.setTimeout(look, ms);
      return timer;
    },
    clearTimeout(timer) {
      if (typeof timer === 'object' && timer !== null && 'id' in timer) clock.clearTimeout(timer.id);
    },
  };
}

/** Of this process and all below it. Those of a process count that its slowest thread waited; a system without such files has none. */
function waitedHere(): () => number {
  let threads = new Map<string, number>();
  let sum = 0;
  return () => {
    const seen = new Map<string, number>();
    const processes = ['self'];
    for (const pid of processes) {
      let longest = 0;
      for (const thread of threadsOf(pid)) {
        const waited = Number(textOf(`${thread}/schedstat`).split(' ')[1] ?? 0) / NS_PER_MS;
        // What it waited before it was first seen is of no interest.
        longest = Math.max(longest, waited - (threads.get(thread) ?? waited));
        seen.set(thread, waited);
        processes.push(
          ...textOf(`${thread}/children`)
            .split(' ')
            .filter((child) => /^\d+$/.test(child)),
        );
      }
      sum += longest;
    }
    threads = seen;
    return sum;
  };
}

function threadsOf(pid: string): string[] {
  const dir = `/proc/${pid}/task`;
  try {
    return readdirSync(dir).map((thread) => `${dir}/${thread}`);
  } catch {
    // It has ended.
    return [];
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
