/** Where a fleet runs: a cluster that a kubeconfig names, an API server of this process, or a control plane of its own. */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock, Logger } from '@actorlet/kubelet/ports/ports.ts';
import type { ProgramName } from '../plane/messages.ts';
import type { ApiHit } from '../proxy/trouble.ts';
import type { PlaneData } from '../run.ts';
import { anyPort, freePort } from './plane/ports.ts';
import type { ClientProxy, KubeconfigText } from './proxy/proxy.ts';
import { embeddedWorld, type RealWorld, realWorld, type WorldOptions } from './world.ts';

export interface SurroundingsOptions extends Omit<WorldOptions, 'log' | 'port'> {
  api: 'cluster' | 'embedded' | 'local';
  /** Of the APIs of all nodes; 0: none; undefined: a free one. */
  port: number | undefined;
  seed: number;
  log: Logger;
  /** Where the kubeconfig of an API server that is not a cluster's is written. */
  ownKubeconfig: string;
  /** Of a local control plane. */
  plane: { data: string; port: number; flags?: Partial<Record<ProgramName, readonly string[]>> };
  /** Clients reach the API server through a proxy, where they meet faults. */
  proxied?: boolean;
  /** Of it; default: a free one. */
  proxyPort?: number;
  /** By which its faults begin and end. Default: that of the fleet. */
  faultClock?: Clock;
  /** A fault hit a request. */
  onHit?: (hit: ApiHit) => void;
  say(text: string): void;
  signal: AbortSignal;
}

/** Of nodes, where it is free. */
const NODES_PORT = 20_250;

export interface FleetSurroundings {
  world: RealWorld;
  /** Path of the kubeconfig with which others reach the API server, once it was announced. */
  kubeconfig: string;
  /** Writes the kubeconfig where the API server is not a cluster's, and says where it is. */
  announce(): Promise<void>;
  /** Resolves when pods can be created. @throws Error where that takes too long. */
  podsWelcome(): Promise<void>;
  /** The API server, and what nodes leave in it, is there after this process. */
  outlives: boolean;
  /** Of a control plane of this process. */
  data?: PlaneData;
  /** In front of the API server. Absent: clients ask it themselves. */
  proxy?: ClientProxy;
  /** Ends everything but the nodes. */
  close(): Promise<void>;
}

/** @throws UsageError, Error that says what is wrong with it. */
export async function surroundingsOf(o: SurroundingsOptions): Promise<FleetSurroundings> {
  const around = await unproxied(o);
  if (o.proxied !== true) return around;
  try {
    return await withProxy(around, o);
  } catch (error) {
    await around.close();
    throw error;
  }
}

interface Unproxied extends FleetSurroundings {
  /** The kubeconfig of the API server itself. */
  direct(): Promise<KubeconfigText>;
}

async function readDirect(path: string): Promise<KubeconfigText> {
  return { path, text: await readFile(path, 'utf8') };
}

/** The kubeconfig that is announced is that of the proxy. */
async function withProxy(around: Unproxied, o: SurroundingsOptions): Promise<FleetSurroundings> {
  const { startProxy } = await import('./proxy/proxy.ts');
  const { world } = around;
  const proxy = await startProxy({
    ...{
      kubeconfig: await around.direct(),
      admin: world.admin,
      clock: world.clock,
      log: o.log,
      seed: o.seed,
      port: o.proxyPort ?? 0,
      faultClock: o.faultClock,
    },
    ...(o.onHit === undefined ? {} : { onHit: o.onHit }),
    onFault: ({ name, kind, hits }) => o.say(`fault ${name} ${kind === 'begins' ? 'takes effect' : `ends: it hit ${hits} requests`}\n`),
  });
  const written = writtenOnce(o, { text: async () => proxy.kubeconfig, what: `fault proxy on ${proxy.server}` });
  return {
    ...around,
    proxy,
    kubeconfig: resolve(o.ownKubeconfig),
    // Views of both stand below that of the fleet.
    world: { ...world, beside: () => [...(world.beside?.() ?? []), proxy.state()] },
    announce: written.write,
    async close() {
      await written.remove();
      await proxy.close();
      await around.close();
    },
  };
}

async function unproxied(o: SurroundingsOptions): Promise<Unproxied> {
  if (o.api === 'local') return await local(o);
  if (o.api === 'embedded') return await embedded(o);
  const world = await realWorld({ ...o, port: o.port ?? 0 });
  const close = async (): Promise<void> => closeWorld(world);
  const kubeconfig = resolve(o.kubeconfig);
  const direct = (): Promise<KubeconfigText> => readDirect(kubeconfig);
  return { world, kubeconfig, direct, announce: async () => {}, podsWelcome: async () => {}, outlives: true, close };
}

async function embedded(o: SurroundingsOptions): Promise<Unproxied> {
  const { startEmbeddedApi } = await import('./embedded/server.ts');
  const clock = createClock();
  const api = await startEmbeddedApi(clock, o.seed);
  const written = writtenOnce(o, { text: async () => api.kubeconfig, what: 'embedded API server' });
  const kubeconfig = resolve(o.ownKubeconfig);
  const world = embeddedWorld(api, { clock, socket: o.socket, log: o.log, kubeconfig });
  const close = async (): Promise<void> => {
    closeWorld(world);
    await written.remove();
    await api.close();
  };
  const direct = async (): Promise<KubeconfigText> => ({ path: kubeconfig, text: api.kubeconfig });
  return { world, kubeconfig, direct, announce: written.write, podsWelcome: async () => {}, outlives: false, close };
}

async function local(o: SurroundingsOptions): Promise<Unproxied> {
  const { startLocalPlane } = await import('./plane/local.ts');
  const plane = await startLocalPlane({ ...o.plane, say: o.say, signal: o.signal });
  try {
    const port = o.port ?? (await freePort(NODES_PORT)) ?? (await anyPort());
    const world = { ...(await realWorld({ ...o, port, kubeconfig: plane.kubeconfig })), beside: () => [plane.programs.state()] };
    let welcome: Promise<void> | undefined;
    const podsWelcome = (): Promise<void> => {
      welcome ??= plane.accountsReady();
      return welcome;
    };
    const written = writtenOnce(o, { text: () => readFile(plane.kubeconfig, 'utf8'), what: `local control plane (logs in ${plane.logs})` });
    return {
      world,
      kubeconfig: resolve(o.ownKubeconfig),
      direct: () => readDirect(plane.kubeconfig),
      announce: written.write,
      podsWelcome,
      data: plane,
      outlives: o.plane.data !== '',
      async close() {
        closeWorld(world);
        await written.remove();
        await plane.stop();
      },
    };
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

function closeWorld(world: RealWorld): void {
  world.admin.close();
  world.close();
}

/** The kubeconfig of an API server that goes with this process. */
function writtenOnce(
  { ownKubeconfig: path, say }: SurroundingsOptions,
  of: { text(): Promise<string>; what: string },
): { write(): Promise<void>; remove(): Promise<void> } {
  let written = false;
  return {
    async write() {
      await mkdir(dirname(path), { recursive: true });
      await replaceFile(path, await of.text());
      written = true;
      say(`${of.what}: kubectl --kubeconfig ${path} get nodes\n`);
    },
    async remove() {
      if (written) await rm(path, { force: true });
    },
  };
}

/** It holds credentials: the file is new and ours, whatever of others was there. A link is replaced and not followed. */
async function replaceFile(path: string, text: string): Promise<void> {
  const beside = `${path}.${randomUUID()}`;
  try {
    await writeFile(beside, text, { mode: 0o600, flag: 'wx' });
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw new Error(`the kubeconfig ${path} cannot be written: ${messageOf(error)}; choose another --socket`, { cause: error });
  }
}
