/** What a burst of pods costs in calls, and in which order its pods come up. */
import { describe, expect } from 'vitest';
import type { CriMethod } from '../../../src/machines/wire/criCalls.ts';
import { itOnNode as it } from '../onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const PODS = 40;

async function burst(h: VirtualNode, lookMs = 0): Promise<string[]> {
  Object.assign(h.faults.latencyMs, { RunPodSandbox: 300, CreateContainer: 50, StartContainer: 100 });
  for (const look of ['ListPodSandbox', 'ListContainers', 'PodSandboxStatus', 'ContainerStatus'] as const)
    if (lookMs > 0) h.faults.latencyMs[look] = lookMs;
  const names = Array.from({ length: PODS }, (_, i) => `p${i}`);
  for (const name of names) h.write(name, pod(name));
  await h.until('every pod runs', () => names.every((name) => h.phase(name) === 'Running'), 300_000);
  return names;
}

/** Calls of that method that ask about one pod, or about one sandbox or container. */
function ofOnePod(h: VirtualNode, method: CriMethod): number {
  return h.calls.filter((c) => c.method === method && Object.keys((c.req as { filter?: object }).filter ?? c.req ?? {}).length > 0).length;
}

describe('a burst of pods', () => {
  it.each([0, 450])(
    'costs few reads of the runtime: what an act made is read alone, and a listing that is behind it asks for nothing, also where a read takes %i ms',
    async (lookMs) => {
      await using h = await virtualNode();
      await burst(h, lookMs);
      // One whole inspection before the sandbox is asked for, and one for an act and a look in the same virtual millisecond.
      expect(ofOnePod(h, 'ListPodSandbox')).toBeLessThanOrEqual(2.2 * PODS);
      expect(ofOnePod(h, 'ListContainers')).toBeLessThanOrEqual(2.2 * PODS);
      expect(ofOnePod(h, 'PodSandboxStatus')).toBeLessThanOrEqual(1.1 * PODS);
      expect(ofOnePod(h, 'ContainerStatus')).toBeLessThanOrEqual(1.1 * PODS);
    },
  );

  it('finishes pods whose sandbox is there before it asks for more sandboxes', async ({ h }) => {
    Object.assign(h.faults.latencyMs, { RunPodSandbox: 300, CreateContainer: 50, StartContainer: 100 });
    for (let i = 0; i < PODS; i++) h.write(`p${i}`, pod(`p${i}`));
    await h.until('the first pod runs', () => h.running().length > 0);
    expect(h.calls.filter((c) => c.method === 'RunPodSandbox').length).toBeLessThan(PODS / 2);
    await h.until('every pod runs', () => h.running().length === PODS, 300_000);
  });
});

describe('a pod of very many containers', () => {
  it('has few of them on their way at once, so that no other pod waits for all of them; and one that fails holds up none', async ({
    h,
  }) => {
    Object.assign(h.faults.latencyMs, { CreateContainer: 1_000 });
    const image = (i: number) => (i < 10 ? 'nowhere.example/missing:1' : 'busybox:1');
    const containers = Array.from({ length: 60 }, (_, i) => ({
      name: `c${i}`,
      image: image(i),
      imagePullPolicy: i < 10 ? 'Never' : undefined,
    }));
    const big = pod('big') as { spec: object };
    h.write('big', { ...big, spec: { ...big.spec, containers } });
    const asked = () => h.calls.filter((c) => c.method === 'ImageStatus').length;
    await h.until('a container is asked for', () => h.calls.some((c) => c.method === 'CreateContainer'));
    expect(asked()).toBeLessThanOrEqual(10 + 2 * 8);
    await h.until('all that can run do', () => h.running().length === 50, 300_000);
  });
});

describe('the end of a burst of pods', () => {
  it('costs no read of a sandbox or of a running container: listings say all that a stop needs', async ({ h }) => {
    const names = await burst(h);
    await h.advance(30_000);
    const asked = { PodSandboxStatus: ofOnePod(h, 'PodSandboxStatus'), ContainerStatus: ofOnePod(h, 'ContainerStatus') };
    for (const name of names) h.remove(name);
    await h.until('nothing is up', () => h.runtime.dump().sandboxes.every((s) => !s.ready), 300_000);
    await h.advance(2_000);
    expect(ofOnePod(h, 'PodSandboxStatus') - asked.PodSandboxStatus).toBeLessThanOrEqual(0.1 * PODS);
    // Once each, for how it ended.
    expect(ofOnePod(h, 'ContainerStatus') - asked.ContainerStatus).toBeLessThanOrEqual(1.1 * PODS);
  });
});

describe('a partial inspection', () => {
  it('does not hide a container that ended while another one was started, though no hint came', async ({ h }) => {
    h.faults.hintCopies = 0;
    Object.assign(h.faults.latencyMs, { StartContainer: 3_000 });
    const { spec, ...rest } = pod('two', { life: 'run=1s,exit=1' }) as { spec: { containers: object[] } };
    const [first] = spec.containers;
    h.write('two', { ...rest, spec: { ...spec, containers: [first, { ...first, name: 'other' }] } });
    await h.until(
      'both were started again',
      () =>
        new Set(
          h
            .containers('two')
            .filter((c) => c.attempt > 0)
            .map((c) => c.name),
        ).size === 2,
      120_000,
    );
    expect(h.violations).toEqual([]);
  });
});

it('a hundred pods at once all run, keep running through a kill of the daemon, and all go', async ({ h }) => {
  const names = Array.from({ length: 100 }, (_, i) => `web-${i}`);
  for (const name of names) h.write(name, pod(name));
  await h.until('all run', () => h.running().length === 100 && names.every((n) => h.phase(n) === 'Running'), 120_000);
  const ids = h
    .running()
    .map((c) => c.id)
    .sort();
  await h.restart();
  await h.until('all are shown running', () => h.pods().length === 100 && h.pods().every((p) => p.status?.phase === 'Running'), 60_000);
  expect(
    h
      .running()
      .map((c) => c.id)
      .sort(),
  ).toEqual(ids);
  for (const name of names) h.remove(name);
  await h.until('nothing is left', () => h.runtime.dump().containers.length + h.runtime.dump().sandboxes.length === 0, 300_000);
  expect(h.violations).toEqual([]);
}, 30_000);
