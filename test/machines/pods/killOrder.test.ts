/** Order of stopping, pods that only the runtime remembers. `golden/workers/hooks.test.ts` has the grace. */
import { describe, expect, it } from 'vitest';
import { effectiveGraceSeconds, killPlan, podFromListed, stopTimeoutSeconds } from '../../../src/machines/pod/runtime/killOrder.ts';
import { container, observed, pod, rc, sidecar } from './fixtures.ts';

describe('grace', () => {
  it('traps 31, 32: time spent is deducted in whole seconds, and 2 s always remain', () => {
    expect([stopTimeoutSeconds(30, 1999), stopTimeoutSeconds(30, 29_500), stopTimeoutSeconds(0, 0)]).toEqual([29, 2, 2]);
  });
});

describe('order of stopping', () => {
  it('trap 39: sidecars stop after the regular containers, in reverse order; everything else at once', () => {
    const p = pod({ initContainers: [sidecar('s1'), container('i1'), sidecar('s2')], containers: [container('a'), container('b')] });
    const running = ['s1', 's2', 'a', 'b'].map((name, i) => rc(name, 'running', { n: i + 1 }));
    const plan = killPlan({ pod: p, status: observed([...running, rc('i1', 'exited', { n: 9 })]), graceSeconds: 10 });
    const waits = Object.fromEntries(plan.map((s) => [s.name, [...s.waitForIds].sort()]));
    expect(waits).toEqual({ a: [], b: [], s2: ['a-3', 'b-4'], s1: ['a-3', 'b-4', 's2-2'] });
    expect(plan.map((s) => s.graceSeconds)).toEqual([10, 10, 10, 10]);
  });

  it('trap 31: no preStop hook without grace; trap 33: a container that the definition lost is stopped all the same', () => {
    const preStop = { exec: { command: ['true'] } };
    const p = pod({ containers: [container('web', { lifecycle: { preStop } })] });
    const status = observed([rc('web', 'running'), rc('gone', 'running', { n: 2 })]);
    expect(killPlan({ pod: p, status, graceSeconds: 0 }).map((s) => [s.name, s.preStop])).toEqual([
      ['gone', undefined],
      ['web', undefined],
    ]);
    expect(killPlan({ pod: p, status }).map((s) => [s.name, s.graceSeconds, s.preStop])).toEqual([
      ['gone', 30, undefined],
      ['web', 30, preStop],
    ]);
  });

  it('rebuilds a pod from what its containers carry, each with its own grace', () => {
    const listed = {
      uid: 'u',
      name: 'p',
      namespace: 'ns',
      sandboxes: [
        { id: 's', ready: true, createdAtNs: 1n, attempt: 0, labels: { app: 'x', 'io.kubernetes.pod.uid': 'u' }, annotations: {} },
      ],
      containers: [
        {
          id: 'new',
          name: 'web',
          sandboxId: 's',
          state: 'running' as const,
          createdAtNs: 2n,
          labels: {},
          annotations: {
            'io.kubernetes.pod.terminationGracePeriod': '7',
            'io.kubernetes.container.preStopHandler': '{"exec":{"command":["bye"]}}',
            'io.kubernetes.container.ports': 'not json',
          },
        },
        { id: 'old', name: 'web', sandboxId: 's', state: 'exited' as const, createdAtNs: 1n, labels: {}, annotations: {} },
      ],
    };
    const rebuilt = podFromListed(listed);
    expect(rebuilt.metadata).toMatchObject({ uid: 'u', name: 'p', namespace: 'ns', labels: { app: 'x' } });
    expect(rebuilt.spec).toEqual({
      containers: [{ name: 'web', lifecycle: { preStop: { exec: { command: ['bye'] } } } }],
      terminationGracePeriodSeconds: 7,
    });
  });

  it('seed 200072: containers that the listing did not show yet are stopped with the grace they were created with', () => {
    const listed = { uid: 'u', name: 'p', namespace: 'ns', sandboxes: [], containers: [] };
    const rebuilt = podFromListed(listed);
    const grace = effectiveGraceSeconds({ pod: rebuilt });
    const status = observed([
      rc('web', 'running', { annotations: { 'io.kubernetes.pod.terminationGracePeriod': '30' } }),
      rc('deleted', 'running', {
        annotations: { 'io.kubernetes.pod.terminationGracePeriod': '30', 'io.kubernetes.pod.deletionGracePeriod': '7' },
      }),
      rc('unlabelled', 'running'),
    ]);
    const plan = killPlan({ pod: rebuilt, status, graceSeconds: grace });
    expect(Object.fromEntries(plan.map((s) => [s.name, s.graceSeconds]))).toEqual({ web: 30, deleted: 7, unlabelled: 1 });
  });
});
