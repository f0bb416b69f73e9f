/** A pod's timeline: a lane per container, the part of it that is shown first, its axis. */

import { noteContainers, seenIn } from '@actorlet/kubelet/actors/recorder/containerSpans.ts';
import type { ContainerStatus, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import type { ContainerSpan } from '@actorlet/kubelet/machines/recorder/podHistory.ts';
import { describe, expect, it } from 'vitest';
import { containerLanes, firstWindow, phasesOf, spanOf, type Told, ticksOf } from '../../src/page/views/pod/lanes.ts';

const container = (o: Partial<ContainerStatus>): PodStatus =>
  ({
    containerStatuses: [{ name: 'app', state: {}, lastState: {}, ready: false, restartCount: 0, image: '', imageID: '', ...o }],
  }) as PodStatus;
const RUNNING = container({ state: { running: { startedAt: '' } } });
const ENDED = { terminated: { exitCode: 3, reason: 'Error' } };

function spans(...seen: readonly (readonly [number, PodStatus])[]): ContainerSpan[] {
  const out: ContainerSpan[] = [];
  for (const [atMs, status] of seen) noteContainers(out, seenIn(status), atMs);
  return out;
}
const told = (containers: ContainerSpan[], steps: Told['history']['steps'] = []): Told =>
  ({ history: { steps, calls: [], containers, left: 0 }, containers: [], seenAtMs: 0 }) as unknown as Told;
const step = (atMs: number, to: string) => ({ atMs, from: '', to, event: '', reason: '' });

describe('lanes of containers', () => {
  it('tell running, the exit code and the back-off of a crash loop', () => {
    const lanes = containerLanes(
      told(
        spans(
          [0, container({ state: { waiting: { reason: 'ContainerCreating' } } })],
          [100, RUNNING],
          [100, RUNNING],
          [1_000, container({ state: ENDED })],
          [1_010, container({ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ENDED })],
          [11_000, container({ state: { running: { startedAt: '' } }, restartCount: 1, lastState: ENDED })],
        ),
      ),
      12_000,
    );
    expect(lanes).toHaveLength(1);
    expect(lanes[0]?.bars.map((b) => [b.name, b.kind, b.fromMs, b.toMs])).toEqual([
      ['ContainerCreating', 'wait', 0, 100],
      ['running', 'rest', 100, 1_000],
      ['exit code 3 (Error)', 'failed', 1_000, 1_010],
      ['CrashLoopBackOff', 'trouble', 1_010, 11_000],
      ['running', 'rest', 11_000, 12_000],
    ]);
  });

  it('tell how a run ended whose end was not seen by itself', () => {
    const back = container({ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ENDED });
    const [lane] = containerLanes(told(spans([0, RUNNING], [900, back])), 1_000);
    expect(lane?.bars.map((b) => b.name)).toEqual(['running', 'exit code 3 (Error) · CrashLoopBackOff']);
  });

  it('keep an init container and a container of the same name apart', () => {
    const both = { initContainerStatuses: RUNNING.containerStatuses, containerStatuses: RUNNING.containerStatuses } as PodStatus;
    expect(containerLanes(told(spans([0, both])), 1).map((l) => l.init)).toEqual([true, false]);
  });
});

describe('what a reader sees first', () => {
  const of = (steps: Told['history']['steps'], o: { troubled?: boolean; now: number }) => {
    const phases = phasesOf(told([], steps), o.now);
    const window = firstWindow(phases, { troubled: o.troubled === true, first: 0, now: o.now });
    return { window, span: spanOf(window, { told: told([], steps), first: 0, now: o.now, phases }) };
  };
  it('is the start of a pod that is well', () => {
    expect(of([step(0, 'beginning'), step(200, 'syncing.settled')], { now: 1e6 })).toEqual({ window: 'start', span: [0, 216] });
  });
  it('goes on while the runtime starts a container, though the worker rests', () => {
    const steps = [step(239, 'syncing.settled')];
    const { history, ...rest } = told([], steps);
    const inFlight = { method: 'StartContainer' as const, startMs: 271, endMs: null, about: '', error: '' };
    const of = { ...rest, history: { ...history, calls: [inFlight] } };
    expect(spanOf('start', { told: of, first: 0, now: 2_500, phases: phasesOf(of, 2_500) })).toEqual([0, 2_500]);
  });
  it('is the whole life of one in trouble, and its last minute when it lived long', () => {
    expect(of([step(0, 'syncing.settled')], { now: 60_000, troubled: true })).toEqual({ window: 'all', span: [0, 60_000] });
    expect(of([step(0, 'syncing.settled')], { now: 1e7, troubled: true })).toEqual({ window: 'last', span: [1e7 - 60_000, 1e7] });
  });
  it('is the end of one that was evicted, however long ago', () => {
    const steps = [step(0, 'syncing.settled'), step(3_600_000, 'terminating.stopping'), step(3_601_000, 'finished')];
    const { window, span } = of(steps, { now: 9e6 });
    expect(window).toBe('last');
    expect(span[0]).toBe(3_541_000);
    expect(span[1]).toBeGreaterThan(3_601_000);
    expect(span[1]).toBeLessThan(3_610_000);
  });
});

it.each([90, 1_900, 24_000, 61_000, 540_000, 7_000_000, 9e8])('the axis of %i ms has at most six marks, round ones', (ms) => {
  const ticks = ticksOf(ms);
  expect(ticks.length).toBeLessThanOrEqual(6);
  expect(ticks.length).toBeGreaterThanOrEqual(2);
  expect(ticks.every((t) => t <= ms)).toBe(true);
});
