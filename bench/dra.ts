/**
 * A pod with a ResourceClaim beside a pod without one, in turns on one real cluster: from bound to Ready, less what the driver itself
 * took to prepare. As root, after `npm run e2e:setup`, with containerd 2 and programs of 1.34 or later in KUBEBUILDER_ASSETS.
 * Options: --rounds=20 --out=FILE
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Container } from '../src/machines/kube/podTable.ts';
import { startDraDriver, type WireClaim } from '../test/allocation/draDriver.ts';
import { LONG, startCluster } from '../test/cluster/cluster.ts';
import { NODE_NAME } from '../test/e2e/daemon.ts';
import { steady } from '../test/e2e/manifests.ts';
import { ClusterView } from './lib/cluster.ts';
import { numberOption, report, say, summary } from './lib/report.ts';

const rounds = numberOption('rounds', 20);
const DRIVER = 'bench.example.com';
/** The first pods meet cold caches. */
const WARM_UP = 2;
/** What the work asks for: a claim costs no more than that beside the driver's own time. */
const BAR = 1.1;
const READY_TIMEOUT_MS = 60_000;

const c = await startCluster();
const view = await ClusterView.open(c.plane);
/** By the name of the claim. */
const ownMs = new Map<string, number>();

function prepare({ name, uid }: WireClaim): object[] {
  const beganMs = performance.now();
  const kind = `${DRIVER}/claim`;
  mkdirSync(join(c.lab.dir, 'cdi'), { recursive: true });
  const containerEdits = { env: ['CLAIMED=1'] };
  writeFileSync(
    join(c.lab.dir, 'cdi', `${uid}.json`),
    JSON.stringify({ cdiVersion: '0.6.0', kind, devices: [{ name: uid, containerEdits }] }),
  );
  ownMs.set(name, performance.now() - beganMs);
  return [{ requestNames: [], poolName: NODE_NAME, deviceName: name, cdiDeviceIds: [`${kind}=${uid}`] }];
}
const api = (kind: string, name: string, spec: object) => ({ apiVersion: 'resource.k8s.io/v1', kind, metadata: { name }, spec });

async function readyMs(name: string, spec: { containers: Container[] } & object): Promise<number> {
  const body = { metadata: { name }, spec: { terminationGracePeriodSeconds: 1, ...spec } };
  const pod = await view.create(body);
  await view.ready([pod], READY_TIMEOUT_MS);
  const tookMs = (pod.readyMs ?? Number.NaN) - (pod.boundMs ?? Number.NaN);
  await view.remove(pod, 1);
  await view.gone([pod], READY_TIMEOUT_MS);
  return tookMs;
}

try {
  const driver = await startDraDriver({ name: DRIVER, socket: join(c.daemon.rootDir, 'plugins_registry', `${DRIVER}-reg.sock`), prepare });
  await c.daemon.wait('the driver is registered', () => driver.told.includes(''), LONG);
  const devices = Array.from({ length: rounds + WARM_UP }, (_, i) => ({ name: `d${i}` }));
  const pool = { name: NODE_NAME, generation: 1, resourceSliceCount: 1 };
  await c.daemon.wait('old slices are gone', async () => (await c.kubectl('get', 'resourceslices', '-o', 'name')).trim() === '', LONG);
  await c.apply(
    api('DeviceClass', 'bench', { selectors: [{ cel: { expression: `device.driver == "${DRIVER}"` } }] }),
    api('ResourceSlice', 'bench', { driver: DRIVER, nodeName: NODE_NAME, pool, devices }),
  );
  const samples = { without: [] as number[], claimed: [] as number[], driver: [] as number[] };
  for (let i = -WARM_UP; i < rounds; i++) {
    const name = `claim-${i + WARM_UP}`;
    await c.apply(api('ResourceClaim', name, { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'bench' } }] } }));
    const claimed = {
      resourceClaims: [{ name: 'c', resourceClaimName: name }],
      containers: [steady('main', { resources: { claims: [{ name: 'c' }] } })],
    };
    const turns = [
      async () => ({ of: 'without' as const, ms: await readyMs(`plain-${i + WARM_UP}`, { containers: [steady()] }) }),
      async () => ({ of: 'claimed' as const, ms: await readyMs(`claimed-${i + WARM_UP}`, claimed) }),
    ];
    for (const turn of i % 2 === 0 ? turns : turns.reverse()) {
      const { of, ms } = await turn();
      if (i >= 0) samples[of].push(ms);
    }
    if (i >= 0) samples.driver.push(ownMs.get(name) ?? 0);
    say(`round ${i}: ${samples.without.at(-1)?.toFixed(0)} ms without, ${samples.claimed.at(-1)?.toFixed(0)} ms with a claim`);
  }
  driver.stop();
  const [without, claimed, own] = [summary(samples.without), summary(samples.claimed), summary(samples.driver)];
  const ratio = Math.round(((claimed.p50 - own.p50) / without.p50) * 1000) / 1000;
  await report('dra', { rounds, bar: BAR, boundToReadyMs: { without, claimed }, driverMs: own, ratio });
} finally {
  view.close();
  await c.stop();
}
