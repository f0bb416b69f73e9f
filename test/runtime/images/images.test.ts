/** The image puller: policies, back-off, one pull for many pods, and a stop that waits for none of it. */
import { afterEach, describe, expect, it } from 'vitest';
import type { ImageEvent } from '../../../src/machines/runtime/imagePuller/messages.ts';
import type { Image, StringMap } from '../../../src/machines/wire/cri.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { fail } from '../fakeCri.ts';
import { askImage, type World, world } from '../world.ts';

let w: World;
afterEach(() => w.stop());

const image = (id: string): Image => ({
  id,
  repoTags: [],
  repoDigests: [],
  size: '1234',
  uid: null,
  username: '',
  spec: null,
  pinned: false,
});

function ensure(
  uid: string,
  image: string,
  { policy = 'IfNotPresent', signal, annotations }: { policy?: ImageEvent['policy']; signal?: AbortSignal; annotations?: StringMap } = {},
) {
  return askImage(w, { uid, image, policy, ...(annotations === undefined ? {} : { annotations }) }, signal);
}
async function settled<T>(promise: Promise<T>): Promise<T> {
  await w.ports.settle();
  return promise;
}
/** A runtime that has `present` and pulls whatever it is asked for, once the test lets it. */
async function start(
  o: {
    present?: string[];
    images?: Parameters<typeof world>[0] extends infer O ? (O extends { images?: infer I } ? I : never) : never;
  } = {},
) {
  w = await world({ only: ['cri', 'imagePuller'], ...(o.images === undefined ? {} : { images: o.images }) });
  const present = new Set(o.present ?? []);
  w.cri.answer('ImageStatus', (request: CriRequest<'ImageStatus'>) => ({
    image: present.has(request.image.image) ? image(request.image.image) : null,
    info: {},
  }));
}
const pulls = () => w.cri.of('PullImage');
const said = () => w.events.map((e) => `${e.event.type} ${e.event.reason}: ${e.event.message}`);

describe('the image puller', () => {
  it('uses an image that is present, with :latest added, and says so', async () => {
    await start({ present: ['busybox:latest'] });
    expect(await settled(ensure('u', 'busybox'))).toMatchObject({ ok: true, imageRef: 'busybox:latest', pulled: false });
    expect(said()).toEqual(['Normal Pulled: Container image "busybox" already present on machine']);
    expect(w.events[0]?.event.fieldPath).toBe('spec.containers{main}');
  });

  it("tells the runtime the pod's annotations with every question about an image", async () => {
    await start();
    const annotations = { 'io.containerd.cri.runtime-handler': 'kata', '': 'é' };
    void ensure('u', 'a:1', { annotations });
    await w.ports.settle();
    pulls()[0]?.resolve({ imageRef: 'sha256:1' });
    await w.ports.settle();
    expect(w.cri.of('ImageStatus').map((c) => c.request)).toEqual([
      { image: { image: 'a:1', annotations } },
      { image: { image: 'sha256:1', annotations } },
    ]);
    expect(pulls()[0]?.request).toMatchObject({ image: { image: 'a:1', annotations } });
  });

  it('refuses a name that is none', async () => {
    await start();
    expect(await settled(ensure('u', 'Not//Good'))).toMatchObject({ ok: false, failure: { reason: 'InvalidImageName' } });
    expect(said()[0]).toMatch(/^Warning InspectFailed: Failed to apply default image tag "Not\/\/Good"/);
  });

  it('never pulls under policy Never', async () => {
    await start();
    expect(await settled(ensure('u', 'a:1', { policy: 'Never' }))).toMatchObject({ ok: false, failure: { reason: 'ErrImageNeverPull' } });
    expect(said()).toEqual(['Warning ErrImageNeverPull: Container image "a:1" is not present with pull policy of Never']);
    expect(pulls()).toHaveLength(0);
  });

  it('says when the runtime cannot tell whether an image is there', async () => {
    await start();
    w.cri.answer('ImageStatus', () => fail(2, 'store is broken'));
    expect(await settled(ensure('u', 'a:1'))).toMatchObject({
      ok: false,
      failure: { reason: 'ImageInspectError', message: 'Failed to inspect image "a:1": store is broken' },
    });
  });

  it('pulls under policy Always without asking what is there, which may be damaged', async () => {
    await start();
    w.cri.answer('ImageStatus', () => fail(2, 'store is broken'));
    void ensure('u', 'a:1', { policy: 'Always' });
    await w.ports.settle();
    expect([w.cri.of('ImageStatus').length, pulls().length]).toEqual([0, 1]);
  });

  it('pulls without a deadline and reports times and size', async () => {
    await start();
    const result = ensure('u', 'a:1');
    await w.ports.settle();
    expect(pulls()[0]?.timeoutMs).toBeNull();
    await w.ports.advance(2500);
    w.cri.answer('ImageStatus', () => ({ image: image('sha256:1'), info: {} }));
    pulls()[0]?.resolve({ imageRef: 'sha256:1' });
    expect(await settled(result)).toMatchObject({ ok: true, imageRef: 'sha256:1', pulled: true });
    expect(said()).toEqual([
      'Normal Pulling: Pulling image "a:1"',
      'Normal Pulled: Successfully pulled image "a:1" in 2.5s (2.5s including waiting). Image size: 1234 bytes.',
    ]);
  });

  it('backs off after a failed pull, says why, and tries again when the time is over', async () => {
    await start();
    w.cri.answer('PullImage', () => fail(5, 'a:1: not found'));
    expect(await settled(ensure('u', 'a:1'))).toMatchObject({ failure: { reason: 'ErrImagePull', message: 'a:1: not found' } });
    expect(await settled(ensure('u', 'a:1'))).toMatchObject({
      failure: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "a:1": ErrImagePull: a:1: not found' },
    });
    expect(await settled(ensure('v', 'a:1'))).toMatchObject({ failure: { reason: 'ErrImagePull' } });
    await w.ports.advance(10_000);
    expect(await settled(ensure('u', 'a:1'))).toMatchObject({ failure: { reason: 'ErrImagePull' } });
    await w.ports.advance(19_999);
    expect(await settled(ensure('u', 'a:1'))).toMatchObject({ failure: { reason: 'ImagePullBackOff' } });
    expect(said()).toContain('Warning Failed: Failed to pull image "a:1": a:1: not found');
    expect(said()).toContain('Normal BackOff: Back-off pulling image "a:1"');
  });

  it('counts what it was asked for, by policy, presence and need of a pull, as the kubelet does', async () => {
    await start({ present: ['here:1'] });
    w.cri.answer('PullImage', () => fail(5, 'not found'));
    await settled(ensure('u', 'Not//Good'));
    await settled(ensure('u', 'here:1'));
    await settled(ensure('u', 'here:1', { policy: 'Always' }));
    await settled(ensure('u', 'there:1'));
    await settled(ensure('u', 'there:1', { policy: 'Never' }));
    const text = await w.ports.metrics.render();
    for (const [policy, present, required] of [
      ['ifnotpresent', 'unknown', 'unknown'],
      ['ifnotpresent', 'true', 'false'],
      ['always', 'unknown', 'true'],
      ['ifnotpresent', 'false', 'true'],
      ['never', 'false', 'unknown'],
    ])
      expect(text).toContain(
        `kubelet_image_manager_ensure_image_requests_total{present_locally="${present}",pull_policy="${policy}",pull_required="${required}"} 1`,
      );
  });

  it('pulls an image once for all the pods that wait for it', async () => {
    await start();
    const both = Promise.all([ensure('u', 'a:1', { policy: 'Always' }), ensure('v', 'a:1', { policy: 'Always' })]);
    await w.ports.settle();
    expect(pulls()).toHaveLength(1);
    pulls()[0]?.resolve({ imageRef: 'sha256:1' });
    expect((await settled(both)).map((r) => typeof r === 'object' && r.ok)).toEqual([true, true]);
  });

  it('lets a pod give up at once; the pull ends when nobody waits for it any more', async () => {
    await start();
    const [a, b] = [new AbortController(), new AbortController()];
    const first = ensure('u', 'a:1', { signal: a.signal });
    const second = ensure('v', 'a:1', { signal: b.signal });
    await w.ports.settle();
    a.abort();
    expect(await settled(first)).toBe('lost');
    expect(pulls()[0]?.signal.aborted).toBe(false);
    b.abort();
    expect(await settled(second)).toBe('lost');
    expect(pulls()[0]?.signal.aborted).toBe(true);
    w.cri.answer('PullImage', () => ({ imageRef: 'sha256:1' }));
    expect(await settled(ensure('u', 'a:1'))).toMatchObject({ ok: true, pulled: true });
  });

  it('pulls one image after the other when serial, as many as allowed when parallel', async () => {
    await start();
    for (const name of ['a:1', 'b:1', 'c:1']) void ensure('u', name);
    await w.ports.settle();
    expect(pulls()).toHaveLength(1);
    pulls()[0]?.resolve({ imageRef: 'x' });
    await w.ports.settle();
    expect(pulls()).toHaveLength(2);
    await w.stop();
    await start({ images: { serializeImagePulls: false, maxParallelImagePulls: 2 } });
    for (const name of ['a:1', 'b:1', 'c:1']) void ensure('u', name);
    await w.ports.settle();
    expect(pulls()).toHaveLength(2);
  });

  it('fails a pull over the rate, as the registry limit asks', async () => {
    await start({ images: { registryPullQPS: 1, registryBurst: 1, serializeImagePulls: false } });
    void ensure('u', 'a:1');
    expect(await settled(ensure('u', 'b:1'))).toMatchObject({ failure: { reason: 'ErrImagePull', message: 'pull QPS exceeded' } });
  });

  it('neither counts nor queues images that the runtime has built in', async () => {
    const isBuiltIn = (name: string) => name.startsWith('actorlet.dev/');
    await start({ images: { registryPullQPS: 1, registryBurst: 1, isBuiltIn } });
    for (let i = 0; i < 40; i++) void ensure('u', `registry.test/away-${i}:1`);
    w.cri.answer('PullImage', (request: CriRequest<'PullImage'>) => ({ imageRef: request.image.image }));
    const all = await settled(Promise.all(Array.from({ length: 40 }, (_, i) => ensure('u', `actorlet.dev/host-${i}:1`))));
    expect(all.every((r) => typeof r === 'object' && r.ok)).toBe(true);
  });

  it('lets no registry that hangs hold up the pods of another', async () => {
    await start({ images: { registryPullQPS: 0, serializeImagePulls: false, maxParallelImagePulls: 4 } });
    w.cri.answer('PullImage', async (request: CriRequest<'PullImage'>) => {
      if (request.image.image.startsWith('away.test')) await new Promise<void>((resolve) => void w.ports.clock.setTimeout(resolve, 30_000));
      return { imageRef: request.image.image };
    });
    for (let i = 0; i < 40; i++) void ensure('u', `away.test/${i}:1`);
    const good = ensure('u', 'here.test/app:1');
    await w.ports.advance(30_000);
    expect(await settled(good)).toMatchObject({ ok: true });
  });

  it('tries every credential that matches before it fails', async () => {
    await start({ images: { credentials: async () => [{ auth: { username: 'a' } }, { auth: { username: 'b' } }] } });
    w.cri.answer('PullImage', (request: CriRequest<'PullImage'>) =>
      request.auth?.username === 'b' ? { imageRef: 'x' } : fail(7, 'denied'),
    );
    expect(await settled(ensure('u', 'a:1'))).toMatchObject({ ok: true });
    expect(pulls()).toHaveLength(2);
  });

  it('shows what it is pulling and for how long', async () => {
    await start();
    void ensure('u', 'a:1');
    void ensure('u', 'b:1');
    await w.ports.advance(10_000);
    expect(JSON.stringify(w.tree.state())).toContain('pulling a:1 (10 s), b:1 (waiting for its turn)');
  });

  it('when it is killed cancels its pulls, tells the askers, and serves again', async () => {
    await start({ present: ['p:1'] });
    const result = ensure('u', 'a:1');
    await w.ports.settle();
    expect(w.tree.kill('node/runtime/imagePuller', 'test')).toBe(true);
    expect(await settled(result)).toBe('lost');
    expect(pulls()[0]?.signal.aborted).toBe(true);
    await w.ports.advance(1000);
    expect(await settled(ensure('u', 'p:1'))).toMatchObject({ ok: true });
  });
});
