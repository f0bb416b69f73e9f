/** The production tree on a hollow runtime of its own, with the real clock and disk and nothing listening. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createHollowRuntime, type HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import { createNode, type Node } from '../../src/actors/node.ts';
import { documentsHere } from '../../src/actors/pods/sources/document.ts';
import { createClock, createEntropy, createRng, createYield } from '../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../src/boot/dependencies/fs.ts';
import { watchDirectory } from '../../src/boot/dependencies/machine/sys.ts';
import { ownHeap, releaseMemory } from '../../src/boot/process/memory.ts';
import type { KubeletFlags } from '../../src/machines/config/config.ts';
import { defaultNodeConfig } from '../../src/machines/config/defaults.ts';
import type { Ports, Sys } from '../../src/ports/ports.ts';
import type { Net } from '../../src/ports/sockets/net.ts';
import { memoryMetrics } from '../../test/supervision/fakePorts.ts';
import { sleep } from './report.ts';

const hostFs = createHostFs();
export const quiet: Ports['log'] = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };
const sys: Sys = { watchDir: () => ({ [Symbol.dispose]: () => {} }), notify: () => false };
const noNetwork = () => Promise.reject(new Error('no network here'));
const net: Net = { httpGet: noNetwork, serveHttp: noNetwork };
const prober: Ports['prober'] = { httpGet: noNetwork, tcpDial: noNetwork, grpcHealth: noNetwork };

/** Answered by the hollow runtime. */
const EVERY_SECOND = { exec: { command: ['true'] }, periodSeconds: 1 };

const manifest = (name: string, probed: boolean) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      containers: [
        {
          ...{ name: 'main', image: 'hollow/idle:1', imagePullPolicy: 'IfNotPresent', command: ['idle'] },
          ...(probed ? { readinessProbe: EVERY_SECOND } : {}),
        },
      ],
      terminationGracePeriodSeconds: 1,
    },
  });

const fileOf = (dir: string, name: string): string => join(dir, 'manifests', `${name}.json`);

/**
 * Puts manifests of pods with one container each into the node's folder. `probed`: with a readiness probe each second. After
 * the start only a node that watches its folder sees them at once.
 */
export function putPods(dir: string, names: readonly string[], { probed = false } = {}): void {
  mkdirSync(join(dir, 'manifests'), { recursive: true });
  for (const name of names) writeFileSync(fileOf(dir, name), manifest(name, probed));
}
export function dropPods(dir: string, names: readonly string[]): void {
  for (const name of names) rmSync(fileOf(dir, name), { force: true });
}

/** Starts a node whose folder is `dir`. */
export async function startHollowNode(o: {
  dir: string;
  name: string;
  maxPods: number;
  flags?: Partial<KubeletFlags>;
  /** It watches its folder of manifests. */
  watch?: boolean;
}): Promise<{ node: Node; runtime: HollowRuntime }> {
  const clock = createClock();
  const rng = createRng();
  const runtime = createHollowRuntime({ clock, rng });
  putPods(o.dir, []);
  const config = defaultNodeConfig({
    flags: { rootDir: join(o.dir, 'root'), hostnameOverride: o.name, ...o.flags },
    config: {
      staticPodPath: join(o.dir, 'manifests'),
      podLogsDir: join(o.dir, 'logs/pods'),
      readOnlyPort: 0,
      healthzPort: 0,
      resolvConf: '',
      maxPods: o.maxPods,
    },
  });
  const ports: Ports = {
    clock,
    rng,
    entropy: createEntropy(),
    documents: documentsHere(createEntropy()),
    yield: createYield(),
    fs: hostFs,
    sys: o.watch === true ? { ...sys, watchDir: watchDirectory } : sys,
    net,
    prober,
    host: {
      hostname: () => o.name,
      bootId: () => 'boot',
      capacity: () => ({ memoryBytes: 2 ** 34, cpus: 4 }),
      addresses: () => [{ ip: '10.0.0.1', family: 4, interface: 'eth0' }],
      cpuUsageMs: () => 0,
      rssBytes: () => 0,
    },
    cri: runtime,
    log: quiet,
    metrics: memoryMetrics(),
  };
  const node = await createNode({ ...config, flags: { ...config.flags, adminSocket: '' } }, ports);
  await node.start();
  return { node, runtime };
}

/** MiB in use once the process was collected as the daemon does it at rest. @throws without --expose-gc. */
export async function collected(): Promise<{ heapMiB: number; rssMiB: number }> {
  const heap = ownHeap(() => performance.now());
  if (heap === null) throw new Error('run with --expose-gc');
  // Several times, apart: finalizers and closed streams free more on the next turn.
  for (let i = 0; i < 3; i++) {
    heap.collect('everything');
    await sleep(50);
  }
  releaseMemory(process.execPath);
  const used = process.memoryUsage();
  return { heapMiB: mib(used.heapUsed + used.external), rssMiB: mib(used.rss) };
}

const mib = (bytes: number): number => Math.round((bytes / 2 ** 20) * 10) / 10;
