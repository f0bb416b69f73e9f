/**
 * KWOK on a control plane on the same machine: time until its nodes and pods are Ready, memory, processor time at rest, and what a person
 * is answered about a pod. Without a program `kwok` in KUBEBUILDER_ASSETS it is skipped. `--config` names its Stages, and what else it
 * reads, by commas. Options: --config=FILE,FILE --nodes=1000 --pods=2000 --settle-seconds=30 --rest-seconds=30 --out=FILE
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createHost } from '../src/boot/dependencies/machine/host.ts';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { tenths, tried, UNLIMITED, usageIn } from './lib/onPlane.ts';
import { usageOf } from './lib/procs.ts';
import { numberOption, option, report, say, sleep, until } from './lib/report.ts';

const program = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kwok');
const config = (option('config') ?? '').split(',').filter((file) => file !== '');
const nodes = numberOption('nodes', 1_000);
const pods = numberOption('pods', 2_000);
const settleMs = numberOption('settle-seconds', 30) * 1000;
const restMs = numberOption('rest-seconds', 30) * 1000;
const PORT = 10_247;
const AT_ONCE = 16;
const LONG = { timeoutMs: 300_000, everyMs: 500 };

interface Item {
  status: { conditions?: { type: string; status: string }[] };
}

class Bench {
  readonly plane: ControlPlane;
  readonly kwok: ChildProcess;
  readonly #logFile: string;

  constructor(plane: ControlPlane, address: string) {
    this.plane = plane;
    const { certFile, keyFile } = plane.ca.issue('kwok', { name: 'kwok', hosts: [address] });
    this.#logFile = join(plane.dir, 'kwok.log');
    const log = openSync(this.#logFile, 'a');
    const args = [
      ...['--manage-all-nodes', `--kubeconfig=${plane.adminKubeconfig}`, ...config.map((file) => `--config=${file}`)],
      ...[`--node-ip=${address}`, `--node-port=${PORT}`, `--tls-cert-file=${certFile}`, `--tls-private-key-file=${keyFile}`],
      '--node-lease-duration-seconds=40',
    ];
    this.kwok = spawn(program, args, { env: { PATH: process.env.PATH ?? '', HOME: plane.dir }, stdio: ['ignore', log, log] });
  }

  /** Its log, where it ended. */
  log(): string {
    return readFileSync(this.#logFile, 'utf8').slice(-3_000);
  }

  async ready(path: string, count: number): Promise<void> {
    const reached = async () => {
      if (this.kwok.exitCode !== null) throw new Error('kwok ended');
      const { items } = (await this.plane.request('GET', `${path}?resourceVersion=0`, { timeoutMs: 60_000 })).body as { items: Item[] };
      return items.filter((i) => i.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True')).length >= count || undefined;
    };
    await until(`${count} of ${path} that are Ready`, reached, LONG);
  }

  /** What a phase took: its time, and of each process the share of one core. */
  async phase(what: string, act: () => Promise<unknown>) {
    const { seconds, percentOfOneCore } = await usageIn(this.plane, { kwok: [this.kwok.pid] }, act);
    const took = { seconds, percentOfOneCore, residentMiB: tenths(usageOf(this.kwok.pid ?? 0).rssBytes / 2 ** 20) };
    say(`${what}: ${JSON.stringify(took)}`);
    return took;
  }

  async rest(what: string) {
    await sleep(settleMs);
    return this.phase(what, () => sleep(restMs));
  }

  /** KWOK makes no node objects. This program does, and KWOK makes them Ready. */
  async makeNodes(): Promise<void> {
    const left = Array.from({ length: nodes }, (_, i) => `kwok-${i}`);
    const room = { cpu: '8', memory: '32Gi', pods: '110' };
    const work = async (): Promise<void> => {
      for (let name = left.pop(); name !== undefined; name = left.pop()) {
        const body = { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { capacity: room, allocatable: room } };
        const { status } = await this.plane.request('POST', '/api/v1/nodes', { body, timeoutMs: 60_000 });
        if (status !== 201) throw new Error(`node ${name} was answered with ${status}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  async makePods(): Promise<void> {
    const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'web:1' }] } };
    const spec = { replicas: pods, selector: { matchLabels: { app: 'web' } }, template };
    const body = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec };
    const { status } = await this.plane.request('POST', '/apis/apps/v1/namespaces/default/deployments', { body });
    if (status !== 201) throw new Error(`the deployment was answered with ${status}`);
  }

  /** About a pod on that node. */
  async answers(node: string): Promise<Record<string, string>> {
    const { plane } = this;
    const kubectl = (...args: string[]): Promise<string> => tried(plane.kubectl(...args));
    const overrides = JSON.stringify({ spec: { nodeName: node, terminationGracePeriodSeconds: 1 } });
    const path = (of: string): string => `/api/v1/nodes/${node}/proxy/${of}`;
    return {
      created: await kubectl('run', 'tried', '--image=web', `--overrides=${overrides}`),
      running: await kubectl('wait', '--for=condition=Ready', 'pod/tried', '--timeout=60s'),
      logs: await kubectl('logs', 'tried'),
      exec: await kubectl('exec', 'tried', '--', 'echo', 'of this machine'),
      summary: await kubectl('get', '--raw', path('stats/summary')),
      resourceMetrics: await kubectl('get', '--raw', path('metrics/resource')),
      resourceMetricsAtItsOwnPath: await kubectl('get', '--raw', path(`metrics/nodes/${node}/metrics/resource`)),
      pods: await kubectl('get', '--raw', path('pods')),
      lease: await kubectl('get', 'lease', node, '-n', 'kube-node-lease', '-o', 'jsonpath={.spec.holderIdentity}'),
      deleted: await kubectl('delete', 'pod', 'tried', '--timeout=30s'),
    };
  }

  async run() {
    const joined = await this.phase('nodes Ready', async () => {
      await this.makeNodes();
      await this.ready('/api/v1/nodes', nodes);
    });
    const idle = await this.rest('rest without pods');
    const bound = await this.phase('pods Ready', async () => {
      await this.makePods();
      await this.ready('/api/v1/pods', pods);
    });
    const rest = await this.rest('rest with pods');
    const answers = await this.answers('kwok-0');
    const each = { nodesASecond: tenths(nodes / joined.seconds), podsASecond: tenths(pods / bound.seconds) };
    return { joined, idle, bound, rest, ...each, residentMiBPerNode: Math.round((100 * idle.residentMiB) / nodes) / 100, answers };
  }

  async end(): Promise<void> {
    if (this.kwok.exitCode !== null || this.kwok.signalCode !== null) return;
    const ended = once(this.kwok, 'close');
    this.kwok.kill('SIGKILL');
    await ended;
  }
}

if (existsSync(program)) {
  const plane = await startControlPlane({ controllerManager: true, scheduler: true, flags: UNLIMITED });
  await until('the default account', async () => (await plane.hasAccount()) || undefined, LONG);
  const bench = new Bench(plane, createHost().addresses()[0]?.ip ?? '127.0.0.1');
  const cleanUp = cleanUpOnce(async () => {
    await bench.end();
    await plane.stop();
    return [];
  });
  try {
    await report('kwok', { nodes, pods, ...(await bench.run()) });
  } catch (error) {
    say(bench.log());
    throw error;
  } finally {
    await cleanUp();
  }
} else say('skipped: there is no kwok beside the control plane in KUBEBUILDER_ASSETS');
