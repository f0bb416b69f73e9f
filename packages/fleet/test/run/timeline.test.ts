/** What the picture of a run keeps of it, and why pods are not Ready. */

import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import { describe, expect, it } from 'vitest';
import { PodCounts } from '../../src/pods/counts.ts';
import { Timeline } from '../../src/run/timeline.ts';

const overview = (ready: number) => ({
  nodes: { total: 10, running: 10, ready },
  pods: { total: 0, ready: 0, byPhase: {}, byReason: {} },
});

describe('the timeline of a run', () => {
  it('has a few hundred points however long the run is, from its begin to its end', () => {
    const timeline = new Timeline(0);
    const hours = 8 * 3_600_000;
    for (let atMs = 0; atMs <= hours; atMs += 250) timeline.look(overview(atMs % 10), atMs);
    const { samples } = timeline;
    expect(samples.length).toBeGreaterThan(150);
    expect(samples.length).toBeLessThanOrEqual(400);
    expect(samples[0]?.atMs).toBe(0);
    expect(hours - (samples.at(-1)?.atMs ?? 0)).toBeLessThan(hours / 100);
    const gaps = samples.slice(1).map((s, i) => s.atMs - (samples[i]?.atMs ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(2 * Math.min(...gaps));
  });

  it('notes when an expectation turned green or red, and no more than a picture can show', () => {
    const timeline = new Timeline(2);
    for (const [i, fits] of [null, true, true, false, false, true].entries()) timeline.expectation(0, fits, i * 1_000);
    expect(timeline.spans).toEqual([
      [
        { fromMs: 0, fits: null },
        { fromMs: 1_000, fits: true },
        { fromMs: 3_000, fits: false },
        { fromMs: 5_000, fits: true },
      ],
      [],
    ]);
    for (let i = 0; i < 10_001; i++) timeline.expectation(1, i % 2 === 0, i);
    expect(timeline.spans[1]?.length).toBe(200);
    expect(timeline.spans[1]?.at(-1)).toEqual({ fromMs: 10_000, fits: true });
    // There is no such expectation.
    timeline.expectation(2, true, 0);
    expect(timeline.spans).toHaveLength(2);
  });
});

describe('pods that are not Ready', () => {
  const waiting = (reason: string) => ({ waiting: { reason } });
  it.each([
    ['ImagePullBackOff', { phase: 'Pending', containerStatuses: [{ state: waiting('ImagePullBackOff') }] }],
    ['Evicted', { phase: 'Failed', reason: 'Evicted', containerStatuses: [{ state: waiting('x') }] }],
    [
      'CrashLoopBackOff',
      {
        phase: 'Pending',
        initContainerStatuses: [{ state: waiting('CrashLoopBackOff') }],
        containerStatuses: [{ state: waiting('PodInitializing') }],
      },
    ],
    ['OOMKilled', { phase: 'Failed', containerStatuses: [{ state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }] }],
    ['Error', { phase: 'Running', containerStatuses: [{ state: { terminated: { exitCode: 3 } } }] }],
    ['NotReady', { phase: 'Running', containerStatuses: [{ state: { running: {} } }] }],
    ['Pending', { phase: 'Pending' }],
    [undefined, { phase: 'Succeeded' }],
    [undefined, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }],
  ])('are counted as %s', (reason, status) => {
    const registry = { read: () => ({ version: 1, value: new Map([['a', { status }]]) }) } as unknown as Registry;
    expect(Object.fromEntries(new PodCounts().of(registry).byReason)).toEqual(reason === undefined ? {} : { [reason]: 1 });
  });
});
