import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, it } from 'node:test';
import { type RunningFleet, startFleet } from 'actorlet/fleet';
import { type Controller, startController } from '../controller.ts';

const text = (file: string): string => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'shop' };
let fleet: RunningFleet;
let controller: Controller;

before(async () => {
  fleet = await startFleet({ nodes: 20, api: 'local' });
  await fleet.apply(text('manifests/crd.yaml'));
  controller = startController(fleet.kubeconfig);
  await fleet.ready();
});
after(async () => {
  await controller?.stop();
  await fleet?.stop();
});

it('makes the Deployment again that somebody deletes, also on slow nodes', async () => {
  await fleet.apply(text('manifests/website.yaml'));
  await fleet.expect({ objects: deployment, condition: 'Available', atLeast: 1 });
  const [first] = await fleet.objects(deployment);
  await fleet.inject(text('faults/slow-start.yaml'));
  await fleet.remove({ ...deployment, metadata: { name: deployment.name } });
  await fleet.expect({ objects: deployment, field: 'status.availableReplicas', atLeast: 4 });
  const [second] = await fleet.objects(deployment);
  assert.notEqual(second?.metadata.uid, first?.metadata.uid);
});

it('leaves no pod behind when the Website has no replicas any more', async () => {
  await fleet.apply(text('manifests/website.yaml').replace('replicas: 4', 'replicas: 0'));
  await fleet.expect({ objects: { kind: 'Pod', selector: 'website=shop' }, atMost: 0 });
  await fleet.expect({ leftBehind: 0 });
});
