/** Every actor of the tree, killed while all is well, and while settled pods sleep. */
import { expect, it } from 'vitest';
import { type VirtualNode, virtualNode } from '../virtualNode.ts';
import { allActors, BYSTANDERS, bystandersUp, createJudge, type KillCase } from './killing.ts';

const options = { servers: true, config: { staticPodURL: 'http://example.test/pods' } };

it('an actor of any kind that is killed while all is well leaves no trace in pods and containers', async () => {
  const h = await virtualNode({ ...options, manifests: BYSTANDERS });
  await bystandersUp(h);
  const paths = allActors(h.tree.state()).map((a) => a.path);
  await h[Symbol.asyncDispose]();
  expect(paths.length).toBeGreaterThan(25);
  const judge = createJudge();
  const failures: string[] = [];
  for (const path of paths.filter((p) => p !== 'node')) {
    const c: KillCase = { covers: `any ${path}`, story: 'all is well', path, options, at: (n) => n.actor(path)?.lifecycle === 'running' };
    await judge.killed(c).catch((error: unknown) => failures.push(`${path}: ${error instanceof Error ? error.message : error}`));
  }
  expect(failures).toEqual([]);
}, 60_000);

it('an actor that is killed while settled pods sleep, a sleeper too, leaves no trace either', async () => {
  const asleep = (h: VirtualNode) => Object.keys(BYSTANDERS).every((n) => h.actor(h.workerPath(n))?.lifecycle === 'asleep');
  const judge = createJudge();
  const paths: KillCase['path'][] = [
    ...[(h: VirtualNode) => h.workerPath('web'), (h: VirtualNode) => h.workerPath('full')],
    ...[
      'node/pods/workers',
      'node/pods/podManager',
      'node/pods/status',
      'node/pods',
      'node/runtime/pleg',
      'node/runtime',
      'node/services/probes',
    ],
  ];
  const failures: string[] = [];
  for (const path of paths) {
    const c: KillCase = {
      ...{ covers: 'podWorker syncing.settled', story: 'all sleep', path, options },
      arrange: (h) => h.until('settled pods sleep', () => asleep(h), 60_000),
      at: asleep,
    };
    await judge.killed(c).catch((error: unknown) => failures.push(`${path}: ${error instanceof Error ? error.message : error}`));
  }
  expect(failures).toEqual([]);
}, 60_000);
