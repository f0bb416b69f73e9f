/**
 * `actorlet fleet --api local`, as somebody starts it who tests a controller (needs the programs of KUBEBUILDER_ASSETS):
 *   start       from the start of the command until the API server is ready, and until one node is Ready and pods can be created
 *   deployment  from the start of the command until a Deployment is Available on so many nodes, with all its replicas
 * Of each the processor time of the fleet and of all programs of the control plane, and how busy the machine was before: with other
 * work beside it the seconds say little, and the processor time, divided by the cores, says what they are without.
 * With --kwokctl=DIR, where kwok and kwokctl lie, the same by kwokctl: a cluster of the same programs, so many nodes, the Deployment.
 * Options: --rounds=3 --nodes=100 --replicas=200 --kwokctl=DIR --out=FILE
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { stat, usageOf } from './lib/procs.ts';
import { numberOption, option, projectRoot, report, say, sleep, summary } from './lib/report.ts';

const rounds = numberOption('rounds', 3);
const nodes = numberOption('nodes', 100);
const replicas = numberOption('replicas', 200);
const LOOK_MS = 200;
const READY_FD = 3;
const CPU_SHOWN_MS = 50;
const dir = mkdtempSync(join(tmpdir(), 'actorlet-bench-plane-'));

interface Run {
  /** Since the start of the command, of the first output that fits. */
  atMs(what: RegExp): number;
  readyMs: number;
  endedMs: number;
  /** By the names of processes. */
  cpuMs: ReadonlyMap<string, number>;
}

/** @param signal Ends it when it is ready; else it ends by itself. */
async function run(args: readonly string[], o: { signal: boolean }): Promise<Run> {
  const fromMs = performance.now();
  const child = spawn(
    join(projectRoot, 'bin/actorlet'),
    ['fleet', ...args, '--api=local', '--socket=', '--port=0', `--ready-fd=${READY_FD}`],
    {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      cwd: dir,
    },
  );
  const said: { atMs: number; text: string }[] = [];
  const cpuMs = new Map<string, number>();
  let [readyMs, ended] = [Number.NaN, false];
  const stderr = child.stdio[2] as Readable;
  stderr.setEncoding('utf8').on('data', (text: string) => void said.push({ atMs: performance.now() - fromMs, text }));
  (child.stdio[READY_FD] as Readable).once('data', () => {
    readyMs = performance.now() - fromMs;
    if (o.signal) child.kill('SIGINT');
  });
  const closed = once(child, 'close').then(([code]) => {
    ended = true;
    if (code !== 0) throw new Error(`the fleet ended with ${code}:\n${said.map(({ text }) => text).join('')}`);
  });
  while (!ended) {
    // The last look before a process has ended is what it took.
    for (const pid of usageOf(child.pid ?? 0).pids) {
      const [name, ownMs] = [pid === child.pid ? 'fleet' : nameOf(pid), stat(pid)?.ownMs ?? 0];
      cpuMs.set(name, Math.max(cpuMs.get(name) ?? 0, ownMs));
    }
    await Promise.race([closed, sleep(LOOK_MS)]);
  }
  await closed;
  const atMs = (what: RegExp): number => said.find(({ text }) => what.test(text))?.atMs ?? Number.NaN;
  return { atMs, readyMs, endedMs: performance.now() - fromMs, cpuMs };
}

/** As the system has it: at most 15 characters. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return 'ended';
  }
}

function cpuOf(runs: readonly Run[]): Record<string, number> {
  const names = [...new Set(runs.flatMap(({ cpuMs }) => [...cpuMs.keys()]))];
  const mean = (name: string): number => Math.round(runs.reduce((sum, { cpuMs }) => sum + (cpuMs.get(name) ?? 0), 0) / runs.length);
  const by = names.map((name) => [name, mean(name)] as const).filter(([, ms]) => ms >= CPU_SHOWN_MS);
  return { all: by.reduce((sum, [, ms]) => sum + ms, 0), ...Object.fromEntries(by) };
}

/** By kwokctl: milliseconds from the start of its command until the cluster is ready, until the nodes are made, until all replicas are available. */
async function byKwokctl(programs: string): Promise<Record<'ready' | 'nodesMade' | 'available', number>> {
  const assets = process.env.KUBEBUILDER_ASSETS ?? '';
  const [home, kubeconfig] = [join(dir, 'kwok'), join(dir, 'kwok.kubeconfig')];
  const env = { PATH: process.env.PATH ?? '', HOME: home, KWOK_WORKDIR: join(home, '.kwok') };
  const act = async (file: string, ...args: string[]): Promise<string> => (await promisify(execFile)(file, args, { env })).stdout;
  const kwokctl = (...args: string[]): Promise<string> => act(join(programs, 'kwokctl'), ...args, '--name=bench');
  const kubectl = (...args: string[]): Promise<string> => act(join(assets, 'kubectl'), `--kubeconfig=${kubeconfig}`, ...args);
  const own = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map(
    (name) => `--${name}-binary=${join(assets, name)}`,
  );
  const fromMs = performance.now();
  const sinceMs = (): number => performance.now() - fromMs;
  try {
    const runtime = ['--runtime=binary', `--kwok-controller-binary=${join(programs, 'kwok')}`, `--kubeconfig=${kubeconfig}`, '--wait=60s'];
    await kwokctl('create', 'cluster', ...runtime, ...own);
    const ready = sinceMs();
    await kwokctl('scale', 'node', `--replicas=${nodes}`);
    const nodesMade = sinceMs();
    await kubectl('apply', '-f', join(dir, 'web.json'));
    await kubectl('wait', `--for=jsonpath={.status.availableReplicas}=${replicas}`, 'deployment/web', '--timeout=10m');
    return { ready, nodesMade, available: sinceMs() };
  } finally {
    await kwokctl('delete', 'cluster');
  }
}

const rounded = (values: readonly number[]): ReturnType<typeof summary> => summary(values.map((v) => Math.round(v)));
const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const labels = { app: 'web' };
const manifest = {
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
  spec: {
    replicas,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'web' }] } },
  },
};
const file = {
  ...{ apiVersion: 'actorlet.dev/v1alpha1', kind: 'Fleet', metadata: { name: 'bench' } },
  spec: {
    groups: [{ name: 'node', count: nodes }],
    steps: [{ at: '0s', do: 'apply', manifests: ['web.json'] }],
    expect: [
      { objects: deployment, condition: 'Available', atLeast: 1, within: '10m' },
      { objects: deployment, field: 'status.availableReplicas', atLeast: replicas, within: '10m' },
    ],
  },
};
try {
  writeFileSync(join(dir, 'web.json'), JSON.stringify(manifest));
  writeFileSync(join(dir, 'fleet.yaml'), JSON.stringify(file));
  const load = loadavg()[0];
  const starts: Run[] = [];
  const deployments: Run[] = [];
  const kwok: Awaited<ReturnType<typeof byKwokctl>>[] = [];
  const kwokctl = option('kwokctl');
  for (let round = 1; round <= rounds; round++) {
    say(`round ${round} of ${rounds}`);
    starts.push(await run(['--nodes=1'], { signal: true }));
    deployments.push(await run(['fleet.yaml'], { signal: false }));
    if (kwokctl !== undefined) kwok.push(await byKwokctl(kwokctl));
  }
  await report('plane', {
    unit: 'ms',
    loadBefore: load,
    start: {
      apiReady: rounded(starts.map((s) => s.atMs(/logs in/))),
      firstNodeReady: rounded(starts.map((s) => s.readyMs)),
      cpu: cpuOf(starts),
    },
    deployment: {
      ...{ nodes, replicas },
      available: rounded(deployments.map((d) => d.atMs(/^EXPECTED/m))),
      ended: rounded(deployments.map((d) => d.endedMs)),
      cpu: cpuOf(deployments),
    },
    ...(kwok.length === 0
      ? {}
      : {
          kwokctl: {
            ready: rounded(kwok.map((k) => k.ready)),
            nodesMade: rounded(kwok.map((k) => k.nodesMade)),
            available: rounded(kwok.map((k) => k.available)),
          },
        }),
  });
} finally {
  rmSync(dir, { recursive: true, force: true });
}
