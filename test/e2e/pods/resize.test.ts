/**
 * What a node tells a real containerd to change the resources of a running container in place. The API server of the real
 * control plane is of a version that lets nobody change them (1.20), so the decisions are driven here without one; the whole
 * node, with an API server that does, is `integration/resize`.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryUsage, updateResources } from '../../../src/actors/pods/workers/container/resize.ts';
import type { CriClient } from '../../../src/actors/runtime/client.ts';
import { createGrpcCri } from '../../../src/boot/dependencies/cri/grpcCri.ts';
import { hostMemoryControl } from '../../../src/boot/dependencies/machine/memoryControl.ts';
import type { ResourceRequirements } from '../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { planResize, withStep } from '../../../src/machines/pod/resources/actuation.ts';
import { memoryControls } from '../../../src/machines/pod/resources/memoryControl.ts';
import type { InForce } from '../../../src/machines/pod/resources/reported.ts';
import { containerResources } from '../../../src/machines/pod/resources/resources.ts';
import { composeStatus, toContainer, toSandbox } from '../../../src/machines/pod/runtime/runtimeStatus.ts';
import type { PodRuntimeStatus } from '../../../src/machines/pod/runtime/seen.ts';
import { containerAnnotations } from '../../../src/machines/pods/workers/config/containerConfig.ts';
import { CRI_LABELS } from '../../../src/machines/wire/cri.ts';
import type { Cri } from '../../../src/ports/ports.ts';
import { FACTS as SOME_FACTS } from '../../machines/pods/fixtures.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { call, containerConfig, sandboxConfig } from '../lab/pods.ts';
import { quietLog, realClock } from '../lab/ports.ts';

const UID = 'uid-resized';
const MI = 1024 * 1024;
/** Of this machine: swap is kept from containers by what its cgroups have for that. */
const HOST = hostMemoryControl();
const FACTS = { ...SOME_FACTS, memoryControl: { ...HOST, limitedSwap: false, throttlingFactor: null, floors: false, groupOom: true } };
let lab: Containerd;
let cri: Cri;
let containerId = '';

const asking = (resources: ResourceRequirements): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'resized', namespace: 'default', uid: UID, annotations: { 'kubernetes.io/config.source': 'api' } },
  spec: { containers: [{ name: 'main', image: 'busybox:1', resources }] },
  status: {},
});
const WAS: ResourceRequirements = { requests: { cpu: '100m', memory: '32Mi' }, limits: { cpu: '500m', memory: '64Mi' } };

beforeAll(async () => {
  lab = await startContainerd();
  cri = createGrpcCri({ endpoint: lab.endpoint, log: quietLog, clock: realClock });
  const config = sandboxConfig({ name: 'resized', uid: UID, cgroupParent: lab.cgroupParent });
  const { podSandboxId } = await call(cri, 'RunPodSandbox', { config });
  const pod = asking(WAS);
  const [main] = pod.spec.containers;
  if (main === undefined) throw new Error('no container');
  const plain = containerConfig({ name: 'main', pod: 'resized', uid: UID, command: ['sleep', '3600'] });
  const made = await call(cri, 'CreateContainer', {
    podSandboxId,
    config: {
      ...plain,
      annotations: containerAnnotations(pod, main, 0),
      // The score is not this test's matter, and may not be lowered everywhere.
      linux: {
        ...plain.linux,
        resources: { ...containerResources(pod, main, FACTS), ...memoryControls(pod, main, FACTS), oomScoreAdj: 1000 },
      },
    },
    sandboxConfig: config,
  });
  containerId = made.containerId;
  await call(cri, 'StartContainer', { containerId });
});
afterAll(async () => {
  cri?.close();
  expect(await lab?.stop()).toEqual([]);
});

/** The first of these files that the container sees of its own cgroup. */
async function cgroup(...files: string[]): Promise<string> {
  const script = files.map((f) => `cat /sys/fs/cgroup/${f} 2>/dev/null`).join(' || ');
  const { stdout } = await call(cri, 'ExecSync', { containerId, cmd: ['sh', '-c', script], timeout: 60 });
  return new TextDecoder().decode(stdout).trim();
}
const memoryMax = async () => Number(await cgroup('memory/memory.limit_in_bytes', 'memory.max'));
/** Bytes that it may swap out; undefined where the kernel does not count that. */
async function swapMax(): Promise<number | undefined> {
  if (!HOST.swapController) return undefined;
  if (HOST.cgroupVersion === 2) return Number(await cgroup('memory.swap.max'));
  return Number(await cgroup('memory/memory.memsw.limit_in_bytes')) - (await memoryMax());
}
const NO_SWAP = HOST.swapController ? 0 : undefined;
/** Thousandths of a cpu. */
async function cpuMax(): Promise<number> {
  const both = await cgroup('cpu.max');
  const [quota, period] = both === '' ? [await cgroup('cpu/cpu.cfs_quota_us'), await cgroup('cpu/cpu.cfs_period_us')] : both.split(' ');
  return (Number(quota) * 1000) / Number(period);
}
async function observed(): Promise<PodRuntimeStatus> {
  const filter = { labelSelector: { [CRI_LABELS.podUid]: UID } };
  const boxes = (await call(cri, 'ListPodSandbox', { filter })).items;
  const sandboxes = await Promise.all(boxes.map(async ({ id }) => (await call(cri, 'PodSandboxStatus', { podSandboxId: id })).status));
  const { status } = await call(cri, 'ContainerStatus', { containerId });
  if (status === null) throw new Error('the container is gone');
  return composeStatus({
    uid: UID,
    name: 'resized',
    namespace: 'default',
    sandboxes: sandboxes.flatMap((s) => (s === null ? [] : [toSandbox(s)])),
    containers: [toContainer(status)],
    observedAtMonoMs: 1,
  });
}
/** The link to the runtime, without its fences: nobody else acts on this container. */
const link = (): CriClient => ({
  read: (method, request) => call(cri, method, request),
  act: async (_uid, _incarnation, calls) =>
    Promise.all(
      calls.map(async (c) => {
        try {
          return { ok: true as const, value: await call(cri, c.method, c.request as never) };
        } catch (error) {
          const details = error instanceof Error ? error.message : String(error);
          return { ok: false as const, error: { method: c.method, code: 2, details, outcome: 'failed' as const } };
        }
      }),
    ),
  mutate: () => Promise.reject(new Error('not asked for')),
  fence: () => Promise.reject(new Error('not asked for')),
});
/** As a worker does it: what of this is not in force is told, step after step. */
async function change(resources: ResourceRequirements, before: InForce): Promise<{ inForce: InForce; trouble: string[] }> {
  const pod = asking(resources);
  const status = await observed();
  const plan = planResize({ pod, status, inForce: before, facts: FACTS });
  let { inForce } = plan;
  const trouble: string[] = [];
  for (const step of plan.steps) {
    const by = { cri: link(), inspector: { changed: () => undefined }, incarnation: 1 };
    const why = await updateResources(by, { pod, step }, new AbortController().signal);
    const [from] = status.containers;
    if (why !== null || from === undefined) trouble.push(why ?? 'gone');
    else inForce = withStep(inForce, step, from);
  }
  return { inForce, trouble };
}

describe('a running container of a real containerd', () => {
  it('has what it was made with, and says so by its annotation', async () => {
    expect([await memoryMax(), await cpuMax(), await swapMax()]).toEqual([64 * MI, 500, NO_SWAP]);
    const { restart, steps } = planResize({ pod: asking(WAS), status: await observed(), inForce: new Map(), facts: FACTS });
    expect([restart.size, steps]).toEqual([0, []]);
    const used = await memoryUsage(
      { cri: link(), statsFromCri: false },
      { pod: asking(WAS), sandboxId: '', containerIds: [containerId, ''] },
      new AbortController().signal,
    );
    expect([used.get(containerId), used.get('')].map((bytes = 0) => bytes > 0)).toEqual([true, true]);
  });

  it('is given more and less while it runs, and is not started anew', async () => {
    const startedAt = (await observed()).containers[0]?.startedAtMs;
    const more = await change({ requests: { cpu: '200m', memory: '64Mi' }, limits: { cpu: '1500m', memory: '128Mi' } }, new Map());
    expect(more.trouble).toEqual([]);
    expect([await memoryMax(), await cpuMax(), await swapMax()]).toEqual([128 * MI, 1500, NO_SWAP]);
    const less = await change({ requests: { cpu: '50m', memory: '16Mi' }, limits: { cpu: '250m', memory: '32Mi' } }, more.inForce);
    expect(less.trouble).toEqual([]);
    expect([await memoryMax(), await cpuMax(), await swapMax()]).toEqual([32 * MI, 250, NO_SWAP]);
    expect((await observed()).containers[0]).toMatchObject({ id: containerId, state: 'running', startedAtMs: startedAt });
    // Who does not remember says it again: nothing changes by that.
    const again = await change({ requests: { cpu: '50m', memory: '16Mi' }, limits: { cpu: '250m', memory: '32Mi' } }, new Map());
    expect(again.trouble).toEqual([]);
    expect([await memoryMax(), await cpuMax(), await swapMax()]).toEqual([32 * MI, 250, NO_SWAP]);
  });

  it('that is gone cannot be changed, with the words of the runtime', async () => {
    const pod = asking({ requests: { cpu: '200m', memory: '32Mi' }, limits: { cpu: '1', memory: '64Mi' } });
    const [step] = planResize({ pod, status: await observed(), inForce: new Map(), facts: FACTS }).steps;
    if (step === undefined) throw new Error('nothing to change');
    await call(cri, 'StopContainer', { containerId, timeout: 0 });
    await call(cri, 'RemoveContainer', { containerId });
    const by = { cri: link(), inspector: { changed: () => undefined }, incarnation: 1 };
    const why = await updateResources(by, { pod, step }, new AbortController().signal);
    // Its memory: the test before has lowered it, and the runtime says so.
    expect(why).toMatch(/^memory of container main could not be changed: .*not found/);
  });
});
