/** A static pod that refers to objects of the API does not run on a real daemon, by default. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import '../../programs.ts';
import { startNode } from '@actorlet/harness/src/index.ts';

it('a static pod with a service account is refused, and says why', async () => {
  await using node = await startNode({
    runtime: 'hollow',
    timeoutMs: 60_000,
    startTimeoutMs: 120_000,
    config: { featureGates: { PreventStaticPodAPIReferences: true } },
  });
  const pod = (name: string, spec: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, annotations: { 'actorlet.dev/hollow': 'run=forever' } },
    spec: { containers: [{ name: 'app', image: 'example.test/app:1' }], ...spec },
  });
  writeFileSync(join(node.dir, 'manifests', 'named.yaml'), JSON.stringify(pod('named', { serviceAccountName: 'robot' })));
  const plain = await node.apply(pod('plain', {}));
  await plain.phase('Running');
  expect((await node.containers()).map((c) => c.pod)).toEqual(['plain']);
  const told = async () =>
    expect(await node.why('named.yaml')).toContain('spec.serviceAccountName: a static pod cannot refer to API objects');
  await vi.waitFor(told, { timeout: 30_000, interval: 200 });
  expect((await node.containers()).map((c) => c.pod)).toEqual(['plain']);
}, 180_000);
