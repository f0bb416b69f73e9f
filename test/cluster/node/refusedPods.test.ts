/**
 * A Deployment whose pods the node refuses makes new ones for ever. How fast: beside the reference kubelet, on the same node, at
 * the same control plane, turn by turn. A node that refuses faster makes its cluster work harder.
 */
import { expect, it } from 'vitest';
import { NODE_NAME } from '../../e2e/daemon.ts';
import type { ReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { IMAGE } from '../../e2e/manifests.ts';
import { type Cluster, LONG } from '../cluster.ts';
import { besideReference } from '../hooks.ts';

const MEASURED_MS = 20_000;
/** Two machines' worth of noise: the agents take turns, and share this one with whatever else runs. */
const NOISE = 1.15;

let cluster: Cluster;
let reference: ReferenceKubelet;

const whyNot = besideReference((made) => ({ cluster, reference } = made));

/** Pods of the Deployment that were refused meanwhile. */
async function refusedIn(ms: number): Promise<number> {
  const template = {
    metadata: { labels: { app: 'refused' } },
    // Past the scheduler, so that the node has to say no.
    spec: { nodeName: NODE_NAME, containers: [{ name: 'main', image: IMAGE, resources: { requests: { cpu: '1000' } } }] },
  };
  const spec = { replicas: 1, selector: { matchLabels: { app: 'refused' } }, template };
  await cluster.apply({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'refused', namespace: 'default' }, spec });
  const failed = async () => (await cluster.pods('app=refused')).filter(({ status }) => status.phase === 'Failed').length;
  await cluster.daemon.wait('the first is refused', async () => (await failed()) > 0, LONG);
  const before = await failed();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const count = (await failed()) - before;
  await cluster.kubectl('delete', 'deployment', 'refused', '--cascade=foreground', '--timeout=100s');
  await cluster.kubectl('delete', 'pods', '-l', 'app=refused', '--grace-period=0', '--force', '--timeout=100s');
  return count;
}

it.skipIf(whyNot !== undefined)('a Deployment of refused pods runs away no faster than with the reference kubelet', async () => {
  const ready = () =>
    cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  const rounds: { ours: number; theirs: number }[] = [];
  for (const _ of [1, 2]) {
    await reference.start();
    await ready();
    const theirs = await refusedIn(MEASURED_MS);
    await reference.end('SIGTERM');
    await cluster.daemon.start();
    await ready();
    const ours = await refusedIn(MEASURED_MS);
    await cluster.daemon.end('SIGTERM');
    rounds.push({ ours, theirs });
  }
  console.log(`refused pods in ${MEASURED_MS / 1000} s: ${JSON.stringify(rounds)}`);
  const sum = (of: 'ours' | 'theirs') => rounds.reduce((total, round) => total + round[of], 0);
  expect(sum('theirs')).toBeGreaterThan(0);
  expect(sum('ours')).toBeGreaterThan(0);
  expect(sum('ours')).toBeLessThanOrEqual(sum('theirs') * NOISE);
});
