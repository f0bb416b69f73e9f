/** A controller that replaces each pod that the node refuses, in virtual time. */
import { expect } from 'vitest';
import { waitingPodsView } from '../../../src/machines/pods/admission/messages.ts';
import { drop, inApi, must, NS } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import type { VirtualNode } from '../virtualNode.ts';

const MEASURED_MS = 20_000;
const huge = { requests: { cpu: '1000' }, limits: { cpu: '1000' } };

function make(h: VirtualNode, name: string, controller: string): void {
  const metadata = {
    name,
    namespace: 'default',
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'x', uid: controller, controller: true }],
  };
  const spec = { nodeName: 'n1', containers: [{ name: 'main', image: 'busybox:1', resources: huge }] };
  must(h, { verb: 'POST', path: `${NS}/pods`, body: { apiVersion: 'v1', kind: 'Pod', metadata, spec } });
}
const isRefused = (h: VirtualNode, name: string) => inApi(h, name)?.status.phase === 'Failed';

it('hears of about as many refusals as from the kubelet, and of the first at once', async ({ h }) => {
  const beganMs = h.time.clock.monoMs();
  const tookMs: number[] = [];
  while (h.time.clock.monoMs() - beganMs < MEASURED_MS) {
    const [name, fromMs] = [`p${tookMs.length}`, h.time.clock.monoMs()];
    make(h, name, 'set');
    await h.until(`${name} is refused`, () => isRefused(h, name));
    tookMs.push(h.time.clock.monoMs() - fromMs);
  }
  // The kubelet of 1.36 refused 16 and 23 in 20 s, beside 193 and 188 without a pace.
  expect(tookMs.length).toBeGreaterThan(10);
  expect(tookMs.length).toBeLessThan(20);
  expect(tookMs[0]).toBeLessThan(500);
  // Another controller, and many pods of one at once, wait no longer than that.
  make(h, 'other', 'other-set');
  for (let i = 0; i < 50; i++) make(h, `many-${i}`, 'set');
  await h.until('the other is refused', () => isRefused(h, 'other'), 500);
  await h.until('all are refused', () => Array.from({ length: 50 }, (_, i) => isRefused(h, `many-${i}`)).every(Boolean), 3_000);
});

it('shows a pod that is about to be refused, and lets it go when it is deleted meanwhile', async ({ h }) => {
  make(h, 'first', 'set');
  await h.until('it is refused', () => isRefused(h, 'first'));
  make(h, 'second', 'set');
  const waiting = () => [...(h.tree.registry.read(waitingPodsView)?.value.values() ?? [])];
  await h.until('it waits', () => waiting().length > 0);
  expect(waiting()).toMatchObject([{ wait: 'paced', refusal: expect.stringContaining('cpu') }]);
  drop(h, 'pods/second', 0);
  await h.until('nothing waits', () => waiting().length === 0);
});
