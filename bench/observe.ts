/**
 * What `actorlet observe` costs beside Kubernetes' kubelet (root, after `npm run e2e:setup`, with the programs of a release in
 * KUBEBUILDER_ASSETS, and folders of its own where the kubelet does not let them be chosen):
 *   unshare -m sh -c 'for d in /var/lib/kubelet /var/log/pods /var/log/containers; do mkdir -p $d; mount -t tmpfs tmpfs $d; done;
 *     scripts/node bench/observe.ts --out=bench/results/observe.json'
 *   burst   so many pods created at once -> all Ready, without and with an observer, in turns
 *   start   the observer's process -> it shows all pods Ready
 *   rest    processor time and resident memory of the observer with so many pods running, and what it asks of the API server
 * Options: --pods=100 --rounds=3 --starts=3 --minutes=3 --settle-seconds=60 --out=FILE. The load of the machine stands beside each part.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCluster } from '../test/cluster/cluster.ts';
import { NODE_NAME } from '../test/e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../test/e2e/lab/cluster/referenceKubelet.ts';
import { Observer } from '../test/e2e/lab/observer.ts';
import { ClusterView, type PodHistory } from './lib/cluster.ts';
import { LONG_MS, Member, since, withSamples } from './lib/member.ts';
import { usageOf } from './lib/procs.ts';
import { numberOption, projectRoot, report, say, sleep, until } from './lib/report.ts';

const podCount = numberOption('pods', 100);
const rounds = numberOption('rounds', 3);
const starts = numberOption('starts', 3);
const minutes = numberOption('minutes', 3);
const settleSeconds = numberOption('settle-seconds', 60);
const EVERY_MS = 5_000;
const NODE_READY_MS = 120_000;
/** As the DaemonSet runs: the node's own account may not watch its lease. */
const USER = 'system:serviceaccount:actorlet-observe:actorlet-observe';
const RBAC = join(projectRoot, 'packaging/observe/rbac.yaml');
const POLICY = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata', users: [USER] }] };

const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) throw new Error(whyNot);
const folder = mkdtempSync(join(tmpdir(), 'actorlet-bench-observe-'));
const [policy, audit] = [join(folder, 'policy.json'), join(folder, 'audit.log')];
writeFileSync(policy, JSON.stringify(POLICY));
const flags = { 'kube-apiserver': [`--audit-policy-file=${policy}`, `--audit-log-path=${audit}`] };
const cluster = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs, maxPods: 250 }, plane: { flags } });
const kubelet = await createReferenceKubelet(cluster);
const kubeconfig = cluster.plane.kubeconfig('observer', { name: USER, groups: ['system:authenticated'] });
let observer: Observer | undefined;
let observers = 0;

async function startObserver(): Promise<Observer> {
  observers += 1;
  const started = new Observer(cluster.daemon.dir, { name: `observe-${observers}` });
  observer = started;
  // As it runs on a node.
  await started.start([`--kubelet-pid=${kubelet.pid}`, `--kubeconfig=${kubeconfig}`, '--nice=19']);
  return started;
}
async function endObserver(): Promise<void> {
  await observer?.end();
  observer = undefined;
}
const load = (): number => Math.round((loadavg()[0] ?? 0) * 100) / 100;

interface Shown {
  pods: { pod?: { status: { conditions?: { type: string; status: string }[] } } }[];
}
/** Pods that are Ready as the observer has them. */
async function readyFor(of: Observer): Promise<number> {
  const { pods } = (await of.admin.json('/pods', { full: '' })) as Shown;
  return pods.filter(({ pod }) => pod?.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True')).length;
}

/** Requests of the observer since `fromMs`, by verb. */
function requests(fromMs: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const line of readFileSync(audit, 'utf8').split('\n').slice(0, -1)) {
    const entry = JSON.parse(line) as {
      verb: string;
      stage: string;
      requestReceivedTimestamp: string;
      objectRef?: { resource: string };
    };
    if (Date.parse(entry.requestReceivedTimestamp) < fromMs) continue;
    if (entry.stage !== 'ResponseComplete' && entry.verb !== 'watch') continue;
    const what = `${entry.verb} ${entry.objectRef?.resource ?? ''}`;
    counts[what] = (counts[what] ?? 0) + 1;
  }
  return counts;
}

async function made(member: Member, prefix: string): Promise<{ all: PodHistory[]; readyMs: number }> {
  const began = performance.now();
  const all = await member.create(prefix, podCount);
  await member.view.until('all pods to be Ready', LONG_MS, () => all.every((p) => p.readyMs !== undefined));
  return { all, readyMs: Math.max(...all.map((p) => since(p.readyMs, began))) };
}
async function gone(member: Member, all: readonly PodHistory[]): Promise<void> {
  await member.remove(all);
  await member.view.until('all pods to be gone', LONG_MS, () => all.every((p) => p.goneMs !== undefined));
  await member.rest();
}

async function bursts(member: Member): Promise<object> {
  const [without, beside]: [number[], number[]] = [[], []];
  const loads: number[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const observed of round % 2 === 0 ? [false, true] : [true, false]) {
      if (observed) await startObserver();
      await sleep(EVERY_MS);
      loads.push(load());
      const { all, readyMs } = await made(member, `burst-${round}-${observed ? 'o' : 'w'}`);
      (observed ? beside : without).push(readyMs);
      say(`burst ${observed ? 'with' : 'without'} an observer: all Ready after ${Math.round(readyMs)} ms, load ${load()}`);
      await gone(member, all);
      if (observed) await endObserver();
    }
  }
  const [a, b] = [withSamples(without), withSamples(beside)];
  return { load: loads, without: a, beside: b, share: Math.round((b.p50 / a.p50) * 1_000) / 1_000 };
}

async function startTimes(): Promise<object> {
  const samples: number[] = [];
  const loads: number[] = [];
  for (let i = 0; i < starts; i++) {
    loads.push(load());
    const began = performance.now();
    const started = await startObserver();
    await until('the full picture', async () => ((await readyFor(started)) >= podCount ? true : undefined), {
      timeoutMs: LONG_MS,
      everyMs: 50,
    });
    samples.push(performance.now() - began);
    say(`full picture of ${podCount} pods after ${Math.round(samples.at(-1) ?? 0)} ms`);
    if (i < starts - 1) await endObserver();
  }
  return { load: loads, ...withSamples(samples) };
}

async function rest(): Promise<object> {
  const pid = observer?.pid ?? 0;
  await sleep(settleSeconds * 1_000);
  const [fromMs, began, from] = [Date.now(), performance.now(), usageOf(pid)];
  const rss: number[] = [];
  const loads = [load()];
  while (performance.now() - began < minutes * 60_000) {
    await sleep(EVERY_MS);
    rss.push(usageOf(pid).rssBytes / 2 ** 20);
  }
  loads.push(load());
  const cpuPercent = ((usageOf(pid).cpuMs - from.cpuMs) / (performance.now() - began)) * 100;
  const ledger = await observer?.ledger();
  return {
    load: loads,
    cpuPercentOfCore: Math.round(cpuPercent * 100) / 100,
    residentMiB: withSamples(rss),
    requests: requests(fromMs),
    disagreements: ledger?.disagreements.filter((d) => d.known === null).length,
  };
}

try {
  await kubelet.start({ config: { maxPods: 250 } });
  await until('the account', async () => ((await cluster.plane.hasAccount()) ? true : undefined), {
    timeoutMs: NODE_READY_MS,
    everyMs: 200,
  });
  const isReady = async () => (/ Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)) ? true : undefined);
  await cluster.kubectl('apply', '-f', RBAC);
  await until('the node is Ready', isReady, { timeoutMs: NODE_READY_MS, everyMs: 200 });
  const view = await ClusterView.open(cluster.plane);
  const agent = {
    pid: kubelet.pid,
    log: () => kubelet.log(),
    end: () => kubelet.end('SIGKILL'),
    start: () => kubelet.start(),
    healthy: () => kubelet.healthy(),
  };
  const noAudit = { flags: [], calls: () => [], statusCalls: () => [], remove: () => undefined };
  const member = new Member({ lab: cluster.lab, daemon: cluster.daemon, view, audit: noAudit, agent });
  const results: Record<string, object> = {};
  // What the first bursts make stays: they are not counted.
  for (const prefix of ['warm', 'warmer']) await gone(member, (await made(member, prefix)).all);
  results.burst = await bursts(member);
  const { all } = await made(member, 'rest');
  results.start = await startTimes();
  results.rest = await rest();
  await endObserver();
  await gone(member, all);
  view.close();
  await report('observe', results);
} finally {
  await endObserver();
  await kubelet.end('SIGKILL');
  await cluster.stop();
  await kubelet.dispose();
  rmSync(folder, { recursive: true, force: true });
}
