/** Device plugins beside a whole node in virtual time (resources and volumes 2.5). */
import { healthy } from '@actorlet/world/src/plugins/devicePlugins.ts';
import { describe, expect } from 'vitest';
import { decodeCheckpoint } from '../../../src/machines/allocation/devices/checkpoint.ts';
import { devicesAddr, devicesView } from '../../../src/machines/allocation/devices/messages.ts';
import { RESOURCES_MAX } from '../../../src/machines/allocation/devices/rules.ts';
import { waitingPodsView } from '../../../src/machines/pods/admission/messages.ts';
import { messageOf } from '../../../src/machines/text/errors.ts';
import { cluster, create, created, createReady, drop, envOf, events, inApi, isReady } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { pod as manifest, ROOT, type VirtualNode, type VirtualNodeOptions } from '../virtualNode.ts';

const RESOURCE = 'example.com/gpu';
const FOLDER = `${ROOT}/device-plugins`;
const SOCKET = `${FOLDER}/gpu.sock`;
const SERVER = `${FOLDER}/kubelet.sock`;
const RECORD = `${FOLDER}/kubelet_internal_checkpoint`;

const asking = (count: number, container: object = {}) => ({
  container: { resources: { limits: { [RESOURCE]: String(count) }, requests: { [RESOURCE]: String(count) } }, ...container },
});
async function node(o: VirtualNodeOptions & { ids?: string[] } = {}): Promise<VirtualNode> {
  const { before, ids = ['a', 'b'], ...more } = o;
  const h = await cluster({
    devices: true,
    ...more,
    before(w) {
      if (ids.length > 0) w.devices.add(SOCKET, { resource: RESOURCE, devices: healthy(...ids) });
      before?.(w);
    },
  });
  if (ids.length > 0) await h.until('the plugin is known', () => count(h)?.allocatable === String(ids.length));
  return h;
}
const it = itWith(node);
function count(h: VirtualNode): { capacity: string | undefined; allocatable: string | undefined } | undefined {
  const seen = h.tree.registry.read(devicesView)?.value;
  return seen === undefined ? undefined : { capacity: seen.capacity[RESOURCE], allocatable: seen.allocatable[RESOURCE] };
}
/** What the API server shows of the node. */
function shown(h: VirtualNode) {
  const got = h.kube.handle({ verb: 'GET', path: '/api/v1/nodes/n1' });
  const { capacity = {}, allocatable = {} } = got.ok
    ? (got.body as { status: { capacity?: Record<string, string>; allocatable?: Record<string, string> } }).status
    : {};
  return { capacity: capacity[RESOURCE], allocatable: allocatable[RESOURCE] };
}
const held = (h: VirtualNode, name: string) => envOf(created(h, name).at(-1)).GPU_IDS;
const failed = (h: VirtualNode, name: string) => {
  const status = inApi(h, name)?.status;
  return status?.phase === 'Failed' ? [status.reason, status.message] : undefined;
};
const allocations = (h: VirtualNode) => h.devices.calls.filter((c) => c.method === 'Allocate').map((c) => c.ids.join(','));
async function gone(h: VirtualNode, name: string): Promise<void> {
  drop(h, `pods/${name}`);
  await h.until(`${name} is gone`, () => inApi(h, name) === undefined);
}

describe('device plugins', () => {
  it('gives a container its devices, and what comes with them', async ({ h }) => {
    await createReady(h, 'one', asking(1, { env: [{ name: 'OWN', value: 'yes' }] }));
    const config = created(h, 'one')[0];
    expect(config?.devices).toEqual([{ containerPath: '/dev/a', hostPath: '/dev/a', permissions: 'rw' }]);
    expect(config?.mounts?.[0]).toMatchObject({ containerPath: '/opt/gpu', hostPath: '/host/gpu', readonly: true });
    expect(envOf(config)).toMatchObject({ GPU_IDS: 'a', OWN: 'yes' });
    expect(config?.annotations?.['devices.example.com/gpu']).toBe('a');
    expect(config?.CDIDevices).toEqual([{ name: 'example.com/gpu=a' }]);
    await h.until('the node shows them', () => shown(h).capacity === '2' && shown(h).allocatable === '2');
  });

  it('gives variables that arguments and parts of volumes may name, and other variables may not, as in the kubelet', async ({ h }) => {
    const { container } = asking(1, {
      env: [{ name: 'OWN', value: '$(GPU_IDS)' }],
      args: ['--ids=$(GPU_IDS)'],
      volumeMounts: [{ name: 'scratch', mountPath: '/scratch', subPathExpr: '$(GPU_IDS)' }],
    });
    await createReady(h, 'one', { container, spec: { volumes: [{ name: 'scratch', emptyDir: {} }] } });
    const config = created(h, 'one')[0];
    expect([config?.args, envOf(config).OWN]).toEqual([['--ids=a'], '$(GPU_IDS)']);
  });

  it('says in the status of a pod how its devices are, when that changes too', async ({ h }) => {
    await createReady(h, 'one', asking(1));
    const health = () => inApi(h, 'one')?.status.containerStatuses?.[0]?.allocatedResourcesStatus;
    const is = (word: string) =>
      JSON.stringify(health()) === JSON.stringify([{ name: RESOURCE, resources: [{ resourceID: 'a', health: word }] }]);
    await h.until('it is healthy', () => is('Healthy'));
    h.devices.list(SOCKET, [{ id: 'a', healthy: false, numaNodes: [] }]);
    await h.until('the status says so', () => is('Unhealthy'), 5_000);
    h.devices.list(SOCKET, healthy('a'));
    await h.until('and so', () => is('Healthy'), 5_000);
  });

  it('does not call devices unwell whose plugin only restarts; after 5 minutes nobody knows', async ({ h }) => {
    create(h, 'one', asking(1));
    const health = () => inApi(h, 'one')?.status.containerStatuses?.[0]?.allocatedResourcesStatus?.[0]?.resources[0]?.health;
    await h.until('it is healthy', () => isReady(h, 'one') && health() === 'Healthy');
    const since = h.kube.calls.length;
    h.devices.die(SOCKET);
    await h.until('nothing is to be given', () => count(h)?.allocatable === '0');
    await h.advance(60_000);
    h.devices.back(SOCKET);
    await h.until('they are there again', () => count(h)?.allocatable === '2');
    await h.advance(10_000);
    expect(h.kube.calls.slice(since).filter((c) => c.request.path.endsWith('/pods/one/status'))).toEqual([]);
    h.devices.die(SOCKET);
    await h.advance(290_000);
    expect(health()).toBe('Healthy');
    await h.until('nobody knows', () => health() === 'Unknown', 60_000);
  });

  it('tells monitoring agents who holds which', async ({ h }) => {
    create(h, 'one', asking(1));
    create(h, 'plain');
    await h.until('both are ready', () => isReady(h, 'one') && isReady(h, 'plain'));
    const of = (name: string) => h.podResources?.get({ namespace: 'default', name }).containers.flatMap((c) => c.devices);
    expect(of('one')).toEqual([{ resourceName: RESOURCE, deviceIds: ['a'] }]);
    expect(of('plain')).toEqual([]);
    expect(() => of('nobody')).toThrow('pod nobody in namespace default not found');
    expect(h.podResources?.allocatable().devices.map((d) => d.deviceIds)).toEqual([['a'], ['b']]);
    const listed = () =>
      h.podResources
        ?.list('v1')
        .map((p) => p.name)
        .sort();
    expect(listed()).toEqual(['one', 'plain']);
    await gone(h, 'one');
    expect(listed()).toEqual(['plain']);
    const figures = await h.metrics.render();
    expect(figures).toContain('kubelet_pod_resources_endpoint_requests_list{server_api_version="v1"} 2');
    expect(figures).toContain('kubelet_pod_resources_endpoint_errors_get{server_api_version="v1"} 1');
  });

  it('asks nobody for a pod without them, and refuses one when there are too few', async ({ h }) => {
    create(h, 'plain');
    create(h, 'two', asking(2));
    await h.until('both are ready', () => isReady(h, 'plain') && isReady(h, 'two'));
    create(h, 'late', asking(1));
    await h.until('it is refused', () => failed(h, 'late'));
    expect(failed(h, 'late')).toEqual([
      'UnexpectedAdmissionError',
      expect.stringContaining(
        `Allocate failed due to requested number of devices unavailable for ${RESOURCE}. Requested: 1, Available: 0, which is unexpected`,
      ),
    ]);
    expect(allocations(h)).toEqual(['a,b']);
  });

  it('gives what a pod held to the next when that pod is over', async () => {
    await using h = await node({ ids: ['a'] });
    await createReady(h, 'first', asking(1));
    await gone(h, 'first');
    await createReady(h, 'second', asking(1));
    expect(allocations(h)).toEqual(['a', 'a']);
  });

  it('lets a pod wait for what another has that is on its way out', async () => {
    await using h = await node({ ids: ['a'] });
    await createReady(h, 'first', { ...asking(1), life: 'term=ignore' });
    drop(h, 'pods/first', 20);
    create(h, 'second', asking(1));
    await h.advance(10_000);
    expect([inApi(h, 'first')?.status.phase, inApi(h, 'second')?.status.phase]).toEqual(['Running', 'Pending']);
    const [waiting] = h.tree.registry.read(waitingPodsView)?.value.values() ?? [];
    expect([waiting?.wait, waiting?.asked?.why]).toEqual(['allocating', expect.stringContaining('on their way out still have some')]);
    await h.until('the next is ready', () => isReady(h, 'second'), 60_000);
    expect(allocations(h)).toEqual(['a', 'a']);
    expect(h.lines.some((l) => JSON.stringify(l).includes('pods that are on their way out still have some'))).toBe(true);
  });

  it('gives the devices of a static pod that changes to what comes after it', async () => {
    await using h = await node({ ids: ['a'] });
    h.write('web', manifest('web', asking(1)));
    await h.until('it runs', () => h.running('web').length === 1);
    const [before] = h.running('web');
    h.write('web', manifest('web', asking(1, { env: [{ name: 'NEW', value: 'yes' }] })));
    await h.until('the new one runs', () => h.running('web').length === 1 && h.running('web')[0]?.id !== before?.id, 60_000);
    expect(held(h, 'web-n1')).toBe('a');
  });

  // Found by seed 3101906 at eb0e9f2: each answer about devices made admission ask about the other pod's again, without a pause.
  it('asks once for devices of pods that wait for CPUs, however long these take', async () => {
    await using h = await node({ config: { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' } });
    h.fs.failing = (op, path) => (op === 'writeFile' && path.includes('cpu_manager_state') ? 'EIO' : undefined);
    const asked: string[] = [];
    using _ = h.tree.observe((e) => {
      if (e.kind === 'message' && e.type === 'allocation.admit' && e.to === devicesAddr.path) asked.push(e.to);
    });
    const amounts = { cpu: '1', memory: '64Mi', [RESOURCE]: '1' };
    for (const name of ['one', 'two']) create(h, name, { container: { resources: { limits: amounts, requests: amounts } } });
    await h.advance(20_000);
    expect(asked).toHaveLength(2);
    h.fs.failing = () => undefined;
    await h.until('both are ready', () => isReady(h, 'one') && isReady(h, 'two'), 60_000);
    expect(allocations(h).sort()).toEqual(['a', 'b']);
  });

  it('refuses nobody for the room of a critical pod that waits for its devices, and that nobody could make room for', async () => {
    await using h = await node({ ids: ['a'] });
    h.devices.latencyMs = (method) => (method === 'Allocate' ? 5_000 : 1);
    const { limits } = asking(1).container.resources;
    const critical = { priority: 2_000_000_000, priorityClassName: 'system-cluster-critical' };
    create(h, 'critical', { spec: critical, container: { resources: { limits, requests: { ...limits, cpu: '64' } } } });
    await h.advance(1_000);
    await createReady(h, 'web', { container: { resources: { requests: { cpu: '1' } } } });
    await h.until('the other is refused', () => failed(h, 'critical')?.[0] === 'UnexpectedAdmissionError');
    h.devices.latencyMs = () => 1;
    await createReady(h, 'next', asking(1));
  });

  // Found by seeds 2501456 at 3a86da9 and 53113118 at b3adcbc: what a pod was given that went before it was let in stayed its own.
  it('takes back what a pod was given that goes before it is let in, whatever else goes wrong then', async () => {
    await using h = await node({ ids: ['a'], config: { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' } });
    const holders = () => decodeCheckpoint(h.fs.textOf(RECORD) ?? '').allocations.length;
    const failing = (op = '') => {
      h.fs.failing = (o, path) => ((o === op ? path.includes('kubelet_internal') : path.includes('cpu_manager')) ? 'EIO' : undefined);
    };
    const wrong: Record<string, () => unknown> = {
      nothing: () => undefined,
      'the record cannot be written': () => failing('rename'),
      'the device manager is away': () => {
        failing('readFile');
        h.kill(devicesAddr.path);
        return h.until('it cannot read the record', () => h.actor(devicesAddr.path)?.reason === 'RecordsUnreadable', 10_000);
      },
      'the pod manager is away': () => h.kill('node/pods/podManager'),
    };
    const amounts = { cpu: '1', memory: '64Mi', [RESOURCE]: '1' };
    for (const [what, go] of Object.entries(wrong)) {
      failing();
      h.write('hasty', manifest('hasty', { container: { resources: { limits: amounts, requests: amounts } } }));
      await h.until('it has its device and waits for its CPU', () => holders() === 1);
      await go();
      h.remove('hasty');
      await h.advance(5_000);
      h.fs.failing = () => undefined;
      await h.until(`it holds nothing: ${what}`, () => holders() === 0, 60_000);
    }
    await createReady(h, 'next', asking(1));
    expect(allocations(h)).toEqual(['a', 'a', 'a', 'a', 'a']);
  });

  // Found by seed 2501521 at 3a86da9: what had just started was in no listing yet, so that it passed for an orphaned pod.
  it('leaves alone what had just started when devices and pods begin anew', async ({ h }) => {
    await createReady(h, 'one', asking(1));
    h.kill('node/allocation');
    await h.advance(30_000);
    expect([isReady(h, 'one'), created(h, 'one').length]).toEqual([true, 1]);
    expect(h.calls.filter((c) => c.method === 'StopContainer')).toEqual([]);
  });

  it('uses what init containers held again', async () => {
    await using h = await node({ ids: ['a', 'b'] });
    const limits = { resources: { limits: { [RESOURCE]: '2' } } };
    await createReady(h, 'steps', { ...asking(2), inits: [limits], lives: { 'init-0': 'run=100ms' } });
    expect(allocations(h)).toEqual(['a,b', 'a,b']);
  });

  it('gives what the plugin would rather give, and prepares each start', async () => {
    const options = { preStartRequired: true, getPreferredAllocationAvailable: true };
    await using h = await node({
      ids: [],
      before: (w) => void w.devices.add(SOCKET, { resource: RESOURCE, devices: healthy('a', 'b', 'c'), prefers: ['c'], options }),
    });
    await h.until('the plugin is known', () => count(h)?.allocatable === '3');
    await createReady(h, 'choosy', asking(2));
    expect(h.devices.calls.map(({ method, ids }) => [method, ids.join(',')])).toEqual([
      ['Options', ''],
      ['Preferred', 'a,b,c'],
      ['Allocate', 'a,c'],
      ['PreStart', 'a,c'],
    ]);
  });

  it('asks each plugin for its options, and does not take one that cannot tell them', async () => {
    await using h = await node({
      ids: [],
      before: (w) => {
        w.devices.fault = ({ method }) => (method === 'Options' ? 'rpc error: code = Unknown desc = broken' : undefined);
        w.devices.add(SOCKET, { resource: RESOURCE, devices: healthy('a') });
      },
    });
    await h.until('it is told', () => h.devices.told.length > 0);
    const error = 'failed to get device plugin options: rpc error: code = Unknown desc = broken';
    expect(h.devices.told).toEqual([{ resource: RESOURCE, error }]);
    expect([h.devices.calls.map((c) => c.method), count(h)?.capacity]).toEqual([['Options'], undefined]);
  });

  it('fails a pod whose plugin cannot allocate, and gives its devices to others', async () => {
    await using h = await node({ ids: ['a'] });
    h.devices.fault = ({ method }) => (method === 'Allocate' ? 'rpc error: code = Unknown desc = broken' : undefined);
    create(h, 'unlucky', asking(1));
    await h.until('it is refused', () => failed(h, 'unlucky'));
    expect(failed(h, 'unlucky')?.[1]).toContain('Allocate failed due to rpc error: code = Unknown desc = broken, which is unexpected');
    h.devices.fault = () => undefined;
    await createReady(h, 'lucky', asking(1));
  });

  it('resources trap 27, boot trap 51: a dead plugin leaves its capacity for 5 minutes and nothing to give, then 0', async ({ h }) => {
    await createReady(h, 'one', asking(1));
    await h.until('the node shows them', () => shown(h).allocatable === '2');
    h.devices.die(SOCKET);
    await h.until('nothing is to be given', () => shown(h).allocatable === '0');
    expect(shown(h).capacity).toBe('2');
    await h.advance(280_000);
    expect(shown(h)).toEqual({ capacity: '2', allocatable: '0' });
    await h.until('there is nothing any more', () => shown(h).capacity === '0', 60_000);
    await h.advance(60_000);
    expect(shown(h)).toEqual({ capacity: '0', allocatable: '0' });
    // Who had one has not noticed.
    expect([isReady(h, 'one'), created(h, 'one').length]).toEqual([true, 1]);
    create(h, 'late', asking(1));
    await h.until('nobody gets one', () => failed(h, 'late'));
    h.devices.back(SOCKET);
    await h.until('they are there again', () => shown(h).allocatable === '2' && shown(h).capacity === '2');
    await createReady(h, 'next', asking(1));
    expect(held(h, 'next')).toBe('b');
  });

  it('resources trap 28: makes its socket anew at each start, removes what else is there, and plugins register again', async ({ h }) => {
    await h.crash();
    h.fs.makeSocket(`${FOLDER}/stale.sock`);
    // Where this is, plugins made with the kubelet's library do not register at the socket.
    h.fs.put(`${FOLDER}/DEPRECATION`, '');
    h.fs.put(`${FOLDER}/junk`, 'x');
    h.fs.makeDir(`${FOLDER}/kept`);
    h.devices.told.length = 0;
    await h.boot();
    await h.until('the plugin is known again', () => count(h)?.allocatable === '2');
    expect(h.devices.told).toEqual([{ resource: RESOURCE, error: '' }]);
    const there = ['stale.sock', 'junk', 'kept', 'DEPRECATION'].map((name) => h.fs.has(`${FOLDER}/${name}`));
    expect([...there, h.fs.has(SERVER), h.fs.has(RECORD)]).toEqual([false, false, true, false, true, true]);
  });

  it('tells of no pod after a restart before it knows all of them', async ({ h }) => {
    for (const name of ['one', 'two']) create(h, name, asking(1));
    await h.until('they are ready', () => isReady(h, 'one') && isReady(h, 'two'));
    await h.restart();
    const answers = new Set<string>();
    const ask = (): string => {
      try {
        return (h.podResources?.list('v1') ?? [])
          .map(({ name, containers }) => `${name}: ${containers[0]?.devices[0]?.deviceIds}`)
          .join(' ');
      } catch (error) {
        return messageOf(error);
      }
    };
    await h.until('it tells', () => answers.add(ask()).has('one: a two: b'));
    answers.delete('');
    expect([...answers]).toEqual(['this node has just started, and does not know all of its pods yet: ask again', 'one: a two: b']);
  });

  it('resources trap 29: a second registration takes the place of the first, whose end is about nothing', async ({ h }) => {
    const other = `${FOLDER}/gpu-2.sock`;
    h.devices.add(other, { resource: RESOURCE, devices: healthy('c', 'd', 'e') });
    h.devices.register(other);
    await h.until('the second tells', () => count(h)?.allocatable === '3');
    h.devices.die(SOCKET);
    await h.advance(600_000);
    expect(count(h)).toEqual({ capacity: '3', allocatable: '3' });
    await createReady(h, 'one', asking(1));
    expect(held(h, 'one')).toBe('c');
  });

  it('resources trap 30: after a restart a pod with a device runs on before its plugin is back, and keeps it', async ({ h }) => {
    await createReady(h, 'one', asking(1));
    h.devices.die(SOCKET);
    await h.restart();
    await h.until('its worker knows it', () => h.running().length === 1 && h.tree.registry.read(devicesView) !== undefined);
    await h.advance(60_000);
    expect([inApi(h, 'one')?.status.phase, created(h, 'one').length]).toEqual(['Running', 1]);
    expect(shown(h)).toEqual({ capacity: '0', allocatable: '0' });
    h.devices.back(SOCKET);
    await h.until('the plugin is known again', () => count(h)?.allocatable === '2');
    await createReady(h, 'two', asking(1));
    expect(held(h, 'two')).toBe('b');
  });

  it('holds a container that starts after a restart until its plugin is back', async ({ h }) => {
    await createReady(h, 'one', asking(1));
    await h.crash();
    h.devices.die(SOCKET);
    const [container] = h.running();
    if (container === undefined) throw new Error('nothing runs');
    h.runtime.exit(container.id, { exitCode: 1 });
    await h.boot();
    await h.until('it is said', () => events(h, 'Failed').some((m) => m.includes(`the plugin of ${RESOURCE} has not registered again`)));
    // Not soon after a try.
    await h.advance(2_000);
    h.devices.back(SOCKET);
    await h.until('the plugin is known again', () => count(h)?.allocatable === '2');
    await h.until('it runs again', () => h.running().length === 1, 1_000);
    expect(allocations(h)).toEqual(['a']);
  });

  // Found by the simulation: it was created with a device that nobody had prepared.
  it('holds a container that starts while the plugin is gone which has to prepare its device', async () => {
    const options = { preStartRequired: true, getPreferredAllocationAvailable: false };
    await using h = await node({
      ids: [],
      before: (w) => void w.devices.add(SOCKET, { resource: RESOURCE, devices: healthy('a'), options }),
    });
    await h.until('the plugin is known', () => count(h)?.allocatable === '1');
    await createReady(h, 'one', asking(1));
    h.devices.die(SOCKET);
    await h.until('its plugin is missed', () => count(h)?.allocatable === '0');
    const [container] = h.running();
    if (container === undefined) throw new Error('nothing runs');
    h.runtime.exit(container.id, { exitCode: 1 });
    await h.until('it is said', () => events(h, 'Failed').some((m) => m.includes(`the plugin of ${RESOURCE} is gone`)));
    expect(created(h, 'one').length).toBe(1);
    await h.advance(2_000);
    h.devices.back(SOCKET);
    await h.until('the plugin is known again', () => count(h)?.allocatable === '1');
    await h.until('it runs again', () => h.running().length === 1, 1_000);
    expect(h.devices.calls.map((c) => c.method)).toEqual(['Options', 'Allocate', 'PreStart', 'Options', 'PreStart']);
  });

  it('never gives away what a running container holds, whatever the plugin says', async ({ h }) => {
    await createReady(h, 'one', asking(1));
    h.devices.list(SOCKET, [{ id: 'a', healthy: false, numaNodes: [] }, ...healthy('b')]);
    await h.until('it is known', () => count(h)?.allocatable === '1');
    h.devices.list(SOCKET, healthy('a', 'b'));
    create(h, 'both', asking(2));
    await h.until('it is refused', () => failed(h, 'both'));
    expect(isReady(h, 'one')).toBe(true);
  });

  it('keeps the node when its folder cannot be made, says why, and tries again', async () => {
    await using h = await node({
      ids: [],
      before: (w) => {
        w.devices.bindError = 'bind EACCES';
      },
    });
    await h.until('it is said', () => h.actor('node/allocation/devices')?.reason === 'SocketFailed');
    expect(h.actor('node/allocation/devices')?.message).toContain('bind EACCES');
    await createReady(h, 'plain');
    h.devices.bindError = undefined;
    h.devices.add(SOCKET, { resource: RESOURCE, devices: healthy('a') });
    await h.until('the plugin registers', () => count(h)?.allocatable === '1', 120_000);
  });

  it('tells a plugin why it may not register', async () => {
    await using h = await node({
      ids: [],
      before(w) {
        w.devices.add(`${FOLDER}/old.sock`, { resource: RESOURCE, version: 'v1alpha' });
        w.devices.add(`${FOLDER}/native.sock`, { resource: 'cpu' });
        w.devices.add('/elsewhere/x.sock', { resource: 'example.com/x' });
      },
    });
    await h.until('all are told', () => h.devices.told.length === 3);
    expect(h.devices.told.map((t) => t.error).sort()).toEqual([
      'requested API version "v1alpha" is not supported by kubelet. Supported version is "v1beta1"',
      'the ResourceName "cpu" is invalid',
      `the endpoint "/elsewhere/x.sock" of example.com/x is not the name of a socket in ${FOLDER}`,
    ]);
  });

  it('finds a plugin in the folder of plugins, and notices that its socket has gone', async () => {
    const registry = `${ROOT}/plugins_registry/gpu-reg.sock`;
    await using h = await node({ ids: [], drivers: true });
    h.drivers.add(registry, { name: RESOURCE, type: 'DevicePlugin', versions: ['v1beta1'] });
    h.devices.add(registry, { resource: RESOURCE, devices: healthy('a'), registers: false });
    h.fs.makeSocket(registry);
    await h.until('it is known', () => count(h)?.allocatable === '1');
    expect(h.drivers.told).toEqual([{ socket: registry, error: '' }]);
    await createReady(h, 'one', asking(1));
    h.fs.drop(registry);
    await h.until('nothing is to be given', () => count(h)?.allocatable === '0');
    h.fs.makeSocket(registry);
    await h.until('it is back', () => count(h)?.allocatable === '1');
  });

  it('leaves what others count on the node alone, save on a node of which it has no record', async () => {
    await using h = await node({ ids: [] });
    const other = 'example.com/other';
    const count2 = { capacity: { [other]: '7' }, allocatable: { [other]: '7' } };
    const set = () => h.kube.handle({ verb: 'PATCH', path: '/api/v1/nodes/n1/status', patchType: 'merge', body: { status: count2 } });
    const now = () => {
      const got = h.kube.handle({ verb: 'GET', path: '/api/v1/nodes/n1' });
      return got.ok ? (got.body as { status: { capacity: Record<string, string> } }).status.capacity[other] : undefined;
    };
    const registered = () => h.lines.filter((l) => JSON.stringify(l).includes('node registered')).length;
    await h.until('the node is registered', () => registered() > 0);
    set();
    await h.restart();
    await h.advance(60_000);
    expect(now()).toBe('7');
    await h.crash();
    h.fs.drop(RECORD);
    await h.boot();
    await h.until('it is 0', () => now() === '0');
  });

  it('takes so many names of resources and no more, and says so to the plugins that are too many', async () => {
    await using h = await node({
      before(w) {
        for (let i = 0; i < 2 * RESOURCES_MAX; i++)
          w.devices.add(`${FOLDER}/p${i}.sock`, { resource: `example.com/r${i}`, devices: healthy('a') });
      },
    });
    const known = () => h.tree.registry.read(devicesView)?.value;
    await h.until('the node has all that it takes', () => Object.keys(known()?.capacity ?? {}).length >= RESOURCES_MAX);
    await h.advance(5_000);
    expect(Object.keys(known()?.capacity ?? {})).toHaveLength(RESOURCES_MAX);
    expect(count(h)).toEqual({ capacity: '2', allocatable: '2' });
    const refused = h.devices.told.filter(({ error }) => error !== '');
    expect(refused.length).toBe(RESOURCES_MAX + 1);
    // Those that are there may come again.
    h.devices.register(SOCKET);
    await h.advance(5_000);
    expect(h.devices.told.at(-1)).toMatchObject({ error: '' });
    // A name that is refused, or whose plugin is not there, leaves no series behind.
    const registered = (await h.metrics.render())
      .split('\n')
      .filter((line) => line.startsWith('kubelet_device_plugin_registration_total{'));
    expect(registered).toHaveLength(RESOURCES_MAX);
    expect(registered).toContain(`kubelet_device_plugin_registration_total{resource_name="${RESOURCE}"} 2`);
  });
});
