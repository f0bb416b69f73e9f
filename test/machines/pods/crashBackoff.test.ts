/** Waits between exits and starts. */
import { describe, expect, it } from 'vitest';
import type { CrashBackoffEntry } from '../../../src/machines/pod/runtime/seen.ts';
import { type CheckBackoffInput, checkBackoff } from '../../../src/machines/pods/workers/container/crashBackoff.ts';
import { container, rc, T0_MS } from './fixtures.ts';

const S = 1000;
const base = { baseMs: 10 * S, maxMs: 300 * S };

/** Lives of a container that runs `runMs` each time; returns the waits after each exit. `forget`: the daemon restarts then. */
function waits(count: number, runMs: number, forget: (life: number) => boolean = () => false): number[] {
  let entry: CrashBackoffEntry | undefined;
  let now = T0_MS;
  const result: number[] = [];
  for (let life = 0; life < count; life += 1) {
    const startedAtMs = now;
    now += runMs;
    const finishedAtMs = now;
    if (forget(life)) entry = undefined;
    const at = (nowWallMs: number): CheckBackoffInput => ({
      ...base,
      entry,
      newestExited: { startedAtMs, finishedAtMs, hash: '' },
      restartCount: life,
      nowWallMs,
      nowMonoMs: nowWallMs - T0_MS,
    });
    let verdict = checkBackoff(at(now));
    if (!verdict.allowed) {
      entry = verdict.entry;
      const early = checkBackoff(at(verdict.retryAtWallMs - 1));
      expect(early.allowed).toBe(false);
      now = verdict.retryAtWallMs;
      verdict = checkBackoff(at(now));
    }
    if (!verdict.allowed) throw new Error('refused at the time it named');
    entry = verdict.next;
    result.push((now - finishedAtMs) / S);
  }
  return result;
}

describe('crash back-off', () => {
  it('trap 13: restarts at once after the first exit, then waits 10, 20, 40, 80, 160, 300, 300 s', () => {
    expect(waits(9, 100)).toEqual([0, 10, 20, 40, 80, 160, 300, 300, 300]);
  });

  it('trap 15: a run of 9 minutes continues the series, one of more than 10 minutes begins it anew', () => {
    expect(waits(4, 540 * S)).toEqual([0, 10, 20, 40]);
    expect(waits(4, 601 * S)).toEqual([0, 0, 0, 0]);
  });

  it('is not lost when the daemon restarts: the next wait is what it would have been', () => {
    expect(waits(7, 100, (life) => life === 4)).toEqual([0, 10, 20, 40, 80, 160, 300]);
    expect(waits(7, 100, () => true)).toEqual([0, 10, 20, 40, 80, 160, 300]);
    expect(waits(3, 700 * S, () => true)).toEqual([0, 0, 0]);
  });

  it('trap 16: a changed image starts afresh even when the entry is missing', () => {
    const input = {
      ...base,
      entry: undefined,
      newestExited: rc('web', 'exited', { n: 5 }),
      restartCount: 4,
      nowWallMs: T0_MS + 6000,
      nowMonoMs: 6000,
    };
    expect(checkBackoff({ ...input, container: container('web') }).allowed).toBe(false);
    const changed = checkBackoff({ ...input, container: container('web', { image: 'example.org/web:v2' }) });
    expect(changed).toMatchObject({ allowed: true, next: { delayMs: 10 * S } });
  });

  it('a wall clock set back by an hour costs at most one wait', () => {
    const nowWallMs = T0_MS - 3600 * S;
    const entry = { delayMs: 20 * S, updatedAtMonoMs: 1000 * S, updatedAtWallMs: T0_MS };
    const newestExited = { startedAtMs: T0_MS, finishedAtMs: T0_MS + 5 * S, hash: '' };
    const at = (nowMonoMs: number) => checkBackoff({ ...base, entry, newestExited, restartCount: 2, nowWallMs, nowMonoMs });
    expect(at(1005 * S)).toMatchObject({ allowed: false, retryAtWallMs: nowWallMs + 20 * S });
    expect(at(1025 * S)).toMatchObject({ allowed: true, next: { delayMs: 40 * S } });
  });

  it('a clock that went ahead and back within a run costs at most one wait, however long the run seems', () => {
    // Started before the clock went ahead by an hour, ended meanwhile; then the clock was put right.
    const newestExited = { startedAtMs: T0_MS, finishedAtMs: T0_MS + 3600 * S, hash: '' };
    let entry: CrashBackoffEntry = { delayMs: 20 * S, updatedAtMonoMs: 1000 * S, updatedAtWallMs: T0_MS + 3590 * S };
    const at = (nowMonoMs: number) =>
      checkBackoff({ ...base, entry, newestExited, restartCount: 2, nowWallMs: T0_MS + nowMonoMs - 1000 * S, nowMonoMs });
    const first = at(1030 * S);
    if (first.allowed) throw new Error('it may start at once');
    entry = first.entry;
    expect(at(1049 * S).allowed).toBe(false);
    expect(at(1050 * S).allowed).toBe(true);
  });

  it('an exit of the future is no proof of a long and healthy run', () => {
    // The clock was put right by an hour since the last advance; the runtime's stamps are still those of before.
    const entry: CrashBackoffEntry = { delayMs: 20 * S, updatedAtMonoMs: 1000 * S, updatedAtWallMs: T0_MS };
    const newestExited = { startedAtMs: T0_MS + 3600 * S, finishedAtMs: T0_MS + 3604 * S, hash: '' };
    const at = (nowMonoMs: number) =>
      checkBackoff({ ...base, entry, newestExited, restartCount: 2, nowWallMs: T0_MS + nowMonoMs - 1000 * S, nowMonoMs });
    expect(at(1005 * S)).toMatchObject({ allowed: false, delayMs: 20 * S });
    expect(at(1025 * S)).toMatchObject({ allowed: true, next: { delayMs: 40 * S } });
  });

  /** Restarts within that time of a container that ends at once, where the runtime's clock differs by so much. */
  function restarts(withinMs: number, aheadMs: number, looksEveryMs = 1000): number {
    let entry: CrashBackoffEntry | undefined;
    let startedMono = 0;
    let count = 0;
    for (let mono = 100; mono < withinMs; mono += looksEveryMs) {
      const stamp = T0_MS + startedMono + aheadMs;
      const verdict = checkBackoff({
        ...base,
        entry,
        newestExited: { startedAtMs: stamp, finishedAtMs: stamp + 50, hash: '' },
        restartCount: count,
        nowWallMs: T0_MS + mono,
        nowMonoMs: mono,
        rememberedSinceWallMs: T0_MS - S,
      });
      entry = verdict.allowed ? verdict.next : verdict.entry;
      if (!verdict.allowed) continue;
      count += 1;
      startedMono = mono;
    }
    return count;
  }
  it.each([0, -5 * 3600 * S, -60 * S, -3 * S, 60 * S, 5 * 3600 * S])('a runtime whose clock is %d ms off changes no wait', (aheadMs) => {
    expect(restarts(330 * S, aheadMs)).toBe(restarts(330 * S, 0));
    expect(restarts(330 * S, 0)).toBe(6);
  });

  it('a wall clock set forth by an hour lifts no wait', () => {
    const entry = { delayMs: 160 * S, updatedAtMonoMs: 1000 * S, updatedAtWallMs: T0_MS };
    const newestExited = { startedAtMs: T0_MS, finishedAtMs: T0_MS + 5 * S, hash: '' };
    const at = (nowMonoMs: number) =>
      checkBackoff({ ...base, entry, newestExited, restartCount: 5, nowWallMs: T0_MS + 3600 * S + nowMonoMs - 1000 * S, nowMonoMs });
    expect(at(1010 * S)).toMatchObject({ allowed: false, delayMs: 160 * S });
    expect(at(1165 * S).allowed).toBe(true);
  });
});
