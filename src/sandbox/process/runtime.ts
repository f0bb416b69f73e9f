/**
 * The process runtime: CRI calls on rows, processes and files. State held: rows of sandboxes and containers; lost on a
 * restart of the runtime: nothing that is on disk, only output older than what the FIFOs hold; rebuilt from: the state
 * folder, /proc and the exit files.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CriMethod, CriRequest, CriResponse, NamespaceOption, RuntimeHint } from '../../machines/cri.ts';
import {
  CODE,
  containerItem,
  containerKey,
  containerStatus,
  matchContainer,
  matchSandbox,
  nanos,
  RuntimeRefusal,
  sandboxItem,
  sandboxKey,
  sandboxStatus,
} from '../shared/model.ts';
import { checkSandbox, planContainer } from './container/plan.ts';
import { scanProcesses } from './container/procfs.ts';
import { SCRIPTS } from './container/shim.ts';
import { containerStats } from './container/stats.ts';
import { type Supervised, supervise } from './container/supervise.ts';
import { execSync, type StreamingServer } from './exec.ts';
import { createCatalogue } from './images.ts';
import type { Isolation } from './probe.ts';
import { createStore, type Layout, replaceText, type StoredContainer, type StoredSandbox } from './store.ts';

const RUNTIME_NAME = 'actorlet-process';
/** Used only where the watch on the exits folder cannot be had. */
const POLL_EXITS_MS = 500;
/** Pods are on the host's network; the loopback address reaches what they serve, whatever address they listen on. */
const POD_IP = '127.0.0.1';

const mkfifo = promisify(execFile);

export interface RuntimeDeps {
  layout: Layout;
  isolation: Isolation;
  streaming: StreamingServer;
  env: { path: string; home: string };
  nodePath: string;
  log(level: 'info' | 'warn', message: string): void;
}

export interface RuntimeEvent {
  kind: Extract<RuntimeHint['kind'], 'created' | 'started' | 'stopped' | 'deleted'>;
  id: string;
  sandbox: StoredSandbox | undefined;
  containers: StoredContainer[];
}

/** The calls that this runtime serves; others are UNIMPLEMENTED. */
export type Served = Exclude<CriMethod, 'CheckpointContainer' | 'Attach' | 'PortForward' | 'UpdateContainerResources'>;
export type ProcessHandlers = {
  [M in Served]: (req: CriRequest<M>, signal: AbortSignal) => CriResponse<M> | Promise<CriResponse<M>>;
};
export interface ProcessRuntime {
  handlers: ProcessHandlers;
  onEvent(fn: (e: RuntimeEvent) => void): () => void;
  /** Lets go of everything; containers live on. */
  close(): Promise<void>;
}

export async function createProcessRuntime(deps: RuntimeDeps): Promise<ProcessRuntime> {
  const { layout, isolation } = deps;
  const warn = (message: string): void => deps.log('warn', message);
  replaceText(layout.shim, SCRIPTS.shim);
  replaceText(layout.init, SCRIPTS.init);
  const store = createStore(layout, warn);
  const loaded = store.load();
  const sandboxes = new Map<string, StoredSandbox>(loaded.sandboxes.map((s) => [s.id, s]));
  const containers = new Map<string, Supervised>();
  const images = createCatalogue(deps.nodePath, loaded.images, isolation.uid);
  const listeners = new Set<(e: RuntimeEvent) => void>();
  /** Creating, starting and removing in one sandbox run one after another; stopping does not wait for them. */
  const chains = new Map<string, Promise<unknown>>();

  let lastMs = Math.max(0, ...loaded.sandboxes.map((s) => s.createdAtMs), ...loaded.containers.map((c) => c.createdAtMs));
  const nowMs = (): number => performance.timeOrigin + performance.now();
  const stampMs = (): number => {
    lastMs = Math.max(nowMs(), lastMs + 0.001);
    return lastMs;
  };
  const containersOf = (sandboxId: string): Supervised[] => [...containers.values()].filter((c) => c.row.sandboxId === sandboxId);
  const emit = (kind: RuntimeEvent['kind'], id: string, sandboxId: string): void => {
    if (listeners.size === 0) return;
    const e = { kind, id, sandbox: sandboxes.get(sandboxId), containers: containersOf(sandboxId).map((c) => c.row) };
    for (const fn of [...listeners]) fn(e);
  };
  const chained = <T>(sandboxId: string, work: () => Promise<T>): Promise<T> => {
    const next = (chains.get(sandboxId) ?? Promise.resolve()).then(work, work);
    const settled = next.catch(() => undefined);
    chains.set(sandboxId, settled);
    void settled.then(() => {
      if (chains.get(sandboxId) === settled) chains.delete(sandboxId);
    });
    return next;
  };
  const superviseDeps = {
    layout,
    isolation,
    nowMs,
    save: (row: StoredContainer) => store.saveContainer(row),
    warn,
    onExit: (row: StoredContainer) => emit('stopped', row.id, row.sandboxId),
  };

  const onFile = (name: string): void => {
    const ready = name.endsWith('.up');
    containers.get(ready ? name.slice(0, -3) : name)?.onFile(ready ? 'ready' : 'exit');
  };
  let poll: NodeJS.Timeout | undefined;
  const watcher = watch(layout.exits, (_event, name) => {
    if (name !== null) onFile(name);
  });
  watcher.on('error', (error) => {
    warn(`the watch on ${layout.exits} failed (${error.message}): looking every ${POLL_EXITS_MS} ms instead`);
    poll ??= setInterval(
      () =>
        void readdir(layout.exits).then(
          (names) => names.forEach(onFile),
          () => undefined,
        ),
      POLL_EXITS_MS,
    );
  });

  for (const row of loaded.containers) containers.set(row.id, supervise(row, superviseDeps));
  await Promise.all(
    [...containers.values()].map((c) => c.adopt().catch((error: Error) => warn(`container ${c.row.id}: ${error.message}`))),
  );
  const alive = [...containers.values()].filter((c) => c.row.state === 'CONTAINER_RUNNING').length;
  if (loaded.containers.length > 0)
    deps.log('info', `found ${loaded.sandboxes.length} pods and ${loaded.containers.length} containers, ${alive} of them running`);

  const sandboxOrRefuse = (id: string): StoredSandbox => {
    const s = sandboxes.get(id);
    if (s === undefined) throw new RuntimeRefusal(CODE.notFound, `sandbox ${id} not found`);
    return s;
  };
  const containerOrRefuse = (id: string): Supervised => {
    const c = containers.get(id);
    if (c === undefined) throw new RuntimeRefusal(CODE.notFound, `container ${id} not found`);
    return c;
  };
  const runningOrRefuse = (id: string): Supervised => {
    const c = containerOrRefuse(id);
    if (c.row.state !== 'CONTAINER_RUNNING') throw new RuntimeRefusal(CODE.failedPrecondition, `container ${id} is not running`);
    return c;
  };

  const stopSandbox = async (s: StoredSandbox): Promise<void> => {
    await Promise.all(containersOf(s.id).map((c) => c.stop(0)));
    if (!s.ready) return;
    s.ready = false;
    store.saveSandbox(s);
    emit('stopped', s.id, s.id);
  };
  const forget = async (c: Supervised): Promise<void> => {
    await c.stop(0);
    await c.close();
    containers.delete(c.row.id);
    store.dropContainer(c.row.id);
    emit('deleted', c.row.id, c.row.sandboxId);
  };

  const conditions = [
    { type: 'RuntimeReady', status: true, reason: '', message: '' },
    { type: 'NetworkReady', status: true, reason: 'HostNetwork', message: 'pods share the network of the host' },
  ];

  const create: ProcessHandlers['CreateContainer'] = async ({ podSandboxId, config }) => {
    const s = sandboxOrRefuse(podSandboxId);
    if (!s.ready) throw new RuntimeRefusal(CODE.failedPrecondition, `sandbox ${s.id} is not ready`);
    const key = containerKey(s.id, config.metadata);
    const taken = containersOf(s.id).find((c) => containerKey(s.id, c.row.metadata) === key);
    if (taken !== undefined) throw new RuntimeRefusal(CODE.alreadyExists, `container name ${key} is taken by ${taken.row.id}`);
    const found = images.find(config.image.image);
    if (found === undefined) throw new RuntimeRefusal(CODE.notFound, `image ${JSON.stringify(config.image.image)} not found`);
    const id = randomBytes(16).toString('hex');
    const plan = planContainer({ id, config, sandbox: s, entry: found.entry, isolation, ...deps.env });
    const row: StoredContainer = {
      id,
      sandboxId: s.id,
      metadata: config.metadata,
      image: config.image,
      imageRef: found.image.id,
      labels: config.labels ?? {},
      annotations: config.annotations ?? {},
      mounts: config.mounts ?? [],
      logPath: config.logPath && s.logDirectory ? join(s.logDirectory, config.logPath) : '',
      state: 'CONTAINER_CREATED',
      createdAtMs: stampMs(),
      startedAtMs: 0,
      finishedAtMs: 0,
      exitCode: 0,
      reason: '',
      message: '',
      plan,
      shim: null,
      starting: false,
      killed: false,
    };
    mkdirSync(layout.containerDir(id), { mode: 0o700 });
    try {
      await mkfifo(isolation.mkfifo, ['-m', '600', ...(['out', 'err', 'ack'] as const).map((f) => layout.container(id, f))]);
      store.saveContainer(row);
    } catch (error) {
      store.dropContainer(id);
      throw error;
    }
    containers.set(id, supervise(row, superviseDeps));
    emit('created', id, s.id);
    return { containerId: id };
  };

  const handlers: ProcessHandlers = {
    Version: () => ({ version: '0.1.0', runtimeName: RUNTIME_NAME, runtimeVersion: '0.1.0', runtimeApiVersion: 'v1' }),
    Status: ({ verbose }) => ({
      status: { conditions },
      info:
        verbose === true
          ? {
              isolation: JSON.stringify({ kind: isolation.kind, reason: isolation.reason, root: isolation.root }),
              pid: String(process.pid),
            }
          : {},
    }),
    // No cgroups are used at all; of the two, this one asks nothing of the host.
    RuntimeConfig: () => ({ linux: { cgroupDriver: 'CGROUPFS' } }),
    UpdateRuntimeConfig: () => ({}),
    RunPodSandbox: ({ config, runtimeHandler }) => {
      const key = sandboxKey(config.metadata);
      if (runtimeHandler) throw new RuntimeRefusal(CODE.invalidArgument, `no runtime handler ${JSON.stringify(runtimeHandler)}`);
      for (const s of sandboxes.values()) {
        if (sandboxKey(s.metadata) === key) throw new RuntimeRefusal(CODE.alreadyExists, `sandbox name ${key} is taken by ${s.id}`);
      }
      checkSandbox(config, isolation);
      // As asked, although every pod here shares the host's network: a node compares this with what it asked for.
      const namespaces: NamespaceOption = { ...config.linux?.securityContext?.namespaceOptions };
      const s: StoredSandbox = {
        id: randomBytes(16).toString('hex'),
        metadata: config.metadata,
        labels: config.labels ?? {},
        annotations: config.annotations ?? {},
        runtimeHandler: '',
        ready: true,
        createdAtMs: stampMs(),
        ip: config.linux?.securityContext?.namespaceOptions?.network === 'NODE' ? '' : POD_IP,
        namespaces,
        hostname: config.hostname ?? '',
        logDirectory: config.logDirectory ?? '',
      };
      store.saveSandbox(s);
      sandboxes.set(s.id, s);
      emit('created', s.id, s.id);
      emit('started', s.id, s.id);
      return { podSandboxId: s.id };
    },
    StopPodSandbox: ({ podSandboxId }) =>
      chained(podSandboxId, async () => {
        const s = sandboxes.get(podSandboxId);
        if (s !== undefined) await stopSandbox(s);
        return {};
      }),
    RemovePodSandbox: ({ podSandboxId }) =>
      chained(podSandboxId, async () => {
        const s = sandboxes.get(podSandboxId);
        if (s === undefined) return {};
        await stopSandbox(s);
        for (const c of containersOf(s.id)) await forget(c);
        store.dropSandbox(s.id);
        sandboxes.delete(s.id);
        for (const fn of [...listeners]) fn({ kind: 'deleted', id: s.id, sandbox: s, containers: [] });
        return {};
      }),
    PodSandboxStatus: ({ podSandboxId }) => ({ status: sandboxStatus(sandboxOrRefuse(podSandboxId)), info: {} }),
    ListPodSandbox: ({ filter }) => ({ items: [...sandboxes.values()].filter((s) => matchSandbox(s, filter)).map(sandboxItem) }),
    CreateContainer: (req, signal) => chained(req.podSandboxId, async () => create(req, signal)),
    StartContainer: ({ containerId }) => {
      const { sandboxId } = containerOrRefuse(containerId).row;
      return chained(sandboxId, async () => {
        const c = containerOrRefuse(containerId);
        if (c.row.state !== 'CONTAINER_CREATED')
          throw new RuntimeRefusal(CODE.failedPrecondition, `container ${containerId} is ${c.row.state}, not CREATED`);
        if (!sandboxOrRefuse(sandboxId).ready) throw new RuntimeRefusal(CODE.failedPrecondition, `sandbox ${sandboxId} is not ready`);
        await c.start();
        emit('started', containerId, sandboxId);
        return {};
      });
    },
    StopContainer: async ({ containerId, timeout }) => {
      await containers.get(containerId)?.stop(Number(timeout) * 1000);
      return {};
    },
    RemoveContainer: async ({ containerId }) => {
      const c = containers.get(containerId);
      if (c === undefined) return {};
      return chained(c.row.sandboxId, async () => {
        if (containers.has(containerId)) await forget(c);
        return {};
      });
    },
    ListContainers: ({ filter }) => ({
      containers: [...containers.values()].filter((c) => matchContainer(c.row, filter)).map((c) => containerItem(c.row)),
    }),
    ContainerStatus: ({ containerId, verbose }) => {
      const c = containerOrRefuse(containerId);
      const info = verbose === true ? { pid: String(c.row.shim?.pid ?? 0), namespaces: JSON.stringify(c.row.plan.shim.namespaces) } : {};
      return { status: containerStatus(c.row), info: info as Record<string, string> };
    },
    ReopenContainerLog: async ({ containerId }) => {
      await runningOrRefuse(containerId).reopenLog();
      return {};
    },
    ExecSync: ({ containerId, cmd, timeout }, signal) =>
      execSync(runningOrRefuse(containerId), cmd, { isolation, timeoutMs: Number(timeout) * 1000, signal }),
    Exec: ({ containerId, cmd, tty, stdin, stdout, stderr }) => {
      if (tty) throw new RuntimeRefusal(CODE.invalidArgument, 'exec with a terminal is not supported by the embedded process runtime');
      if (cmd.length === 0) throw new RuntimeRefusal(CODE.invalidArgument, 'exec: no command');
      return { url: deps.streaming.offer({ container: runningOrRefuse(containerId), cmd, stdin, stdout, stderr }) };
    },
    ContainerStats: ({ containerId }) => ({
      stats: containerStats(runningOrRefuse(containerId), { all: scanProcesses(), pageBytes: isolation.pageBytes, nowMs: nowMs() }),
    }),
    ListContainerStats: ({ filter }) => {
      const all = scanProcesses();
      const running = [...containers.values()].filter((c) => c.row.state === 'CONTAINER_RUNNING' && matchContainer(c.row, filter));
      return { stats: running.map((c) => containerStats(c, { all, pageBytes: isolation.pageBytes, nowMs: nowMs() })) };
    },
    ListImages: ({ filter }) => {
      const wanted = filter?.image?.image;
      if (!wanted) return { images: images.list() };
      const found = images.find(wanted);
      return { images: found === undefined ? [] : [found.image] };
    },
    ImageStatus: ({ image }) => ({ image: images.find(image.image)?.image ?? null, info: {} }),
    PullImage: ({ image }) => {
      const pulled = images.pull(image.image);
      store.saveImages(images.pulled());
      return { imageRef: pulled.id };
    },
    RemoveImage: ({ image }) => {
      images.remove(image.image);
      store.saveImages(images.pulled());
      return {};
    },
    ImageFsInfo: () => {
      const used = images.list().reduce((sum, i) => sum + Number(i.size), 0);
      const fs = {
        timestamp: nanos(nowMs()),
        fsId: { mountpoint: layout.base },
        usedBytes: { value: String(used) },
        inodesUsed: { value: '0' },
      };
      return { imageFilesystems: [fs], containerFilesystems: [fs] };
    },
  };

  return {
    handlers,
    onEvent(fn) {
      listeners.add(fn);
      return () => void listeners.delete(fn);
    },
    async close() {
      watcher.close();
      clearInterval(poll);
      await Promise.all([...containers.values()].map((c) => c.close()));
    },
  };
}
