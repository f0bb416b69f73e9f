/**
 * The hollow container runtime: CRI semantics without containers. It lives outside the node it serves, so a new node
 * can be booted on the same runtime as after a daemon's restart. Time and chance come from the ports given.
 *
 * It answers with objects it keeps (labels, annotations): callers treat CRI messages as immutable.
 */

import type {
  ContainerConfig,
  CriCalls,
  CriContainerState,
  CriMethod,
  CriRequest,
  CriResponse,
  LinuxContainerResources,
  PodSandboxConfig,
  RuntimeHint,
} from '../../machines/cri.ts';
import type { Cri } from '../../ports/ports.ts';
import {
  CODE,
  type ContainerRow,
  containerItem,
  containerKey,
  containerStatus,
  exitReason,
  matchContainer,
  matchSandbox,
  nanos,
  RuntimeRefusal,
  type SandboxRow,
  sandboxItem,
  sandboxKey,
  sandboxStatus,
} from '../shared/model.ts';
import { createHollowClient } from './client.ts';
import type { HintStream } from './hints.ts';
import { createImageStore, type HollowImage } from './images.ts';
import { DEFAULT_LIFE, HOLLOW_ANNOTATION, type HollowLife, parseLife } from './life.ts';
import type { HollowOptions, HollowRuntime, ScriptedContainer } from './types.ts';

interface Sandbox extends SandboxRow {
  config: PodSandboxConfig;
  key: string;
}
interface Container extends ContainerRow {
  config: ContainerConfig;
  userImage: string;
  life: HollowLife;
  key: string;
  /** As it was made, and as it was changed since. */
  resources: LinuxContainerResources;
  starting: boolean;
  runTimer: unknown;
  /** Called at the exit; empty most of the time. */
  onExit: (() => void)[];
}

const MiB = 1024 * 1024;
const NO_BYTES = new Uint8Array(0);
/** What a running hollow container claims to use: 10 millicores and 1 MiB. */
const CLAIMED = { cpuShare: 0.01, memoryBytes: MiB };

/** Unique for 2^32 ids; scattered, since people read the first characters. */
function scatteredId(n: number): string {
  const hex = (x: number) => (x >>> 0).toString(16).padStart(8, '0');
  return hex(Math.imul(n, 0x9e3779b1)) + hex(n);
}

type Handlers = { [M in CriMethod]: (req: CriRequest<M>) => CriResponse<M> | Promise<CriResponse<M>> };

export function createHollowRuntime(opts: HollowOptions): HollowRuntime {
  const { clock, rng } = opts;
  const sandboxes = new Map<string, Sandbox>();
  const containers = new Map<string, Container>();
  const names = new Set<string>();
  /** Addresses in use: released when their sandbox stops. */
  const ips = new Set<string>();
  const images = createImageStore(opts.pinned);
  const streams = new Set<HintStream>();
  const conditions = {
    RuntimeReady: { ok: true, reason: '' },
    NetworkReady: { ok: true, reason: '' },
  };
  const counts = { sandboxesRun: 0, containersCreated: 0, containersStarted: 0, pulls: 0 };
  let lastId = 0;
  let lastStampMs = 0;
  let lastIp = 0;

  const lookUp = (name: string): HollowImage | undefined => (opts.image === undefined ? {} : opts.image(name));
  for (const name of opts.images ?? []) images.add(name, lookUp(name)?.sizeBytes ?? MiB);

  /** Now, but never the same twice: real runtimes stamp nanoseconds, and readers sort by them. */
  const stampMs = (): number => {
    lastStampMs = Math.max(clock.wallMs(), lastStampMs + 0.001);
    return lastStampMs;
  };
  const stretched = (ms: number, jitter: number): number => (jitter === 0 ? ms : ms * (1 + jitter * rng.next()));
  const wait = (ms: number): Promise<void> | undefined =>
    ms <= 0 ? undefined : new Promise((resolve) => void clock.setTimeout(resolve, ms));
  const hint = (kind: RuntimeHint['kind'], id: string, sandbox: Sandbox | undefined): void => {
    const uid = sandbox?.metadata.uid;
    for (const s of [...streams]) s.push(uid === undefined ? { kind, id } : { kind, id, podUid: uid });
  };
  const freshIp = (): string => {
    for (let tries = 0; tries < 65_000; tries++) {
      lastIp = (lastIp % 65_278) + 1;
      // 10.88.0.1 is the bridge's own address by custom, so pods begin at 10.88.0.2.
      const ip = `10.88.${(lastIp + 1) >> 8}.${(lastIp + 1) & 255}`;
      if (!ips.has(ip)) {
        ips.add(ip);
        return ip;
      }
    }
    throw new RuntimeRefusal(CODE.unknown, 'no free address in 10.88.0.0/16');
  };

  const podLife = (annotations: Record<string, string> | undefined, container: string | null, attempt: number): Partial<HollowLife> => {
    const all = annotations?.[HOLLOW_ANNOTATION];
    const own = container === null ? undefined : annotations?.[`${HOLLOW_ANNOTATION}.${container}`];
    return {
      ...(all === undefined ? {} : parseLife(all, attempt)),
      ...(own === undefined ? {} : parseLife(own, attempt)),
    };
  };

  const sandboxOrRefuse = (id: string): Sandbox => {
    const s = sandboxes.get(id);
    if (s === undefined) throw new RuntimeRefusal(CODE.notFound, `sandbox ${id} not found`);
    return s;
  };
  const containerOrRefuse = (id: string): Container => {
    const c = containers.get(id);
    if (c === undefined) throw new RuntimeRefusal(CODE.notFound, `container ${id} not found`);
    return c;
  };
  const containersOf = (sandboxId: string): Container[] => [...containers.values()].filter((c) => c.sandboxId === sandboxId);

  const ended = (c: Container, exitCode: number, reason: string): void => {
    if (c.state !== 'CONTAINER_RUNNING') return;
    clock.clearTimeout(c.runTimer);
    c.runTimer = undefined;
    c.state = 'CONTAINER_EXITED';
    c.exitCode = exitCode;
    c.reason = reason || exitReason(exitCode);
    c.finishedAtMs = stampMs();
    for (const fn of c.onExit.splice(0)) fn();
    hint('stopped', c.id, sandboxes.get(c.sandboxId));
  };

  const forget = (c: Container): void => {
    ended(c, 137, '');
    containers.delete(c.id);
    names.delete(c.key);
    hint('deleted', c.id, sandboxes.get(c.sandboxId));
  };

  const stopSandbox = (s: Sandbox): void => {
    for (const c of containersOf(s.id)) ended(c, 137, '');
    if (!s.ready) return;
    s.ready = false;
    ips.delete(s.ip);
    hint('stopped', s.id, s);
  };

  const scripted = (c: Container): ScriptedContainer => {
    const pod = sandboxes.get(c.sandboxId)?.metadata ?? { name: '', uid: '', namespace: '', attempt: 0 };
    return { pod, name: c.metadata.name, attempt: c.metadata.attempt, image: c.userImage, config: c.config };
  };

  const start = async (c: Container): Promise<Record<never, never>> => {
    if (c.state !== 'CONTAINER_CREATED' || c.starting) {
      throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} is ${c.starting ? 'being started' : c.state}, not CREATED`);
    }
    c.starting = true;
    const delay = wait(stretched(c.life.startDelayMs, c.life.jitter));
    if (delay !== undefined) await delay;
    c.starting = false;
    const s = sandboxes.get(c.sandboxId);
    if (containers.get(c.id) !== c) throw new RuntimeRefusal(CODE.notFound, `container ${c.id} was removed while it was started`);
    if (s === undefined || !s.ready) throw new RuntimeRefusal(CODE.failedPrecondition, `sandbox ${c.sandboxId} is not ready`);
    if (c.life.startError !== '') {
      c.state = 'CONTAINER_EXITED';
      c.exitCode = 128;
      c.reason = 'StartError';
      c.message = c.life.startError;
      c.finishedAtMs = stampMs();
      hint('stopped', c.id, s);
      throw new RuntimeRefusal(CODE.unknown, c.life.startError);
    }
    c.state = 'CONTAINER_RUNNING';
    c.startedAtMs = stampMs();
    counts.containersStarted++;
    if (c.life.runMs !== null) {
      c.runTimer = clock.setTimeout(() => ended(c, c.life.exitCode, c.life.exitReason), stretched(c.life.runMs, c.life.jitter));
    }
    hint('started', c.id, s);
    return {};
  };

  const stop = async (c: Container, graceMs: number): Promise<Record<never, never>> => {
    if (c.state !== 'CONTAINER_RUNNING') {
      if (c.starting) throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} is being started and cannot be stopped yet`);
      return {};
    }
    if (graceMs <= 0) {
      ended(c, 137, '');
      return {};
    }
    await new Promise<void>((resolve) => {
      const obeys = c.life.obeysTerm && c.life.termDelayMs <= graceMs;
      const timer = clock.setTimeout(
        () => (obeys ? ended(c, c.life.termExitCode, '') : ended(c, 137, '')),
        obeys ? c.life.termDelayMs : graceMs,
      );
      c.onExit.push(() => {
        clock.clearTimeout(timer);
        resolve();
      });
    });
    return {};
  };

  const stats = (c: Container): CriCalls['ContainerStats']['res']['stats'] => {
    const nowMs = clock.wallMs();
    const timestamp = nanos(nowMs);
    const usedNs = Math.round(Math.max(0, nowMs - c.startedAtMs) * CLAIMED.cpuShare * 1e6);
    const bytes = { value: String(CLAIMED.memoryBytes) };
    return {
      attributes: { id: c.id, metadata: c.metadata, labels: c.labels, annotations: c.annotations },
      cpu: { timestamp, usageCoreNanoSeconds: { value: String(usedNs) }, usageNanoCores: { value: String(CLAIMED.cpuShare * 1e9) } },
      memory: {
        timestamp,
        workingSetBytes: bytes,
        availableBytes: { value: '0' },
        usageBytes: bytes,
        rssBytes: bytes,
        pageFaults: { value: '0' },
        majorPageFaults: { value: '0' },
      },
      writableLayer: {
        timestamp,
        fsId: { mountpoint: '/var/lib/hollow' },
        usedBytes: { value: String(c.life.writtenBytes) },
        inodesUsed: { value: '0' },
      },
    };
  };
  const noStreaming = (): never => {
    throw new RuntimeRefusal(CODE.unimplemented, 'the hollow runtime has no processes to stream to');
  };

  const handlers: Handlers = {
    Version: () => ({ version: '0.1.0', runtimeName: 'actorlet-hollow', runtimeVersion: '0.1.0', runtimeApiVersion: 'v1' }),
    Status: () => ({
      status: {
        conditions: (['RuntimeReady', 'NetworkReady'] as const).map((type) => ({
          type,
          status: conditions[type].ok,
          reason: conditions[type].reason,
          message: conditions[type].reason,
        })),
      },
      info: {},
      ...opts.features,
    }),
    RuntimeConfig: () => {
      const { cgroupDriver = 'CGROUPFS' } = opts;
      if (cgroupDriver === null) throw new RuntimeRefusal(CODE.unimplemented, 'unknown method RuntimeConfig');
      return { linux: { cgroupDriver } };
    },
    UpdateRuntimeConfig: () => ({}),
    RunPodSandbox: async ({ config, runtimeHandler }) => {
      const key = sandboxKey(config.metadata);
      if (names.has(key)) throw new RuntimeRefusal(CODE.alreadyExists, `sandbox name ${key} is taken`);
      if (opts.cgroupDriver === 'SYSTEMD' && config.linux?.cgroupParent?.endsWith('.slice') !== true)
        throw new RuntimeRefusal(
          CODE.unknown,
          'runc create failed: expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups',
        );
      const life = { ...DEFAULT_LIFE, ...podLife(config.annotations, null, config.metadata.attempt) };
      names.add(key);
      const delay = wait(stretched(life.sandboxDelayMs, life.jitter));
      if (delay !== undefined) await delay;
      const onHostNetwork = config.linux?.securityContext?.namespaceOptions?.network === 'NODE';
      try {
        if (life.sandboxError !== '') throw new RuntimeRefusal(CODE.unknown, life.sandboxError);
        if (!onHostNetwork && !conditions.NetworkReady.ok) {
          throw new RuntimeRefusal(CODE.unknown, `network is not ready: ${conditions.NetworkReady.reason}`);
        }
        const s: Sandbox = {
          id: scatteredId(++lastId),
          metadata: config.metadata,
          labels: config.labels ?? {},
          annotations: config.annotations ?? {},
          runtimeHandler: runtimeHandler ?? '',
          ready: true,
          createdAtMs: stampMs(),
          ip: onHostNetwork ? '' : freshIp(),
          namespaces: config.linux?.securityContext?.namespaceOptions ?? {},
          config,
          key,
        };
        sandboxes.set(s.id, s);
        counts.sandboxesRun++;
        hint('created', s.id, s);
        hint('started', s.id, s);
        return { podSandboxId: s.id };
      } catch (error) {
        names.delete(key);
        throw error;
      }
    },
    StopPodSandbox: ({ podSandboxId }) => {
      const s = sandboxes.get(podSandboxId);
      if (s !== undefined) stopSandbox(s);
      return {};
    },
    RemovePodSandbox: ({ podSandboxId }) => {
      const s = sandboxes.get(podSandboxId);
      if (s === undefined) return {};
      stopSandbox(s);
      for (const c of containersOf(s.id)) forget(c);
      sandboxes.delete(s.id);
      names.delete(s.key);
      hint('deleted', s.id, s);
      return {};
    },
    PodSandboxStatus: ({ podSandboxId }) => ({ status: sandboxStatus(sandboxOrRefuse(podSandboxId)), info: {} }),
    ListPodSandbox: ({ filter }) => ({ items: [...sandboxes.values()].filter((s) => matchSandbox(s, filter)).map(sandboxItem) }),
    CreateContainer: ({ podSandboxId, config }) => {
      const s = sandboxOrRefuse(podSandboxId);
      if (!s.ready) throw new RuntimeRefusal(CODE.failedPrecondition, `sandbox ${s.id} is not ready`);
      const key = containerKey(s.id, config.metadata);
      if (names.has(key)) throw new RuntimeRefusal(CODE.alreadyExists, `container name ${key} is taken`);
      const image = presentImage(config.image.image);
      if (image === undefined) throw new RuntimeRefusal(CODE.notFound, `image ${JSON.stringify(config.image.image)} not found`);
      const userImage = config.image.userSpecifiedImage || image.repoTags[0] || config.image.image;
      const { name, attempt } = config.metadata;
      const life = {
        ...DEFAULT_LIFE,
        ...lookUp(userImage)?.life,
        ...podLife(s.annotations, name, attempt),
        ...podLife(config.annotations, name, attempt),
        ...opts.script?.({ pod: s.metadata, name, attempt, image: userImage, config }),
      };
      const c: Container = {
        id: scatteredId(++lastId),
        sandboxId: s.id,
        metadata: config.metadata,
        image: config.image,
        imageRef: image.id,
        labels: config.labels ?? {},
        annotations: config.annotations ?? {},
        mounts: config.mounts ?? [],
        logPath: config.logPath && s.config.logDirectory ? `${s.config.logDirectory}/${config.logPath}` : '',
        state: 'CONTAINER_CREATED',
        createdAtMs: stampMs(),
        startedAtMs: 0,
        finishedAtMs: 0,
        exitCode: 0,
        reason: '',
        message: '',
        config,
        userImage,
        life,
        key,
        resources: config.linux?.resources ?? {},
        starting: false,
        runTimer: undefined,
        onExit: [],
      };
      containers.set(c.id, c);
      names.add(key);
      counts.containersCreated++;
      hint('created', c.id, s);
      return { containerId: c.id };
    },
    StartContainer: ({ containerId }) => start(containerOrRefuse(containerId)),
    StopContainer: ({ containerId, timeout }) => {
      const c = containers.get(containerId);
      return c === undefined ? {} : stop(c, Number(timeout) * 1000);
    },
    RemoveContainer: ({ containerId }) => {
      const c = containers.get(containerId);
      if (c === undefined) return {};
      if (c.starting) throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} is being started and cannot be removed yet`);
      forget(c);
      return {};
    },
    ListContainers: ({ filter }) => ({ containers: [...containers.values()].filter((c) => matchContainer(c, filter)).map(containerItem) }),
    ContainerStatus: ({ containerId }) => {
      const c = containerOrRefuse(containerId);
      return { status: { ...containerStatus(c), resources: { linux: c.resources } }, info: {} };
    },
    UpdateContainerResources: ({ containerId, linux }) => {
      const c = containerOrRefuse(containerId);
      if (c.state === 'CONTAINER_EXITED') throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} has exited`);
      // Zero and empty mean unchanged.
      const told = Object.entries(linux ?? {}).filter(([, value]) => Number(value) !== 0 || (typeof value === 'string' && value !== ''));
      const unified = { ...c.resources.unified, ...linux?.unified };
      c.resources = { ...c.resources, ...Object.fromEntries(told), ...(Object.keys(unified).length === 0 ? {} : { unified }) };
      return {};
    },
    CheckpointContainer: ({ containerId }) => {
      containerOrRefuse(containerId);
      throw new RuntimeRefusal(CODE.unimplemented, 'there is no process that could be written down');
    },
    ReopenContainerLog: ({ containerId }) => {
      const c = containerOrRefuse(containerId);
      if (c.state !== 'CONTAINER_RUNNING') throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} is not running`);
      return {};
    },
    ExecSync: async ({ containerId, cmd, timeout }) => {
      const c = containerOrRefuse(containerId);
      if (c.state !== 'CONTAINER_RUNNING') throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} is not running`);
      const limitMs = Number(timeout) * 1000;
      const answer = opts.exec?.(scripted(c), cmd);
      const delayMs = answer?.delayMs ?? stretched(c.life.execDelayMs, c.life.jitter);
      const tooLong = limitMs > 0 && delayMs > limitMs;
      const delay = wait(tooLong ? limitMs : delayMs);
      if (delay !== undefined) await delay;
      if (tooLong) throw new RuntimeRefusal(CODE.deadlineExceeded, `command took longer than ${limitMs} ms`);
      if ((c.state as CriContainerState) !== 'CONTAINER_RUNNING') {
        throw new RuntimeRefusal(CODE.unknown, `container ${c.id} ended while the command ran`);
      }
      return { stdout: answer?.stdout ?? NO_BYTES, stderr: answer?.stderr ?? NO_BYTES, exitCode: answer?.exitCode ?? c.life.execExitCode };
    },
    Exec: noStreaming,
    Attach: noStreaming,
    PortForward: noStreaming,
    ContainerStats: ({ containerId }) => ({ stats: stats(containerOrRefuse(containerId)) }),
    ListContainerStats: ({ filter }) => ({
      stats: [...containers.values()]
        .filter((c) => c.state === 'CONTAINER_RUNNING' && matchContainer(c, filter))
        .map(stats)
        .filter((s) => s !== null),
    }),
    ListImages: ({ filter }) => {
      const wanted = filter?.image?.image;
      if (!wanted) return { images: images.list() };
      const found = images.find(wanted);
      return { images: found === undefined ? [] : [found] };
    },
    ImageStatus: ({ image }) => ({ image: presentImage(image.image) ?? null, info: {} }),
    PullImage: async ({ image, sandboxConfig }) => {
      const known = lookUp(image.image);
      const life = { ...DEFAULT_LIFE, ...known?.life, ...podLife(sandboxConfig?.annotations, null, 0) };
      const delay = wait(stretched(life.pullDelayMs, life.jitter));
      if (delay !== undefined) await delay;
      if (life.pullError !== '') throw new RuntimeRefusal(CODE.unknown, life.pullError);
      if (known === undefined) throw new RuntimeRefusal(CODE.notFound, `failed to resolve image ${JSON.stringify(image.image)}: not found`);
      counts.pulls++;
      return { imageRef: images.add(image.image, known.sizeBytes ?? MiB).id };
    },
    RemoveImage: ({ image }) => {
      images.remove(image.image);
      return {};
    },
    ImageFsInfo: () => {
      const used = images.list().reduce((sum, i) => sum + Number(i.size), 0);
      const fs = {
        timestamp: nanos(clock.wallMs()),
        fsId: { mountpoint: '/var/lib/hollow' },
        usedBytes: { value: String(used) },
        inodesUsed: { value: String(images.list().length) },
      };
      return { imageFilesystems: [fs], containerFilesystems: [fs] };
    },
  };

  /** An image that the world holds as present is in the store from the moment somebody looks. */
  function presentImage(name: string) {
    const found = images.find(name);
    if (found !== undefined || name.startsWith('sha256:')) return found;
    const known = lookUp(name);
    return known?.present === true ? images.add(name, known.sizeBytes ?? MiB) : undefined;
  }

  async function run<M extends CriMethod>(method: M, req: CriRequest<M>): Promise<CriResponse<M>> {
    const delay = wait(opts.latencyMs?.(method) ?? 0);
    if (delay !== undefined) await delay;
    const handler: (req: CriRequest<M>) => CriResponse<M> | Promise<CriResponse<M>> = handlers[method];
    return handler(req);
  }

  const connect = (): Cri => createHollowClient({ clock, run, streams });
  const own = connect();
  return {
    call: own.call,
    hints: own.hints,
    reconnect: own.reconnect,
    close: own.close,
    connect,
    dump: () => ({
      sandboxes: [...sandboxes.values()].map((s) => ({
        id: s.id,
        uid: s.metadata.uid,
        name: s.metadata.name,
        namespace: s.metadata.namespace,
        attempt: s.metadata.attempt,
        ready: s.ready,
        ip: s.ip,
        createdAtMs: s.createdAtMs,
        ...(s.config.linux?.cgroupParent ? { cgroupParent: s.config.linux.cgroupParent } : {}),
      })),
      containers: [...containers.values()].map((c) => ({
        id: c.id,
        sandboxId: c.sandboxId,
        podUid: sandboxes.get(c.sandboxId)?.metadata.uid ?? '',
        name: c.metadata.name,
        attempt: c.metadata.attempt,
        state: c.state,
        startedAtMs: c.startedAtMs,
        finishedAtMs: c.finishedAtMs,
        exitCode: c.exitCode,
        reason: c.reason,
        imageRef: c.imageRef,
        labels: c.labels,
        annotations: c.annotations,
        resources: c.resources,
      })),
      images: images.list().flatMap((i) => i.repoTags),
      counts: { ...counts },
    }),
    exit(containerId, how) {
      const c = containers.get(containerId);
      if (c === undefined || c.state !== 'CONTAINER_RUNNING') return false;
      ended(c, how.exitCode, how.reason ?? '');
      return true;
    },
    setCondition(type, ok, reason) {
      conditions[type] = { ok, reason };
    },
    dropStreams() {
      for (const s of [...streams]) s.end(new Error('the runtime closed the stream'));
    },
  };
}
