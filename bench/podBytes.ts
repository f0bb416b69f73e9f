/**
 * What one settled pod of a fleet holds: the difference of the live heap with some pods and with many more, each after full
 * collections. The API server is the embedded one in a process of its own, so that only what the fleet holds is counted.
 * Options: --nodes=10 --first=200 --pods=1000 --settle-seconds=40 --snapshot=FILE (two heap snapshots: FILE.few, FILE.all) --out=FILE
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { startEmbeddedApi } from '@actorlet/fleet/src/boot/embedded/server.ts';
import { quietLog, realWorld } from '@actorlet/fleet/src/boot/world.ts';
import { plainFleet } from '@actorlet/fleet/src/file.ts';
import { Fleet } from '@actorlet/fleet/src/fleet.ts';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { allPaths } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { numberOption, option, report, say, sleep, until } from './lib/report.ts';

const nodes = numberOption('nodes', 10);
const pods = numberOption('pods', 1000);
/** They warm the program up: its code is compiled, and is not counted as theirs. */
const first = numberOption('first', Math.ceil(pods / 5));
const settleSeconds = numberOption('settle-seconds', 40);
const snapshot = option('snapshot');
const LONG_MS = 600_000;
const LOOK_MS = 500;
const AT_ONCE = 16;

interface Listening {
  kubeconfig: string;
}

/** The other process. */
async function serve(): Promise<void> {
  const { kubeconfig } = await startEmbeddedApi(createClock(), 1);
  process.on('disconnect', () => process.exit(0));
  process.send?.({ kubeconfig } satisfies Listening);
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

async function heldBytes(): Promise<number> {
  for (let i = 0; i < 4; i++) {
    collect();
    await sleep(50);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function podNamed(index: number): object {
  const resources = { requests: { cpu: '1m', memory: '1Mi' } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `p-${index}`, namespace: 'default', labels: { app: 'bench' } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'registry.example/web:1', resources }] },
  };
}

async function measured(api: ChildProcess, folder: string): Promise<object> {
  const [{ kubeconfig }] = (await once(api, 'message')) as [Listening];
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, kubeconfig, { mode: 0o600 });
  const world = await realWorld({
    ...{ kubeconfig: file, port: 0, socket: '', address: '127.0.0.1', asNodes: false, shareWatches: false, bootstrapKubeconfig: '' },
    log: quietLog,
  });
  const fleet = new Fleet(plainFleet({ name: 'bench', nodes, prefix: 'n', seed: 1 }), world);
  try {
    await fleet.start();
    await until('nodes Ready', async () => (fleet.overview().nodes.ready >= nodes ? true : undefined), {
      timeoutMs: LONG_MS,
      everyMs: LOOK_MS,
    });
    await sleep(settleSeconds * 1000);
    let next = 0;
    let wanted = 0;
    const { signal } = new AbortController();
    const make = async (): Promise<void> => {
      while (next < wanted) {
        const index = next++;
        const made = await world.admin.request(
          { verb: 'POST', path: '/api/v1/namespaces/default/pods', body: podNamed(index) },
          { timeoutMs: LONG_MS, signal },
        );
        if (!made.ok) throw new Error(`pod ${index}: ${made.failure.message}`);
      }
    };
    const settled = async (count: number): Promise<NodeJS.CpuUsage> => {
      wanted = count;
      const before = process.cpuUsage();
      await Promise.all(Array.from({ length: AT_ONCE }, make));
      const isReady = async () => (fleet.overview().pods.ready >= count ? true : undefined);
      await until('pods Ready', isReady, { timeoutMs: LONG_MS, everyMs: LOOK_MS });
      const taken = process.cpuUsage(before);
      await sleep(settleSeconds * 1000);
      return taken;
    };
    await settled(first);
    const few = await heldBytes();
    say(`with ${first} pods: ${Math.round(few / 2 ** 20)} MiB`);
    if (snapshot !== undefined) writeHeapSnapshot(`${snapshot}.few`);
    const { user, system } = await settled(first + pods);
    const asleep = fleet.members.flatMap((m) => {
      const { tree } = m.node ?? {};
      return tree === undefined ? [] : allPaths(tree.state()).flatMap((path) => (tree.stateAt(path)?.lifecycle === 'asleep' ? [path] : []));
    });
    const full = await heldBytes();
    if (snapshot !== undefined) writeHeapSnapshot(`${snapshot}.all`);
    return {
      ...{ nodes, first, pods, fewMiB: Math.round(few / 2 ** 20), allMiB: Math.round(full / 2 ** 20) },
      bytesOfAPod: Math.round((full - few) / pods),
      processorMsOfAPod: Math.round((user + system) / 10 / pods) / 100,
      asleep: {
        workers: asleep.filter((p) => p.includes('/workers/')).length,
        writers: asleep.filter((p) => p.includes('/podWriters/')).length,
      },
    };
  } finally {
    await fleet.stop();
    world.admin.close();
    world.close();
  }
}

if (process.send !== undefined) await serve();
else {
  const folder = mkdtempSync(join(tmpdir(), 'pod-bytes-'));
  const api = fork(import.meta.filename, { execArgv: process.execArgv });
  const cleanUp = cleanUpOnce(() => {
    api.kill();
    rmSync(folder, { recursive: true, force: true });
    return Promise.resolve([]);
  });
  await report('podBytes', await measured(api, folder));
  await cleanUp();
  process.exit(0);
}
