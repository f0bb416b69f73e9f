/** Dynamic resources in a real cluster: a driver of our own beside a real daemon, the scheduler's allocations, CDI devices in real containers. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeClaims } from '../../../src/machines/allocation/claims/checkpoint.ts';
import { startDraDriver, type TestDraDriver, type WireClaim } from '../../allocation/draDriver.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { minorVersion } from '../../e2e/lab/cluster/controlPlane.ts';
import { sh } from '../../e2e/manifests.ts';
import { type Cluster, LONG, STAY, startCluster } from '../cluster.ts';

/** resource.k8s.io/v1 is GA there. */
const CLAIMS_SINCE = 34;
const NAME = 'gpu.example.com';
const KIND = `${NAME}/claim`;
let c: Cluster;
let driver: TestDraDriver;
/** It prepares nothing, and says nothing. */
let isMute = false;

const specFile = ({ uid }: WireClaim) => join(c.lab.dir, 'cdi', `${uid}.json`);
/** A device for the runtime: an environment variable shows it in the container. */
function prepare(claim: WireClaim): object[] {
  mkdirSync(join(c.lab.dir, 'cdi'), { recursive: true });
  const containerEdits = { env: [`DRA_CLAIM=${claim.name}`] };
  writeFileSync(specFile(claim), JSON.stringify({ cdiVersion: '0.6.0', kind: KIND, devices: [{ name: claim.uid, containerEdits }] }));
  return [{ requestNames: [], poolName: NODE_NAME, deviceName: 'a', cdiDeviceIds: [`${KIND}=${claim.uid}`] }];
}
const start = () =>
  startDraDriver({
    name: NAME,
    socket: join(c.daemon.rootDir, 'plugins_registry', `${NAME}-reg.sock`),
    prepare,
    unprepare: (claim) => rmSync(specFile(claim), { force: true }),
    answer: (method) => (isMute && method === 'NodePrepareResources' ? 'silence' : undefined),
  });
const api = (kind: string, name: string, spec: object) => ({ apiVersion: 'resource.k8s.io/v1', kind, metadata: { name }, spec });
const publish = () =>
  c.apply(
    api('ResourceSlice', 'gpus', {
      driver: NAME,
      nodeName: NODE_NAME,
      pool: { name: NODE_NAME, generation: 1, resourceSliceCount: 1 },
      devices: [{ name: 'a' }, { name: 'b' }],
    }),
  );
const onDisk = () => [...decodeClaims(readFileSync(join(c.daemon.rootDir, 'dra_manager_state'), 'utf8')).values()];
const CLAIMS = { claims: [{ name: 'gpu' }] };
const templated = {
  containers: [sh('main', `echo "claim $DRA_CLAIM"; ${STAY}`, { resources: CLAIMS })],
  resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'one' }],
};

describe.skipIf(minorVersion('kube-apiserver') < CLAIMS_SINCE)('a driver of dynamic resources beside a real node', () => {
  beforeAll(async () => {
    c = await startCluster();
    driver = await start();
    await c.daemon.wait('it is registered', () => driver.told.includes(''), LONG);
    const selectors = [{ cel: { expression: `device.driver == "${NAME}"` } }];
    await c.apply(
      api('DeviceClass', 'gpu', { selectors, extendedResourceName: 'example.com/gpu' }),
      api('ResourceClaimTemplate', 'one', { spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'gpu' } }] } } }),
    );
    await publish();
  });
  afterAll(async () => {
    driver?.stop();
    await c?.stop();
  });

  it('gives a pod the device of its template, through a restart of the daemon, and takes it back', async () => {
    await c.create('web', templated);
    const pod = await c.ready('web');
    const claim = pod.status.resourceClaimStatuses?.[0]?.resourceClaimName ?? '';
    await c.daemon.wait('the container shows it', () => c.said(pod).includes(`claim ${claim}`), LONG);
    expect(onDisk()).toMatchObject([{ name: claim, namespace: 'default', pods: new Set([pod.metadata.uid]) }]);
    driver.health([{ device: { poolName: NODE_NAME, deviceName: 'a' }, health: 'UNHEALTHY', message: 'hot' }]);
    const health = await c.podWhere(
      'web',
      'says how its device is',
      (p) => p.status.containerStatuses?.[0]?.allocatedResourcesStatus?.[0]?.resources[0]?.health === 'Unhealthy',
    );
    expect(health.status.containerStatuses?.[0]?.allocatedResourcesStatus).toMatchObject([
      { name: 'claim:gpu', resources: [{ message: 'hot' }] },
    ]);
    await c.daemon.end('SIGKILL');
    await c.daemon.start();
    await c.kubectl('delete', 'pod', 'web', '--wait=true');
    expect(driver.prepared.size).toBe(0);
    expect(driver.calls.map((call) => call.method)).toEqual(['NodePrepareResources', 'NodeUnprepareResources']);
    expect(onDisk()).toEqual([]);
    await c.daemon.wait(
      'slices are deleted at a start',
      async () => (await c.kubectl('get', 'resourceslices', '-o', 'name')).trim() === '',
      LONG,
    );
    await publish();
  });

  it('is the extended resource of its class, which no device plugin has', async () => {
    const resources = { limits: { 'example.com/gpu': '1' } };
    await c.create('extended', { containers: [sh('main', `echo "claim $DRA_CLAIM"; ${STAY}`, { resources })] });
    const pod = await c.ready('extended');
    const claim = pod.status.extendedResourceClaimStatus?.resourceClaimName ?? 'none';
    await c.daemon.wait('the container shows it', () => c.said(pod).includes(`claim ${claim}`), LONG);
    await c.kubectl('delete', 'pod', 'extended', '--wait=true');
    await c.daemon.wait('it is unprepared', () => driver.prepared.size === 0, LONG);
  });

  it('prepares a device again whose specification the runtime does not find', async () => {
    const script = `echo "claim $DRA_CLAIM"; sleep 4; exit 1`;
    const prepares = () => driver.calls.filter((call) => call.method === 'NodePrepareResources').length;
    await c.create('lost', { ...templated, containers: [sh('main', script, { resources: CLAIMS })] });
    await c.podWhere('lost', 'has begun', (p) => p.status.containerStatuses?.[0]?.state.running !== undefined);
    const before = prepares();
    rmSync(join(c.lab.dir, 'cdi'), { recursive: true });
    const pod = await c.podWhere('lost', 'runs again', (p) => {
      const status = p.status.containerStatuses?.[0];
      return status?.state.running !== undefined && status.restartCount > 0 && prepares() > before;
    });
    expect(await c.kubectl('get', 'events', '--field-selector', 'involvedObject.name=lost')).toContain('unresolvable CDI devices');
    const { restartCount } = pod.status.containerStatuses?.[0] ?? {};
    await c.daemon.wait('the container shows it', () => c.said(pod, 'main', restartCount).includes('claim lost-'), LONG);
    await c.kubectl('delete', 'pod', 'lost', '--wait=true');
    await c.daemon.wait('it is unprepared', () => driver.prepared.size === 0, LONG);
  });

  it('that does not answer holds up its own pod alone, which says so, and goes on once it is started anew', async () => {
    isMute = true;
    const before = driver.calls.length;
    await c.create('mute', templated);
    await c.daemon.wait('it to be asked', () => driver.calls.length > before, LONG);
    await c.create('plain', { containers: [sh('main', STAY)] });
    await c.ready('plain');
    const tells = async () => /gpu\.example\.com: NodePrepareResources.*: no answer for/.test(await c.daemon.ctl('why', 'mute'));
    await c.daemon.wait('why to name the driver', tells, LONG);
    driver.stop();
    isMute = false;
    driver = await start();
    await c.ready('mute');
    await c.kubectl('delete', 'pod', 'mute', 'plain', '--wait=true');
    await c.daemon.wait('it is unprepared', () => driver.prepared.size === 0, LONG);
  });
});
