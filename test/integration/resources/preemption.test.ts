/** Critical pods on a node that is full, in virtual time: who makes room for them, how, and who does not. */
import { describe, expect } from 'vitest';
import { waitingPodsView } from '../../../src/machines/pods/admission/messages.ts';
import { cluster, create, createReady, events, inApi, isReady } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import { pod as manifest, type VirtualNode } from '../virtualNode.ts';

const CRITICAL = { priority: 2_000_000_000, priorityClassName: 'system-cluster-critical' };
const MESSAGE = 'Preempted in order to admit critical pod';
const IMPOSSIBLE =
  'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources:';

const asking = (cpu: string, more: object = {}) => ({ spec: more, container: { resources: { requests: { cpu } } } });
const running = (h: VirtualNode, name: string) => h.running().filter((c) => c.labels['io.kubernetes.pod.name'] === name);
const reason = (h: VirtualNode, name: string) => inApi(h, name)?.status.reason;
const cpus = (h: VirtualNode) => Number(h.node.facts.allocatable.cpu);

describe('a critical pod that finds no room', () => {
  it('drives out as few as can be, starts when they have ended, and they say why', async ({ h }) => {
    const all = cpus(h);
    create(h, 'large', { ...asking(String(all - 1), { terminationGracePeriodSeconds: 20 }), life: 'run=forever,term=ignore' });
    create(h, 'small', asking('500m'));
    await h.until('both Ready', () => isReady(h, 'large') && isReady(h, 'small'));
    create(h, 'critical', asking(String(all - 1), CRITICAL));
    await h.until('one is asked to go', () => events(h, 'Preempting').length > 0);
    await h.advance(5_000);
    // It may take its own grace, and until it has ended nobody takes its place.
    expect(running(h, 'large')).toHaveLength(1);
    expect(running(h, 'critical')).toEqual([]);
    expect(h.actor('node/pods/podManager')?.reason).toBe('LookingAgain');
    const waiting = [...(h.tree.registry.read(waitingPodsView)?.value.values() ?? [])];
    expect(waiting.map((w) => [w.pod.metadata.name, w.wait, [...w.leaving.keys()]])).toEqual([
      ['critical', 'room', [inApi(h, 'large')?.metadata.uid]],
    ]);
    await h.until('Ready', () => isReady(h, 'critical'), 60_000);
    expect(h.tree.registry.read(waitingPodsView)?.value.size).toBe(0);
    expect(running(h, 'large')).toEqual([]);
    expect(isReady(h, 'small')).toBe(true);
    expect(inApi(h, 'large')?.status).toMatchObject({ phase: 'Failed', reason: 'Preempting', message: MESSAGE });
    expect(inApi(h, 'large')?.status.conditions).toContainEqual(
      expect.objectContaining({
        ...{ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet' },
        message: 'Pod was preempted by Kubelet to accommodate a critical pod.',
      }),
    );
    expect(events(h, 'Preempting')).toEqual([MESSAGE]);
    expect(await h.metrics.render()).toMatch(/^kubelet_preemptions\{preemption_signal="cpu"\} 1$/m);
    expect(h.violations).toEqual([]);
  });

  it('is let in when one that makes room for it cannot be ended in time, and nobody else is; that one is ended all the same', async () => {
    await using h = await cluster({ config: { maxPods: 1 } });
    await createReady(h, 'stuck', { spec: { terminationGracePeriodSeconds: 20 } });
    const ends = new Set(['StopContainer', 'StopPodSandbox']);
    h.faults.fault = (method) => (ends.has(method) ? { kind: 'refuse', code: 2, details: 'cannot be stopped' } : undefined);
    create(h, 'critical', { spec: CRITICAL });
    await h.until('one is asked to go', () => events(h, 'Preempting').length > 0);
    await h.advance(25_000);
    expect([isReady(h, 'critical'), h.actor('node/pods/podManager')?.reason]).toEqual([false, 'LookingAgain']);
    create(h, 'late');
    await h.until('refused', () => reason(h, 'late') === 'OutOfpods');
    // 1.5 times its grace.
    await h.until('Ready', () => isReady(h, 'critical'), 20_000);
    expect(h.actor('node/pods/podManager')?.reason).toBe('Ready');
    expect(running(h, 'stuck')).toHaveLength(1);
    expect(events(h, 'ExceededGracePeriod')).toEqual(['Container runtime did not kill the pod within specified grace period.']);
    expect(h.lines.some((l) => l.msg.startsWith('letting a critical pod in'))).toBe(true);
    h.faults.fault = () => undefined;
    await h.until('it has ended', () => running(h, 'stuck').length === 0 && reason(h, 'stuck') === 'Preempting', 120_000);
    expect(isReady(h, 'critical')).toBe(true);
    expect(h.violations).toEqual([]);
  });

  it('keeps the room that is made for it: whoever comes meanwhile does not get it', async () => {
    await using h = await cluster({ config: { maxPods: 1 } });
    await createReady(h, 'old', { spec: { terminationGracePeriodSeconds: 20 }, life: 'run=forever,term=ignore' });
    create(h, 'critical', { spec: CRITICAL });
    await h.until('one is asked to go', () => events(h, 'Preempting').length > 0);
    create(h, 'late');
    await h.until('refused', () => reason(h, 'late') === 'OutOfpods');
    await h.until('Ready', () => isReady(h, 'critical'), 60_000);
    expect(events(h, 'Preempting')).toEqual([MESSAGE]);
  });

  it('asks nobody else when config or the pod manager begins anew over it', async () => {
    await using h = await cluster({ config: { maxPods: 2 } });
    const slow = { spec: { terminationGracePeriodSeconds: 25 }, life: 'run=forever,term=ignore' };
    create(h, 'a', slow);
    create(h, 'b', slow);
    await h.until('both Ready', () => isReady(h, 'a') && isReady(h, 'b'));
    create(h, 'critical', { spec: CRITICAL });
    await h.until('one is asked to go', () => events(h, 'Preempting').length > 0);
    await h.advance(2_000);
    h.kill('node/pods/config');
    await h.advance(2_000);
    h.kill('node/pods/podManager');
    await h.until('Ready', () => isReady(h, 'critical'), 120_000);
    expect(['a', 'b'].filter((name) => reason(h, name) === 'Preempting')).toHaveLength(1);
    expect(['a', 'b'].filter((name) => isReady(h, name))).toHaveLength(1);
  });

  it('resources trap 68: is refused for what no room can mend, and nobody has to go', async () => {
    await using h = await cluster({ config: { maxPods: 1 } });
    const port = { ports: [{ containerPort: 80, hostPort: 80 }] };
    await createReady(h, 'holder', { container: port });
    create(h, 'critical', { spec: CRITICAL, container: port });
    await h.until('refused', () => reason(h, 'critical') === 'NodePorts');
    await h.advance(30_000);
    expect(isReady(h, 'holder')).toBe(true);
    expect(events(h, 'Preempting')).toEqual([]);
  });

  it('is refused, and nobody has to go, where all of them together are not enough', async ({ h }) => {
    await createReady(h, 'web', asking('1'));
    const all = cpus(h);
    create(h, 'critical', asking(String(all + 1), CRITICAL));
    await h.until('refused', () => reason(h, 'critical') === 'UnexpectedAdmissionError');
    expect(inApi(h, 'critical')?.status.message).toBe(`Pod was rejected: ${IMPOSSIBLE} [(res: cpu, q: 1000), ]`);
    await h.advance(30_000);
    expect(isReady(h, 'web')).toBe(true);
    expect(events(h, 'Preempting')).toEqual([]);
  });

  it('may be a static one, and finds no room among other static ones', async () => {
    await using h = await cluster({ config: { maxPods: 1 } });
    await createReady(h, 'web', { spec: { terminationGracePeriodSeconds: 10 }, life: 'run=forever,term=ignore' });
    h.write('static', manifest('static'));
    await h.until('it is asked to go', () => events(h, 'Preempting').length > 0);
    await h.until('Running', () => h.phase('static') === 'Running', 60_000);
    await h.until('it says why', () => reason(h, 'web') === 'Preempting');
    h.write('second', manifest('second'));
    await h.until('refused', () => h.status('second')?.status.reason === 'UnexpectedAdmissionError');
    expect(h.phase('static')).toBe('Running');
  });
});
