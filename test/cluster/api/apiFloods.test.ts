/**
 * What others send the API server, however much, and how long it says to wait: a real server behind a proxy that adds bookmarks and
 * names delays. The node goes on with its other pods.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { type ApiProxy, startApiProxy } from '../../e2e/lab/cluster/apiProxy.ts';
import { sh } from '../../e2e/manifests.ts';
import { type Cluster, isReady, LONG, STAY, startCluster } from '../cluster.ts';

/** Of one pod; the bug was seen with 20,000. */
const CHANGES = 3_000;
const AT_ONCE = 24;
const BOOKMARKS = 50_000;
/** Of another pod's start beside a flood, against a start without one. The bug took 16.6 s in place of 0.2 s. */
const SLOWER_MAX = 4;
const PODS_PATH = '/api/v1/pods';

let cluster: Cluster;
let proxy: ApiProxy;

beforeAll(async () => {
  const flags = { 'kube-controller-manager': ['--node-monitor-grace-period=10m'] };
  cluster = await startCluster({
    kubeconfig: async (plane) => {
      proxy = await startApiProxy(plane, NODE_NAME);
      return proxy.kubeconfig;
    },
    plane: { controllerManager: true, scheduler: true, flags },
  });
});
afterAll(async () => {
  await cluster?.daemon.end('SIGKILL');
  await proxy?.stop();
  await cluster?.stop();
});

const steady = { nodeName: NODE_NAME, containers: [sh('main', STAY)] };
async function msToReady(name: string): Promise<number> {
  const beganMs = performance.now();
  await cluster.create(name, steady);
  await cluster.podWhere(name, 'is Ready', isReady);
  return performance.now() - beganMs;
}

it('starts another pod while one is changed all the time', async () => {
  await cluster.create('busy', steady);
  await cluster.ready('busy');
  const quietMs = Math.max(await msToReady('before-1'), await msToReady('before-2'));
  let changed = 0;
  const change = async (): Promise<void> => {
    while (changed < CHANGES) {
      changed += 1;
      await cluster.merge('pods/busy', { metadata: { annotations: { change: String(changed) } } });
    }
  };
  const flood = Promise.all(Array.from({ length: AT_ONCE }, change));
  await cluster.daemon.wait('the flood', async () => changed > CHANGES / 4);
  const besideMs = await msToReady('beside');
  expect(changed).toBeLessThan(CHANGES);
  await flood;
  console.log(`Ready after ${Math.round(quietMs)} ms, beside a flood of changes after ${Math.round(besideMs)} ms`);
  expect(besideMs).toBeLessThan(SLOWER_MAX * quietMs + 1_000);
});

it('starts a pod that comes behind many bookmarks', async () => {
  proxy.bookmarksBefore = (object) => ((object.metadata as { name?: string }).name === 'behind' ? BOOKMARKS : 0);
  // The watch is opened anew, through the proxy as it is now.
  proxy.rewrite = (object) => object;
  proxy.cut();
  const tookMs = await msToReady('behind');
  proxy.rewrite = undefined;
  proxy.bookmarksBefore = undefined;
  proxy.cut();
  console.log(`Ready behind ${BOOKMARKS} bookmarks after ${Math.round(tookMs)} ms`);
  expect(tookMs).toBeLessThan(30_000);
});

it('is deaf for a minute at most, whatever Retry-After the server names, and says that it is', async () => {
  proxy.fault = (call) =>
    call.path === PODS_PATH ? { kind: 'refused', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 3_000_000 } : undefined;
  proxy.cut();
  await cluster.daemon.wait('it was refused', async () => (proxy.faults.get('refused') ?? 0) > 0, LONG);
  await cluster.create('waits', steady);
  proxy.fault = () => undefined;
  const beganMs = performance.now();
  await cluster.podWhere('waits', 'is Ready', isReady);
  const tookMs = performance.now() - beganMs;
  console.log(`heard again after ${Math.round(tookMs)} ms`);
  expect(tookMs).toBeLessThan(75_000);
});
