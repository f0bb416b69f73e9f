/** Volumes on a whole node in virtual time: waiting, sharing, failing, taking down, finding again. */
import { describe, expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { type VolumesResult, volumesAddr, volumesView } from '../../../src/machines/services/volumes/messages.ts';
import type { ReplyTo } from '../../../src/machines/supervision/address.ts';
import type { ContainerConfig } from '../../../src/machines/wire/cri.ts';
import type { Ports } from '../../../src/ports/ports.ts';
import { itOnNode as it } from '../onNode.ts';
import { pod, ROOT, type VirtualNode, virtualNode } from '../virtualNode.ts';

const VOLUMES = {
  cache: { name: 'cache', emptyDir: {} },
  memory: { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
  info: { name: 'info', downwardAPI: { items: [{ path: 'sub/name', fieldRef: { fieldPath: 'metadata.name' } }] } },
};
const mounts = (...names: (keyof typeof VOLUMES)[]) => names.map((name) => ({ name, mountPath: `/mnt/${name}` }));
function withVolumes(name: string, o: { uid?: string; life?: string; volumes?: object[]; volumeMounts?: object[] } = {}): object {
  return pod(name, {
    ...(o.uid === undefined ? {} : { uid: o.uid }),
    ...(o.life === undefined ? {} : { life: o.life }),
    container: { volumeMounts: o.volumeMounts ?? mounts('cache', 'memory', 'info') },
    spec: { volumes: o.volumes ?? Object.values(VOLUMES) },
  });
}
const up = (h: VirtualNode, name: string) => h.phase(name) === 'Running' && h.running(name).length === 1;
/** With one pod, which runs. */
async function webUp(): Promise<VirtualNode> {
  const h = await virtualNode({ manifests: { web: withVolumes('web') } });
  await h.until('web runs', () => up(h, 'web'));
  return h;
}
async function gone(h: VirtualNode): Promise<void> {
  h.remove('web');
  await h.until('web is gone', () => h.record('web') === undefined, 300_000);
}
const volumesDir = (h: VirtualNode, name: string) => `${ROOT}/pods/${h.uid(name)}/volumes`;
const events = (h: VirtualNode, reason: string) =>
  (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === reason).map((e) => e.message);
const created = (h: VirtualNode) =>
  h.calls.filter((c) => c.method === 'CreateContainer').map((c) => (c.req as { config: ContainerConfig }).config);
const text = async (h: VirtualNode, path: string) => new TextDecoder().decode(await h.fs.readFile(path, { bytesMax: 1 << 16 }));

describe('volumes of a pod', () => {
  it('are set up before the sandbox, given to the containers, and taken down when they are gone', async () => {
    await using h = await webUp();
    const dir = volumesDir(h, 'web');
    const uid = h.uid('web');
    expect(h.mounts.table.map((m) => [m.path, m.type])).toEqual([
      [`${dir}/kubernetes.io~empty-dir/memory`, 'tmpfs'],
      [`${dir}/kubernetes.io~downward-api/info`, 'tmpfs'],
    ]);
    expect(h.mounts.table[0]?.options).toEqual(['size=1048576', 'noswap']);
    expect((await h.fs.lstat(`${dir}/kubernetes.io~empty-dir/cache`)).mode).toBe(0o777);
    expect(await h.fs.readlink(`${dir}/kubernetes.io~downward-api/info/sub`)).toBe('..data/sub');
    expect(created(h)[0]?.mounts?.slice(0, 3)).toEqual([
      expect.objectContaining({ containerPath: '/mnt/cache', hostPath: `${dir}/kubernetes.io~empty-dir/cache`, readonly: false }),
      expect.objectContaining({ containerPath: '/mnt/memory', hostPath: `${dir}/kubernetes.io~empty-dir/memory`, readonly: false }),
      expect.objectContaining({ containerPath: '/mnt/info', hostPath: `${dir}/kubernetes.io~downward-api/info`, readonly: true }),
    ]);
    await gone(h);
    expect(h.mounts.table).toEqual([]);
    expect(h.fs.has(dir)).toBe(true);
    expect(h.fs.below(dir)).toEqual([]);
    await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${uid}`));
  });

  it.each([
    ['once, where the machine has swap', 2 ** 30, 1],
    ['not where it has none', 0, 0],
  ])('that cannot be kept from swap are told about the node: %s', async (_, swapBytes, times) => {
    const ports = (given: Ports): Ports => {
      const { mounter, host } = given;
      if (mounter === undefined) throw new Error('it mounts');
      const mount: typeof mounter.mount = (request, call) =>
        request.options.includes('noswap')
          ? Promise.reject(Object.assign(new Error('tmpfs: Unknown parameter noswap'), { code: 'EINVAL' }))
          : mounter.mount(request, call);
      const memoryControl = () => ({ cgroupVersion: 2 as const, swapController: true, swapBytes });
      return { ...given, mounter: { ...mounter, mount }, host: { ...host, memoryControl } };
    };
    await using h = await virtualNode({ ports, manifests: { web: withVolumes('web'), other: withVolumes('other') } });
    await h.until('they run', () => up(h, 'web') && up(h, 'other'));
    expect(h.mounts.table.length).toBe(4);
    expect(events(h, 'PossibleMemoryBackedVolumesOnDisk').length).toBe(times);
  });

  it('on which somebody else has mounted are unmounted as often as it takes', async () => {
    await using h = await webUp();
    const path = `${volumesDir(h, 'web')}/kubernetes.io~empty-dir/memory`;
    for (const source of ['first', 'second']) h.mounts.put({ path, type: 'tmpfs', source });
    await gone(h);
    expect(h.mounts.table).toEqual([]);
    expect(h.fs.has(path)).toBe(false);
  });

  it('leave nothing of themselves with the volume manager when they are gone', async () => {
    await using h = await webUp();
    const snapshot = () => h.tree.actorAt('node/services/volumes')?.getSnapshot() as { children: object } | undefined;
    // Numbered: of a volume. Its lookout stays.
    const children = () => Object.keys(snapshot()?.children ?? { 'no manager#': null }).filter((id) => id.includes('#'));
    expect(children()).toHaveLength(3);
    await gone(h);
    expect(children()).toEqual([]);
  });

  it('that no container mounts are never set up, whatever they name', async () => {
    const unused = [...Object.values(VOLUMES), { name: 'unused', hostPath: { path: '/nowhere', type: 'Directory' } }];
    await using h = await virtualNode({ manifests: { web: withVolumes('web', { volumes: unused, volumeMounts: mounts('cache') }) } });
    await h.until('web runs', () => up(h, 'web'));
    expect(h.mounts.table).toEqual([]);
  });

  it('survive a restart of a container with what is in them', async () => {
    await using h = await virtualNode({ manifests: { web: withVolumes('web', { life: 'run=5s,exit=1;run=forever' }) } });
    await h.until('web runs', () => up(h, 'web'));
    h.fs.put(`${volumesDir(h, 'web')}/kubernetes.io~empty-dir/cache/kept`, 'yes');
    await h.until('it was restarted', () => h.status('web')?.status.containerStatuses?.[0]?.restartCount === 1 && up(h, 'web'), 120_000);
    expect(await text(h, `${volumesDir(h, 'web')}/kubernetes.io~empty-dir/cache/kept`)).toBe('yes');
    expect(created(h)).toHaveLength(2);
    expect(created(h)[1]?.mounts?.slice(0, 3)).toEqual(created(h)[0]?.mounts?.slice(0, 3));
  });

  it('that fail keep the pod waiting: the reason of each failure, then what is missing, and recovery without help', async () => {
    const manifest = withVolumes('web', {
      volumes: [{ name: 'data', hostPath: { path: '/srv/data', type: 'Directory' } }],
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
    });
    await using h = await virtualNode({ manifests: { web: manifest } });
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toBe(
      'MountVolume.SetUp failed for volume "data" : hostPath type check failed: /srv/data is not a directory',
    );
    expect(h.state(h.workerPath('web'))).toBe('syncing.mountingVolumes');
    expect(h.runtime.dump().sandboxes).toEqual([]);
    await h.advance(125_000);
    expect(events(h, 'FailedMount')).toContain(
      'Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: context deadline exceeded',
    );
    h.fs.makeDir('/srv/data');
    await h.until('web runs', () => up(h, 'web'), 300_000);
    expect(created(h)[0]?.mounts?.[0]).toMatchObject({ hostPath: '/srv/data', containerPath: '/data', readonly: false });
    await gone(h);
    expect(h.fs.has('/srv/data')).toBe(true);
  });

  it('are refused as a whole where the kind is not there', async () => {
    const manifest = withVolumes('web', {
      volumes: [{ name: 'cache', quobyte: { registry: 'a', volume: 'x' } }],
      volumeMounts: mounts('cache'),
    });
    await using h = await virtualNode({ manifests: { web: manifest } });
    await h.until('it was refused', () => h.phase('web') === 'Failed');
    expect(h.status('web')?.status).toMatchObject({
      reason: 'UnsupportedField',
      message: expect.stringContaining('spec.volumes[0].quobyte'),
    });
  });

  it('do not delay a deletion while a mount hangs: the containers stop, the volume follows', async ({ h }) => {
    h.mounts.trouble.hanging = (op) => op === 'mount';
    h.write('web', withVolumes('web'));
    await h.until('it waits for its volumes', () => h.record('web') && h.state(h.workerPath('web')) === 'syncing.mountingVolumes');
    await h.advance(1_000);
    h.remove('web');
    await h.until('it is being wound down', () => h.state(h.workerPath('web')) === 'terminated');
    h.mounts.trouble.hanging = () => false;
    await h.until('web is gone', () => h.record('web') === undefined, 200_000);
    expect(h.mounts.table).toEqual([]);
  });

  it('that are busy keep the pod from finishing, and are tried again', async () => {
    await using h = await webUp();
    h.mounts.trouble.failing = (op) => (op === 'unmount' ? 'EBUSY' : undefined);
    h.remove('web');
    await h.until('its containers are gone', () => h.running('web').length === 0);
    await h.advance(30_000);
    expect(h.record('web')?.worker?.phase).toBe('terminated');
    expect(
      h.tree.registry
        .read(volumesView)
        ?.value.get(h.uid('web'))
        ?.map((v) => [v.name, v.state]),
    ).toEqual([
      ['memory', 'unmountFailed'],
      ['info', 'unmountFailed'],
    ]);
    h.mounts.trouble.failing = () => undefined;
    await h.until('web is gone', () => h.record('web') === undefined, 200_000);
    expect(h.mounts.table).toEqual([]);
  });
});

it('a question whose asker has gone on changes nothing, also for a manager that has just begun', async () => {
  await using h = await webUp();
  const { registry } = h.tree;
  const pod = h.record('web')?.pod;
  if (pod === undefined) throw new Error('no pod');
  const asker = new AbortController();
  h.kill('node/services/volumes');
  const question = (replyTo: ReplyTo<VolumesResult>) => ({ type: 'volumes.mount' as const, uid: pod.metadata.uid, pod, replyTo });
  const answer = registry.ask(volumesAddr, question, { timeoutMs: 60_000, signal: asker.signal });
  asker.abort();
  await answer;
  await h.advance(30_000);
  expect(h.mounts.table).toHaveLength(2);
  expect(
    registry
      .read(volumesView)
      ?.value.get(pod.metadata.uid)
      ?.map((v) => v.state),
  ).toEqual(['mounted', 'mounted', 'mounted']);
});

it('files are compared with their sources in time, however often their pod asks for its volumes', async () => {
  await using h = await webUp();
  const asked = h.record('web')?.pod;
  if (asked === undefined) throw new Error('no pod');
  const { uid } = asked.metadata;
  const link = `${volumesDir(h, 'web')}/kubernetes.io~downward-api/info/sub`;
  h.fs.drop(link);
  // As with containers that start again and again: a token would run out.
  for (let i = 0; i < 10; i++) {
    const question = (replyTo: ReplyTo<VolumesResult>) => ({ type: 'volumes.mount' as const, uid, pod: asked, replyTo });
    const answer = h.tree.registry.ask(volumesAddr, question, { timeoutMs: 10_000, signal: new AbortController().signal });
    await h.advance(20_000);
    expect((await answer).kind).toBe('reply');
  }
  expect(h.fs.has(link)).toBe(true);
});

describe('an operation that a killed volume manager left under way', () => {
  const SLOW_MS = 60_000;
  const slowOnce = (h: VirtualNode, call: string, path: string) => {
    let begun = false;
    h.fs.delayMs = (op, at) => {
      if (begun || op !== call || at !== path) return 0;
      begun = true;
      return SLOW_MS;
    };
    return () => begun;
  };
  const kill = async (h: VirtualNode) => {
    h.kill('node/services/volumes');
    await h.advance(2_000);
    h.fs.delayMs = () => 0;
  };

  // Found by seed 101342: the slow removal of a mount point came to its end after the successor had mounted there anew.
  it.each([
    ['rmdir', '/kubernetes.io~empty-dir/memory'],
    ['readdir', '/kubernetes.io~empty-dir/cache'],
  ])('is at its end before its successor sets the same volume up (%s)', async (call, below) => {
    await using h = await virtualNode({ manifests: { web: withVolumes('web', { uid: 'pinned-1' }) } });
    await h.until('web runs', () => up(h, 'web'));
    const dir = volumesDir(h, 'web');
    h.fs.put(`${dir}/kubernetes.io~empty-dir/cache/old`, 'x');
    const slow = slowOnce(h, call, `${dir}${below}`);
    h.remove('web');
    await h.until('the removal is under way', slow);
    await kill(h);
    h.write('web', withVolumes('web', { uid: 'pinned-1' }));
    await h.until('web runs', () => up(h, 'web'), 300_000);
    h.fs.put(`${dir}/kubernetes.io~empty-dir/cache/new`, 'x');
    await h.advance(2 * SLOW_MS);
    expect(h.mounts.table).toHaveLength(2);
    for (const path of ['cache/new', 'memory']) expect(h.fs.has(`${dir}/kubernetes.io~empty-dir/${path}`), path).toBe(true);
    await gone(h);
    expect(h.mounts.table).toEqual([]);
    await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/pinned-1`), 300_000);
  });

  it('is known to its successor, which takes down what comes of it', async ({ h }) => {
    const slow = slowOnce(h, 'mkdirp', `${ROOT}/pods/pinned-2/volumes/kubernetes.io~empty-dir/cache`);
    h.write('web', withVolumes('web', { uid: 'pinned-2', volumeMounts: mounts('cache') }));
    await h.until('the volume is being made', slow);
    h.remove('web');
    await kill(h);
    await h.advance(2 * SLOW_MS);
    await h.until('nothing is left', () => h.record('web') === undefined && !h.fs.has(`${ROOT}/pods/pinned-2`), 300_000);
  });
});

describe('files of a volume', () => {
  it('follow the labels of their pod', async () => {
    const volume = { name: 'info', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } };
    const manifest = withVolumes('web', { uid: 'pinned-1', volumes: [volume], volumeMounts: mounts('info') }) as {
      metadata: { labels?: Record<string, string> };
    };
    manifest.metadata.labels = { app: 'web' };
    await using h = await virtualNode({ manifests: { web: manifest } });
    await h.until('web runs', () => up(h, 'web'));
    const dir = `${volumesDir(h, 'web')}/kubernetes.io~downward-api/info`;
    const labels = async () => text(h, `${dir}/${await h.fs.readlink(`${dir}/..data`)}/labels`);
    expect(await labels()).toBe('app="web"');
    const [id] = h.running('web').map((c) => c.id);
    manifest.metadata.labels = { app: 'web', tier: 'front' };
    h.write('web', manifest);
    await h.advance(10_000);
    expect(await labels()).toBe('app="web"\ntier="front"');
    expect(h.running('web').map((c) => c.id)).toEqual([id]);
    const before = await h.fs.readlink(`${dir}/..data`);
    await h.advance(600_000);
    expect(await h.fs.readlink(`${dir}/..data`)).toBe(before);
  });
});

describe('a new daemon', () => {
  it('finds the volumes of running pods and leaves them as they are', async () => {
    await using h = await webUp();
    const [id] = h.running('web').map((c) => c.id);
    const table = structuredClone(h.mounts.table);
    h.fs.put(`${volumesDir(h, 'web')}/kubernetes.io~empty-dir/memory/kept`, 'yes');
    await h.restart();
    await h.until('web runs', () => up(h, 'web'));
    const states = () =>
      h.tree.registry
        .read(volumesView)
        ?.value.get(h.uid('web'))
        ?.map((v) => v.state);
    await h.until('they are known as mounted', () => states()?.every((s) => s === 'mounted') === true && states()?.length === 3);
    expect(h.mounts.table).toEqual(table);
    expect(h.fs.has(`${volumesDir(h, 'web')}/kubernetes.io~empty-dir/memory/kept`)).toBe(true);
    expect(h.running('web').map((c) => c.id)).toEqual([id]);
    await gone(h);
    expect(h.mounts.table).toEqual([]);
  });

  it('takes down what belongs to nobody, but not before every source has spoken, and nothing below a mount it does not know', async () => {
    await using h = await webUp();
    await h.crash();
    const stray = `${ROOT}/pods/stray`;
    for (const d of ['kubernetes.io~empty-dir/a', 'kubernetes.io~secret/b', 'kubernetes.io~empty-dir/c'])
      h.fs.makeDir(`${stray}/volumes/${d}`);
    h.fs.put(`${stray}/volumes/kubernetes.io~empty-dir/a/file`, 'x');
    h.mounts.put({ path: `${stray}/volumes/kubernetes.io~secret/b`, type: 'tmpfs', source: 'tmpfs' });
    h.fs.makeDir(`${stray}/volumes/kubernetes.io~empty-dir/c/bound`);
    h.fs.put(`${stray}/volumes/kubernetes.io~empty-dir/c/bound/precious`, 'x');
    h.mounts.put({ path: `${stray}/volumes/kubernetes.io~empty-dir/c/bound`, type: 'ext4', source: '/dev/vda1' });
    await h.boot();
    await h.until('the strays are gone', () => !h.fs.has(`${stray}/volumes/kubernetes.io~secret/b`));
    await h.until('those too', () => !h.fs.has(`${stray}/volumes/kubernetes.io~empty-dir/a`));
    await h.advance(120_000);
    expect(h.fs.has(`${stray}/volumes/kubernetes.io~empty-dir/c/bound/precious`)).toBe(true);
    h.mounts.take(`${stray}/volumes/kubernetes.io~empty-dir/c/bound`);
    await h.until('now all of it goes', () => !h.fs.has(stray), 300_000);
    expect(up(h, 'web')).toBe(true);
    expect(h.mounts.table).toHaveLength(2);
  });

  it('killed at any moment of a start or an end leaves nothing behind and loses nothing', async () => {
    for (let at = 0; at < 60; at += 3) {
      await using h = await virtualNode({ seed: at });
      h.fs.delayMs = () => 1;
      h.mounts.trouble.delayMs = () => 3;
      h.write('web', withVolumes('web'));
      await h.advance(20 + at * 2);
      await h.restart();
      await h.until('web runs', () => up(h, 'web'), 300_000);
      expect(h.mounts.table).toHaveLength(2);
      h.remove('web');
      await h.advance(100 + at * 3);
      await h.restart();
      await h.until('nothing is left', () => h.mounts.table.length === 0 && h.fs.below(`${ROOT}/pods`).length === 0, 300_000);
    }
  });
});

describe('parts of volumes', () => {
  const parts = [
    { name: 'cache', mountPath: '/whole' },
    { name: 'cache', mountPath: '/part', subPath: 'a/b' },
    { name: 'cache', mountPath: '/mine', subPathExpr: 'of/$(WHO)' },
    { name: 'info', mountPath: '/etc/name', subPath: 'sub/name' },
  ];
  const env = [{ name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }];
  const withParts = (name: string, o: { life?: string; volumeMounts?: object[] } = {}) =>
    pod(name, {
      ...(o.life === undefined ? {} : { life: o.life }),
      container: { env, volumeMounts: o.volumeMounts ?? parts },
      spec: { volumes: [VOLUMES.cache, VOLUMES.info, { name: 'host', hostPath: { path: '/srv/data', type: 'DirectoryOrCreate' } }] },
    });
  const target = (h: VirtualNode, name: string, at: string) => `${ROOT}/pods/${h.uid(name)}/volume-subpaths/${at}`;
  const binds = (h: VirtualNode) => h.mounts.table.filter((m) => m.path.includes('/volume-subpaths/')).map((m) => [m.path, m.root]);

  it('are bound before the container is made, given to it by index, and gone with the pod', async () => {
    await using h = await virtualNode({ manifests: { web: withParts('web') } });
    await h.until('web runs', () => up(h, 'web'));
    const cache = `${volumesDir(h, 'web')}/kubernetes.io~empty-dir/cache`;
    const info = `${volumesDir(h, 'web')}/kubernetes.io~downward-api/info`;
    expect(binds(h)).toEqual([
      [target(h, 'web', 'cache/main/1'), `${cache}/a/b`],
      [target(h, 'web', 'cache/main/2'), `${cache}/of/${h.record('web')?.pod.metadata.name}`],
      [target(h, 'web', 'info/main/3'), expect.stringMatching(new RegExp(`^${info}/\\.\\.\\d{4}_.*/sub/name$`))],
    ]);
    expect(
      created(h)[0]
        ?.mounts?.slice(0, 4)
        .map((m) => [m.containerPath, m.hostPath, m.readonly]),
    ).toEqual([
      ['/whole', cache, false],
      ['/part', target(h, 'web', 'cache/main/1'), false],
      ['/mine', target(h, 'web', 'cache/main/2'), false],
      ['/etc/name', target(h, 'web', 'info/main/3'), true],
    ]);
    const dir = `${ROOT}/pods/${h.uid('web')}`;
    h.remove('web');
    await h.until('its directory goes', () => !h.fs.has(dir));
    expect(h.mounts.table).toEqual([]);
  });

  it('are bound again where a container starts again: what the path leads to by then', async () => {
    await using h = await virtualNode({ manifests: { web: withParts('web', { life: 'run=5s,exit=1;run=forever' }) } });
    await h.until('web runs', () => up(h, 'web'));
    const before = binds(h);
    const cache = `${volumesDir(h, 'web')}/kubernetes.io~empty-dir/cache`;
    h.fs.makeDir(`${cache}/elsewhere`);
    await h.fs.rmdir(`${cache}/a/b`);
    await h.fs.symlink('../elsewhere', `${cache}/a/b`);
    await h.until('it was restarted', () => h.status('web')?.status.containerStatuses?.[0]?.restartCount === 1 && up(h, 'web'), 120_000);
    expect(created(h)).toHaveLength(2);
    expect(binds(h)).toContainEqual([target(h, 'web', 'cache/main/1'), `${cache}/elsewhere`]);
    expect(binds(h).filter(([path]) => path !== target(h, 'web', 'cache/main/1'))).toEqual(before.slice(1));
  });

  it('of a hostPath volume are taken away by the daemon that comes after, and nothing of the host is', async () => {
    const mounts = [{ name: 'host', mountPath: '/data', subPath: 'x' }];
    await using h = await virtualNode({ manifests: { web: withParts('web', { volumeMounts: mounts }) } });
    await h.until('web runs', () => up(h, 'web'));
    expect(binds(h)).toEqual([[target(h, 'web', 'host/main/0'), '/srv/data/x']]);
    const dir = `${ROOT}/pods/${h.uid('web')}`;
    await h.crash();
    h.remove('web');
    await h.boot();
    await h.until('its directory goes', () => !h.fs.has(dir), 300_000);
    expect(h.mounts.table).toEqual([]);
    expect(h.fs.has('/srv/data/x')).toBe(true);
  });

  it.each([
    ['a variable that is missing', [{ name: 'cache', mountPath: '/p', subPathExpr: '$(NOBODY)' }], 'missing value for NOBODY'],
    [
      'a link that leads out, without a word of where to',
      [{ name: 'host', mountPath: '/p', subPath: 'out/x' }],
      'failed to prepare subPath for volumeMount "host" of container "main"',
    ],
  ])('are refused for %s: the container waits, says why, and starts without help once that is over', async (_, volumeMounts, message) => {
    await using h = await virtualNode({ manifests: {} });
    h.fs.makeDir('/srv/data');
    await h.fs.symlink('/etc', '/srv/data/out');
    h.write('web', withParts('web', { volumeMounts }));
    const waiting = () => h.status('web')?.status.containerStatuses?.[0]?.state.waiting;
    await h.until('it is refused', () => waiting()?.reason === 'CreateContainerConfigError', 60_000);
    expect(waiting()?.message).toBe(message);
    expect(events(h, 'Failed')).toContain(`Error: ${message}`);
    expect(created(h)).toEqual([]);
    expect(binds(h)).toEqual([]);
    if (!message.includes('prepare')) return;
    await h.fs.unlink('/srv/data/out');
    await h.until('web runs', () => up(h, 'web'), 120_000);
    expect(binds(h)).toEqual([[target(h, 'web', 'host/main/0'), '/srv/data/out/x']]);
  });
});

describe('huge pages', () => {
  const huge = (name: string, requests: object) =>
    pod(name, {
      container: { volumeMounts: [{ name: 'huge', mountPath: '/huge' }], resources: { requests, limits: requests } },
      spec: { volumes: [{ name: 'huge', emptyDir: { medium: 'HugePages' } }] },
    });

  it('are a file system of the size of pages that the pod asks for, and go with it', async () => {
    const sizes = '/sys/kernel/mm/hugepages';
    await using h = await virtualNode({
      before: ({ fs }) => {
        fs.makeDir(`${sizes}/hugepages-2048kB`);
        fs.put(`${sizes}/hugepages-2048kB/nr_hugepages`, '32\n');
      },
      manifests: { web: huge('web', { 'hugepages-2Mi': '4Mi', cpu: '1m' }) },
    });
    await h.until('web runs', () => up(h, 'web'));
    const path = `${volumesDir(h, 'web')}/kubernetes.io~empty-dir/huge`;
    expect(h.mounts.table).toMatchObject([{ path, type: 'hugetlbfs', options: ['pagesize=2097152'] }]);
    await gone(h);
    expect(h.mounts.table).toEqual([]);
  });

  it('that no container asks for keep the pod waiting, and say so', async () => {
    await using h = await virtualNode({ manifests: { web: huge('web', { cpu: '1m' }) } });
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toBe(
      'MountVolume.SetUp failed for volume "huge" : medium HugePages is asked for, and no container requests huge pages of that size',
    );
  });
});

describe('images as volumes', () => {
  const manifest = (policy: string, life?: string) =>
    pod('web', {
      ...(life === undefined ? {} : { life }),
      container: {
        volumeMounts: [
          { name: 'model', mountPath: '/model' },
          { name: 'model', mountPath: '/part', subPath: 'a/b' },
        ],
      },
      spec: { volumes: [{ name: 'model', image: { reference: 'models/one:1', pullPolicy: policy } }] },
    });

  it('are pulled before the container is made, given to the runtime, and never to the volume manager', async () => {
    await using h = await virtualNode({ manifests: { web: manifest('IfNotPresent', 'run=5s,exit=1;run=forever') } });
    await h.until('web runs', () => up(h, 'web'));
    const [model, part] = created(h)[0]?.mounts ?? [];
    const { annotations } = h.record('web')?.pod.metadata ?? {};
    const image = { userSpecifiedImage: 'models/one:1', annotations };
    expect(model).toMatchObject({ containerPath: '/model', hostPath: '', readonly: true, image });
    expect(model?.image?.image).not.toBe('');
    expect(part).toMatchObject({ containerPath: '/part', hostPath: '', readonly: true, imageSubPath: 'a/b', image: model?.image });
    const pulls = h.calls.filter((c) => c.method === 'PullImage');
    expect(pulls).toHaveLength(2);
    for (const { req } of pulls) expect(req).toMatchObject({ image: { annotations: { ...annotations } } });
    expect(annotations).toHaveProperty(['kubernetes.io/config.source'], 'file');
    await h.until('it was restarted', () => h.status('web')?.status.containerStatuses?.[0]?.restartCount === 1 && up(h, 'web'), 120_000);
    expect(created(h)[1]?.mounts?.slice(0, 2)).toEqual(created(h)[0]?.mounts?.slice(0, 2));
    expect(h.mounts.table).toEqual([]);
    expect(h.status('web')?.status.containerStatuses?.[0]?.volumeMounts).toEqual([
      { name: 'model', mountPath: '/model' },
      { name: 'model', mountPath: '/part' },
    ]);
  });

  it('that may not be pulled keep the container waiting, with the reason of images', async () => {
    await using h = await virtualNode({ manifests: { web: manifest('Never') } });
    const waiting = () => h.status('web')?.status.containerStatuses?.[0]?.state.waiting;
    await h.until('it waits', () => waiting()?.reason === 'ErrImageNeverPull', 60_000);
    expect(waiting()?.message).toContain('models/one:1');
    expect(created(h)).toEqual([]);
  });
});

describe('recursive read-only mounts', () => {
  const manifest = (recursiveReadOnly: string, more: object = {}) =>
    pod('web', {
      container: { volumeMounts: [{ name: 'cache', mountPath: '/ro', readOnly: true, recursiveReadOnly, ...more }] },
      spec: { volumes: [VOLUMES.cache] },
    });
  const handlers = (recursiveReadOnlyMounts: boolean) => ({
    features: { runtimeHandlers: [{ name: '', features: { recursiveReadOnlyMounts, userNamespaces: false } }] },
  });

  it.each([
    ['Enabled', true, true],
    ['IfPossible', true, true],
    ['IfPossible', false, undefined],
    ['Disabled', true, undefined],
  ])('%s, where the runtime says %s, asks for %s, and the status says what came of it', async (mode, supported, asked) => {
    await using h = await virtualNode({ manifests: { web: manifest(mode) }, hollow: handlers(supported) });
    await h.until('web runs', () => up(h, 'web'));
    expect(created(h)[0]?.mounts?.[0]).toMatchObject({ containerPath: '/ro', readonly: true });
    expect(created(h)[0]?.mounts?.[0]?.recursiveReadOnly).toBe(asked);
    expect(h.status('web')?.status.containerStatuses?.[0]?.volumeMounts).toEqual([
      { name: 'cache', mountPath: '/ro', readOnly: true, recursiveReadOnly: asked === true ? 'Enabled' : 'Disabled' },
    ]);
  });

  it('are promised by the status of a container that waits, as the runtime can make them', async () => {
    const web = pod('web', {
      inits: [{}],
      container: { volumeMounts: [{ name: 'cache', mountPath: '/ro', readOnly: true, recursiveReadOnly: 'IfPossible' }] },
      spec: { volumes: [VOLUMES.cache] },
    });
    await using h = await virtualNode({ manifests: { web }, hollow: handlers(true) });
    await h.until('its init container runs', () => h.running('web').length === 1);
    const [shown] = h.status('web')?.status.containerStatuses ?? [];
    expect(shown?.state.waiting?.reason).toBe('PodInitializing');
    expect(shown?.volumeMounts?.[0]?.recursiveReadOnly).toBe('Enabled');
  });

  it('that the runtime cannot make refuse the container that must have them', async () => {
    await using h = await virtualNode({ manifests: { web: manifest('Enabled') }, hollow: handlers(false) });
    const waiting = () => h.status('web')?.status.containerStatuses?.[0]?.state.waiting;
    await h.until('it is refused', () => waiting()?.reason === 'CreateContainerConfigError', 60_000);
    expect(waiting()?.message).toBe(
      'failed to resolve recursive read-only mode: volume "cache" requested recursive read-only mode, but it is not supported by the runtime',
    );
    expect(created(h)).toEqual([]);
  });
});
