/**
 * A fleet on its embedded API server: nodes Ready, at rest, pods bound and Ready, and the end by Ctrl-C. Of each phase the processor
 * time of the process, which is nodes and API server together, and of the pods the milliseconds that each of them took.
 * Options: --nodes=1000 --pods=1000 --settle-seconds=60 --rest-seconds=30 --out=FILE
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { tenths } from './lib/onPlane.ts';
import { usageOf } from './lib/procs.ts';
import { numberOption, projectRoot, report, say, sleep, until } from './lib/report.ts';

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
  readonly #agent = new Agent({ keepAlive: true, maxSockets: POSTED_AT_ONCE, rejectUnauthorized: false });
  #said = '';

  constructor() {
    const args = ['fleet', `--nodes=${nodesWanted}`, '--api=embedded', `--socket=${join(scratch, 'fleet.sock')}`];
    this.fleet = spawn(join(projectRoot, 'bin', 'actorlet'), args, { stdio: ['ignore', 'ignore', 'pipe'] });
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

  async makePods(): Promise<void> {
    const { clusters, users } = JSON.parse(readFileSync(join(scratch, 'fleet.kubeconfig'), 'utf8')) as {
      clusters: { cluster: { server: string } }[];
      users: { user: { token: string } }[];
    };
    const [server, token] = [clusters[0]?.cluster.server ?? '', users[0]?.user.token ?? ''];
    const left = Array.from({ length: podsWanted }, (_, i) => `web-${i}`);
    const work = async (): Promise<void> => {
      for (let name = left.pop(); name !== undefined; name = left.pop()) {
        const spec = { containers: [{ name: 'main', image: 'fleet/web:1' }] };
        await this.#post(`${server}/api/v1/namespaces/default/pods`, token, {
          ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app: 'web' } }, spec },
        });
      }
    };
    await Promise.all(Array.from({ length: POSTED_AT_ONCE }, work));
  }

  #post(url: string, token: string, body: object): Promise<void> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    return new Promise((resolve, reject) => {
      const asked = request(url, { method: 'POST', headers, agent: this.#agent }, (res) => {
        res.resume();
        res.once('end', () => (res.statusCode === 201 ? resolve() : reject(new Error(`${url} was answered with ${res.statusCode}`))));
      });
      asked.once('error', reject);
      asked.end(JSON.stringify(body));
    });
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
    const bound = await this.phase('pods Ready', async () => {
      await this.makePods();
      await this.reach('pods', podsWanted);
    });
    const rest = await this.rest('rest with pods');
    const cpuMsPerPod = tenths((bound.cpuSeconds * 1000) / podsWanted);
    // What the nodes take without pods is not the pods'.
    const netCpuMsPerPod = tenths(((bound.cpuSeconds - (idle.percentOfOneCore / 100) * bound.seconds) * 1000) / podsWanted);
    say(`a pod: ${cpuMsPerPod} ms of processor time, ${netCpuMsPerPod} above what nodes at rest take`);
    return { joined, idle, bound: { ...bound, cpuMsPerPod, netCpuMsPerPod }, rest, interrupted: await this.interrupted() };
  }

  async end(): Promise<void> {
    this.#agent.destroy();
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
  await report('fleetEmbedded', { nodes: nodesWanted, pods: podsWanted, ...(await bench.run()) });
} finally {
  await cleanUp();
}
