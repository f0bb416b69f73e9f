/** A twin of a cluster, with the real programs: what a scheduler knows of its nodes is what it knows of those of the cluster. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startFleet } from '../../../packages/fleet/src/index.ts';
import { factsOf, fromInto, ODD } from '../../../packages/fleet/test/from/odd.ts';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';

const dir = mkdtempSync(join(tmpdir(), 'actorlet-twin-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
beforeAll(() => {
  process.env.KUBEBUILDER_ASSETS ??= dirname(program('kube-apiserver'));
});

/** The controller manager takes the taint of nodes that are not Ready away a moment after they are. */
async function untainted(fleet: Awaited<ReturnType<typeof startFleet>>): Promise<void> {
  await fleet.ready();
  await expect.poll(async () => JSON.stringify(await fleet.objects({ kind: 'Node' }))).not.toContain('node.kubernetes.io/not-ready');
}

it('has nodes of the same shapes, and containers that do the same', { timeout: 300_000 }, async () => {
  const workers =
    "    - { name: workers, count: 2, labels: { pool: workers } }\n  pods:\n    - { images: ['**/job*'], run: 2s, exit: 3 }\n";
  const file = ODD + workers;
  await using fleet = await startFleet({ file, api: 'local' });
  await untainted(fleet);
  await fleet.apply({
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'job', namespace: 'default' } },
    spec: {
      backoffLimit: 0,
      template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'registry.example.com/team/job:1' }] } },
    },
  });
  await fleet.expect({ objects: { apiVersion: 'batch/v1', kind: 'Job', name: 'job' }, condition: 'Failed', atLeast: 1, within: '60s' });
  const real = await fleet.objects({ kind: 'Node' });
  const { text } = await fromInto(join(dir, 'twin.yaml'), { kubeconfig: fleet.kubeconfig });
  await fleet.stop();
  expect(text).toMatch(/images: \[ job,.*\n {6}(?:start: .*\n {6})?run: [12]s\n {6}exit: 3\n/);
  await using twin = await startFleet({ file: text, api: 'local' });
  await untainted(twin);
  expect((await twin.objects({ kind: 'Node' })).map(factsOf).sort()).toEqual(real.map(factsOf).sort());
});
