/** Groups of pods in a shutdown of the machine, and the file that says when it began. */
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../src/machines/kube/types.ts';
import { groupOf, shutdownGraceSeconds, shutdownGroups, totalMs } from '../../src/machines/reclaim/nodeShutdown/groups.ts';
import { decodeState, encodeState } from '../../src/machines/reclaim/nodeShutdown/stateFile.ts';

const ON = { graceful: true, byPriority: true };
const NONE = { shutdownGracePeriod: 0, shutdownGracePeriodCriticalPods: 0, shutdownGracePeriodByPodPriority: [] };
const podOf = (priority?: number, grace?: number) =>
  ({ spec: { ...(priority === undefined ? {} : { priority }), terminationGracePeriodSeconds: grace } }) as unknown as Pod;

describe('groups', () => {
  it('are none without a period or without the gate', () => {
    expect(shutdownGroups(NONE, ON)).toEqual([]);
    expect(shutdownGroups({ ...NONE, shutdownGracePeriod: 30_000 }, { ...ON, graceful: false })).toEqual([]);
  });

  it('are two for two periods, whose sum is the whole', () => {
    const groups = shutdownGroups({ ...NONE, shutdownGracePeriod: 30_500, shutdownGracePeriodCriticalPods: 10_000 }, ON);
    expect(groups).toEqual([
      { priority: 0, periodSeconds: 20 },
      { priority: 2_000_000_000, periodSeconds: 10 },
    ]);
    expect(totalMs(groups)).toBe(30_000);
  });

  it('are those of the list with its gate alone, lowest priority first', () => {
    const config = {
      ...NONE,
      shutdownGracePeriodByPodPriority: [
        { priority: 1_000, shutdownGracePeriodSeconds: 6 },
        { priority: -7, shutdownGracePeriodSeconds: 4 },
      ],
    };
    expect(shutdownGroups(config, ON).map((g) => g.priority)).toEqual([-7, 1_000]);
    expect(shutdownGroups(config, { ...ON, byPriority: false })).toEqual([]);
  });

  it('have each pod in the last one that its priority reaches, and in the first one where it reaches none', () => {
    const groups = [-5, 0, 1_000].map((priority) => ({ priority, periodSeconds: 1 }));
    const found = [undefined, -2_000, -5, -1, 0, 999, 1_000, 2_000_001_000].map((priority) => groupOf(groups, podOf(priority)));
    expect(found).toEqual([1, 0, 0, 0, 1, 1, 2, 2]);
  });

  it('give a pod the smallest of its own grace, the period and what is left', () => {
    const group = { priority: 0, periodSeconds: 20 };
    expect(shutdownGraceSeconds(podOf(0, 5), group, 60_000)).toBe(5);
    expect(shutdownGraceSeconds(podOf(0, 300), group, 60_000)).toBe(20);
    expect(shutdownGraceSeconds(podOf(0), group, 60_000)).toBe(20);
    expect(shutdownGraceSeconds(podOf(0, 300), group, 7_900)).toBe(7);
    expect(shutdownGraceSeconds(podOf(0, 300), group, -1)).toBe(0);
  });
});

describe('the state file', () => {
  it('has the form of the kubelet, and is read as it was written', () => {
    const state = { startedMs: Date.parse('2026-03-01T10:00:00Z'), endedMs: null };
    expect(encodeState(state)).toBe('{"startTime":"2026-03-01T10:00:00.000Z","endTime":"0001-01-01T00:00:00Z"}');
    expect(decodeState(encodeState(state))).toEqual(state);
    expect(decodeState('{}')).toEqual({ startedMs: null, endedMs: null });
  });

  it.each([
    ['no JSON', '{'],
    ['a list', '[]'],
    ['null', 'null'],
    ['a number for a time', '{"startTime": 5}'],
    ['a word for a time', '{"startTime": "yesterday"}'],
    ['a day that is none', '{"endTime": "2026-13-41T00:00:00Z"}'],
  ])('is refused with %s', (_, text) => {
    expect(() => decodeState(text)).toThrow();
  });
});
