/**
 * Fleets of several builds or flags beside each other at the same time on one API server of Kubernetes (etcd and API server only: the
 * pods are bound when they are made). What else a machine does weighs on all alike, so the shares hold where times do not. Each fleet
 * gets its pods at once, loses them at once, and does both again in each turn. Processor time is of a pod, in ms, by threads.
 * Options: --nodes=20 --pods=400 --turns=2 --agents=NAME=NODE,NAME=NODE --profile=FOLDER --out=FILE. NODE: a program that stands in for
 * Node (ACTORLET_NODE); an empty one is Node itself. The shares are of the first. A profile is of the first one's last turn.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { threadsOf } from './lib/procs.ts';
import { numberOption, option, projectRoot, report, say, sleep, until } from './lib/report.ts';

const nodes = numberOption('nodes', 20);
const pods = numberOption('pods', 400);
const turns = numberOption('turns', 2);
const agents = (option('agents') ?? 'a=,b=').split(',').map((entry) => {
  const [name = '', node = ''] = entry.split('=');
  return { name, node };
});
const LONG = { timeoutMs: 280_000, everyMs: 300 };
const AT_ONCE = 16;
const SETTLE_MS = 5_000;
const AFTER_MS = 4_000;
const SAID_CHARS_MAX = 10_000;

class Running {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly figures = new Map<string, number[]>();
  #said = '';

  constructor({ name, node }: (typeof agents)[number], kubeconfig: string) {
    this.name = name;
    const options = [`--nodes=${nodes}`, `--prefix=${name}`, `--name=${name}`, '--port=0', `--socket=${join(scratch, `${name}.sock`)}`];
    this.#child = spawn(join(projectRoot, 'bin', 'actorlet'), ['fleet', `--kubeconfig=${kubeconfig}`, ...options], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...(node === '' ? {} : { ACTORLET_NODE: node }) },
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-SAID_CHARS_MAX);
    });
  }

  reach(what: 'nodes' | 'pods', wanted: RegExp): Promise<unknown> {
    const printed = new RegExp(`(?<=${what} )\\d+/\\d+(?= Ready)`, 'g');
    const reached = async (): Promise<true | undefined> => {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw new Error(`${this.name} ended: ${this.#said}`);
      return wanted.test(this.#said.match(printed)?.at(-1) ?? '') || undefined;
    };
    return until(`${this.name}: ${what} ${wanted.source}`, reached, LONG);
  }

  threads(): Map<string, number> {
    return threadsOf(this.#child.pid ?? 0);
  }

  note(phase: string, before: ReadonlyMap<string, number>): void {
    let all = 0;
    const add = (what: string, ms: number): void => {
      this.figures.set(`${phase} ${what}`, [...(this.figures.get(`${phase} ${what}`) ?? []), ms / pods]);
    };
    for (const [thread, ms] of this.threads()) {
      const own = ms - (before.get(thread) ?? 0);
      all += own;
      if (thread === 'MainThread' || thread === 'V8Worker') add(thread, own);
    }
    add('all', all);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

const scratch = mkdtempSync(join(tmpdir(), 'actorlet-fleet-paired-'));
const running: Running[] = [];
let plane: ControlPlane | undefined;
const cleanUp = cleanUpOnce(async () => {
  for (const fleet of running) await fleet.end();
  await plane?.stop();
  rmSync(scratch, { recursive: true, force: true });
  return [];
});

const pod = (name: string, node: string) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app: 'bench' } } },
  spec: {
    ...{ nodeName: node, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false },
    containers: [{ name: 'main', image: 'fleet/web:1', resources: { requests: { cpu: '1m', memory: '1Mi' } } }],
  },
});

async function each(act: (index: number, agent: string) => Promise<unknown>): Promise<void> {
  let next = 0;
  const all = Array.from({ length: pods }, (_, i) => agents.map(({ name }) => [i, name] as const)).flat();
  const work = async (): Promise<void> => {
    for (let at = all[next++]; at !== undefined; at = all[next++]) await act(...at);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function measured(phase: string, act: () => Promise<unknown>): Promise<void> {
  const before = running.map((fleet) => fleet.threads());
  await act();
  await sleep(AFTER_MS);
  for (const [i, fleet] of running.entries()) fleet.note(phase, before[i] ?? new Map());
}

try {
  plane = await startControlPlane({});
  const server = plane;
  const ask = async (method: string, path: string, body?: object): Promise<void> => {
    const { status } = await server.request(method, path, body === undefined ? {} : { body });
    if (status >= 300) throw new Error(`${method} ${path} was answered with ${status}`);
  };
  await ask('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } });
  for (const agent of agents) running.push(new Running(agent, server.adminKubeconfig));
  await measured('nodes', () => Promise.all(running.map((fleet) => fleet.reach('nodes', new RegExp(`^${nodes}/`)))));
  const names = new Map<string, readonly string[]>();
  const { body } = await server.request('GET', '/api/v1/nodes');
  for (const { name } of agents) {
    const items = (body as { items: { metadata: { name: string } }[] }).items.map((i) => i.metadata.name);
    names.set(
      name,
      items.filter((n) => n.startsWith(`${name}-`)),
    );
  }
  await sleep(SETTLE_MS);
  for (let turn = 0; turn < turns; turn++) {
    say(`turn ${turn + 1} of ${turns}`);
    const called = (i: number, agent: string): string => `${agent}-t${turn}-${i}`;
    await measured(turn === 0 ? 'first start' : 'start', async () => {
      await each((i, agent) => {
        const own = names.get(agent) ?? [];
        return ask('POST', '/api/v1/namespaces/default/pods', pod(called(i, agent), own[i % own.length] ?? ''));
      });
      await Promise.all(running.map((fleet) => fleet.reach('pods', new RegExp(`^${pods}/`))));
    });
    await measured(turn === 0 ? 'first end' : 'end', async () => {
      await each((i, agent) => ask('DELETE', `/api/v1/namespaces/default/pods/${called(i, agent)}`));
      await Promise.all(running.map((fleet) => fleet.reach('pods', /^0\//)));
    });
  }
  const [base] = running;
  const mean = (of: readonly number[] = []): number => of.reduce((sum, n) => sum + n, 0) / of.length;
  await report('fleetPaired', {
    ...{ nodes, pods, turns },
    agents: Object.fromEntries(
      running.map(({ name, figures }) => [
        name,
        Object.fromEntries(
          [...figures].map(([what, samples]) => [
            what,
            {
              ms: Math.round(100 * mean(samples)) / 100,
              share: Math.round((1000 * mean(samples)) / mean(base?.figures.get(what))) / 1000,
              samples: samples.map((n) => Math.round(100 * n) / 100),
            },
          ]),
        ),
      ]),
    ),
  });
} finally {
  await cleanUp();
}
