/** CRI calls about containers: from their creation, with a folder and FIFOs, to their removal. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ContainerConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CODE, containerItem, containerKey, containerStatus, matchContainer, RuntimeRefusal } from '../shared/model.ts';
import { planContainer } from './container/plan.ts';
import { type ProcStat, scanProcesses } from './container/procfs.ts';
import { containerStats } from './container/stats.ts';
import type { Supervised } from './container/supervise.ts';
import type { ImageCatalogue } from './store/images.ts';
import type { State } from './store/state.ts';
import type { StoredContainer, StoredSandbox } from './store/store.ts';
import { execSync } from './streaming/exec.ts';
import type { ProcessHandlers, RuntimeDeps } from './types.ts';

const mkfifo = promisify(execFile);

export interface ContainersDeps extends Pick<RuntimeDeps, 'layout' | 'isolation' | 'env' | 'oci'> {
  state: State;
  images: ImageCatalogue;
}

export function containerHandlers(o: ContainersDeps) {
  const { state } = o;
  return {
    CreateContainer: (req) => state.queued(req.podSandboxId, () => create(o, req)),
    StartContainer: ({ containerId }) => {
      const { sandboxId } = state.container(containerId).row;
      return state.queued(sandboxId, async () => {
        await o.oci?.networkUp(sandboxId);
        return start(state, containerId, sandboxId);
      });
    },
    StopContainer: async ({ containerId, timeout }) => {
      await state.containers.get(containerId)?.stop(Number(timeout) * 1000);
      return {};
    },
    RemoveContainer: async ({ containerId }) => {
      const c = state.containers.get(containerId);
      if (c === undefined) return {};
      return state.queued(c.row.sandboxId, async () => {
        if (state.containers.has(containerId)) await state.forgetContainer(c);
        return {};
      });
    },
    ListContainers: ({ filter }) => ({
      containers: [...state.containers.values()].filter((c) => matchContainer(c.row, filter)).map((c) => containerItem(c.row)),
    }),
    ContainerStatus: ({ containerId, verbose }) => {
      const { row } = state.container(containerId);
      const info: Record<string, string> = {};
      if (verbose === true) {
        info.pid = String(row.shim?.pid ?? 0);
        info.namespaces = JSON.stringify(row.plan.shim.namespaces);
      }
      return { status: containerStatus(row), info };
    },
    ReopenContainerLog: async ({ containerId }) => {
      await state.running(containerId).reopenLog();
      return {};
    },
  } satisfies Partial<ProcessHandlers>;
}

async function create(o: ContainersDeps, req: CriRequest<'CreateContainer'>): Promise<CriResponse<'CreateContainer'>> {
  const { state, layout, isolation, oci } = o;
  const row = newRow(o, req);
  const { id } = row;
  mkdirSync(layout.containerDir(id), { mode: 0o700 });
  try {
    if (row.plan.oci !== undefined) oci?.prepare(row.plan.oci, id);
    const fifos = ['out', 'err', 'ack', ...(row.plan.oci?.input === undefined ? [] : (['in'] as const))] as const;
    await mkfifo(isolation.mkfifo, ['-m', '600', ...fifos.map((f) => layout.container(id, f))]);
    state.store.saveContainer(row);
  } catch (error) {
    if (row.plan.oci !== undefined) oci?.drop(row.plan.oci);
    state.store.dropContainer(id);
    throw error;
  }
  state.addContainer(row);
  state.emit('created', id, row.sandboxId);
  return { containerId: id };
}

/** Refuses what cannot be made. */
function newRow(o: ContainersDeps, { podSandboxId, config }: CriRequest<'CreateContainer'>): StoredContainer {
  const { state } = o;
  const s = state.sandbox(podSandboxId);
  if (!s.ready) throw new RuntimeRefusal(CODE.failedPrecondition, `sandbox ${s.id} is not ready`);
  const key = containerKey(s.id, config.metadata);
  const taken = state.containersOf(s.id).find((c) => containerKey(s.id, c.row.metadata) === key);
  if (taken !== undefined) throw new RuntimeRefusal(CODE.alreadyExists, `container name ${key} is taken by ${taken.row.id}`);
  const id = randomBytes(16).toString('hex');
  const { plan, imageId } = planOf(o, { id, config, sandbox: s });
  return {
    id,
    sandboxId: s.id,
    metadata: config.metadata,
    image: config.image,
    imageRef: imageId,
    labels: config.labels ?? {},
    annotations: config.annotations ?? {},
    mounts: config.mounts ?? [],
    logPath: config.logPath && s.logDirectory ? join(s.logDirectory, config.logPath) : '',
    plan,
    state: 'CONTAINER_CREATED',
    createdAtMs: state.stampMs(),
    startedAtMs: 0,
    finishedAtMs: 0,
    exitCode: 0,
    reason: '',
    message: '',
    shim: null,
    starting: false,
    killed: false,
  };
}

/** An image of the catalogue is a command of this host; any other is one of the kind `oci`. */
function planOf(o: ContainersDeps, i: { id: string; config: ContainerConfig; sandbox: StoredSandbox }) {
  const { state, images, isolation, env, oci } = o;
  const ref = i.config.image.image;
  if (oci?.hasImage(ref) === true) return oci.plan({ ...i, innerPid: (id) => state.containers.get(id)?.innerPid() ?? null });
  const found = images.find(ref);
  if (found === undefined) throw new RuntimeRefusal(CODE.notFound, `image ${JSON.stringify(ref)} not found`);
  return { plan: planContainer({ ...i, entry: found.entry, isolation, ...env }), imageId: found.image.id };
}

async function start(state: State, id: string, sandboxId: string): Promise<CriResponse<'StartContainer'>> {
  const c = state.container(id);
  if (c.row.state !== 'CONTAINER_CREATED') {
    throw new RuntimeRefusal(CODE.failedPrecondition, `container ${id} is ${c.row.state}, not CREATED`);
  }
  if (!state.sandbox(sandboxId).ready) throw new RuntimeRefusal(CODE.failedPrecondition, `sandbox ${sandboxId} is not ready`);
  await c.start();
  state.emit('started', id, sandboxId);
  return {};
}

/** Commands beside a container's own, and what its processes use. */
export function processHandlers(state: State, { isolation, streaming, oci }: Pick<RuntimeDeps, 'isolation' | 'streaming' | 'oci'>) {
  const { pageBytes } = isolation;
  const statsOf = (c: Supervised, all: ProcStat[]) => {
    const { oci: plan } = c.row.plan;
    return containerStats(c, { all, pageBytes, nowMs: state.nowMs(), usage: plan === undefined ? null : (oci?.usage(plan) ?? null) });
  };
  return {
    ExecSync: ({ containerId, cmd, timeout }, signal) =>
      execSync(state.running(containerId), cmd, { isolation, oci, timeoutMs: Number(timeout) * 1000, signal }),
    Exec: ({ containerId, cmd, tty, stdin, stdout, stderr }) => {
      const container = state.running(containerId);
      if (tty && container.row.plan.oci === undefined)
        throw new RuntimeRefusal(CODE.invalidArgument, 'exec with a terminal is not supported by the embedded process runtime');
      if (cmd.length === 0) throw new RuntimeRefusal(CODE.invalidArgument, 'exec: no command');
      return { url: streaming.offer({ kind: 'exec', ask: { container, cmd, tty, stdin, stdout, stderr } }) };
    },
    Attach: ({ containerId, tty, stdin, stdout, stderr }) => {
      const container = state.running(containerId);
      const input = oci?.input(container.row, () => container.innerPid()) ?? null;
      return { url: streaming.offer({ kind: 'attach', ask: { container, input, tty, stdin, stdout, stderr } }) };
    },
    ContainerStats: ({ containerId }) => ({
      stats: statsOf(state.running(containerId), scanProcesses()),
    }),
    ListContainerStats: ({ filter }) => {
      const all = scanProcesses();
      const running = [...state.containers.values()].filter((c) => c.row.state === 'CONTAINER_RUNNING' && matchContainer(c.row, filter));
      return { stats: running.map((c) => statsOf(c, all)) };
    },
  } satisfies Partial<ProcessHandlers>;
}
