/** What drivers, plugins and the image service answered last, or have not answered: in `why` of pod and node, and in events. */
import { momentOf } from '@actorlet/inspect/src/feed/live.ts';
import { whyOf } from '@actorlet/shown/src/why/whyOf.ts';
import { healthy } from '@actorlet/world/src/plugins/devicePlugins.ts';
import type { SimDriver } from '@actorlet/world/src/plugins/drivers.ts';
import { describe, expect } from 'vitest';
import { INSPECT, inspectedOf } from '../../../packages/inspect/test/rig.ts';
import type { CsiMethod } from '../../../src/machines/wire/csi.ts';
import { SOCKET as DRA_SOCKET, DRIVER, driver as draDriver, unplug, withClaim } from '../claims/resourceClaims.ts';
import { create, createReady, drop, events, inApi, isReady, secret } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { ROOT, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';

const CSI = 'csi.example.com';
const CSI_SOCKET = `${ROOT}/plugins_registry/${CSI}-reg.sock`;
const GPU = 'example.com/gpu';
const GPU_SOCKET = `${ROOT}/device-plugins/gpu.sock`;

const node = (o: VirtualNodeOptions = {}) => virtualNode({ cluster: true, ...INSPECT, ...o });
/** What `actorctl why` prints. */
const why = (h: VirtualNode, query: string) => whyOf(momentOf(inspectedOf(h)), query).lines.join('\n');
/** The same words of the pod and of the node. `named`: the node says for which pod. */
async function isTold(h: VirtualNode, pod: string, words: RegExp): Promise<void> {
  await h.until(`${words} is told of the pod`, () => words.test(why(h, pod)), 60_000);
  expect(why(h, 'node')).toMatch(words);
}
const isForgotten = (h: VirtualNode, words: RegExp) => h.until(`${words} is told no more`, () => !words.test(why(h, 'node')), 400_000);

function plug(h: VirtualNode, o: Partial<SimDriver> = {}): void {
  h.drivers.add(CSI_SOCKET, { name: CSI, ...o });
  h.fs.makeSocket(CSI_SOCKET);
}
async function csiNode(): Promise<VirtualNode> {
  const h = await node({ drivers: true });
  const spec = { attachRequired: false, volumeLifecycleModes: ['Persistent', 'Ephemeral'] };
  const path = '/apis/storage.k8s.io/v1/csidrivers';
  expect(h.kube.handle({ verb: 'POST', path, body: { metadata: { name: CSI }, spec } }).ok).toBe(true);
  return h;
}
const it = itWith(csiNode);
const inline = (csi: object = {}) => ({
  container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] },
  spec: { volumes: [{ name: 'disk', csi: { driver: CSI, ...csi } }] },
});
const asking = { container: { resources: { limits: { [GPU]: '1' }, requests: { [GPU]: '1' } } } };

describe('a CSI driver', () => {
  it('that fails is told with its own words, once, until it succeeds', async ({ h }) => {
    plug(h);
    h.drivers.fault = (_, m) => (m === 'NodePublishVolume' ? { code: 13, details: 'disk vol-7 has no path', effect: false } : undefined);
    create(h, 'web', inline());
    const words = /rpc error: code = Internal desc = disk vol-7 has no path/;
    await isTold(h, 'web', words);
    expect(events(h, 'FailedMount').join()).toMatch(words);
    expect(why(h, 'node').match(new RegExp(words, 'g'))).toHaveLength(1);
    h.drivers.fault = () => undefined;
    await h.until('it is ready', () => isReady(h, 'web'), 400_000);
    await isForgotten(h, words);
  });

  it('that hangs is named with the call, and in the event that follows', async ({ h }) => {
    plug(h);
    h.drivers.latencyMs = (m) => (m === 'NodePublishVolume' ? 1_000_000 : 1);
    create(h, 'web', inline());
    await isTold(h, 'web', new RegExp(`CSI driver ${CSI}: NodePublishVolume of volume disk( for default/web)?: no answer for \\d+s`));
    await h.until('the wait is over', () => events(h, 'FailedMount').some((m) => m.includes('Unable to attach')), 400_000);
    const hung = new RegExp(`context deadline exceeded; CSI driver ${CSI} has not answered Node\\w+ of volume disk for`);
    expect(events(h, 'FailedMount').join('\n')).toMatch(hung);
  });

  it('that repeats its secrets has them in no event and no answer', async ({ h }) => {
    plug(h);
    secret(h, 'creds', { user: 'joe', password: 'hunter2-hunter2' });
    const details = 'login of joe failed: hunter2-hunter2, aHVudGVyMi1odW50ZXIy';
    h.drivers.fault = (_, m) => (m === 'NodePublishVolume' ? { code: 16, details, effect: false } : undefined);
    create(h, 'web', inline({ nodePublishSecretRef: { name: 'creds' } }));
    await isTold(h, 'web', /login of \*\*\* failed: \*\*\*, /);
    expect(events(h, 'FailedMount').join() + why(h, 'web') + why(h, 'node')).not.toMatch(/joe|hunter2|aHVudGVy/);
  });

  const unregistered: readonly [string, Partial<SimDriver>, (h: VirtualNode) => void, RegExp][] = [
    ['is refused', { versions: ['0.3.0'] }, () => {}, /unsupported versions \[0\.3\.0\]/],
    [
      'does not say where it is',
      {},
      (h) => {
        h.drivers.fault = (_, m) => (m === 'NodeGetInfo' ? { code: 14, details: 'no metadata service', effect: false } : undefined);
      },
      /code = Unavailable desc = no metadata service/,
    ],
  ];
  it.each(unregistered)('that cannot be registered since it %s is told so to the pods that wait for it', async (_, o, break_, words) => {
    await using h = await csiNode();
    break_(h);
    plug(h, o);
    create(h, 'web', inline());
    await h.until('the event says it', () => events(h, 'FailedMount').some((m) => words.test(m)), 60_000);
    await isTold(h, 'web', words);
  });

  it('that does not take a volume down is told', async ({ h }) => {
    plug(h);
    await createReady(h, 'web', inline());
    const failing: CsiMethod = 'NodeUnpublishVolume';
    h.drivers.fault = (_, m) => (m === failing ? { code: 13, details: 'still busy', effect: false } : undefined);
    drop(h, 'pods/web');
    await isTold(h, 'web', /still busy/);
  });
});

describe('a device plugin', () => {
  async function deviceNode(): Promise<VirtualNode> {
    return node({ devices: true, before: (w) => void w.devices.add(GPU_SOCKET, { resource: GPU, devices: healthy('a', 'b') }) });
  }
  const known = (h: VirtualNode) => h.until('it is known', () => h.devices.told.some((t) => t.resource === GPU && t.error === ''));

  it('that does not answer Allocate is told, and in an event of the pod', async () => {
    await using h = await deviceNode();
    await known(h);
    h.devices.latencyMs = (m) => (m === 'Allocate' ? Number.POSITIVE_INFINITY : 1);
    create(h, 'web', asking);
    await isTold(h, 'web', new RegExp(`device plugin of ${GPU}: Allocate of container \\w+( for default/web)?: no answer for \\d+s`));
    await h.until('an event says it', () => events(h, 'DevicePluginNotAnswering').length > 0, 90_000);
    expect(events(h, 'DevicePluginNotAnswering')[0]).toContain(`the device plugin of ${GPU} has not answered Allocate`);
  });

  it('that refuses is told in the status and the event of the pod', async () => {
    await using h = await deviceNode();
    await known(h);
    h.devices.fault = ({ method }) => (method === 'Allocate' ? 'rpc error: code = Unknown desc = no more power' : undefined);
    create(h, 'web', asking);
    await h.until('it failed', () => inApi(h, 'web')?.status.phase === 'Failed');
    await isTold(h, 'web', /no more power/);
    expect(events(h, 'UnexpectedAdmissionError').join()).toContain('no more power');
  });

  it('whose registration fails, or that is gone, is told of the node until it is there', async () => {
    await using h = await deviceNode();
    await known(h);
    h.devices.die(GPU_SOCKET);
    const gone = new RegExp(`device plugin of ${GPU}: ListAndWatch: failed \\d+`);
    await h.until('it is told', () => gone.test(why(h, 'node')));
    h.devices.fault = ({ method }) => (method === 'Options' ? 'rpc error: code = Unknown desc = broken' : undefined);
    h.devices.back(GPU_SOCKET);
    await h.until('the reason is told', () => /Register: failed .*failed to get device plugin options: .*broken/.test(why(h, 'node')));
    h.devices.fault = () => undefined;
    h.devices.register(GPU_SOCKET);
    await h.until('nothing is told', () => !why(h, 'node').includes('device plugin of'));
  });
});

describe('a DRA driver', () => {
  it('that fails, hangs or is gone is told of pod and node', async () => {
    await using h = await node({ drivers: true, dra: true });
    draDriver(h);
    h.dra.fault = () => ({ kind: 'refuse', details: 'no such card' });
    withClaim(h, 'web');
    await isTold(h, 'web', /no such card/);
    expect(events(h, 'FailedPrepareDynamicResources').join()).toContain('no such card');
    h.dra.fault = () => undefined;
    await h.until('it is ready', () => isReady(h, 'web'), 200_000);
    h.dra.die(DRA_SOCKET);
    const gone = new RegExp(`DRA driver ${DRIVER}: connection: failed .* does not answer`);
    await h.until('it is told', () => gone.test(why(h, 'node')));
    h.dra.back(DRA_SOCKET);
    await h.until('nothing is told', () => !why(h, 'node').includes('DRA driver'), 60_000);
  });

  it('that cannot be registered is told in the event of the pod', async () => {
    await using h = await node({ drivers: true, dra: true });
    draDriver(h, { versions: ['v0.Nonsense'] });
    withClaim(h, 'web');
    const words = /is not registered; it cannot be registered: .*v0\.Nonsense/;
    await h.until('the event says it', () => events(h, 'FailedPrepareDynamicResources').some((m) => words.test(m)), 60_000);
    await isTold(h, 'web', /v0\.Nonsense/);
    unplug(h);
    await h.until('nothing is told of it', () => !why(h, 'node').includes('plugins_registry'));
  });
});

describe('the image service', () => {
  it('that fails is told of the node, until it answers', async () => {
    await using h = await node();
    h.faults.fault = (m) => (m === 'ImageFsInfo' ? { kind: 'refuse', code: 13, details: 'no statistics' } : undefined);
    await h.until('it is told', () => /image service: ImageFsInfo: failed .*no statistics/.test(why(h, 'node')), 400_000);
    h.faults.fault = () => undefined;
    await h.until('nothing is told', () => !why(h, 'node').includes('image service'), 400_000);
  });

  it('that fails a pull is told once, with the words of the event', async () => {
    await using h = await node();
    h.faults.fault = (m) => (m === 'PullImage' ? { kind: 'refuse', code: 2, details: 'no such registry' } : undefined);
    create(h, 'web');
    await isTold(h, 'web', /no such registry/);
    for (const query of ['web', 'node']) expect(why(h, query)).not.toContain('image service');
  });

  it('that hangs in a pull is told of the pod that wants the image, and of the node', async () => {
    await using h = await node();
    h.faults.latencyMs = { PullImage: 90_000 };
    create(h, 'web');
    await isTold(h, 'web', /image service: PullImage of \S+( for default\/web)?: no answer for \d+s/);
    await h.until('it is ready', () => isReady(h, 'web'), 200_000);
    await isForgotten(h, /image service/);
  });
});

describe('a pod that runs and is not Ready', () => {
  it('is said to wait for its readiness probe, or for its startup probe, until that passes', async () => {
    await using h = await node();
    let answer = 500;
    h.probes.answer = () => answer;
    const probe = { httpGet: { path: '/', port: 80 }, periodSeconds: 5, failureThreshold: 1_000 };
    create(h, 'web', { container: { readinessProbe: probe } });
    create(h, 'slow', { container: { startupProbe: probe, readinessProbe: probe } });
    await h.until('both run', () => ['web', 'slow'].every((name) => inApi(h, name)?.status.phase === 'Running'));
    await h.advance(30_000);
    expect(why(h, 'web')).toContain('not ready: its readiness probe does not pass');
    expect(why(h, 'slow')).toContain('not ready: its startup probe has not passed');
    expect(why(h, 'node')).toContain('default/web: Running: main is not ready: its readiness probe does not pass');
    expect(why(h, 'node')).toContain('default/slow: Running: main is not ready: its startup probe has not passed');
    answer = 200;
    await h.until('both are Ready', () => ['web', 'slow'].every((name) => isReady(h, name)));
    await isForgotten(h, /not ready/);
    expect(why(h, 'slow')).not.toContain('not ready');
  });
});
