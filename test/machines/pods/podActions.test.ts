/** What to do about a pod: the traps; the golden table holds the breadth. */
import { describe, expect, it } from 'vitest';
import { hashWholeSpec } from '../../../src/machines/pod/runtime/containerHash.ts';
import type { PodActions, RuntimeContainer } from '../../../src/machines/pod/runtime/seen.ts';
import { computePodActions } from '../../../src/machines/pods/workers/actions/podActions.ts';
import { box, container, observed, pod, rc, sidecar } from './fixtures.ts';

const IDLE: Partial<PodActions> = {
  killPod: false,
  createSandbox: false,
  initToStart: [],
  containersToStart: [],
  ephemeralToStart: [],
  containersToKill: [],
  initializing: false,
};

describe('pod actions', () => {
  it('adopts a container that an older node labelled: no restart', () => {
    const web = container('web', { env: [{ name: 'A', value: '1' }], terminationMessagePath: '/dev/termination-log' });
    const status = observed([rc('web', 'running', { hash: hashWholeSpec(web), restartCount: 4 })]);
    expect(computePodActions({ pod: pod({ containers: [web] }), status })).toMatchObject(IDLE);
  });

  it('a change beside name and image does not restart a container of the newer form', () => {
    const web = container('web', { env: [{ name: 'A', value: 'changed' }] });
    expect(computePodActions({ pod: pod({ containers: [web] }), status: observed([rc('web', 'running')]) })).toMatchObject(IDLE);
  });

  it('gives a sandbox a number above all others, also where its time is not the newest', () => {
    const status = observed([], [box({ n: 1, attempt: 5, ready: false }), box({ n: 2, attempt: 4, ready: false })]);
    expect(computePodActions({ pod: pod(), status })).toMatchObject({ createSandbox: true, sandboxId: 'sandbox-1', attempt: 6 });
  });

  it('trap 18: a changed image restarts the container under policy Never', () => {
    const changed = pod({ restartPolicy: 'Never', containers: [container('web', { image: 'example.org/web:v2' })] });
    expect(computePodActions({ pod: changed, status: observed([rc('web', 'running')]) })).toMatchObject({
      killPod: false,
      containersToStart: ['web'],
      containersToKill: [{ id: 'web-1', reason: 'definitionChanged' }],
    });
  });

  it.each(['OnFailure', 'Never'] as const)(
    'starts what the worker stopped to replace it, however it ended, under policy %s',
    (restartPolicy) => {
      const spec = { restartPolicy, initContainers: [container('i')] };
      const act = (...containers: RuntimeContainer[]) => computePodActions({ pod: pod(spec), status: observed(containers) });
      const done = rc('i', 'exited');
      expect(act(done, rc('web', 'exited', { n: 2, replaced: true }))).toMatchObject({ killPod: false, containersToStart: ['web'] });
      expect(act(rc('i', 'exited', { replaced: true }))).toMatchObject({ killPod: false, initToStart: ['i'] });
      expect(act(rc('i', 'exited', { exitCode: 143, replaced: true }))).toMatchObject({ killPod: false, initToStart: ['i'] });
      expect(act(done, rc('web', 'exited', { n: 2 }))).toMatchObject({ killPod: true, containersToStart: [] });
    },
  );

  it('makes an OnFailure pod a new sandbox for what it stopped with the one before', () => {
    const lost = [box({ ready: false, ips: [] })];
    const act = (web: RuntimeContainer) => computePodActions({ pod: pod({ restartPolicy: 'OnFailure' }), status: observed([web], lost) });
    expect(act(rc('web', 'exited', { replaced: true }))).toMatchObject({ createSandbox: true, containersToStart: ['web'] });
    expect(act(rc('web', 'exited'))).toMatchObject({ createSandbox: false });
  });

  it('traps 36 and 59: a Never pod that ran and lost its sandbox is only stopped; others begin again with the first init container', () => {
    const lost = [box({ ready: false, ips: [] })];
    const initContainers = [container('i1'), container('i2')];
    const status = observed([rc('i1', 'exited'), rc('i2', 'exited', { n: 2 }), rc('web', 'exited', { n: 3, exitCode: 1 })], lost);
    const act = (restartPolicy: 'Never' | 'Always') => computePodActions({ pod: pod({ restartPolicy, initContainers }), status });
    expect(act('Never')).toMatchObject({ killPod: true, createSandbox: false, initToStart: [], containersToStart: [] });
    expect(act('Always')).toMatchObject({
      killPod: true,
      createSandbox: true,
      attempt: 1,
      initToStart: ['i1'],
      containersToStart: [],
      initializing: true,
    });
  });

  it('trap 35: host network toggled gives no old sandbox, a lost address does', () => {
    const moved = computePodActions({ pod: pod({ hostNetwork: true }), status: observed([rc('web', 'running')]) });
    const lost = computePodActions({ pod: pod(), status: observed([rc('web', 'running')], [box({ ips: [] })]) });
    expect([moved.sandboxId, lost.sandboxId]).toEqual(['', 'sandbox-1']);
  });

  it('a container that was created in an earlier sandbox and never started does not pass for one that was let begin', () => {
    const p = pod({ initContainers: [sidecar('s1')] });
    const act = (n: number) => computePodActions({ pod: p, status: observed([rc('web', 'created', { n })], [box({ attempt: 1, n: 5 })]) });
    expect(act(4)).toMatchObject({ initToStart: ['s1'], containersToStart: [], initializing: true });
    expect(act(6)).toMatchObject({ initToStart: ['s1'], containersToStart: ['web'] });
  });
});
