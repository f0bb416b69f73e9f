/** API status: the traps; the golden table holds the breadth. */
import { describe, expect, it } from 'vitest';
import type { PodStatus } from '../../../src/machines/kube/types.ts';
import type { RuntimeContainer } from '../../../src/machines/pod/runtime/seen.ts';
import { type GenerateStatusInput, generatePodStatus } from '../../../src/machines/pods/status/generate.ts';
import { guardTransition, mergeStatus, restartableNames, storeStatus, terminateStatus } from '../../../src/machines/pods/status/manager.ts';
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

  it('trap 23: containers are sorted by name, init containers are not', () => {
    const p = pod({ containers: [container('b'), container('a')], initContainers: [container('z'), container('y')] });
    const s = status({ pod: p, status: observed([]) });
    expect(s.containerStatuses?.map((c) => c.name)).toEqual(['a', 'b']);
    expect(s.initContainerStatuses?.map((c) => c.name)).toEqual(['z', 'y']);
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

  it('trap 26: a terminal phase of the API or of this node stays, whatever runs', () => {
    const running = observed([rc('web', 'running')]);
    expect(status({ pod: pod({}, { status: { phase: 'Failed' } }), status: running }).phase).toBe('Failed');
    const old = status({ status: running, override: { phase: 'Failed', reason: 'Evicted', message: 'disk' } });
    expect(status({ status: running, old })).toMatchObject({ phase: 'Failed', reason: 'Evicted', message: 'disk' });
    const done = { phase: 'Succeeded' } as const;
    expect(
      status({ pod: pod({}, { status: done }), status: running, override: { phase: 'Failed', reason: 'x', message: '' } }),
    ).toMatchObject(done);
  });

  it('an end that the API server tells of later brings its reason along', () => {
    const old = status({ status: observed([rc('web', 'running')]) });
    expect(old.phase).toBe('Running');
    const told = pod({}, { status: { phase: 'Failed', reason: 'Evicted', message: 'memory' } });
    expect(status({ pod: told, status: observed([rc('web', 'running')]), old })).toMatchObject({
      phase: 'Failed',
      reason: 'Evicted',
      message: 'memory',
    });
  });

  it('reason and message go with the phase they came with', () => {
    const old: PodStatus = { phase: 'Pending', reason: 'Waiting', message: 'for a volume' };
    expect(status({ status: observed([]), old })).toMatchObject({ reason: 'Waiting', message: 'for a volume' });
    expect(status({ status: observed([rc('web', 'running')]), old })).not.toHaveProperty('reason');
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

  it('addresses: primary family first, one of each, kept after the sandbox is gone', () => {
    const facts = { ...FACTS, ipv6First: true, hostIPs: ['2001:db8::1', '192.0.2.10', '192.0.2.11'] };
    const s = status({ facts, status: observed([rc('web', 'running')], [box({ ips: ['10.0.0.5', 'fd00::5'] })]) });
    expect(s).toMatchObject({ podIP: 'fd00::5', podIPs: [{ ip: 'fd00::5' }, { ip: '10.0.0.5' }] });
    expect(s.hostIPs).toEqual([{ ip: '2001:db8::1' }, { ip: '192.0.2.10' }]);
    expect(status({ facts, status: observed([CRASHED], [box({ ready: false, ips: [] })]), old: s }).podIPs).toEqual(s.podIPs);
  });
});

describe('status manager', () => {
  const ended: PodStatus = { phase: 'Running', containerStatuses: status({ status: observed([CRASHED]) }).containerStatuses ?? [] };
  const running: PodStatus = {
    phase: 'Running',
    containerStatuses: status({ status: observed([rc('web', 'running', { n: 3 })]) }).containerStatuses ?? [],
  };

  it('refuses to let an ended container run again where the policy forbids it', () => {
    const guard = (restartPolicy: string) => guardTransition({ old: ended, next: running, restartPolicy });
    expect([guard('Always'), guard('OnFailure')]).toEqual([null, null]);
    expect(guard('Never')).toContain('container "web"');
  });

  it('lets a sidecar start again in a Never pod', () => {
    const old: PodStatus = { initContainerStatuses: ended.containerStatuses ?? [] };
    const next: PodStatus = { initContainerStatuses: running.containerStatuses ?? [] };
    expect(guardTransition({ old, next, restartPolicy: 'Never' })).not.toBeNull();
    const restartable = restartableNames(pod({ initContainers: [sidecar('web')] }));
    expect(guardTransition({ old, next, restartPolicy: 'Never', restartable })).toBeNull();
  });

  it('trap 26: refuses to leave a terminal phase', () => {
    expect(guardTransition({ old: { phase: 'Failed' }, next: { phase: 'Running' }, restartPolicy: 'Always' })).toContain('final');
  });

  it('trap 57: drops what says nothing new, ignoring times and other conditions, unless forced', () => {
    const input = { restartPolicy: 'Always', cached: true, nowWallMs: NOW_MS, force: false };
    const one = status({ status: observed([rc('web', 'running')]) });
    const again = status({ status: observed([rc('web', 'running')]), nowWallMs: NOW_MS + 60_000 });
    const noisy = {
      ...again,
      conditions: [...(again.conditions ?? []), { type: 'x', status: 'True' as const }],
      startTime: one.startTime ?? '',
    };
    expect(storeStatus({ ...input, old: one, next: noisy }).kind).toBe('unchanged');
    expect(storeStatus({ ...input, old: one, next: noisy, force: true }).kind).toBe('changed');
    expect(storeStatus({ ...input, old: undefined, next: one, cached: false })).toMatchObject({
      kind: 'changed',
      status: { phase: 'Running' },
    });
    expect(storeStatus({ ...input, old: one, next: { ...one, phase: 'Pending' } }).kind).toBe('changed');
  });

  it('cuts messages so that all of a pod fit, between characters', () => {
    const loud = observed([rc('web', 'exited', { message: 'ü'.repeat(20_000) }), rc('api', 'exited', { message: 'short' })]);
    const s = normalizeStatus(status({ pod: pod({ containers: [container('web'), container('api')] }), status: loud }));
    const messages = s.containerStatuses?.map((c) => c.state.terminated?.message ?? '') ?? [];
    expect(messages[0]).toBe('short');
    expect(messages[1]).toBe('ü'.repeat(3072));
  });

  it('the last word: what began and has no known end ended with 137; init containers that never began stay waiting', () => {
    const p = pod({ initContainers: [container('i1'), container('i2'), container('i3')] });
    const midInit = status({ pod: p, status: observed([rc('i1', 'exited'), rc('i2', 'running', { n: 2 })]) });
    const last = terminateStatus(p, midInit);
    expect(last.phase).toBe('Failed');
    expect(last.initContainerStatuses?.map((c) => c.state.terminated?.exitCode)).toEqual([0, 137, undefined]);
    expect(first(last)?.state.waiting).toBeDefined();
    const started = terminateStatus(pod(), status({ status: observed([rc('web', 'running')]) }));
    expect(first(started)).toMatchObject({ ready: false, state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } } });
    const still = terminateStatus(pod({}, { source: 'file' }), status({ pod: pod({}, { source: 'file' }), status: observed([CRASHED]) }));
    expect(still.phase).toBe('Running');
  });

  it('trap 26: an end that the API server shows is not taken back, but for an object that outlives it', () => {
    const api: PodStatus = { phase: 'Failed', reason: 'Evicted', message: 'memory' };
    const ours: PodStatus = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], startTime: '2024-05-01T09:00:00Z' };
    const kept = mergeStatus(api, ours, { couldHaveRunning: true, nowWallMs: NOW_MS });
    expect(kept).toMatchObject({ ...api, startTime: '2024-05-01T09:00:00Z' });
    expect(condition(kept, 'Ready')).toMatchObject({ status: 'False', reason: 'PodFailed' });
    const anew = mergeStatus(api, ours, { couldHaveRunning: true, nowWallMs: NOW_MS, mayBeginAnew: true });
    expect(anew.phase).toBe('Running');
    expect(anew).not.toHaveProperty('reason');
  });

  it('trap 27: a terminal phase waits until nothing can run, then Ready and ContainersReady are False', () => {
    const api: PodStatus = { phase: 'Running', conditions: [{ type: 'example.org/lb', status: 'True' }] };
    const ours: PodStatus = {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'disk',
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet' },
      ],
    };
    const early = mergeStatus(api, ours, { couldHaveRunning: true, nowWallMs: NOW_MS });
    expect(early.phase).toBe('Running');
    expect(early).not.toHaveProperty('reason');
    expect(early.conditions?.map((c) => c.type)).toEqual(['example.org/lb', 'Ready']);
    const late = mergeStatus(api, ours, { couldHaveRunning: false, nowWallMs: NOW_MS });
    expect(late).toMatchObject({ phase: 'Failed', reason: 'Evicted' });
    expect(condition(late, 'Ready')).toMatchObject({ status: 'False', reason: 'PodFailed' });
    expect(condition(late, 'DisruptionTarget')?.status).toBe('True');
  });
});
