import { startNode, type TestNode } from 'actorlet/harness';
import { afterAll, beforeAll, expect, it } from 'vitest';

const shopYaml = new URL('../pods/shop.yaml', import.meta.url);
const runtimeAway = new URL('../faults/runtime-away.yaml', import.meta.url);
let node: TestNode;

// One node for the file: it takes a second or two to come up. Pods of other tests do not disturb each other.
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.dispose());

it('serves once its migration is through', async () => {
  const shop = await node.apply(shopYaml);
  await shop.ready();
  expect(await shop.logs({ container: 'migrate' })).toBe('migrated to version 7\n');
  await shop.logged('serving', { container: 'web' });
  const { scheduledMs, startedMs, readyMs } = await shop.timings();
  expect(scheduledMs).not.toBeNull();
  expect(startedMs ?? 0).toBeGreaterThanOrEqual(scheduledMs ?? 0);
  expect(readyMs ?? 0).toBeGreaterThanOrEqual(startedMs ?? 0);
});

it('does not notice that the container runtime is restarted', async () => {
  const shop = node.pod('shop');
  await shop.ready();
  const before = await node.containers();
  await using fault = await node.inject(runtimeAway);
  await shop.stays('keep running', (pod) => pod.phase === 'Running' && pod.restarts === 0, { forMs: 3_000 });
  await fault.stop();
  await shop.ready();
  expect(await node.containers()).toEqual(before);
});

it('comes up late, but whole, when containers are slow to start', async () => {
  await using _fault = await node.inject({
    apiVersion: 'actorlet.dev/v1alpha1',
    kind: 'FaultScenario',
    metadata: { name: 'slow-start' },
    spec: { faults: [{ kind: 'cri', action: 'delay', delay: '2s', select: { methods: ['StartContainer'], pods: ['late-*'] } }] },
  });
  const late = await node.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'late' },
    spec: { containers: [{ name: 'app', image: 'actorlet.dev/sleep:latest' }] },
  });
  await late.ready();
  expect((await late.timings()).startedMs ?? 0).toBeGreaterThanOrEqual(1_900);
});

it('finishes what is open when it is taken away', async () => {
  await node.remove('shop');
  await node.pod('shop').gone();
  expect((await node.containers()).filter((c) => c.pod === 'shop' && c.state === 'running')).toEqual([]);
});
