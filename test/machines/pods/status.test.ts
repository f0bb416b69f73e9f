/** API status: the traps; the golden table holds the breadth. */
import { describe, expect, it } from 'vitest';
import type { PodStatus } from '../../../src/machines/kube/types.ts';
import type { RuntimeContainer } from '../../../src/machines/pod/runtime/seen.ts';
import { type GenerateStatusInput, generatePodStatus } from '../../../src/machines/pods/status/generate.ts';
import { terminateStatus } from '../../../src/machines/pods/status/manager.ts';
import { normalizeStatus } from '../../../src/machines/pods/status/normalize.ts';
import { box, container, FACTS, NOW_MS, observed, pod, rc, sidecar } from './fixtures.ts';

function status(input: Partial<GenerateStatusInput> & Pick<GenerateStatusInput, 'status'>): PodStatus {
  return generatePodStatus({ pod: pod(), failures: new Map(), facts: FACTS, nowWallMs: NOW_MS, podIsTerminal: false, ...input });
}
const condition = (s: PodStatus, type: string) => s.conditions?.find((c) => c.type === type);
const first = (s: PodStatus) => s.containerStatuses?.[0];
const CRASHED = rc('web', 'exited', { n: 2, exitCode: 1 });
const BACKOFF = new Map([['web', { reason: 'CrashLoopBackOff', message: 'back-off 10s' }]]);

describe('generated status', () => {
  it('trap 19: restart count and last state do not depend on the order in which the runtime lists', () => {
    const list = [rc('web', 'running', { n: 3 }), CRASHED, rc('web', 'exited', { n: 1, exitCode: 7 })];
    const forwards = status({ status: observed(list) });
    expect(status({ status: observed([...list].reverse()) })).toEqual(forwards);
    expect(first(forwards)).toMatchObject({ restartCount: 2, lastState: { terminated: { exitCode: 1 } } });
  });

  it('trap 21: an exit is shown until a start was refused; then the container waits and the exit is its last state', () => {
    expect(first(status({ status: observed([CRASHED]) }))?.state.terminated).toMatchObject({ exitCode: 1 });
    expect(first(status({ status: observed([CRASHED]), failures: BACKOFF }))).toMatchObject({
      state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } },
      lastState: { terminated: { exitCode: 1 } },
    });
  });

  it('a restart count that was shown does not fall when an instance that never ran is taken away', () => {
    const before = status({ status: observed([rc('web', 'created', { n: 2 }), CRASHED]) });
    const after = status({ status: observed([CRASHED]), old: before });
    expect(first(after)?.restartCount).toBe(first(before)?.restartCount);
  });

  it('a failure that is past does not cover a running container', () => {
    expect(first(status({ status: observed([rc('web', 'running')]), failures: BACKOFF }))?.state.running).toBeDefined();
  });

  it('trap 24: one container that never started keeps the pod Pending; one in back-off does not', () => {
    const p = pod({ containers: [container('web'), container('api')] });
    expect(status({ pod: p, status: observed([rc('api', 'running')]) }).phase).toBe('Pending');
    expect(status({ pod: p, status: observed([rc('api', 'running'), CRASHED]), failures: BACKOFF }).phase).toBe('Running');
  });

  it('trap 25: a running container that is gone ended with 137, counts as a restart once, and the pod stays Running', () => {
    const old = status({ status: observed([rc('web', 'running', { n: 3 })]) });
    const gone = status({ status: observed([]), old });
    expect(first(gone)).toMatchObject({ restartCount: 3, lastState: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } } });
    expect(gone.phase).toBe('Running');
    expect(status({ status: observed([]), old: gone })).toEqual(gone);
  });

  it('trap 25: after a restart of the daemon, what the API last showed counts', () => {
    const api = status({ status: observed([rc('web', 'running')]) });
    const gone = status({ pod: pod({}, { status: api }), status: observed([]), old: { startTime: '2024-05-01T09:00:00Z' } });
    expect(gone).toMatchObject({ phase: 'Running', startTime: '2024-05-01T09:00:00Z' });
    expect(first(gone)?.lastState.terminated?.exitCode).toBe(137);
  });

  it('a pod that gets a new sandbox is Pending until its init containers have run in that', () => {
    const p = pod({ initContainers: [container('i1'), sidecar('s'), container('i2')] });
    const ran = [
      rc('i1', 'exited'),
      rc('s', 'exited', { n: 2 }),
      rc('i2', 'exited', { n: 3 }),
      rc('web', 'exited', { n: 4, exitCode: 137 }),
    ];
    const lost = box({ ready: false, ips: [] });
    const before = status({ pod: p, status: observed(ran, [lost]) });
    expect(before.phase).toBe('Running');
    const anew = (now: RuntimeContainer[], started = true) =>
      status({
        ...{ pod: p, old: before, startedContainers: new Map([['s-7', started]]) },
        status: observed([...ran.slice(3), ...now], [lost, box({ n: 5 })]),
      }).phase;
    const [done, side] = [rc('i1', 'exited', { n: 6 }), rc('s', 'running', { n: 7 })];
    expect(anew([])).toBe('Pending');
    for (const state of ['created', 'running', 'exited'] as const) expect(anew([rc('i1', state, { n: 6 })])).toBe('Pending');
    expect(anew([done, side, rc('i2', 'running', { n: 8 })])).toBe('Pending');
    expect(anew([done, side, rc('i2', 'exited', { n: 8 })], false)).toBe('Pending');
    expect(anew([done, side, rc('i2', 'exited', { n: 8 })])).toBe('Running');
    expect(anew([done, side, rc('i2', 'exited', { n: 8 }), rc('web', 'running', { n: 9 })], false)).toBe('Running');
  });

  it('a pod once initialised stays so: in a new sandbox before its containers ever started, and in the last word', () => {
    const p = pod({ initContainers: [container('i1'), container('i2')] });
    const before = status({ pod: p, status: observed([rc('i1', 'exited'), rc('i2', 'exited', { n: 2 })]) });
    const sandboxes = [box({ ready: false, ips: [] }), box({ n: 5 })];
    const anew = status({ pod: p, old: before, status: observed([rc('i1', 'running', { n: 3 })], sandboxes) });
    expect([before, anew].map((s) => condition(s, 'Initialized'))).toMatchObject([{ status: 'True' }, { status: 'True' }]);
    for (const s of [before, anew]) {
      expect(first(s)?.state.waiting).toBeDefined();
      expect(first(terminateStatus(p, s))?.state.terminated).toMatchObject({ exitCode: 137, reason: 'ContainerStatusUnknown' });
    }
    const never = status({ pod: p, old: {}, status: observed([rc('i1', 'running', { n: 3 })], sandboxes) });
    expect(condition(never, 'Initialized')).toMatchObject({ status: 'False', reason: 'ContainersNotInitialized' });
  });

  it('says the same again about a container whose state stays unknown', () => {
    const old = status({ status: observed([rc('web', 'running')]) });
    const unknown = status({ status: observed([rc('web', 'unknown')]), old });
    expect(first(unknown)).toMatchObject({ restartCount: 1, state: { terminated: { exitCode: 137 } } });
    expect(status({ status: observed([rc('web', 'unknown')]), old: unknown })).toEqual(unknown);
  });

  it('trap 39: a sidecar that is started, not ready, lets the pod be Initialized', () => {
    const p = pod({ initContainers: [sidecar('s1')] });
    const s = status({ pod: p, status: observed([rc('s1', 'running')]), readyContainers: new Map([['s1-1', false]]) });
    expect(condition(s, 'Initialized')?.status).toBe('True');
    expect(condition(s, 'ContainersReady')).toMatchObject({ status: 'False', message: 'containers with unready status: [s1 web]' });
  });

  it('trap 56: the start time is set once', () => {
    const old = { startTime: '2024-05-01T09:00:00Z' };
    expect(status({ status: observed([]), old }).startTime).toBe('2024-05-01T09:00:00Z');
    expect(status({ status: observed([]) }).startTime).toBe('2024-05-01T11:00:00Z');
  });

  it("trap 57: other writers' conditions are passed on, and a condition keeps its time while its status stays", () => {
    const foreign = { type: 'example.org/lb', status: 'True' as const, lastTransitionTime: '2024-01-01T00:00:00Z' };
    const p = pod({ readinessGates: [{ conditionType: foreign.type }] }, { status: { phase: 'Running', conditions: [foreign] } });
    const s = status({ pod: p, status: observed([rc('web', 'running')]) });
    expect(condition(s, foreign.type)).toEqual(foreign);
    const later = status({ pod: p, status: observed([CRASHED]), old: s, nowWallMs: NOW_MS + 5000 });
    expect(condition(later, 'PodScheduled')?.lastTransitionTime).toBe('2024-05-01T11:00:00Z');
    expect(condition(later, 'Ready')?.lastTransitionTime).toBe('2024-05-01T11:00:05Z');
  });
});

describe('status manager', () => {
  it('cuts messages so that all of a pod fit, between characters', () => {
    const loud = observed([rc('web', 'exited', { message: 'ü'.repeat(20_000) }), rc('api', 'exited', { message: 'short' })]);
    const s = normalizeStatus(status({ pod: pod({ containers: [container('web'), container('api')] }), status: loud }));
    const messages = s.containerStatuses?.map((c) => c.state.terminated?.message ?? '') ?? [];
    expect(messages[0]).toBe('short');
    expect(messages[1]).toBe('ü'.repeat(3072));
  });
});
