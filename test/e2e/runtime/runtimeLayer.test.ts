/** The runtime actors on a real containerd: exits seen at once, a runtime that goes away and comes back. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fromCallback } from 'xstate';
import { type CriClient, criCall, criClient } from '../../../src/actors/runtime/client.ts';
import { criLinkSpec } from '../../../src/actors/runtime/cri/cri.ts';
import { imagePullerSpec } from '../../../src/actors/runtime/imagePuller/imagePuller.ts';
import { plegSpec } from '../../../src/actors/runtime/pleg/pleg.ts';
import { createTree } from '../../../src/actors/supervision/tree.ts';
import type { ActorSpec, SupervisorSpec, Tree } from '../../../src/actors/supervision/types.ts';
import { createClock, createEntropy, createRng, createYield } from '../../../src/boot/dependencies/clock.ts';
import { createGrpcCri } from '../../../src/boot/dependencies/cri/grpcCri.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';
import { criView } from '../../../src/machines/runtime/cri/messages.ts';
import { type ImageEvent, type ImageResult, imagePullerAddr } from '../../../src/machines/runtime/imagePuller/messages.ts';
import { runtimePodsView } from '../../../src/machines/runtime/pleg/messages.ts';
import type { Message, ReplyTo } from '../../../src/machines/supervision/address.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { runPod, sandboxConfig } from '../lab/pods.ts';
import { quietLog, until } from '../lab/ports.ts';

const LAYER = {
  type: 'supervisor',
  strategy: 'one_for_one',
  restart: 'permanent',
  shutdownMs: 1000,
  intensity: { max: 10, periodMs: 60_000 },
  backoff: { minMs: 100, maxMs: 1000, factor: 2, jitter: 0 },
  escalate: 'parent',
} as const;

let lab: Containerd;
let tree: Tree;
let client: CriClient;
let dirty: { uid: string; why: string; atMs: number }[] = [];

const podManager: ActorSpec<Message> = {
  type: 'actor',
  id: 'podManager',
  restart: 'permanent',
  shutdownMs: 'brutal',
  intensity: LAYER.intensity,
  backoff: LAYER.backoff,
  start: () => ({
    logic: fromCallback<Message>(({ receive }) =>
      receive((e) => {
        if ('uid' in e && 'why' in e) dirty.push({ uid: String(e.uid), why: String(e.why), atMs: Date.now() });
      }),
    ),
  }),
};

beforeAll(async () => {
  lab = await startContainerd();
  const clock = createClock();
  const ports = {
    ...fakePorts(),
    clock,
    rng: createRng(),
    entropy: createEntropy(),
    yield: createYield(),
    metrics: createMetrics(),
    log: quietLog,
    cri: createGrpcCri({ endpoint: lab.endpoint, log: quietLog, clock }),
  };
  const spec: SupervisorSpec = {
    ...LAYER,
    id: 'node',
    children: [
      { ...LAYER, id: 'runtime', children: [criLinkSpec(), imagePullerSpec(), plegSpec()] },
      { ...LAYER, id: 'pods', children: [podManager] },
    ],
  };
  tree = createTree(spec, ports);
  await tree.start();
  client = criClient(tree.registry);
  await until('the link', () => tree.registry.read(criView)?.value.state === 'ready');
});
afterAll(async () => {
  await tree?.stop();
  expect(await lab?.stop()).toEqual([]);
});
beforeEach(() => {
  dirty = [];
});

const dirtyAfter = (uid: string, sinceMs: number) => dirty.find((d) => d.uid === uid && d.atMs >= sinceMs);

describe('the runtime actors on a real containerd', () => {
  it('mark the pod of an exited container dirty within tens of milliseconds, known or not', async () => {
    const took: number[] = [];
    for (let i = 0; i < 5; i++) {
      const uid = `uid-exit-${i}`;
      const { containerId } = await runPod(lab.cri, { name: `exit-${i}`, uid, cgroupParent: lab.cgroupParent, command: ['sleep', '0.3'] });
      const status = await until('the exit', async () => {
        const answer = await client.read('ContainerStatus', { containerId });
        return answer.status?.state === 'CONTAINER_EXITED' && answer.status;
      });
      const finishedMs = Number(BigInt(status.finishedAt) / 1_000_000n);
      const seen = await until('pods.dirty', () => dirtyAfter(uid, finishedMs));
      took.push(seen.atMs - finishedMs);
    }
    console.log(`exit -> pods.dirty: ${took.join(', ')} ms`);
    expect(Math.max(...took)).toBeLessThan(10_000);
  });

  it('come to trust the stream and then list rarely, without missing an exit', async () => {
    await until('trust', () => tree.registry.read(runtimePodsView)?.value.via === 'containerd', { timeoutMs: 20_000 });
    const uid = 'uid-trusted';
    const { containerId } = await runPod(lab.cri, { name: 'trusted', uid, cgroupParent: lab.cgroupParent, command: ['sleep', '600'] });
    const killed = Date.now();
    lab.ctr('tasks', 'kill', '-s', 'KILL', containerId);
    // On a busy machine a listing may tell of the start only now.
    await until('the hint of the exit', () => dirty.some((d) => d.uid === uid && d.atMs >= killed && d.why.includes('hint')));
    await until('the listing that confirms it', () => {
      const pod = tree.registry.read(runtimePodsView)?.value.pods.get(uid);
      return pod?.containers[0]?.state === 'exited';
    });
    expect(tree.registry.read(runtimePodsView)?.value.via).toBe('containerd');
  });

  it('run fenced acts of one pod one after the other', async () => {
    const config = sandboxConfig({ name: 'fenced', uid: 'uid-fenced', cgroupParent: lab.cgroupParent });
    const { podSandboxId } = await client.mutate('uid-fenced', 1, { method: 'RunPodSandbox', request: { config } });
    const stop = client.act('uid-fenced', 1, [criCall('StopPodSandbox', { podSandboxId })]);
    const remove = client.act('uid-fenced', 1, [criCall('RemovePodSandbox', { podSandboxId })]);
    expect([...(await stop), ...(await remove)].map((r) => r.ok)).toEqual([true, true]);
    expect(await client.act('uid-fenced', 1, [criCall('RemovePodSandbox', { podSandboxId })])).toMatchObject([{ ok: true }]);
  });

  it('find a present image and fail a pull with the words of the runtime', async () => {
    const ensure = (image: string) =>
      tree.registry.ask(
        imagePullerAddr,
        (replyTo: ReplyTo<ImageResult>): ImageEvent => ({
          type: 'image.ensure',
          uid: 'u',
          podRef: { uid: 'u', name: 'u', namespace: 'default' },
          container: 'main',
          fieldPath: 'spec.containers{main}',
          image,
          policy: 'IfNotPresent',
          sandboxConfig: sandboxConfig({ name: 'u', uid: 'u', cgroupParent: lab.cgroupParent }),
          replyTo,
        }),
        { timeoutMs: 30_000 },
      );
    expect(await ensure('busybox')).toMatchObject({ kind: 'reply', value: { ok: true, pulled: false } });
    const failed = await ensure('127.0.0.1:1/none:1');
    expect(failed).toMatchObject({ kind: 'reply', value: { ok: false, failure: { reason: 'ErrImagePull' } } });
    expect(JSON.stringify(failed)).toContain('connection refused');
    expect(await ensure('127.0.0.1:1/none:1')).toMatchObject({ value: { failure: { reason: 'ImagePullBackOff' } } });
  });

  it('survive a runtime that is killed: lost with a reason, ready again by themselves, every pod looked at again', async () => {
    const uid = 'uid-survives';
    const { containerId } = await runPod(lab.cri, { name: 'survives', uid, cgroupParent: lab.cgroupParent, command: ['sleep', '600'] });
    await until('the pod to be listed', () => tree.registry.read(runtimePodsView)?.value.pods.has(uid));
    const killed = Date.now();
    await lab.kill();
    await until('the loss', () => tree.registry.read(criView)?.value.state !== 'ready');
    console.log(`runtime killed -> link knows: ${Date.now() - killed} ms`);
    expect(tree.registry.read(criView)?.value.reason).not.toBe('');
    await expect(client.read('ContainerStatus', { containerId })).rejects.toThrow(/ContainerStatus/);
    // From before the start: the link may be ready, and every pod marked, before this process sees containerd answer.
    const up = Date.now();
    await lab.start();
    await until('the return', () => tree.registry.read(criView)?.value.state === 'ready');
    console.log(`runtime back -> link ready: ${Date.now() - up} ms`);
    await until('every pod marked', () => dirtyAfter(uid, up));
    expect((await client.read('ContainerStatus', { containerId })).status?.state).toBe('CONTAINER_RUNNING');
    const exit = Date.now();
    lab.ctr('tasks', 'kill', '-s', 'KILL', containerId);
    await until('hints to work again', () => dirtyAfter(uid, exit));
  });
});
