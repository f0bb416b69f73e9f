import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { startNode, type TestNode } from 'actorlet/harness';

const flakyYaml = new URL('../pods/flaky.yaml', import.meta.url);
let node: TestNode;

before(async () => {
  node = await startNode();
});
after(() => node.dispose());

it('is started again when it fails, and held back in between', async () => {
  const flaky = await node.apply(flakyYaml);
  await flaky.phase('Running');
  await flaky.restarts(1);
  await flaky.where('wait in back-off', (pod) => pod.reason === 'CrashLoopBackOff');
  const { restarts } = await flaky.timings();
  assert.equal(restarts[0]?.exitCode, 3);
  assert.match(await node.why('flaky'), /CrashLoopBackOff/);
});

it('outlives its node agent', async () => {
  const steady = await node.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'steady' },
    spec: { containers: [{ name: 'app', image: 'actorlet.dev/sleep:latest' }] },
  });
  await steady.ready();
  const idsOf = async () => (await node.containers()).filter((c) => c.pod === 'steady').map((c) => c.id);
  const before = await idsOf();
  await node.kill('SIGKILL');
  await node.restart();
  await steady.ready();
  assert.deepEqual(await idsOf(), before);
});
