import { describe, expect, it } from 'vitest';
import { addCrashes, backoffDelayMs, judgeExit, NO_HISTORY, type RestartRules } from '../../src/machines/supervision/restartPolicy.ts';

const series = (b: Parameters<typeof backoffDelayMs>[0], n: number, random = 0): number[] =>
  Array.from({ length: n }, (_, i) => backoffDelayMs(b, i, random));

describe('the back-off', () => {
  it('doubles from its minimum and stays at its maximum, however long the row', () => {
    expect(series({ minMs: 10_000, maxMs: 300_000, factor: 2, jitter: 0 }, 7)).toEqual([
      10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000,
    ]);
    expect(backoffDelayMs({ minMs: 1, maxMs: 500, factor: 2, jitter: 0 }, 5_000, 0)).toBe(500);
  });
  it('is lengthened, never shortened, by up to its jitter', () => {
    const b = { minMs: 100, maxMs: 100, factor: 1, jitter: 0.5 };
    expect(series(b, 1, 0)).toEqual([100]);
    expect(series(b, 1, 0.999)[0]).toBeCloseTo(149.95);
  });
});

describe('the intensity window', () => {
  const limit = { max: 3, periodMs: 1000 };
  it('is over at one more than the maximum, not at the maximum', () => {
    expect(addCrashes([1, 2], [3], limit)).toEqual({ crashes: [1, 2, 3], over: false });
    expect(addCrashes([1, 2, 3], [4], limit).over).toBe(true);
  });
  it('forgets a crash that is as old as the period', () => {
    expect(addCrashes([0, 1, 2], [1000], limit)).toEqual({ crashes: [1, 2, 1000], over: false });
    expect(addCrashes([0, 1, 2], [999], limit).over).toBe(true);
  });
  it('takes crashes that are counted late at the time they happened', () => {
    expect(addCrashes([5000], [10, 4900], limit).crashes).toEqual([4900, 5000]);
  });
});

describe('an exit', () => {
  const rules: RestartRules = {
    restart: 'permanent',
    intensity: { max: 2, periodMs: 60_000 },
    backoff: { minMs: 100, maxMs: 1000, factor: 2, jitter: 0 },
  };
  const crash = (atMs: number, counts = true) => ({ reason: { kind: 'error', error: new Error('x') } as const, atMs, random: 0, counts });

  it('held against a mailbox item backs off but does not count', () => {
    let history = NO_HISTORY;
    const delays: number[] = [];
    for (let i = 0; i < 6; i++) {
      const verdict = judgeExit(rules, history, crash(i, false));
      if (verdict.next === 'restart') delays.push(verdict.delayMs);
      history = verdict.history;
    }
    expect(delays).toEqual([100, 200, 400, 800, 1000, 1000]);
  });
  it('after staying up for the longest back-off starts the series anew', () => {
    const history = { crashes: [], row: 4, startedAtMs: 10_000 };
    expect(judgeExit(rules, history, crash(10_999))).toMatchObject({ delayMs: 1000 });
    expect(judgeExit(rules, history, crash(11_000))).toMatchObject({ delayMs: 100 });
  });
  it.each([
    ['permanent', 'normal', 'restart'],
    ['permanent', 'shutdown', 'restart'],
    ['permanent', 'killed', 'restart'],
    ['permanent', 'error', 'restart'],
    ['transient', 'normal', 'end'],
    ['transient', 'shutdown', 'end'],
    ['transient', 'killed', 'restart'],
    ['transient', 'error', 'restart'],
    ['temporary', 'normal', 'end'],
    ['temporary', 'shutdown', 'end'],
    ['temporary', 'killed', 'end'],
    ['temporary', 'error', 'end'],
  ] as const)('of a %s child that is %s leads to: %s', (restart, kind, next) => {
    const reason = kind === 'error' ? { kind, error: new Error('x') } : kind === 'killed' ? { kind, by: 'me' } : { kind };
    expect(judgeExit({ ...rules, restart }, NO_HISTORY, { ...crash(0), reason }).next).toBe(next);
  });
});
