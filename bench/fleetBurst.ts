/**
 * A fleet whose pods all come at once: nodes Ready, at rest, pods bound and Ready, and the end by Ctrl-C. Of each phase the processor
 * time of the process, and of the pods the milliseconds that each of them took. Embedded, that is nodes and API server together.
 * Meanwhile the oldest lease, and how many nodes the cluster called NotReady.
 * Options: --api=embedded|local --nodes=1000 --pods=1000 --settle-seconds=60 --rest-seconds=30 --profile=FOLDER --out=FILE
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { Heartbeats } from './lib/heartbeats.ts';
import { KubeClient } from './lib/kubeClient.ts';
import { tenths } from './lib/onPlane.ts';
import { usageOf } from './lib/procs.ts';
import { numberOption, option, projectRoot, report, say, sleep, until } from './lib/report.ts';

const api = option('api') === 'local' ? 'local' : 'embedded';
const profile = option('profile');
const nodesWanted = numberOption('nodes', 1000);
const podsWanted = numberOption('pods', 1000);
const settleSeconds = numberOption('settle-seconds', 60);
const restSeconds = numberOption('rest-seconds', 30);
const LONG = { timeoutMs: 1_800_000, everyMs: 500 };
const POSTED_AT_ONCE = 16;
const SAID_CHARS_MAX = 10_000;
/** In what the fleet prints every two seconds. */
const PROGRESS = { nodes: /(?<=nodes )\d+(?=\/\d+ Ready)/g, pods: /(?<=pods )\d+(?=\/\d+ Ready)/g };

const scratch = mkdtempSync(join(tmpdir(), 'actorlet-bench-embedded-'));

class Bench {
  readonly fleet: ChildProcess;
  #client: KubeClient | undefined;
  #said = '';

  constructor() {
    const args = ['fleet', `--nodes=${nodesWanted}`, `--api=${api}`, `--socket=${join(scratch, 'fleet.sock')}`];
    const env = profile === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` };
    this.fleet = spawn(join(projectRoot, 'bin', 'actorlet'), args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    });
    this.fleet.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-SAID_CHARS_MAX);
    });
  }

  async phase(what: string, act: () => Promise<void>) {
    const cpuMs = () => usageOf(this.fleet.pid ?? 0).cpuMs;
    const [before, fromMs] = [cpuMs(), performance.now()];
    await act();
    const [usedMs, ms] = [cpuMs() - before, performance.now() - fromMs];
    const residentMiB = tenths(usageOf(this.fleet.pid ?? 0).rssBytes / 2 ** 20);
    const took = {
      ...{ seconds: tenths(ms / 1000), cpuSeconds: tenths(usedMs / 1000), percentOfOneCore: tenths((100 * usedMs) / ms), residentMiB },
      // What other programs took shows in it, too.
      loadAverage: tenths(loadavg()[0] ?? 0),
    };
    say(`${what}: ${JSON.stringify(took)}`);
    return took;
  }

  async reach(what: 'nodes' | 'pods', count: number): Promise<void> {
    const reached = async () => {
      if (this.fleet.exitCode !== null || this.fleet.signalCode !== null) throw new Error(`the fleet ended: ${this.#said}`);
      return Number(this.#said.match(PROGRESS[what])?.at(-1) ?? 0) >= count || undefined;
    };
    await until(`${count} ${what} that are Ready`, reached, LONG);
  }

  async rest(what: string) {
    await sleep(settleSeconds * 1000);
    return this.phase(what, () => sleep(restSeconds * 1000));
  }

  get client(): KubeClient {
    this.#client ??= new KubeClient(join(scratch, 'fleet.kubeconfig'), POSTED_AT_ONCE);
    return this.#client;
  }

  async makePods(): Promise<void> {
    const left = Array.from({ length: podsWanted }, (_, i) => `web-${i}`);
    const work = async (): Promise<void> => {
      for (let name = left.pop(); name !== undefined; name = left.pop()) {
        const spec = { containers: [{ name: 'main', image: 'fleet/web:1' }] };
        const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app: 'web' } }, spec };
        await this.client.ask('POST', '/api/v1/namespaces/default/pods', pod);
      }
    };
    await Promise.all(Array.from({ length: POSTED_AT_ONCE }, work));
  }

  /** Seconds from Ctrl-C to the end. */
  async interrupted() {
    const [fromMs, ended] = [performance.now(), once(this.fleet, 'close')];
    this.fleet.kill('SIGINT');
    const [code] = (await ended) as [number | null];
    const took = { seconds: tenths((performance.now() - fromMs) / 1000), code, said: this.#said.slice(this.#said.lastIndexOf('stopping')) };
    say(`Ctrl-C: ${JSON.stringify(took)}`);
    return took;
  }

  async run() {
    const joined = await this.phase('nodes Ready', () => this.reach('nodes', nodesWanted));
    const idle = await this.rest('rest without pods');
    const heartbeats = new Heartbeats(this.client);
    const bound = await this.phase('pods Ready', async () => {
      await this.makePods();
      await this.reach('pods', podsWanted);
    });
    const rest = await this.rest('rest with pods');
    const seen = await heartbeats.seen();
    say(`heartbeats: ${JSON.stringify(seen)}`);
    const cpuMsPerPod = tenths((bound.cpuSeconds * 1000) / podsWanted);
    // What the nodes take without pods is not the pods'.
    const netCpuMsPerPod = tenths(((bound.cpuSeconds - (idle.percentOfOneCore / 100) * bound.seconds) * 1000) / podsWanted);
    say(`a pod: ${cpuMsPerPod} ms of processor time, ${netCpuMsPerPod} above what nodes at rest take`);
    return {
      joined,
      idle,
      bound: { ...bound, cpuMsPerPod, netCpuMsPerPod },
      rest,
      heartbeats: seen,
      interrupted: await this.interrupted(),
    };
  }

  async end(): Promise<void> {
    this.#client?.close();
    if (this.fleet.exitCode !== null || this.fleet.signalCode !== null) return;
    const ended = once(this.fleet, 'close');
    this.fleet.kill('SIGKILL');
    await ended;
  }
}

const bench = new Bench();
const cleanUp = cleanUpOnce(async () => {
  await bench.end();
  rmSync(scratch, { recursive: true, force: true });
  return [];
});
try {
  await report('fleetBurst', { api, nodes: nodesWanted, pods: podsWanted, ...(await bench.run()) });
} finally {
  await cleanUp();
}
