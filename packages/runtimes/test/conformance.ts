/**
 * What any CRI runtime must do for this node, as tests: run against the hollow runtime, the process runtime and a real
 * one. It makes pods named `conformance-*` and removes them; other pods of the same runtime are left alone.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { ContainerConfig, CriContainerStatus, PodSandboxConfig, RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

/** `forever` ends on TERM; `stubborn` ignores it, and says `ready` in its log, if there are logs, once it does; `exit3` ends by itself within a second with code 3; `exit0` likewise with 0. */
export type Recipe = 'forever' | 'stubborn' | 'exit3' | 'exit0';

export interface ConformanceTarget {
  cri: Cri;
  /** Can be pulled or is present. */
  image: string;
  /** Cannot be pulled. */
  missingImage: string;
  recipe(kind: Recipe): Partial<ContainerConfig>;
  /** Writable by the runtime; '' where it keeps no logs. */
  logDirectory: string;
  close(): Promise<void>;
}

/** Far beyond what any of this takes, for machines that do much else at the same time. */
const WAIT_MS = 45_000;

/** Polls until `probe` gives something; fails with `what` after {@link WAIT_MS}. */
export async function eventually<T>(what: string, probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`not within ${WAIT_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function podConfig(
  name: string,
  o: { attempt?: number; logDirectory?: string; annotations?: Record<string, string> } = {},
): PodSandboxConfig {
  const uid = `uid-${name}`;
  return {
    metadata: { name, uid, namespace: 'default', attempt: o.attempt ?? 0 },
    hostname: name,
    logDirectory: o.logDirectory ?? '',
    labels: { 'io.kubernetes.pod.name': name, 'io.kubernetes.pod.namespace': 'default', 'io.kubernetes.pod.uid': uid, app: name },
    annotations: o.annotations ?? {},
    linux: { securityContext: { namespaceOptions: { network: 'NODE', pid: 'CONTAINER', ipc: 'POD' } } },
  };
}

export function containerConfig(name: string, image: string, more: Partial<ContainerConfig> = {}): ContainerConfig {
  return {
    metadata: { name, attempt: 0 },
    image: { image },
    logPath: `${name}/0.log`,
    ...more,
    labels: { 'io.kubernetes.container.name': name, ...more.labels },
    annotations: { 'io.kubernetes.container.restartCount': '0', ...more.annotations },
  };
}

/** Thin calls with a deadline, for tests. */
export function calls(cri: Cri) {
  const call = <M extends CriMethod>(method: M, req: CriRequest<M>, timeoutMs = 30_000): Promise<CriResponse<M>> =>
    cri.call(method, req, { timeoutMs, signal: new AbortController().signal });
  const status = async (containerId: string): Promise<CriContainerStatus> => {
    const { status: s } = await call('ContainerStatus', { containerId });
    if (s === null) throw new Error('ContainerStatus answered without a status');
    return s;
  };
  return {
    call,
    status,
    exited: (containerId: string): Promise<CriContainerStatus> =>
      eventually(`container ${containerId} has exited`, async () => {
        const s = await status(containerId);
        return s.state === 'CONTAINER_EXITED' ? s : undefined;
      }),
    async run(pod: PodSandboxConfig, config: ContainerConfig, podSandboxId: string): Promise<string> {
      const { containerId } = await call('CreateContainer', { podSandboxId, config, sandboxConfig: pod });
      await call('StartContainer', { containerId });
      return containerId;
    },
  };
}

export async function codeOf(promise: Promise<unknown>): Promise<number> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof CriError) return error.code;
    throw error;
  }
  return 0;
}

export function criConformance(name: string, makeTarget: () => Promise<ConformanceTarget>): void {
  describe(`CRI conformance: ${name}`, () => {
    let t: ConformanceTarget;
    let c: ReturnType<typeof calls>;
    /** A shell that has only just started still dies of TERM. */
    const stubbornBy = async (id: string) => {
      if (t.logDirectory === '') return;
      const { logPath } = await c.status(id);
      await eventually('it says that it ignores TERM', () =>
        existsSync(logPath) && readFileSync(logPath, 'utf8').includes('ready') ? true : undefined,
      );
    };
    let image = '';
    let pod: PodSandboxConfig;
    let sandboxId = '';
    let serial = 0;
    const madeSandboxes: string[] = [];

    beforeAll(async () => {
      t = await makeTarget();
      c = calls(t.cri);
      image = (await c.call('PullImage', { image: { image: t.image } })).imageRef;
    });
    afterAll(async () => {
      await t?.close();
    });
    afterEach(async () => {
      for (const podSandboxId of madeSandboxes.splice(0)) await c.call('RemovePodSandbox', { podSandboxId });
    });
    const newPod = async (): Promise<void> => {
      serial++;
      pod = podConfig(`conformance-${serial}`, { logDirectory: t.logDirectory === '' ? '' : `${t.logDirectory}/conformance-${serial}` });
      sandboxId = (await c.call('RunPodSandbox', { config: pod })).podSandboxId;
      madeSandboxes.push(sandboxId);
    };
    const create = async (container: string, kind: Recipe, more: Partial<ContainerConfig> = {}): Promise<string> => {
      const r = t.recipe(kind);
      const config = containerConfig(container, image, { ...r, ...more, annotations: { ...r.annotations, ...more.annotations } });
      return (await c.call('CreateContainer', { podSandboxId: sandboxId, config, sandboxConfig: pod })).containerId;
    };

    it('says its name, that it is version v1, and that it is ready', async () => {
      const version = await c.call('Version', { version: '0.1.0' });
      expect(version.runtimeName).not.toBe('');
      expect(version.runtimeApiVersion).toBe('v1');
      const { status } = await c.call('Status', { verbose: false });
      expect(status?.conditions.find((x) => x.type === 'RuntimeReady')?.status).toBe(true);
      expect(status?.conditions.find((x) => x.type === 'NetworkReady')?.status).toBe(true);
    });

    it('answers ImageStatus for an absent image with no image and no error', async () => {
      expect((await c.call('ImageStatus', { image: { image: t.missingImage } })).image).toBeNull();
    });

    it('fails the pull of a name that does not exist, and has the pulled image by id and by name', async () => {
      expect(await codeOf(c.call('PullImage', { image: { image: t.missingImage } }))).not.toBe(0);
      const byId = await c.call('ImageStatus', { image: { image } });
      const byName = await c.call('ImageStatus', { image: { image: t.image } });
      expect(byId.image?.id).toBe(byName.image?.id);
      expect((await c.call('ListImages', {})).images.map((i) => i.id)).toContain(byId.image?.id);
    });

    it('runs a sandbox whose status carries metadata, labels and annotations', async () => {
      await newPod();
      const { status } = await c.call('PodSandboxStatus', { podSandboxId: sandboxId });
      expect(status?.state).toBe('SANDBOX_READY');
      expect(status?.metadata).toMatchObject(pod.metadata);
      expect(status?.labels).toMatchObject(pod.labels ?? {});
      expect(BigInt(status?.createdAt ?? '0')).toBeGreaterThan(0n);
    });

    it('refuses a second sandbox of the same pod and attempt, and lets the next attempt in', async () => {
      await newPod();
      expect(await codeOf(c.call('RunPodSandbox', { config: pod }))).not.toBe(0);
      const next = { ...pod, metadata: { ...pod.metadata, attempt: 1 } };
      const { podSandboxId } = await c.call('RunPodSandbox', { config: next });
      madeSandboxes.push(podSandboxId);
      const list = await c.call('ListPodSandbox', { filter: { labelSelector: { app: pod.metadata.name } } });
      expect(list.items.map((i) => i.id).sort()).toEqual([sandboxId, podSandboxId].sort());
    });

    it('joins the fields of a filter with AND', async () => {
      await newPod();
      const app = { app: pod.metadata.name };
      const ids = async (filter: CriRequest<'ListPodSandbox'>['filter']) =>
        (await c.call('ListPodSandbox', filter === undefined ? {} : { filter })).items.map((i) => i.id);
      expect(await ids({ labelSelector: app, state: { state: 'SANDBOX_READY' } })).toEqual([sandboxId]);
      expect(await ids({ labelSelector: app, state: { state: 'SANDBOX_NOTREADY' } })).toEqual([]);
      expect(await ids({ id: sandboxId, labelSelector: { app: 'someone-else' } })).toEqual([]);
      expect(await ids(undefined)).toContain(sandboxId);
      const id = await create('one', 'forever');
      const containers = async (filter: CriRequest<'ListContainers'>['filter']) =>
        (await c.call('ListContainers', filter === undefined ? {} : { filter })).containers.map((i) => i.id);
      expect(await containers({ podSandboxId: sandboxId, state: { state: 'CONTAINER_CREATED' } })).toEqual([id]);
      expect(await containers({ podSandboxId: sandboxId, state: { state: 'CONTAINER_RUNNING' } })).toEqual([]);
      expect(await containers({ labelSelector: { 'io.kubernetes.container.name': 'one' }, podSandboxId: sandboxId })).toEqual([id]);
    });

    it('takes a container from CREATED to RUNNING to EXITED with its own exit code', async () => {
      await newPod();
      const id = await create('main', 'exit3');
      const created = await c.status(id);
      expect(created.state).toBe('CONTAINER_CREATED');
      expect(created.startedAt).toBe('0');
      await c.call('StartContainer', { containerId: id });
      const end = await c.exited(id);
      expect(end.exitCode).toBe(3);
      expect(end.reason).toBe('Error');
      expect(end.imageRef).not.toBe('');
      expect(BigInt(end.finishedAt)).toBeGreaterThanOrEqual(BigInt(end.startedAt));
      expect(BigInt(end.startedAt)).toBeGreaterThanOrEqual(BigInt(end.createdAt));
      const ok = await create('fine', 'exit0');
      await c.call('StartContainer', { containerId: ok });
      expect(await c.exited(ok)).toMatchObject({ exitCode: 0, reason: 'Completed' });
    });

    it('refuses to start a container twice', async () => {
      await newPod();
      const id = await create('main', 'forever');
      await c.call('StartContainer', { containerId: id });
      expect(await codeOf(c.call('StartContainer', { containerId: id }))).not.toBe(0);
      expect((await c.status(id)).state).toBe('CONTAINER_RUNNING');
    });

    it('refuses a second container of the same name and attempt in one sandbox', async () => {
      await newPod();
      await create('main', 'forever');
      expect(await codeOf(create('main', 'forever'))).not.toBe(0);
      await create('main', 'forever', { metadata: { name: 'main', attempt: 1 } });
    });

    // At once after the start: a stop signal that its set-up took for itself once went unheard.
    it('stops an obedient container before its grace is over, also one that has only just started', async () => {
      await newPod();
      const others = ['a', 'b', 'c', 'd', 'e'].map(async (name) => {
        const other = await create(name, 'forever');
        await c.call('StartContainer', { containerId: other });
        await c.call('StopContainer', { containerId: other, timeout: 120 });
        expect((await c.status(other)).state).toBe('CONTAINER_EXITED');
      });
      const id = await create('main', 'forever');
      await c.call('StartContainer', { containerId: id });
      const beganMs = performance.now();
      await c.call('StopContainer', { containerId: id, timeout: 120 });
      await Promise.all(others);
      expect(performance.now() - beganMs).toBeLessThan(60_000);
      expect((await c.status(id)).state).toBe('CONTAINER_EXITED');
      await c.call('StopContainer', { containerId: id, timeout: 20 });
    }, 90_000);

    it('kills a container that ignores TERM when its grace is over, and reports 137', async () => {
      await newPod();
      const id = await create('main', 'stubborn');
      await c.call('StartContainer', { containerId: id });
      await stubbornBy(id);
      const beganMs = performance.now();
      await c.call('StopContainer', { containerId: id, timeout: 1 });
      expect(performance.now() - beganMs).toBeGreaterThanOrEqual(900);
      expect(await c.status(id)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 137 });
    });

    it('kills at once with a grace of 0', async () => {
      await newPod();
      const id = await create('main', 'stubborn');
      await c.call('StartContainer', { containerId: id });
      await stubbornBy(id);
      await c.call('StopContainer', { containerId: id, timeout: 0 });
      expect(await c.status(id)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 137 });
    });

    it('kills the containers of a stopped sandbox and refuses new ones there', async () => {
      await newPod();
      const id = await create('main', 'stubborn');
      await c.call('StartContainer', { containerId: id });
      await stubbornBy(id);
      await c.call('StopPodSandbox', { podSandboxId: sandboxId });
      await c.call('StopPodSandbox', { podSandboxId: sandboxId });
      expect(await c.exited(id)).toMatchObject({ exitCode: 137 });
      expect((await c.call('PodSandboxStatus', { podSandboxId: sandboxId })).status?.state).toBe('SANDBOX_NOTREADY');
      const late = create('late', 'forever').then((containerId) => c.call('StartContainer', { containerId }));
      expect(await codeOf(late)).not.toBe(0);
    });

    it('removes containers and sandboxes by force, and again without complaint', async () => {
      await newPod();
      const id = await create('main', 'forever');
      await c.call('StartContainer', { containerId: id });
      await c.call('RemoveContainer', { containerId: id });
      await c.call('RemoveContainer', { containerId: id });
      expect(await codeOf(c.call('ContainerStatus', { containerId: id }))).toBe(5);
      const other = await create('other', 'forever');
      await c.call('StartContainer', { containerId: other });
      await c.call('RemovePodSandbox', { podSandboxId: sandboxId });
      await c.call('RemovePodSandbox', { podSandboxId: sandboxId });
      expect(await codeOf(c.call('PodSandboxStatus', { podSandboxId: sandboxId }))).toBe(5);
      expect((await c.call('ListContainers', { filter: { podSandboxId: sandboxId } })).containers).toEqual([]);
    });

    it('answers NotFound for ids it does not know', async () => {
      const containerId = 'feedfacefeedface';
      expect(await codeOf(c.call('ContainerStatus', { containerId }))).toBe(5);
      expect(await codeOf(c.call('StartContainer', { containerId }))).toBe(5);
      expect(await codeOf(c.call('PodSandboxStatus', { podSandboxId: containerId }))).toBe(5);
    });

    it('lists the stats of running containers only', async () => {
      await newPod();
      const running = await create('up', 'forever');
      await create('created', 'forever');
      await c.call('StartContainer', { containerId: running });
      const { stats } = await c.call('ListContainerStats', { filter: { podSandboxId: sandboxId } });
      expect(stats.map((s) => s.attributes?.id)).toEqual([running]);
      expect(Number((await c.call('ContainerStats', { containerId: running })).stats?.memory?.workingSetBytes?.value)).toBeGreaterThan(0);
    });

    it('hints at every step of a container within a moment', async () => {
      const abort = new AbortController();
      const seen: RuntimeHint[] = [];
      const { stream } = await t.cri.hints(abort.signal);
      const reading = (async () => {
        for await (const h of stream) seen.push(h);
      })().catch(() => undefined);
      // A real stream opens in its own time: make pods until one of them is seen.
      await eventually('the stream delivers', async () => {
        await newPod();
        return seen.some((h) => madeSandboxes.includes(h.id)) ? true : undefined;
      });
      const id = await create('main', 'exit0');
      await c.call('StartContainer', { containerId: id });
      await c.exited(id);
      await c.call('RemoveContainer', { containerId: id });
      const kinds = () => seen.filter((h) => h.id === id).map((h) => h.kind);
      await eventually('the deletion is hinted', () => (kinds().includes('deleted') ? true : undefined));
      expect(kinds()).toEqual(expect.arrayContaining(['created', 'started', 'stopped', 'deleted']));
      abort.abort();
      await reading;
    });
  });
}
