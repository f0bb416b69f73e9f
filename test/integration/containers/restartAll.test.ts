/** A rule that restarts all containers of a pod in place (KEP-5532), on a whole node in virtual time. */
import { describe, expect } from 'vitest';
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../../src/machines/kube/types.ts';
import { itWith } from '../onNode.ts';
import { pod, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';

const ALL = 88;
const rules = (action = 'RestartAllContainers') => [{ action, exitCodes: { operator: 'In', values: [ALL] } }];
const main = { name: 'main', image: 'busybox:1', restartPolicy: 'Never', restartPolicyRules: rules() };
/** A pod whose main container ends once so, beside one that ends for good at once, one that stays, a sidecar and an init container. */
const training = (more: object = {}) =>
  pod('web', {
    lives: { main: `run=5s,exit=${ALL};`, 'init-0': 'run=100ms', once: 'run=1s,exit=0' },
    inits: [{}, { restartPolicy: 'Always' }],
    spec: {
      restartPolicy: 'Never',
      containers: [main, { name: 'once', image: 'busybox:1' }, { name: 'stays', image: 'busybox:1' }],
      ...more,
    },
  });
const NAMES = ['init-0', 'init-1', 'main', 'once', 'stays'];

interface Call {
  method: string;
  name: string;
}
async function watched(options: VirtualNodeOptions = {}): Promise<VirtualNode & { seen: Call[] }> {
  const h = await virtualNode(options);
  const seen: Call[] = [];
  h.faults.fault = (method, req) => {
    const { containerId, config } = req as { containerId?: string; config?: { metadata: { name: string } } };
    const name = h.runtime.dump().containers.find((c) => c.id === containerId)?.name ?? config?.metadata.name ?? '';
    seen.push({ method, name });
    return undefined;
  };
  return Object.assign(h, { seen });
}
const it = itWith(watched);
const PODS = '/api/v1/namespaces/default/pods';
function statusOf(h: VirtualNode): PodStatus | undefined {
  const told = h.kube.handle({ verb: 'GET', path: `${PODS}/web` });
  return told.ok ? (told.body as Pod).status : h.status('web')?.status;
}
const all = (h: VirtualNode): ContainerStatus[] => {
  const status = statusOf(h);
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
};
const counts = (h: VirtualNode) => Object.fromEntries(all(h).map((s) => [s.name, s.restartCount]));
const condition = (h: VirtualNode, type: string): PodCondition | undefined => statusOf(h)?.conditions?.find((c) => c.type === type);
const again = (h: VirtualNode) =>
  h.until(
    'all of it ran twice',
    () => all(h).every((s) => s.restartCount === 1) && all(h).filter((s) => s.state.running !== undefined).length === 3,
    60_000,
  );

describe('an end that restarts all containers', () => {
  it('takes them away in order, those that asked for it last, and starts them in the same sandbox, init containers first', async ({
    h,
  }) => {
    h.write('web', training());
    await h.until('it runs', () => h.phase('web') === 'Running' && condition(h, 'Ready') !== undefined);
    const sandboxes = h.runtime.dump().sandboxes.map((s) => s.id);
    h.seen.length = 0;
    await again(h);
    const of = (method: string) => h.seen.filter((s) => s.method === method).map((s) => s.name);
    expect(of('StopContainer')).toEqual(['stays', 'init-1']);
    const removed = of('RemoveContainer');
    expect([...removed].sort()).toEqual(NAMES);
    expect(removed.slice(0, 2).sort()).toEqual(['once', 'stays']);
    expect(removed.at(-1)).toBe('main');
    expect(of('StartContainer').slice(0, 2)).toEqual(['init-0', 'init-1']);
    expect(h.runtime.dump().sandboxes.map((s) => s.id)).toEqual(sandboxes);
    expect(counts(h)).toEqual({ 'init-0': 1, 'init-1': 1, main: 1, once: 1, stays: 1 });
  });

  /** A start cannot be called back: what it made goes too, before what asked, or a daemon that begins in between would keep it. */
  it.each(['CreateContainer', 'StartContainer'] as const)(
    'waits for a %s that is under way, and takes away what that made',
    async (method) => {
      await using h = await watched();
      h.faults.deaf = true;
      const { fault } = h.faults;
      h.faults.fault = (called, req) => {
        fault(called, req);
        h.faults.latencyMs[method] = h.seen.at(-1)?.name === 'late' ? 1_000 : 0;
        return undefined;
      };
      h.faults.latencyMs.PullImage = 1_500;
      const late = { name: 'late', image: 'late:1' };
      h.write('web', pod('web', { lives: { main: `run=2s,exit=${ALL};` }, spec: { containers: [main, late] } }));
      await h.until('both run after it', () => counts(h).main === 1 && h.running('web').length === 2, 60_000);
      expect(h.seen.filter((s) => s.method === 'RemoveContainer').map((s) => s.name)).toEqual(['late', 'main']);
      expect(h.violations).toEqual([]);
    },
  );

  it('shows each container as taken away, and is told by the condition until all are', async ({ h }) => {
    await h.run('web', training());
    expect(condition(h, 'AllContainersRestarting')?.status).toBe('False');
    h.faults.latencyMs.RemoveContainer = 1_000;
    await h.until('it restarts', () => condition(h, 'AllContainersRestarting')?.status === 'True', 60_000);
    expect(condition(h, 'AllContainersRestarting')).toMatchObject({
      reason: 'RestartAllContainersStarted',
      message: 'container exited with restart policy rule',
    });
    expect(h.phase('web')).toBe('Running');
    await h.until('all are gone', () => condition(h, 'AllContainersRestarting')?.status === 'False', 60_000);
    expect(condition(h, 'Initialized')?.status).toBe('True');
    for (const s of all(h)) expect(s.lastState.terminated).toMatchObject({ reason: 'RestartingAllContainers', exitCode: 137 });
    h.faults.latencyMs = {};
    await again(h);
    for (const s of all(h)) expect(s.lastState.terminated?.reason).toBe('RestartingAllContainers');
    expect(h.phase('web')).toBe('Running');
  });

  it('runs no preStop hook, and gives the least time to end', async ({ h }) => {
    const lifecycle = { preStop: { sleep: { seconds: 20 } } };
    h.write('web', training({ containers: [main, { name: 'stays', image: 'busybox:1', lifecycle }] }));
    const began = () => h.time.clock.monoMs();
    await h.until('it restarts', () => condition(h, 'AllContainersRestarting')?.status === 'True', 60_000);
    const at = began();
    await h.until('all are gone', () => condition(h, 'AllContainersRestarting')?.status === 'False', 60_000);
    expect(began() - at).toBeLessThan(5_000);
    expect(h.calls.filter((c) => c.method === 'StopContainer').map((c) => Number((c.req as { timeout: unknown }).timeout))).toEqual([2, 2]);
  });

  it('applies to init containers and sidecars too; the first rule that is about the code decides', async ({ h }) => {
    const sidecar = { restartPolicy: 'Always', restartPolicyRules: [...rules(), ...rules('Restart')] };
    h.write('web', pod('web', { lives: { 'init-0': `run=2s,exit=${ALL};` }, inits: [sidecar] }));
    await h.until('both ran twice', () => all(h).length === 2 && all(h).every((s) => s.restartCount === 1 && s.state.running), 60_000);
    h.write(
      'one',
      pod('one', {
        life: `run=2s,exit=${ALL};`,
        container: { restartPolicy: 'Never', restartPolicyRules: [...rules('Restart'), ...rules()] },
      }),
    );
    await h.until('it ran twice', () => h.status('one')?.status.containerStatuses?.[0]?.restartCount === 1, 60_000);
    expect(h.status('one')?.status.containerStatuses?.[0]?.lastState.terminated?.exitCode).toBe(ALL);
  });

  it('is slowed down where it comes again and again', async ({ h }) => {
    h.write('web', pod('web', { life: `run=1s,exit=${ALL}`, container: { restartPolicy: 'Never', restartPolicyRules: rules() } }));
    await h.advance(300_000);
    const starts = h.seen.filter((s) => s.method === 'StartContainer').length;
    expect(starts).toBeGreaterThan(20);
    expect(starts).toBeLessThan(60);
  });

  it('goes on with what is left where one cannot be removed, and where the daemon is killed in the middle', async ({ h }) => {
    h.write('web', training());
    let refused = 0;
    const { fault } = h.faults;
    h.faults.fault = (method, req) => {
      fault(method, req);
      return method === 'RemoveContainer' && refused++ < 3 ? { kind: 'refuse', code: 13, details: 'no' } : undefined;
    };
    await again(h);
    expect(refused).toBeGreaterThan(3);
    // The API server remembers what was said of it.
    await using k = await watched({ cluster: true });
    const { spec, ...rest } = training() as Pod;
    k.kube.handle({ verb: 'POST', path: PODS, body: { ...rest, spec: { ...spec, nodeName: 'n1' } } });
    k.faults.latencyMs.RemoveContainer = 2_000;
    await k.until('some are gone', () => k.seen.filter((s) => s.method === 'RemoveContainer').length > 2, 60_000);
    await k.crash();
    k.faults.latencyMs = {};
    await k.boot();
    await again(k);
    expect(k.violations).toEqual([]);
  });

  it('begins in a new sandbox where there is none any more', async ({ h }) => {
    await h.run('web', training());
    h.faults.latencyMs.RemoveContainer = 1_000;
    await h.until('it restarts', () => condition(h, 'AllContainersRestarting')?.status === 'True', 60_000);
    const [sandbox] = h.runtime.dump().sandboxes;
    await h.runtime.call('StopPodSandbox', { podSandboxId: sandbox?.id ?? '' }, { timeoutMs: null, signal: new AbortController().signal });
    h.faults.latencyMs = {};
    await h.until(
      'it runs again',
      () => h.running('web').length === 3 && condition(h, 'AllContainersRestarting')?.status === 'False',
      120_000,
    );
    expect(h.phase('web')).toBe('Running');
  });

  it('does not hold up the end of a pod that is deleted meanwhile', async ({ h }) => {
    h.write('web', training());
    h.faults.latencyMs.RemoveContainer = 1_000;
    await h.until('it restarts', () => condition(h, 'AllContainersRestarting')?.status === 'True', 60_000);
    h.remove('web');
    await h.until('it is gone', () => h.containers('web').length === 0 && h.record('web') === undefined, 120_000);
  });
});
