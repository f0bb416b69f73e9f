/** The real CRI port against a real containerd. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCgroups } from '../../../src/boot/dependencies/cgroups/cgroups.ts';
import { createGrpcCri } from '../../../src/boot/dependencies/cri/grpcCri.ts';
import type { RuntimeHint } from '../../../src/machines/wire/cri.ts';
import type { CriMethod, CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { type Cri, CriError } from '../../../src/ports/ports.ts';
import { RUNS_ALL } from '../../rotation.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { call, containerConfig, runPod, sandboxConfig } from '../lab/pods.ts';
import { quietLog, realClock, until } from '../lab/ports.ts';

/** Starts that are broken off, over the time that one takes. */
const ROUNDS = RUNS_ALL ? 20 : 6;
const STARTS_TAKE_MS = 200;

let lab: Containerd;
let cri: Cri;
/** 1.x has no events in the CRI, and does not tell how it is configured. */
let isOld = false;

beforeAll(async () => {
  lab = await startContainerd();
  cri = createGrpcCri({ endpoint: lab.endpoint, log: quietLog, clock: realClock });
  isOld = /^v?1\./.test((await call(cri, 'Version', { version: '0.1.0' })).runtimeVersion);
});
afterAll(async () => {
  cri?.close();
  const left = await lab?.stop();
  expect(left).toEqual([]);
});

async function failure<M extends CriMethod>(method: M, request: CriRequest<M>, timeoutMs = 10_000): Promise<CriError> {
  try {
    await call(cri, method, request, timeoutMs);
  } catch (error) {
    if (error instanceof CriError) return error;
    throw error;
  }
  throw new Error(`${method} succeeded`);
}

/** Collects hints with the time each arrived. */
async function listen(signal: AbortSignal): Promise<{ via: string; seen: { hint: RuntimeHint; at: number }[]; ended: Promise<unknown> }> {
  const { via, stream } = await cri.hints(signal);
  const seen: { hint: RuntimeHint; at: number }[] = [];
  const ended = (async () => {
    for await (const hint of stream) seen.push({ hint, at: performance.now() });
  })().catch((error: unknown) => error);
  return { via, seen, ended };
}

describe('the CRI port on a real containerd', () => {
  it('introduces itself and is ready', async () => {
    const version = await call(cri, 'Version', { version: '0.1.0' });
    expect(version.runtimeName).toBe('containerd');
    const status = await call(cri, 'Status', {});
    // 2.x adds a condition of its own.
    expect(status.status?.conditions.slice(0, 2).map((c) => [c.type, c.status])).toEqual([
      ['RuntimeReady', true],
      ['NetworkReady', true],
    ]);
  });

  it('runs a sandbox and a container, and reports address, exit code and nanosecond times', async () => {
    const { sandboxId, containerId } = await runPod(cri, {
      name: 'exits',
      uid: 'uid-exits',
      cgroupParent: lab.cgroupParent,
      command: ['sh', '-c', 'sleep 0.3; exit 7'],
    });
    const status = await until('the container to exit', async () => {
      const answer = await call(cri, 'ContainerStatus', { containerId });
      return answer.status?.state === 'CONTAINER_EXITED' && answer.status;
    });
    expect(status).toMatchObject({ exitCode: 7, reason: 'Error' });
    expect(BigInt(status.finishedAt) > BigInt(status.startedAt)).toBe(true);
    const sandbox = await call(cri, 'PodSandboxStatus', { podSandboxId: sandboxId });
    expect(sandbox.status?.network?.ip).toMatch(/^10\./);
    expect(sandbox.status?.linux?.namespaces?.options).toMatchObject({ network: 'POD', pid: 'CONTAINER' });
    const listed = await call(cri, 'ListContainers', { filter: { labelSelector: { 'io.kubernetes.pod.uid': 'uid-exits' } } });
    expect(listed.containers.map((c) => c.id)).toEqual([containerId]);
  });

  it('starts a sandbox in a moment (the figures are printed)', async () => {
    const took: number[] = [];
    for (let i = 0; i < 5; i++) {
      const began = performance.now();
      await call(cri, 'RunPodSandbox', { config: sandboxConfig({ name: `t${i}`, uid: `uid-t${i}`, cgroupParent: lab.cgroupParent }) });
      took.push(performance.now() - began);
    }
    took.sort((a, b) => a - b);
    console.log(`RunPodSandbox: ${took.map((ms) => ms.toFixed(0)).join(', ')} ms`);
    expect(took[2]).toBeLessThan(15_000);
  });

  it('tells a missing image by an answer without one, not by an error', async () => {
    expect((await call(cri, 'ImageStatus', { image: { image: 'docker.io/library/absent:1' } })).image).toBeNull();
  });

  it('calls an error that the runtime answered failed, and gives its own words', async () => {
    const error = await failure('StartContainer', { containerId: 'nope' });
    expect(error).toMatchObject({ code: 5, outcome: 'failed' });
    expect(error.details).toContain('"nope": not found');
    if (isOld) expect(await failure('RuntimeConfig', {})).toMatchObject({ code: 12, outcome: 'failed' });
    else expect((await call(cri, 'RuntimeConfig', {})).linux).toBeDefined();
  });

  it('hints at starts, exits and removals at once (the figure is printed), and stays silent about other namespaces', async () => {
    const abort = new AbortController();
    const { via, seen, ended } = await listen(abort.signal);
    expect(via).toBe(isOld ? 'containerd' : 'cri');
    lab.ctr('-n', 'default', 'containers', 'create', '--rootfs', lab.dir, 'somebody-elses', 'true');
    lab.ctr('-n', 'default', 'containers', 'rm', 'somebody-elses');
    const { sandboxId, containerId } = await runPod(cri, {
      name: 'hinted',
      uid: 'uid-hinted',
      cgroupParent: lab.cgroupParent,
      command: ['sleep', '0.5'],
    });
    const stopped = await until('the exit hint', () => seen.find((s) => s.hint.id === containerId && s.hint.kind === 'stopped'));
    const arrivedAtMs = performance.timeOrigin + stopped.at;
    const status = await until('the exit', async () => {
      const answer = await call(cri, 'ContainerStatus', { containerId });
      return answer.status?.state === 'CONTAINER_EXITED' && answer.status;
    });
    const lateMs = arrivedAtMs - Number(BigInt(status.finishedAt) / 1000n) / 1000;
    console.log(`exit hint ${lateMs.toFixed(1)} ms after finishedAt`);
    expect(lateMs).toBeLessThan(10_000);
    await call(cri, 'StopPodSandbox', { podSandboxId: sandboxId });
    await call(cri, 'RemovePodSandbox', { podSandboxId: sandboxId });
    await until('the removal hints', () => seen.some((s) => s.hint.id === sandboxId && s.hint.kind === 'deleted'));
    expect(seen.map((s) => s.hint.id)).not.toContain('somebody-elses');
    abort.abort();
    await ended;
  });

  it('hints nothing about an exec in a container', async () => {
    const abort = new AbortController();
    const { seen, ended } = await listen(abort.signal);
    const { sandboxId, containerId } = await runPod(cri, {
      name: 'execs',
      uid: 'uid-execs',
      cgroupParent: lab.cgroupParent,
      command: ['sleep', '60'],
    });
    await until('the start hint', () => seen.some((s) => s.hint.id === containerId && s.hint.kind === 'started'));
    const before = seen.length;
    const result = await call(cri, 'ExecSync', { containerId, cmd: ['sh', '-c', 'echo hello; exit 3'], timeout: 60 });
    expect(result.exitCode).toBe(3);
    expect(Buffer.from(result.stdout).toString()).toBe('hello\n');
    await call(cri, 'StopPodSandbox', { podSandboxId: sandboxId });
    await until('the exit hint', () => seen.some((s) => s.hint.id === containerId && s.hint.kind === 'stopped'));
    expect(seen[before]?.hint).toMatchObject({ kind: 'stopped', id: containerId });
    abort.abort();
    await ended;
  });

  it('calls a mutation that ran into its deadline unknown, and a read that did failed', async () => {
    const { sandboxId } = await runPod(cri, { name: 'slow', uid: 'uid-slow', cgroupParent: lab.cgroupParent, command: ['sleep', '60'] });
    await lab.freeze(true);
    try {
      expect(await failure('StopPodSandbox', { podSandboxId: sandboxId }, 200)).toMatchObject({ code: 4, outcome: 'unknown' });
      expect(await failure('ListPodSandbox', {}, 200)).toMatchObject({ code: 4, outcome: 'failed' });
    } finally {
      await lab.freeze(false);
    }
  });

  it('calls a mutation that was cancelled on its way unknown, and one that was never sent failed', async () => {
    await lab.freeze(true);
    const abort = new AbortController();
    try {
      const pending = cri.call('StopPodSandbox', { podSandboxId: 'x' }, { timeoutMs: 5000, signal: abort.signal }).catch((e: unknown) => e);
      setTimeout(() => abort.abort(), 50);
      expect(await pending).toMatchObject({ code: 1, outcome: 'unknown' });
    } finally {
      await lab.freeze(false);
    }
    const before = await cri
      .call('StopPodSandbox', { podSandboxId: 'x' }, { timeoutMs: 5000, signal: AbortSignal.abort() })
      .catch((e: unknown) => e);
    expect(before).toMatchObject({ code: 1, outcome: 'failed' });
  });

  it('survives the death of containerd: calls on their way unknown, later ones failed, hints ended, and all is well after its return', async () => {
    const { containerId } = await runPod(cri, {
      name: 'stays',
      uid: 'uid-stays',
      cgroupParent: lab.cgroupParent,
      command: ['sleep', '600'],
    });
    const { ended } = await listen(new AbortController().signal);
    await lab.freeze(true);
    const onItsWay = failure('StopPodSandbox', { podSandboxId: 'x' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await lab.kill();
    expect(await onItsWay).toMatchObject({ code: 14, outcome: 'unknown' });
    expect(await ended).toBeInstanceOf(CriError);
    expect(await failure('StopPodSandbox', { podSandboxId: 'x' })).toMatchObject({ code: 14, outcome: 'failed' });
    await lab.start();
    cri.reconnect();
    const status = await call(cri, 'ContainerStatus', { containerId });
    expect(status.status?.state).toBe('CONTAINER_RUNNING');
    const listening = new AbortController();
    expect((await listen(listening.signal)).via).toBe(isOld ? 'containerd' : 'cri');
    listening.abort();
  });

  it('clears away whatever a start that is broken off at any moment leaves, also a task that containerd forgot', async () => {
    const config = sandboxConfig({ name: 'broken', uid: 'uid-broken', cgroupParent: lab.cgroupParent });
    const { podSandboxId } = await call(cri, 'RunPodSandbox', { config });
    const outcomes: Record<string, number> = {};
    // The moment at which the caller goes away, over the length of a start: some come in time, some do not.
    for (let round = 0; round < ROUNDS; round++) {
      const starts = [0, 1, 2].map(async (i) => {
        const container = containerConfig({ name: `c${round}-${i}`, pod: 'broken', uid: 'uid-broken', command: ['sleep', '600'] });
        const { containerId } = await call(cri, 'CreateContainer', { podSandboxId, config: container, sandboxConfig: config });
        const signal = AbortSignal.timeout(Math.ceil((STARTS_TAKE_MS / ROUNDS) * round) + 1);
        const outcome = await cri.call('StartContainer', { containerId }, { timeoutMs: 30_000, signal }).then(
          () => 'started',
          () => 'broken off',
        );
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        await until(`${containerId} to be removed`, () => call(cri, 'RemoveContainer', { containerId }).then(() => true), {
          timeoutMs: 60_000,
          everyMs: 50,
        });
      });
      await Promise.all(starts);
    }
    console.log(`starts: ${JSON.stringify(outcomes)}`);
    expect(outcomes['broken off']).toBeGreaterThan(0);
    const listed = await call(cri, 'ListContainers', { filter: { labelSelector: { 'io.kubernetes.pod.uid': 'uid-broken' } } });
    expect(listed.containers).toEqual([]);
    await call(cri, 'StopPodSandbox', { podSandboxId });
    await call(cri, 'RemovePodSandbox', { podSandboxId });
    expect((await call(cri, 'ListPodSandbox', { filter: { id: podSandboxId } })).items).toEqual([]);
    // containerd 2 leaves `runc init` of such starts (containerd/containerd#11674). An agent ends what is left with the pod's cgroup.
    if (!isOld) await createCgroups().kill(`${lab.cgroupParent}/poduid-broken`);
  });

  it('refuses an endpoint that is not a unix socket, naming it', () => {
    expect(() => createGrpcCri({ endpoint: 'tcp://1.2.3.4:5', log: quietLog, clock: realClock })).toThrow(/tcp:\/\/1\.2\.3\.4:5/);
  });
});
