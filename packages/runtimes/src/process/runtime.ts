/**
 * The process runtime: CRI calls on rows, processes and files. State held: rows of sandboxes and containers; lost on a
 * restart of the runtime: nothing that is on disk, only output older than what the FIFOs hold; rebuilt from: the state
 * folder, /proc and the exit files.
 */
import { once } from 'node:events';
import { watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { SCRIPTS } from './container/shim.ts';
import { containerHandlers, processHandlers } from './containers.ts';
import type { Isolation } from './probe.ts';
import { sandboxHandlers } from './sandboxes.ts';
import { createCatalogue, imageHandlers } from './store/images.ts';
import { State } from './store/state.ts';
import { createStore, replaceText, type StoredSandbox } from './store/store.ts';
import type { Oci, ProcessHandlers, ProcessRuntime, RuntimeDeps } from './types.ts';

const RUNTIME_NAME = 'actorlet-process';
/** Used only where the watch on the exits folder cannot be had. */
const POLL_EXITS_MS = 500;
const CONDITIONS = [
  { type: 'RuntimeReady', status: true, reason: '', message: '' },
  { type: 'NetworkReady', status: true, reason: 'HostNetwork', message: 'pods share the network of the host' },
];

export async function createProcessRuntime(deps: RuntimeDeps): Promise<ProcessRuntime> {
  const { layout, isolation, oci } = deps;
  const warn = (message: string): void => deps.log('warn', message);
  replaceText(layout.shim, SCRIPTS.shim);
  replaceText(layout.init, SCRIPTS.init);
  const store = createStore(layout, warn);
  const loaded = store.load();
  const state = new State(deps, store, loaded);
  const images = createCatalogue(deps.nodePath, loaded.images, isolation.uid);
  const unwatch = watchExits(layout.exits, { state, warn });

  // Interrupted while it was made: nobody asked for it again, and what it started is to go.
  for (const s of loaded.sandboxes) if (!s.ready) oci?.stopPod(s);
  for (const row of loaded.containers) state.addContainer(row);
  const containers = [...state.containers.values()];
  await Promise.all(containers.map((c) => c.adopt().catch((error: Error) => warn(`container ${c.row.id}: ${error.message}`))));
  const alive = containers.filter((c) => c.row.state === 'CONTAINER_RUNNING').length;
  if (containers.length > 0)
    deps.log('info', `found ${loaded.sandboxes.length} pods and ${containers.length} containers, ${alive} of them running`);

  const lost = containers.filter((c) => c.row.state === 'CONTAINER_RUNNING' && c.row.plan.oci !== undefined);
  if (deps.lostHolder !== null && lost.length > 0) {
    const pids = lost.flatMap((c) => c.innerPid() ?? []).join(' ');
    warn(
      `process ${deps.lostHolder}, which held the namespaces of ${lost.length} running containers, has ended: this runtime cannot stop or enter them. End their processes: kill -KILL ${pids}`,
    );
  }

  const builtIn = imageHandlers(images, { state, mountpoint: layout.base });
  const usedBy = (imageId: string) => [...state.containers.values()].find((c) => c.row.plan.oci?.imageId === imageId)?.row.id;
  deps.streaming.tunnels(async (ip, port) => podConnection(state, oci, { ip, port }));
  return {
    handlers: {
      ...runtimeHandlers(isolation, oci),
      ...sandboxHandlers(state, deps),
      ...containerHandlers({ state, images, layout, isolation, env: deps.env, oci }),
      ...processHandlers(state, deps),
      PortForward: ({ podSandboxId, port: ports }) => {
        const s = state.sandbox(podSandboxId);
        return { url: deps.streaming.offer({ kind: 'portForward', ports, open: (port) => connectTo(state, oci, { s, port }) }) };
      },
      ...(oci?.imageHandlers({ others: builtIn, builtIn: images.has, usedBy }) ?? builtIn),
    },
    onEvent(fn) {
      state.listeners.add(fn);
      return () => void state.listeners.delete(fn);
    },
    async close() {
      unwatch();
      await Promise.all([...state.containers.values()].map((c) => c.close()));
      await oci?.close();
    },
  };
}

function ociConditions(oci: Oci) {
  return [
    { type: 'RuntimeReady', status: true, reason: '', message: '' },
    { type: 'NetworkReady', status: true, ...oci.network() },
  ];
}

/** A connection to a pod by its address; null where no pod has it. Images that are built in are on the host's network. */
async function podConnection(state: State, oci: Oci | undefined, at: { ip: string; port: number }): Promise<Socket | null> {
  const s = [...state.sandboxes.values()].find((row) => row.ready && row.ip === at.ip);
  return s === undefined || oci === undefined ? null : connectTo(state, oci, { s, port: at.port });
}

async function connectTo(state: State, oci: Oci | undefined, at: { s: StoredSandbox; port: number }): Promise<Socket> {
  const { s } = at;
  if (!s.ready) throw new Error(`sandbox ${s.id} is not ready`);
  const onHost = async (): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port: at.port });
    await once(socket, 'connect');
    return socket;
  };
  const builtIn = state.containersOf(s.id).some((c) => c.row.plan.oci === undefined);
  const inside = oci?.dial(s, at.port) ?? null;
  if (inside === null) return onHost();
  return builtIn ? inside.catch(onHost) : inside;
}

/** Tells each container of the files that its shim writes. */
function watchExits(folder: string, { state, warn }: { state: State; warn(message: string): void }): () => void {
  const onFile = (name: string): void => {
    const ready = name.endsWith('.up');
    state.containers.get(ready ? name.slice(0, -3) : name)?.onFile(ready ? 'ready' : 'exit');
  };
  const look = (): void =>
    void readdir(folder).then(
      (names) => names.forEach(onFile),
      () => undefined,
    );
  let poll: NodeJS.Timeout | undefined;
  const watcher = watch(folder, (_event, name) => {
    if (name !== null) onFile(name);
  });
  watcher.on('error', (error) => {
    warn(`the watch on ${folder} failed (${error.message}): looking every ${POLL_EXITS_MS} ms instead`);
    poll ??= setInterval(look, POLL_EXITS_MS);
  });
  return () => {
    watcher.close();
    clearInterval(poll);
  };
}

function runtimeHandlers({ kind, reason, root }: Isolation, oci: Oci | undefined) {
  const conditions = oci === undefined ? CONDITIONS : ociConditions(oci);
  return {
    Version: () => ({ version: '0.1.0', runtimeName: RUNTIME_NAME, runtimeVersion: '0.1.0', runtimeApiVersion: 'v1' }),
    Status: ({ verbose }) => {
      const info: Record<string, string> = {};
      if (verbose === true) {
        info.isolation = JSON.stringify({ kind, reason, root });
        info.pid = String(process.pid);
        info.kind = oci === undefined ? 'process' : 'oci';
        if (oci !== undefined) info.oci = JSON.stringify({ ...oci.about, network: oci.network() });
      }
      return { status: { conditions }, info };
    },
    // No cgroups are used at all; of the two, this one asks nothing of the host.
    RuntimeConfig: () => ({ linux: { cgroupDriver: 'CGROUPFS' } }),
    UpdateRuntimeConfig: () => ({}),
  } satisfies Partial<ProcessHandlers>;
}
