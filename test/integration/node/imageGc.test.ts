/** A node whose images take too much room, or grew too old: which of them go, and what is said of it. A whole node in virtual time. */
import { describe, expect, it } from 'vitest';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { CriResponse } from '../../../src/machines/wire/criCalls.ts';
import { cluster, create, events, inApi } from '../cluster/clusterPods.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const path = 'node/reclaim/imageGc';
const IMAGES_AT = '/var/lib/hollow';
const MIB = 1024 ** 2;
const TOTAL = 1e12;
const LOOK_MS = 300_000;
const PAUSE = 'registry.k8s.io/pause:3.10';

const fill = (h: VirtualNode, usedPercent: number) => {
  h.fs.room = { ...h.fs.room, bytesTotal: TOTAL, bytesAvailable: (TOTAL * (100 - usedPercent)) / 100 };
};
const images = (h: VirtualNode) => [...h.runtime.dump().images].sort();
const start = (
  o: { config?: Partial<KubeletConfiguration>; images?: readonly string[]; used?: number; flags?: object; size?: number } = {},
) =>
  virtualNode({
    config: { evictionHard: {}, ...o.config },
    flags: o.flags ?? {},
    hollow: { images: o.images ?? [], pinned: [PAUSE], image: () => ({ sizeBytes: o.size ?? MIB }) },
    before: (h) => {
      h.fs.makeDir(IMAGES_AT);
      fill(h, o.used ?? 90);
    },
  });
const said = (h: VirtualNode, reason: string) => (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === reason);
const looked = (h: VirtualNode) =>
  h.until('it has looked', () => h.calls.some((c) => c.method === 'ImageFsInfo') && h.state(path) === 'idle');

describe('a node whose file system of images is full', () => {
  it('resources trap 31: removes what nobody uses and was there before, at once; what came later not before it is two minutes old', async () => {
    await using h = await start({ images: ['left:1', PAUSE] });
    await h.until('the old one is gone', () => !images(h).includes('left:1'));
    expect(images(h)).toEqual([PAUSE]);
    await h.run('web', pod('web', { container: { image: 'app:1' } }));
    h.remove('web');
    await h.until('its container is gone', () => h.containers('web').length === 0 && h.record('web') === undefined);
    expect(images(h)).toContain('app:1');
    await h.until('its image went', () => !images(h).includes('app:1'), 3 * LOOK_MS);
    expect(said(h, 'FreeDiskSpaceFailed').length).toBeGreaterThan(0);
    expect(said(h, 'FreeDiskSpaceFailed')[0]).toMatchObject({
      type: 'Warning',
      message: expect.stringMatching(/90 % full, over the 85 %.* 100000000000 bytes/),
    });
  });

  it('resources trap 32: keeps the image of a container that has ended, of a pod that is to run, and the sandbox image', async () => {
    const sandbox = 'registry.k8s.io/sandbox:1';
    await using h = await start({ images: ['wanted:1', 'left:1', sandbox], flags: { podInfraContainerImage: sandbox } });
    h.faults.fault = (m) => (m === 'CreateContainer' ? { kind: 'refuse', code: 2, details: 'not today' } : undefined);
    h.write('later', pod('later', { container: { image: 'wanted:1', imagePullPolicy: 'Never' } }));
    await h.until('the one that nobody wants is gone', () => !images(h).includes('left:1'));
    h.faults.fault = () => undefined;
    await h.until('the pod runs', () => h.phase('later') === 'Running');
    h.write('once', pod('once', { life: 'run=1s', container: { image: 'job:1' }, spec: { restartPolicy: 'Never' } }));
    await h.until('the job has ended', () => h.phase('once') === 'Succeeded');
    await h.advance(2 * LOOK_MS);
    expect(h.containers('once').map((c) => c.state)).toEqual(['CONTAINER_EXITED']);
    expect(images(h)).toEqual(['job:1', sandbox, 'wanted:1'].sort());
  });

  it('resources trap 34: stops when as much was freed as images say of their size, though the disk shows less', async () => {
    // 100 GB are wanted: two of 60.
    await using h = await start({ images: ['a:1', 'b:1', 'c:1'], size: 6e10 });
    await h.until('some are gone', () => images(h).length < 3);
    await looked(h);
    expect(images(h)).toHaveLength(1);
    expect(said(h, 'FreeDiskSpaceFailed')).toEqual([]);
    expect(await h.metrics.render()).toMatch(/kubelet_image_garbage_collected_total\{reason="space"\} 2/);
  });

  it('removes none below the threshold, and none with the threshold at 100', async () => {
    await using h = await start({ images: ['left:1'], used: 84 });
    await looked(h);
    await h.advance(LOOK_MS);
    expect(images(h)).toEqual(['left:1']);
    await using other = await start({ images: ['left:1'], used: 99, config: { imageGCHighThresholdPercent: 100 } });
    await looked(other);
    await other.advance(LOOK_MS);
    expect(images(other)).toEqual(['left:1']);
  });

  it('goes on with the others when one cannot be removed', async () => {
    await using h = await start({ images: ['a:1', 'b:1', 'c:1'] });
    let refused = 0;
    h.faults.fault = (m) => (m === 'RemoveImage' && refused++ === 0 ? { kind: 'refuse', code: 13, details: 'it is busy' } : undefined);
    await h.until('the others are gone', () => images(h).length === 1);
    await h.until('it says so', () =>
      h.lines.some(
        (l) => l.level === 'warn' && l.msg.startsWith('collecting images failed') && String(l.fields.err).includes('it is busy'),
      ),
    );
    await h.until('it went too', () => images(h).length === 0, 2 * LOOK_MS);
  });
});

describe('a collection that fails', () => {
  it('resources trap 33: is no event once, and one from the second time in a row on', async () => {
    await using h = await start({ used: 10 });
    h.faults.fault = (m) => (m === 'ImageFsInfo' ? { kind: 'refuse', code: 13, details: 'no statistics' } : undefined);
    const failed = (times: number) =>
      h.until(
        `it failed ${times} times`,
        () => h.lines.filter((l) => l.msg.startsWith('collecting images failed')).length === times,
        2 * LOOK_MS,
      );
    await failed(1);
    expect(said(h, 'ImageGCFailed')).toEqual([]);
    await failed(2);
    expect(said(h, 'ImageGCFailed')).toMatchObject([{ type: 'Warning', message: expect.stringContaining('no statistics') }]);
    h.faults.fault = () => undefined;
    await h.advance(LOOK_MS + 1_000);
    expect(h.actor(path)?.reason).toBe('Idle');
    // One that works makes the next failure the first again.
    h.faults.fault = (m) => (m === 'ImageFsInfo' ? { kind: 'refuse', code: 13, details: 'no statistics' } : undefined);
    await failed(3);
    expect(said(h, 'ImageGCFailed').map((e) => e.count)).toEqual([1]);
  });

  it('leaves an image without an id alone, and says so', async () => {
    await using h = await start({ images: ['left:1'] });
    const nameless = { id: '', repoTags: ['odd:1'], repoDigests: [], size: '1', uid: null, username: '', spec: null, pinned: false };
    h.faults.answer = (method, value) =>
      method === 'ListImages' ? { images: [nameless, ...(value as CriResponse<'ListImages'>).images] } : value;
    await h.until('the other one is gone', () => !images(h).includes('left:1'));
    expect(said(h, 'InvalidImageID')).toMatchObject([{ type: 'Warning', message: 'ImageID is not valid, skipping, image: odd:1' }]);
    expect(h.calls.flatMap((c) => (c.method === 'RemoveImage' ? [c.req] : []))).not.toContainEqual({ image: { image: '' } });
  });

  it('says that a file system without room at all cannot be', async () => {
    await using h = await start({ used: 10 });
    h.fs.room = { ...h.fs.room, bytesTotal: 0, bytesAvailable: 0 };
    await h.until('it is said', () => said(h, 'InvalidDiskCapacity').length === 1);
    expect(said(h, 'InvalidDiskCapacity')[0]?.message).toBe('invalid capacity 0 on image filesystem');
  });
});

it('imageMaximumGCAge removes what nobody used for longer, when the daemon is up for as long, whatever room there is', async () => {
  await using h = await start({ images: ['left:1'], used: 10, config: { imageMaximumGCAge: 400_000 } });
  await h.run('web', pod('web', { container: { image: 'app:1' } }));
  await h.advance(LOOK_MS + 20_000);
  expect(images(h)).toEqual(['app:1', 'left:1']);
  await h.until('it is gone', () => !images(h).includes('left:1'), LOOK_MS);
  await h.advance(2 * LOOK_MS);
  expect(images(h)).toEqual(['app:1']);
  expect(await h.metrics.render()).toMatch(/kubelet_image_garbage_collected_total\{reason="age"\} 1/);
});

it('what it knows of images outlives its own crash', async () => {
  await using h = await start({ used: 10 });
  await looked(h);
  await h.run('web', pod('web', { container: { image: 'app:1' } }));
  await h.advance(LOOK_MS);
  h.remove('web');
  await h.until('its container is gone', () => h.containers('web').length === 0 && h.record('web') === undefined);
  await h.run('new', pod('new', { container: { image: 'young:1' } }));
  h.remove('new');
  await h.until('its container is gone too', () => h.containers('new').length === 0 && h.record('new') === undefined);
  fill(h, 99);
  h.kill(path);
  // Seven minutes old and a few seconds old: only one of them may go at the next look.
  await h.until('the older one is gone', () => !images(h).includes('app:1'), 2 * LOOK_MS);
  const gone = h.time.clock.monoMs();
  await h.until('the younger one went, later', () => !images(h).includes('young:1'), 2 * LOOK_MS);
  expect(h.time.clock.monoMs()).toBeGreaterThanOrEqual(gone);
});

it('images are removed before a pod is evicted for its disk', async () => {
  await using h = await cluster({
    config: { evictionPressureTransitionPeriod: 0, imageGCHighThresholdPercent: 100 },
    hollow: { images: ['left:1'] },
    before: (n: VirtualNode) => n.fs.makeDir(IMAGES_AT),
  });
  create(h, 'web');
  await h.until('it runs', () => inApi(h, 'web')?.status.phase === 'Running');
  await h.until('the file system of images is known', () => h.calls.some((c) => c.method === 'ImageFsInfo'));
  expect(images(h)).toContain('left:1');
  h.fs.room = { ...h.fs.room, bytesTotal: TOTAL, bytesAvailable: 0.149 * TOTAL };
  h.faults.answer = (m, value) => {
    if (m === 'RemoveImage') h.fs.room = { ...h.fs.room, bytesAvailable: TOTAL / 2 };
    return value;
  };
  await h.until('the image is gone', () => !images(h).includes('left:1'));
  await h.advance(60_000);
  expect(events(h, 'EvictionThresholdMet').length).toBeGreaterThan(0);
  expect(inApi(h, 'web')?.status.phase).toBe('Running');
});
