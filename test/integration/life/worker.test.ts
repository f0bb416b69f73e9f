/** The pod worker's statechart with a scripted outside: transitions that a whole node hardly reaches. */
import { describe, expect, it } from 'vitest';
import { createActor } from 'xstate';
import type { Pod, PodStatus } from '../../../src/machines/kube/types.ts';
import type { PodRuntimeStatus } from '../../../src/machines/pod/runtime/seen.ts';
import { childStates, type WorkerFacts, type WorkerInput, type WorkerReport } from '../../../src/machines/pods/workers/context.ts';
import type { WorkerIo } from '../../../src/machines/pods/workers/io.ts';
import { workerMachineWith } from '../../../src/machines/pods/workers/provided.ts';
import { dottedState } from '../../../src/machines/xstate/words.ts';
import { box, container, FACTS, observed, pod, rc } from '../../machines/pods/fixtures.ts';
import { virtualTime } from '../virtualTime.ts';

const never = () => new Promise<never>(() => {});
const nothing = (): PodRuntimeStatus => observed([], []);
const steady = () => observed([rc('web', 'running')]);

function bench(io: Partial<WorkerIo> = {}, input: Partial<WorkerInput> = {}) {
  const time = virtualTime();
  const calls: string[] = [];
  const published: { status: PodStatus | undefined; finished: boolean }[] = [];
  const reports: WorkerReport[] = [];
  const said =
    <A extends unknown[], R>(name: string, fn: (...a: A) => R) =>
    (...a: A): R => {
      calls.push(name);
      return fn(...a);
    };
  const all: WorkerIo = {
    fence: async () => undefined,
    inspect: async () => ({ ...nothing(), observedAtMonoMs: time.clock.monoMs() }),
    prepare: async () => ({ kind: 'done' }),
    prepareClaims: async () => ({ kind: 'done' }),
    releaseClaims: async () => ({ kind: 'done' }),
    runSandbox: never,
    runHook: never,
    stopContainer: async () => ({ kind: 'done' }),
    resetContainers: async () => ({ kind: 'done' }),
    stopSandboxes: async () => ({ kind: 'done' }),
    cleanup: async () => undefined,
    severVolumes: () => undefined,
    ensureImage: never,
    createContainer: never,
    startContainer: never,
    memoryUsage: never,
    updateResources: never,
    backingOff: () => undefined,
    sleepCut: () => undefined,
    publish: (context, finished) => void published.push({ status: context.apiStatus, finished }),
    report: (r) => void reports.push(r),
    event: () => undefined,
    ...io,
  };
  const spied = Object.fromEntries(
    Object.entries(all).map(([k, fn]) => [k, said(k, fn as (...a: unknown[]) => unknown)]),
  ) as unknown as WorkerIo;
  const moment = () => ({ wallMs: time.clock.wallMs(), monoMs: time.clock.monoMs(), random: 0 });
  const facts = (_event?: object, before?: object): WorkerFacts => ({
    ...moment(),
    node: FACTS,
    network: { ready: true, reason: '' },
    lastStatus: undefined,
    listing: undefined,
    ownIds: new Set(),
    quiet: false,
    probes: new Map(),
    children: childStates(before),
    deviceHealth: () => [],
  });
  const actor = createActor(workerMachineWith(moment)(spied, facts), {
    clock: time.clock,
    input: {
      uid: 'uid-1',
      pod: pod(),
      runtimeOnly: false,
      terminating: false,
      causes: [],
      times: { resyncMs: 60_000, backoffBaseMs: 10_000, backoffMaxMs: 300_000, retryMs: 10_000 },
      ...input,
    },
  });
  actor.start();
  const count = (name: string) => calls.filter((c) => c === name).length;
  const kill = (graceOverrideSeconds?: number) =>
    actor.send({ type: 'pod.kill', uid: 'uid-1', life: 1, ...(graceOverrideSeconds === undefined ? {} : { graceOverrideSeconds }) });
  const update = (to: Pod) => actor.send({ type: 'pod.update', uid: 'uid-1', life: 1, kind: 'update', pod: to });
  return { time, actor, calls, count, published, reports, kill, update, state: () => dottedState(actor.getSnapshot().value) };
}
const failing = (times: number, then: () => Promise<unknown> = async () => undefined) => {
  let left = times;
  return () => (left-- > 0 ? Promise.reject(new Error('not now')) : then());
};
const done = async () => ({ kind: 'done' as const });
const failed = async () => ({ kind: 'failed' as const, failure: { reason: 'Nope', message: 'it will not' } });

describe('fencing', () => {
  it('that is refused is tried again after 1, 2, 4, 8, 10, 10 s, and nothing is done before it succeeded', async () => {
    const b = bench({ fence: failing(6) });
    const at: number[] = [];
    const began = b.time.clock.monoMs();
    for (let n = 1; n <= 6; n++) {
      while (b.count('fence') <= n) {
        await b.time.settle();
        if (b.count('fence') > n) break;
        await b.time.step(b.time.clock.monoMs() + 60_000);
      }
      at.push((b.time.clock.monoMs() - began) / 1000);
    }
    expect(at).toEqual([1, 3, 7, 15, 25, 35]);
    expect(b.calls.slice(0, b.calls.lastIndexOf('fence')).filter((c) => !['fence', 'report'].includes(c))).toEqual([]);
  });

  it('a hint ends the wait at once', async () => {
    const b = bench({ fence: failing(1) });
    await b.time.settle();
    expect(b.state()).toBe('fencingAgain');
    b.actor.send({ type: 'pod.dirty', uid: 'uid-1', why: 'test' });
    await b.time.settle();
    expect(b.count('fence')).toBe(2);
  });

  it('a kill that arrives meanwhile is not forgotten: the pod is never started', async () => {
    const b = bench({ fence: failing(1) });
    b.kill();
    await b.time.advance(5_000);
    expect(b.state()).toBe('finished');
    expect(b.calls).not.toContain('runSandbox');
  });

  it('a stop asked before this incarnation began is carried on', async () => {
    const b = bench({ inspect: async () => steady(), stopSandboxes: never }, { terminating: true });
    await b.time.settle();
    expect(b.state()).toBe('terminating.stopping');
  });
});

it('a report has the words of the state that its step leads to', async () => {
  const b = bench({ prepare: failing(1, never) as WorkerIo['prepare'] });
  await b.time.advance(11_000);
  b.kill();
  await b.time.advance(5_000);
  expect(b.reports.map(({ phase, state, reason, message }) => `${phase}, ${state}, ${reason}: ${message}`)).toEqual([
    'waiting, fencing, Fencing: waiting until no act of an earlier worker of this pod is in flight',
    'syncing, syncing.mountingVolumes, MountingVolumes: making the directories of this pod; waiting until every volume that a container mounts is set up',
    'syncing, syncing.actFailed, FailedToMakePodDataDirectories: not now',
    'syncing, syncing.mountingVolumes, MountingVolumes: making the directories of this pod; waiting until every volume that a container mounts is set up',
    'terminating, terminating.fencing, Terminating: waiting for the act in flight to settle or be cancelled',
    'terminated, terminated, Terminated: all containers are stopped; taking volumes down',
    'finished, finished, Finished: ',
  ]);
});

describe('syncing', () => {
  it('an act that throws is an act that failed: told, and tried again after 10, 10, 10 s', async () => {
    const b = bench({ runSandbox: failing(2, never) as WorkerIo['runSandbox'] });
    await b.time.settle();
    expect(b.state()).toBe('syncing.actFailed');
    expect(b.reports.at(-1)).toMatchObject({ reason: 'CreatePodSandboxError', message: 'not now' });
    await b.time.advance(9_999);
    expect(b.count('runSandbox')).toBe(1);
    await b.time.advance(1);
    expect(b.count('runSandbox')).toBe(2);
  });

  it('directories that cannot be made hold the sandbox back', async () => {
    const b = bench({ prepare: failing(1, done) as WorkerIo['prepare'] });
    await b.time.settle();
    expect(b.reports.at(-1)?.reason).toBe('FailedToMakePodDataDirectories');
    expect(b.calls).not.toContain('runSandbox');
    await b.time.advance(10_000);
    expect(b.calls).toContain('runSandbox');
  });

  it('an unknown outcome leads to an inspection at once, not to a wait', async () => {
    let n = 0;
    const b = bench({ runSandbox: () => (n++ === 0 ? Promise.resolve({ kind: 'unknown', details: 'no answer' }) : never()) });
    await b.time.settle();
    expect(b.calls.filter((c) => c === 'inspect' || c === 'runSandbox')).toEqual(['inspect', 'runSandbox', 'inspect', 'runSandbox']);
  });

  it('a stop for a new sandbox that fails is tried again after 0.5, 1, 2 s', async () => {
    const b = bench({ inspect: async () => observed([rc('web', 'running')], [box({ n: 2 }), box()]), stopSandboxes: failed });
    await b.time.settle();
    expect(b.reports.at(-1)).toMatchObject({ reason: 'FailedKillPod', message: 'it will not' });
    const at: number[] = [];
    for (const ms of [500, 1_000, 2_000]) {
      await b.time.advance(ms);
      at.push(b.count('stopSandboxes'));
    }
    expect(at).toEqual([2, 3, 4]);
  });

  it('containers that cannot be killed do not keep the pod from being deleted', async () => {
    const changed = () => observed([rc('web', 'running', { hash: 'deadbeef' })]);
    const b = bench({ inspect: async () => changed(), stopContainer: failing(99) as WorkerIo['stopContainer'], stopSandboxes: never });
    await b.time.settle();
    expect(b.state()).toBe('syncing.actFailed');
    b.kill();
    await b.time.settle();
    expect(b.state()).toBe('terminating.stopping');
  });

  it('a deletion during a pull goes ahead at once, and the pull is given up', async () => {
    let given = false;
    const b = bench({
      inspect: async () => observed([]),
      ensureImage: (_, signal) => {
        signal.addEventListener('abort', () => {
          given = true;
        });
        return never();
      },
      stopSandboxes: never,
    });
    await b.time.settle();
    b.update(pod({}, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 } }));
    await b.time.settle();
    expect(b.state()).toBe('terminating.stopping');
    expect(given).toBe(true);
  });

  it('an inspection older than a start does not make it start twice', async () => {
    // The container was started at a moment that the inspection under way does not show.
    let shows: PodRuntimeStatus = observed([]);
    const b = bench({
      inspect: async () => ({ ...shows, observedAtMonoMs: 0 }),
      ensureImage: async () => ({ ok: true, imageRef: 'i', image: null, pulled: false }),
      createContainer: async () => ({ kind: 'done', value: { id: 'web-1', restartCount: 0 } }),
      startContainer: async () => ({ kind: 'done', value: null }),
    });
    await b.time.settle();
    expect(b.count('createContainer')).toBe(1);
    b.actor.send({ type: 'pod.dirty', uid: 'uid-1', why: 'test' });
    await b.time.settle();
    expect(b.count('createContainer')).toBe(1);
    shows = steady();
    b.actor.send({ type: 'pod.dirty', uid: 'uid-1', why: 'test' });
    await b.time.settle();
    expect(b.count('createContainer')).toBe(1);
  });

  it('a corrected image does not wait for the back-off of the wrong one', async () => {
    const images: string[] = [];
    const b = bench({
      inspect: async () => ({ ...observed([]), observedAtMonoMs: b.time.clock.monoMs() }),
      ensureImage: async (job) => {
        images.push(job.container.image ?? '');
        return { ok: false, failure: { reason: 'ErrImagePull', message: 'no such image' } };
      },
    });
    await b.time.settle();
    b.update(pod({ containers: [container('web', { image: 'right:1' })] }));
    await b.time.settle();
    expect(images).toEqual(['example.org/web:v1', 'right:1']);
  });
});

describe('terminating', () => {
  it('a stop that fails is tried again, faster than the reference, and said', async () => {
    const b = bench({ inspect: async () => steady(), stopSandboxes: failed });
    b.kill();
    await b.time.settle();
    expect(b.reports.at(-1)).toMatchObject({ state: 'terminating.again', reason: 'FailedKillPod', message: 'it will not' });
    await b.time.advance(3_500);
    expect(b.count('stopSandboxes')).toBe(4);
  });

  it('a container that is still up after its stop is stopped again', async () => {
    const b = bench({ inspect: async () => steady() });
    b.kill();
    await b.time.advance(500);
    expect(b.count('stopSandboxes')).toBe(2);
    expect(b.published.some((p) => p.finished)).toBe(false);
  });

  it('a smaller grace interrupts the stop under way; an equal or larger one does not', async () => {
    const graces: (number | null)[] = [];
    const b = bench({
      inspect: async () => steady(),
      stopContainer: (input) => {
        graces.push(input.timeoutSeconds);
        return never();
      },
    });
    b.kill(20);
    await b.time.settle();
    b.kill(20);
    b.kill(90);
    await b.time.settle();
    expect(graces).toEqual([20]);
    b.kill(3);
    await b.time.settle();
    expect(graces).toEqual([20, 3]);
  });

  it('an inspection that fails is no proof that nothing runs', async () => {
    const b = bench({ inspect: failing(1, async () => steady()) as WorkerIo['inspect'], stopSandboxes: never }, { terminating: true });
    await b.time.settle();
    expect(b.state()).toBe('terminating.again');
    await b.time.advance(500);
    expect(b.state()).toBe('terminating.stopping');
  });

  it('what was said with the kill is the final status', async () => {
    let shows = steady();
    const b = bench({
      inspect: async () => shows,
      stopContainer: async () => {
        shows = observed([rc('web', 'exited')], []);
        return { kind: 'done' };
      },
    });
    await b.time.settle();
    b.actor.send({ type: 'pod.kill', uid: 'uid-1', life: 1, status: { phase: 'Failed', reason: 'Evicted', message: 'no room' } });
    await b.time.settle();
    expect(b.published.at(-1)).toMatchObject({ finished: true, status: { phase: 'Failed', reason: 'Evicted', message: 'no room' } });
  });

  it('a clean-up that fails is tried again; only then is the worker finished', async () => {
    const b = bench({ cleanup: failing(2) as WorkerIo['cleanup'] }, { terminating: true });
    await b.time.settle();
    expect(b.state()).toBe('cleaningAgain');
    expect(b.published.some((p) => p.finished)).toBe(false);
    await b.time.advance(2_000);
    expect(b.state()).toBe('finished');
    expect(b.published.at(-1)?.finished).toBe(true);
  });
});
