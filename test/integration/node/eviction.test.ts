/** A node that runs short of memory or disk: what it says, whom it evicts and whom it lets in. A whole node in virtual time. */
import { describe, expect } from 'vitest';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { statusesView } from '../../../src/machines/pods/status/messages.ts';
import {
  cluster,
  condition,
  create,
  createUp,
  drop,
  events,
  failed,
  inApi,
  listEnded,
  patch,
  running,
  up,
} from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { pod, type VirtualNode } from '../virtualNode.ts';

const MIB = 1024 ** 2;
const ENOUGH = 4 * 1024 * MIB;
const SHORT = 10 * MIB;
const LOOKS_MS = 25_000;

const start = (config: Partial<KubeletConfiguration> = {}) => cluster({ config: { evictionPressureTransitionPeriod: 60_000, ...config } });
const it = itWith(start);
const says = (h: VirtualNode, type: string, status: string) => h.until(`${type} ${status}`, () => condition(h, type)?.status === status);
/** Containers of a pod of the API, also those that have ended. */
const left = (h: VirtualNode, name: string) =>
  h.runtime.dump().containers.filter((c) => c.labels['io.kubernetes.pod.name'] === name).length;
const recordOf = (h: VirtualNode, uid: string) => h.tree.registry.read(podsView)?.value.records.get(uid);
const statusOf = (h: VirtualNode, uid: string) => h.tree.registry.read(statusesView)?.value.get(uid)?.status;
const requests = (memory: string) => ({ container: { resources: { requests: { memory } } } });

describe('a node that is short of memory', () => {
  it('says so at once, and takes it back when the transition period has passed', async ({ h }) => {
    await says(h, 'MemoryPressure', 'False');
    expect(condition(h, 'MemoryPressure')).toMatchObject({
      reason: 'KubeletHasSufficientMemory',
      message: 'kubelet has sufficient memory available',
    });
    h.memory.availableBytes = SHORT;
    await says(h, 'MemoryPressure', 'True');
    expect(condition(h, 'MemoryPressure')).toMatchObject({
      reason: 'KubeletHasInsufficientMemory',
      message: 'kubelet has insufficient memory available',
    });
    h.memory.availableBytes = ENOUGH;
    await h.advance(45_000);
    expect(condition(h, 'MemoryPressure')?.status).toBe('True');
    await says(h, 'MemoryPressure', 'False');
    expect(events(h, 'NodeHasInsufficientMemory')).toHaveLength(1);
  });

  it('sees it within a quarter of a second with kernelMemcgNotification, and looks no more often while it lasts', async () => {
    await using h = await start({ kernelMemcgNotification: true });
    await createUp(h, 'greedy');
    await h.until('it rests', () => h.state('node/reclaim/eviction') === 'resting');
    await h.advance(1_000);
    const from = h.time.clock.monoMs();
    h.memory.availableBytes = SHORT;
    await h.until('the pod is evicted', () => running(h, 'greedy') === 0);
    expect(h.time.clock.monoMs() - from).toBeLessThan(1_500);
    await failed(h, 'greedy');
    await h.until('it rests again', () => h.state('node/reclaim/eviction') === 'resting');
    for (let step = 0; step < 18; step++) {
      await h.advance(500);
      expect(h.state('node/reclaim/eviction')).toBe('resting');
    }
  });

  it.each([
    ['at its next look', false],
    ['within a quarter of a second with kernelMemcgNotification', true],
  ])(
    'evicts when all pods together come near to what is allocatable, though the machine has enough: %s',
    async (_, kernelMemcgNotification) => {
      await using h = await cluster({ cgroups: true, config: { evictionPressureTransitionPeriod: 60_000, kernelMemcgNotification } });
      create(h, 'asked', requests('1Gi'));
      create(h, 'greedy');
      for (const name of ['asked', 'greedy']) await up(h, name);
      const group = h.cgroups.groups.get('/kubepods');
      const limit = Number(group?.get('memory.max'));
      expect(limit).toBeGreaterThan(0);
      const use = (bytes: number, cacheBytes: number) => {
        h.cgroups.write('/kubepods', 'memory.current', `${bytes}\n`);
        h.cgroups.write('/kubepods', 'memory.stat', `anon 1\ninactive_file ${cacheBytes}\n`);
      };
      // What the kernel can take back at once counts as free.
      use(limit, 200 * MIB);
      await h.advance(LOOKS_MS);
      expect(condition(h, 'MemoryPressure')?.status).toBe('False');
      await h.until('it rests', () => h.state('node/reclaim/eviction') === 'resting');
      const from = h.time.clock.monoMs();
      use(limit, 50 * MIB);
      await h.until('the pod is evicted', () => running(h, 'greedy') === 0);
      use(limit, 4096 * MIB);
      expect(h.time.clock.monoMs() - from).toBeLessThan(kernelMemcgNotification ? 1_500 : LOOKS_MS);
      await failed(h, 'greedy');
      expect(inApi(h, 'greedy')?.status.message).toMatch(
        /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: 50Mi\. /,
      );
      await says(h, 'MemoryPressure', 'True');
      await h.until('the pressure is over', () => condition(h, 'MemoryPressure')?.status === 'False', 120_000);
      expect(running(h, 'asked')).toBe(1);
    },
  );

  it('evicts one pod after the other, who asked for least first, and never a static one', async ({ h }) => {
    h.write('static', pod('static'));
    create(h, 'asked', requests('1Gi'));
    create(h, 'greedy');
    create(h, 'guarded', { spec: { priority: 2_000_001_000 } });
    for (const name of ['asked', 'greedy', 'guarded']) await up(h, name);
    expect(running(h, 'greedy')).toBe(1);
    await h.until('the static pod runs', () => h.phase('static') === 'Running');
    h.memory.availableBytes = SHORT;
    await failed(h, 'greedy');
    h.memory.availableBytes = ENOUGH;
    expect(inApi(h, 'greedy')?.status).toMatchObject({ phase: 'Failed', reason: 'Evicted' });
    expect(inApi(h, 'greedy')?.status.message).toMatch(
      /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: 10Mi\. Container main was using \w+, request is 0, has larger consumption of memory\. $/,
    );
    expect(inApi(h, 'greedy')?.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet' }),
    );
    expect(events(h, 'Evicted')).toEqual([inApi(h, 'greedy')?.status.message]);
    expect(events(h, 'EvictionThresholdMet')).toContain('Attempting to reclaim memory');
    await h.advance(LOOKS_MS);
    expect(['asked', 'guarded'].map((name) => inApi(h, name)?.status.phase)).toEqual(['Running', 'Running']);
    // Whatever is said of it later, it does not come back.
    const path = '/api/v1/namespaces/default/pods/greedy';
    h.kube.handle({ verb: 'PATCH', path, patchType: 'merge', body: { metadata: { labels: { touched: 'yes' } } } });
    await h.advance(LOOKS_MS);
    expect([inApi(h, 'greedy')?.status.phase, running(h, 'greedy')]).toEqual(['Failed', 0]);
    h.memory.availableBytes = SHORT;
    await failed(h, 'asked');
    await h.advance(LOOKS_MS);
    expect([h.phase('static'), inApi(h, 'guarded')?.status.phase]).toEqual(['Running', 'Running']);
  });

  it('goes by containers that run: one that has ended does not make its pod the first to go', async ({ h }) => {
    listEnded(h, 0);
    create(h, 'prepared', { ...requests('1Gi'), inits: [{}], lives: { 'init-0': 'run=1s,exit=0' } });
    create(h, 'restarted', { ...requests('1Gi'), lives: { main: 'run=1s,exit=1;run=forever' } });
    create(h, 'greedy');
    for (const name of ['prepared', 'restarted', 'greedy']) await up(h, name);
    await h.until('it has restarted', () => inApi(h, 'restarted')?.status.containerStatuses?.[0]?.restartCount === 1);
    h.memory.availableBytes = SHORT;
    await h.until('a pod is evicted', () => events(h, 'Evicted').length > 0);
    h.memory.availableBytes = ENOUGH;
    await failed(h, 'greedy');
    expect(['prepared', 'restarted'].map((name) => inApi(h, name)?.status.phase)).toEqual(['Running', 'Running']);
  });

  it('resources trap 4: evicts one pod at a time, and looks again only when that one has ended', async ({ h }) => {
    const names = ['one', 'two', 'three'];
    const asked = (name: string) => inApi(h, name)?.status.conditions?.some((c) => c.type === 'DisruptionTarget') === true;
    for (const name of names) create(h, name, { life: 'run=forever,term=ignore' });
    for (const name of names) await up(h, name);
    h.memory.availableBytes = SHORT;
    for (let ended = 1; ended <= names.length; ended++) {
      await h.until(`${ended} of them have ended`, () => {
        // Whoever goes has done so before the next is asked to.
        expect(names.filter((name) => asked(name) && running(h, name) > 0).length).toBeLessThanOrEqual(1);
        return names.filter((name) => running(h, name) === 0).length === ended;
      });
    }
  });

  it('ends a deleted pod that uses most sooner than its grace period, and leaves the others alone', async ({ h }) => {
    create(h, 'asked', requests('1Gi'));
    const { uid } = create(h, 'greedy', { life: 'run=forever,term=ignore', spec: { terminationGracePeriodSeconds: 600 } }).metadata;
    for (const name of ['asked', 'greedy']) await up(h, name);
    drop(h, 'pods/greedy');
    await h.until('it is being stopped', () => recordOf(h, uid)?.worker?.phase === 'terminating');
    h.memory.availableBytes = SHORT;
    await h.until('a pod is evicted', () => events(h, 'Evicted').length > 0);
    h.memory.availableBytes = ENOUGH;
    await h.until('it is gone', () => inApi(h, 'greedy') === undefined, 60_000);
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'asked')?.status.phase).toBe('Running');
  });

  it('waits out the grace of a soft threshold, and gives what evictionMaxPodGracePeriod allows', async () => {
    const evictionSoft = { 'memory.available': '300Mi' };
    await using h = await start({ evictionSoft, evictionSoftGracePeriod: { 'memory.available': '2m' }, evictionMaxPodGracePeriod: 7 });
    await createUp(h, 'web');
    h.memory.availableBytes = 200 * MIB;
    await says(h, 'MemoryPressure', 'True');
    await h.advance(90_000);
    expect(inApi(h, 'web')?.status.phase).toBe('Running');
    await failed(h, 'web');
    const stops = h.calls.filter((c) => c.method === 'StopContainer').map((c) => Number((c.req as { timeout: number }).timeout));
    expect(stops).toEqual([7]);
  });

  it('lets in what has asked for memory or tolerates its want, and static pods', async ({ h }) => {
    h.memory.availableBytes = SHORT;
    await says(h, 'MemoryPressure', 'True');
    h.memory.availableBytes = ENOUGH;
    create(h, 'besteffort');
    create(h, 'burstable', requests('1Mi'));
    create(h, 'tolerant', {
      spec: { tolerations: [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' }] },
    });
    h.write('static', pod('static'));
    await failed(h, 'besteffort');
    expect(inApi(h, 'besteffort')?.status).toMatchObject({
      reason: 'Evicted',
      message: 'Pod was rejected: The node had condition: [MemoryPressure]. ',
    });
    for (const name of ['burstable', 'tolerant']) await up(h, name);
    await h.until('the static pod runs', () => h.phase('static') === 'Running');
    // Refused is refused, also when there is room again.
    await says(h, 'MemoryPressure', 'False');
    const path = '/api/v1/namespaces/default/pods/besteffort';
    h.kube.handle({ verb: 'PATCH', path, patchType: 'merge', body: { metadata: { labels: { touched: 'yes' } } } });
    await h.advance(LOOKS_MS);
    expect([inApi(h, 'besteffort')?.status.phase, running(h, 'besteffort')]).toEqual(['Failed', 0]);
  });

  it('lets what has ended by itself be, also when the ledger of pods has just begun anew and the runtime does not tell', async ({ h }) => {
    const { uid } = create(h, 'job', { life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } }).metadata;
    await h.until('the job has ended', () => inApi(h, 'job')?.status.phase === 'Succeeded');
    h.faults.fault = (method) => (method === 'ListPodSandbox' ? { kind: 'refuse', code: 13, details: 'no list today' } : undefined);
    h.kill('node/pods/podManager');
    await h.until('its worker begins anew', () => recordOf(h, uid)?.worker?.phase === 'syncing');
    h.memory.availableBytes = SHORT;
    await h.until('nobody may be evicted', () => h.lines.some((l) => l.msg.startsWith('no pod of this node may be evicted')));
    h.memory.availableBytes = ENOUGH;
    h.faults.fault = () => undefined;
    await h.until('its worker is done', () => recordOf(h, uid)?.worker?.phase === 'finished');
    await h.advance(LOOKS_MS);
    expect(events(h, 'Evicted')).toEqual([]);
    expect(inApi(h, 'job')?.status.phase).toBe('Succeeded');
    expect(inApi(h, 'job')?.status.conditions?.filter((c) => c.type === 'DisruptionTarget')).toEqual([]);
  });

  it('ends what it runs when the API server tells late that an earlier daemon had evicted it', async ({ h }) => {
    const { uid } = create(h, 'web').metadata;
    await up(h, 'web');
    const end = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' };
    patch(h, 'pods/web/status', { status: end });
    await h.until('nothing of it runs', () => running(h, 'web') === 0);
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'web')?.status).toMatchObject(end);
    expect(statusOf(h, uid)).toMatchObject(end);
    expect(running(h, 'web')).toBe(0);
  });

  it('keeps what it evicted down through a crash of every worker', async ({ h }) => {
    await createUp(h, 'web', { life: 'run=forever,term=ignore' });
    h.memory.availableBytes = SHORT;
    await h.until('it is being evicted', () => h.state('node/reclaim/eviction') === 'awaitingEnd');
    h.memory.availableBytes = ENOUGH;
    h.kill('node/pods/workers');
    await failed(h, 'web');
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'web')?.status).toMatchObject({ phase: 'Failed', reason: 'Evicted' });
    expect(running(h, 'web')).toBe(0);
  });
});

describe('a node that is short of disk', () => {
  it('collects dead containers first, evicts nobody where that is enough, and refuses all that is not critical', async ({ h }) => {
    await createUp(h, 'web');
    h.fs.room = { ...h.fs.room, bytesAvailable: 1e9 };
    await h.until('dead containers are collected', () => h.state('node/reclaim/eviction') === 'collecting');
    h.fs.room = { ...h.fs.room, bytesAvailable: 5e11 };
    await says(h, 'DiskPressure', 'True');
    expect(condition(h, 'DiskPressure')).toMatchObject({ reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' });
    create(h, 'late', requests('1Mi'));
    await failed(h, 'late');
    expect(inApi(h, 'late')?.status.message).toBe('Pod was rejected: The node had condition: [DiskPressure]. ');
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'web')?.status.phase).toBe('Running');
    await says(h, 'DiskPressure', 'False');
    expect(condition(h, 'DiskPressure')?.reason).toBe('KubeletHasNoDiskPressure');
  });

  it('collects what ended pods left before it evicts one, not of static pods', async ({ h }) => {
    const once = { life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } };
    const { uid } = create(h, 'job', once).metadata;
    create(h, 'web');
    h.write('static', pod('static', once));
    await up(h, 'web');
    await h.until('both have ended', () => inApi(h, 'job')?.status.phase === 'Succeeded' && h.phase('static') === 'Succeeded');
    const log = `${h.node.facts.podLogsDir}/default_job_${uid}/main/0.log`;
    h.fs.put(log, 'a line\n');
    await h.advance(70_000);
    // With room on the disk its log stays readable.
    expect([left(h, 'job'), h.fs.has(log)]).toEqual([1, true]);
    h.fs.room = { ...h.fs.room, bytesAvailable: 1e9 };
    await h.until('nothing of it is left', () => left(h, 'job') === 0);
    h.fs.room = { ...h.fs.room, bytesAvailable: 5e11 };
    await h.advance(LOOKS_MS);
    expect(['job', 'web'].map((name) => inApi(h, name)?.status.phase)).toEqual(['Succeeded', 'Running']);
    expect(h.containers('static')).toHaveLength(1);
    // Nor does it run again.
    await h.restart();
    await h.advance(LOOKS_MS);
    expect([inApi(h, 'job')?.status.phase, left(h, 'job')]).toEqual(['Succeeded', 0]);
  });

  it('collects what a pod left that it evicted, its logs too, though the pod is not deleted', async ({ h }) => {
    const { uid } = create(h, 'web').metadata;
    await up(h, 'web');
    const log = `${h.node.facts.podLogsDir}/default_web_${uid}/main/0.log`;
    h.fs.put(log, 'a line\n');
    h.fs.room = { ...h.fs.room, bytesAvailable: 1e9 };
    await failed(h, 'web');
    h.fs.room = { ...h.fs.room, bytesAvailable: 5e11 };
    await h.until('nothing of it is left', () => left(h, 'web') === 0 && !h.fs.has(log), 70_000);
    expect(inApi(h, 'web')?.status).toMatchObject({ phase: 'Failed', reason: 'Evicted' });
  });

  it('evicts when collecting did not help, and says which threshold is met', async ({ h }) => {
    await createUp(h, 'web');
    h.fs.room = { ...h.fs.room, bytesAvailable: 1e9 };
    await failed(h, 'web');
    expect(inApi(h, 'web')?.status.message).toMatch(
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: 97656250Ki, available: 1000000000\. /,
    );
    const line = h.lines.find((l) => l.level === 'warn' && l.msg.startsWith('THE NODE IS UNDER PRESSURE'));
    expect(line?.fields).toMatchObject({
      pressures: ['DiskPressure'],
      why: ['nodefs.available is 953.7 MiB, evictionHard asks for 93.1 GiB (10 % of 931.3 GiB)'],
    });
  });
});

describe('a node that is short of process ids', () => {
  it('evicts the pod that has most of them, of those with the lowest priority', async () => {
    const tasks = { current: 500, max: 32_768 };
    await using h = await cluster({
      cgroups: true,
      config: { evictionPressureTransitionPeriod: 60_000, evictionHard: { 'pid.available': '1000' } },
      ports: (ports) => ({ ...ports, host: { ...ports.host, tasks: () => tasks } }),
    });
    const has = { first: 3, bomb: 31_000, last: 20, guarded: 40_000 };
    const priorities: Record<string, number> = { guarded: 1 };
    for (const [name, count] of Object.entries(has)) {
      const { uid } = create(h, name, { spec: { priority: priorities[name] ?? 0 } }).metadata;
      await up(h, name);
      h.cgroups.write(`/kubepods/besteffort/pod${uid}`, 'pids.current', `${count}\n`);
    }
    tasks.current = 32_000;
    await h.until('a pod is evicted', () => events(h, 'Evicted').length > 0);
    tasks.current = 500;
    await failed(h, 'bomb');
    expect(inApi(h, 'bomb')?.status.message).toBe('The node was low on resource: pids. Threshold quantity: 1k, available: 768. ');
    expect(['first', 'last', 'guarded'].map((name) => inApi(h, name)?.status.phase)).toEqual(['Running', 'Running', 'Running']);
  });
});

describe('a node with images and writable layers on two disks', () => {
  const IMAGES = '/var/lib/hollow';
  const LAYERS = '/var/lib/layers';
  const room = (bytesAvailable: number) => ({ bytesTotal: 1e12, bytesAvailable, inodesTotal: 1e6, inodesFree: 5e5 });
  const apart = async (config: Partial<KubeletConfiguration> = {}) => {
    const h = await cluster({
      config: { evictionPressureTransitionPeriod: 60_000, ...config },
      hollow: { layerDir: LAYERS, images: ['left:1'] },
      before: ({ fs }) => {
        for (const dir of [IMAGES, LAYERS]) fs.makeDir(dir);
        fs.disks.set(IMAGES, { dev: 2, room: room(5e11) });
        fs.disks.set(LAYERS, { dev: 3, room: room(5e11) });
      },
    });
    await createUp(h, 'web');
    return h;
  };
  const fill = (h: VirtualNode, dir: string) => h.fs.disks.set(dir, { dev: dir === IMAGES ? 2 : 3, room: room(1e9) });
  const removals = (h: VirtualNode) => h.calls.filter((c) => c.method === 'RemoveImage').length;

  it('evicts by the threshold of nodefs where the disk of layers is full, and leaves images alone', async () => {
    await using h = await apart();
    fill(h, LAYERS);
    await failed(h, 'web');
    expect(inApi(h, 'web')?.status.message).toMatch(
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: 97656250Ki, available: 1000000000\. /,
    );
    expect(condition(h, 'DiskPressure')?.status).toBe('True');
    expect(h.lines.find((l) => l.msg.startsWith('THE NODE IS UNDER PRESSURE'))?.fields).toMatchObject({
      why: ['containerfs.available is 953.7 MiB, evictionHard asks for 93.1 GiB (10 % of 931.3 GiB)'],
    });
    expect(removals(h)).toBe(0);
  });

  it('removes images alone where the disk of images is full', async () => {
    // The collector's own look would find it too.
    await using h = await apart({ imageGCHighThresholdPercent: 100 });

    fill(h, IMAGES);
    await h.until('images are removed', () => removals(h) > 0);
    h.fs.disks.set(IMAGES, { dev: 2, room: room(5e11) });
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'web')?.status.phase).toBe('Running');
    expect(events(h, 'EvictionThresholdMet')).toEqual(['Attempting to reclaim ephemeral-storage']);
  });

  it('frees as much more of the disk of layers as evictionMinimumReclaim of nodefs asks for', async () => {
    await using h = await apart({ evictionMinimumReclaim: { 'nodefs.available': '100Gi', 'containerfs.available': '1' } });
    fill(h, LAYERS);
    await h.until('dead containers are collected', () => h.state('node/reclaim/eviction') === 'collecting');
    h.fs.disks.set(LAYERS, { dev: 3, room: room(1.5e11) });
    await failed(h, 'web');
  });

  it('passes over thresholds of containerfs, in the words of the kubelet', async () => {
    await using h = await apart({ evictionHard: { 'nodefs.available': '10%', 'containerfs.available': '90%' } });
    await h.advance(LOOKS_MS);
    expect(condition(h, 'DiskPressure')?.status).toBe('False');
    const line = h.lines.find((l) => l.msg.startsWith('found conflicting containerfs eviction. Ignoring'));
    expect(line?.fields).toMatchObject({ err: 'found containerfs.available for hard eviction. ignoring' });
  });

  it('says what is wrong where KubeletSeparateDiskGC is off, and goes by nodefs and imagefs', async () => {
    await using h = await apart({ featureGates: { KubeletSeparateDiskGC: false } });
    fill(h, LAYERS);
    await h.advance(LOOKS_MS);
    expect(condition(h, 'DiskPressure')?.status).toBe('False');
    expect(
      h.lines.some(
        (l) => l.level === 'error' && l.msg.startsWith('KubeletSeparateDiskGC is turned off but we still have a split filesystem'),
      ),
    ).toBe(true);
  });
});

it('a node without thresholds that holds no pod to its own limits has nobody who looks', async () => {
  await using h = await start({ evictionHard: {}, localStorageCapacityIsolation: false });
  expect(h.actor('node/reclaim/eviction')).toBeUndefined();
  expect(condition(h, 'MemoryPressure')?.status ?? 'False').toBe('False');
});

it('at rest it reads once in ten seconds, and asks the runtime for no statistics', async ({ h }) => {
  await createUp(h, 'web');
  await h.advance(120_000);
  expect(h.calls.filter((c) => c.method === 'ListContainerStats')).toEqual([]);
  // Once here, and once by the collector of images, which looks every five minutes.
  expect(h.calls.filter((c) => c.method === 'ImageFsInfo').length).toBeLessThanOrEqual(2);
});
