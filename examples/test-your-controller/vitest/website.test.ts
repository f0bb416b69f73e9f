import { readFileSync } from 'node:fs';
import { type RunningFleet, startFleet } from 'actorlet/fleet';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Controller, startController } from '../controller.ts';

const text = (file: string): string => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'shop' };
let fleet: RunningFleet;
let controller: Controller;

beforeAll(async () => {
  fleet = await startFleet({ nodes: 20, api: 'local' });
  await fleet.apply(text('manifests/crd.yaml'));
  controller = startController(fleet.kubeconfig);
  await fleet.ready();
});
afterAll(async () => {
  await controller?.stop();
  await fleet?.stop();
});

it('makes a Deployment of a Website', async () => {
  await fleet.apply(text('manifests/website.yaml'));
  await fleet.expect({ objects: deployment, condition: 'Available', atLeast: 1 });
});

it('scales it while containers are slow to start, and loses no replica', async () => {
  await fleet.inject(text('faults/slow-start.yaml'));
  await fleet.apply(text('manifests/website.yaml').replace('replicas: 4', 'replicas: 12'));
  const scaled = fleet.expect({ objects: deployment, field: 'status.availableReplicas', atLeast: 12 });
  const steady = fleet.expect({ objects: deployment, field: 'status.availableReplicas', atLeast: 4, within: '3s', holds: 'throughout' });
  await Promise.all([scaled, steady]);
  const pods = await fleet.objects({ kind: 'Pod', selector: 'website=shop' });
  expect(new Set(pods.map((pod) => (pod.spec as { nodeName: string }).nodeName)).size).toBeGreaterThan(1);
});
