/**
 * Benchmarks as a member of a real cluster (root, after `npm run e2e:setup` and scripts/setup/control-plane-setup.sh): etcd,
 * kube-apiserver, kube-controller-manager, kube-scheduler and containerd, the daemon started as users start it, with its
 * API QPS at 50 and burst at 100, images present, ordinary pods with their service account's token and one busybox
 * container, bound by the scheduler. Times are taken here: what the API server accepted, and what a watch of it shows.
 *   one       create accepted -> Ready on the watch, one pod at a time; also its parts before and after the binding, and
 *             the node's own reads and writes of pods and their status until then, from the server's audit log
 *   many      so many pods at once -> all Ready; deleted at once (grace 1 s, the process obeys TERM) -> all gone; besides
 *             the same pods made, stopped and removed by bare CRI calls with no daemon there; of each burst the CPU seconds of all
 *             who took part, the floor that follows for this machine (bench/lib/cpuGroups.ts), the most resident memory of the
 *             daemon, and the calls it took
 *   few       20 deleted at once -> each gone
 *   steady    CPU and resident memory (RSS) of all own processes with so many pods running, nothing happening
 *   killed    `kill -9` of the daemon with 20 ready pods that have readiness probes: Ready flips, new process -> lease
 *             renewed; 0.7 s into the creation of 20 pods: restarted containers; 0.3 s into the deletion of 20: all gone
 *   runtime   containerd killed for 10 s with 20 such pods: flips, and its return -> a pod made meanwhile is Ready
 *   evicted   memory below evictionHard -> the one pod that took it is killed (the runtime's record of its end)
 *   reference (not by default; a kubelet in KUBEBUILDER_ASSETS) one, few, many and killed again with the reference
 *             kubelet on the same node, and our figures as shares of its: such shares hold on other machines too
 *   takeover  (with reference) 50 running pods taken over from it, and back: new containers, Ready flips
 * Options: --only=one,few,many,steady,killed,runtime,evicted --samples=40 --pods=100 --rounds=3 --minutes=5 --settle-seconds=60
 * --out=FILE
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../test/e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { createReferenceKubelet, type ReferenceKubelet, whyNoReferenceKubelet } from '../test/e2e/lab/cluster/referenceKubelet.ts';
import { startContainerd } from '../test/e2e/lab/containerd.ts';
import { freePort } from '../test/freePort.ts';
import { createAudit } from './lib/audit.ts';
import { bareBurst, bareRemoval, bareStop } from './lib/bare.ts';
import { countBurst, OWN_GROUP } from './lib/burst.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { ClusterView, type PodHistory } from './lib/cluster.ts';
import { evicted } from './lib/clusterEviction.ts';
import { killed, runtimeLost } from './lib/clusterFaults.ts';
import { takenOver } from './lib/clusterTakeover.ts';
import { CpuGroups } from './lib/cpuGroups.ts';
import { FEW, GRACE_SECONDS, LONG_MS, Member, RUN, since, withSamples } from './lib/member.ts';
import { residentPeak } from './lib/peak.ts';
import { usageOf } from './lib/procs.ts';
import { numberOption, option, report, say, sleep, until } from './lib/report.ts';

const only = new Set((option('only') ?? 'one,few,many,steady,killed,runtime,evicted').split(','));
const samplesWanted = numberOption('samples', 40);
const podCount = numberOption('pods', 100);
const rounds = numberOption('rounds', 3);
const minutes = numberOption('minutes', 5);
const settleSeconds = numberOption('settle-seconds', 60);
const STEADY_EVERY_MS = 10_000;
const EVICTIONS = 10;
/** Where containerd puts containers of a sandbox that names no parent. Only of this benchmark while nobody else uses containerd. */
const RUNTIME_CGROUP = '/k8s.io';
class Bench extends Member {
  async one(): Promise<object> {
    const made: PodHistory[] = [];
    const calls: number[] = [];
    for (let i = 0; i < samplesWanted; i++) {
      // Samples fall anywhere in the periods of the node's own timers.
      await sleep(Math.random() * 1000);
      const [p] = await this.create(`one${i}`, 1);
      if (p === undefined) throw new Error('no pod was made');
      await this.view.ready([p], LONG_MS);
      made.push(p);
      await sleep(200);
      calls.push(this.audit.statusCalls().filter((c) => c.name === p.name).length);
      await this.remove([p]);
      await this.view.gone([p], LONG_MS);
    }
    await this.rest();
    return {
      unit: 'ms',
      acceptedToReady: withSamples(made.map((p) => since(p.readyMs, p.acceptedMs))),
      acceptedToBound: withSamples(made.map((p) => since(p.boundMs, p.acceptedMs))),
      boundToReady: withSamples(made.map((p) => since(p.readyMs, p.boundMs ?? Number.NaN))),
      deletedToGone: withSamples(made.map((p) => since(p.goneMs, p.deletedMs ?? Number.NaN))),
      podGetsAndStatusPatches: withSamples(calls),
    };
  }

  /** Deleted at once. */
  async few(): Promise<object> {
    const each: number[] = [];
    const all: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const made = await this.create(`few${round}`, FEW);
      await this.view.ready(made, LONG_MS);
      await sleep(3_000);
      const from = performance.now();
      await this.remove(made);
      await this.view.gone(made, LONG_MS);
      each.push(...made.map((p) => since(p.goneMs, p.deletedMs ?? Number.NaN)));
      all.push(performance.now() - from);
      await this.rest();
    }
    return { unit: 'ms', pods: FEW, deletedToGone: withSamples(each), allGone: withSamples(all) };
  }

  /** `bare`: what was found about the same pods without a daemon. */
  async many(bare: object, groups: CpuGroups | null): Promise<Record<string, object>> {
    const ready: number[] = [];
    const bound: number[] = [];
    const gone: number[] = [];
    const calls: number[] = [];
    const cpuMs: number[] = [];
    const goneCpuMs: number[] = [];
    const peakMiB: number[] = [];
    const costs: { ready: object[]; gone: object[] } = { ready: [], gone: [] };
    const count = (): Promise<() => Promise<object>> | undefined =>
      groups === null ? undefined : countBurst({ groups, daemon: this.daemon, audit: this.audit });
    const steady: Record<string, object> = {};
    const last = only.has('many') ? rounds : 1;
    for (let round = 0; round < last; round++) {
      say(`many ${round + 1} of ${last}`);
      groups?.place(OWN_GROUP, this.pid);
      const before = usageOf(this.pid).cpuMs;
      const counted = await count();
      const peak = residentPeak(this.pid);
      const from = performance.now();
      const made = await this.create(`many${round}`, podCount);
      await this.view.ready(made, LONG_MS);
      ready.push(Math.max(...made.map((p) => since(p.readyMs, from))));
      bound.push(Math.max(...made.map((p) => since(p.boundMs, from))));
      cpuMs.push(usageOf(this.pid).cpuMs - before);
      peakMiB.push(peak());
      if (counted !== undefined) costs.ready.push(await counted());
      await sleep(3_000);
      const heard = this.audit.statusCalls();
      calls.push(...made.map((p) => heard.filter((c) => c.name === p.name).length));
      if (round === last - 1 && only.has('steady')) steady.steady = await this.steady();
      const countedGone = await count();
      const beforeGone = usageOf(this.pid).cpuMs;
      const deletedAt = performance.now();
      await this.remove(made);
      await this.view.gone(made, LONG_MS);
      gone.push(performance.now() - deletedAt);
      goneCpuMs.push(usageOf(this.pid).cpuMs - beforeGone);
      if (countedGone !== undefined) costs.gone.push(await countedGone());
      await this.rest();
    }
    const many = {
      unit: 'ms',
      pods: podCount,
      allReady: withSamples(ready),
      allBound: withSamples(bound),
      ...bare,
      allGone: withSamples(gone),
      ownCpu: withSamples(cpuMs),
      goneOwnCpu: withSamples(goneCpuMs),
      ownResidentPeakMiB: withSamples(peakMiB),
      podGetsAndStatusPatches: withSamples(calls),
      ...(groups === null ? {} : { costs }),
    };
    return only.has('many') ? { many, ...steady } : steady;
  }

  async steady(): Promise<object> {
    say(`steady: settling for ${settleSeconds} s`);
    await sleep(settleSeconds * 1000);
    const cpuPercent: number[] = [];
    const residentMiB: number[] = [];
    let before = usageOf(this.pid);
    let at = performance.now();
    const intervals = Math.max(1, Math.round((minutes * 60_000) / STEADY_EVERY_MS));
    for (let i = 0; i < intervals; i++) {
      await sleep(STEADY_EVERY_MS);
      const now = usageOf(this.pid);
      const nowAt = performance.now();
      cpuPercent.push(((now.cpuMs - before.cpuMs) / (nowAt - at)) * 100);
      residentMiB.push(now.rssBytes / 2 ** 20);
      before = now;
      at = nowAt;
    }
    return {
      pods: podCount,
      ownProcesses: before.pids.length,
      cpuPercentOfOneCore: withSamples(cpuPercent),
      residentMiB: withSamples(residentMiB),
    };
  }
}

/** Our medians as parts of those of the reference, part by part. */
function shares(ours: Record<string, unknown>, its: Record<string, unknown>): Record<string, number> {
  const p50 = (results: unknown, path: string): number => {
    const found = path.split('.').reduce((at: unknown, key) => (at as Record<string, unknown> | undefined)?.[key], results);
    return (found as { p50: number } | undefined)?.p50 ?? Number.NaN;
  };
  const figures = [
    'one.acceptedToReady',
    'few.deletedToGone',
    'many.allReady',
    'many.allGone',
    'many.ownCpu',
    'killed.ready.startToLeaseRenewed',
  ];
  const all = figures.map((path) => [path, p50(ours, path) / p50(its, path)] as const);
  return Object.fromEntries(
    all.filter(([, share]) => !Number.isNaN(share)).map(([name, share]) => [name, Math.round(share * 1000) / 1000]),
  );
}

await buildDaemon();
if (only.has('takeover') && !only.has('reference')) throw new Error('--only=takeover wants reference beside it');
if (only.has('reference')) {
  const why = whyNoReferenceKubelet();
  if (why !== undefined) throw new Error(why);
}
const audit = createAudit(NODE_NAME);
const lab = await startContainerd();
const groups = new CpuGroups([lab.cgroupParent, RUNTIME_CGROUP]);
let plane: ControlPlane | undefined;
let daemon: Daemon | undefined;
let reference: ReferenceKubelet | undefined;
let view: ClusterView | undefined;
const cleanUp = cleanUpOnce(async () => {
  view?.close();
  await reference?.end('SIGTERM');
  await daemon?.dispose();
  await plane?.stop();
  const left = await lab.stop();
  await reference?.dispose();
  audit.remove();
  return [...left, ...groups.remove()];
});
try {
  const bareMs: number[] = [];
  const bareStoppedMs: number[] = [];
  const bareGoneMs: number[] = [];
  const bareCosts: { started: object[]; stopped: object[] } = { started: [], stopped: [] };
  const logs = mkdtempSync(join(tmpdir(), 'actorlet-bench-bare-'));
  groups.place('runtime', lab.pid);
  for (let round = 0; only.has('many') && round < rounds; round++) {
    say(`bare calls ${round + 1} of ${rounds}`);
    const counted = await countBurst({ groups, daemon: null, audit: null });
    const pods = await bareBurst(lab, { count: podCount, round, logs, script: RUN });
    bareMs.push(Math.max(...pods.map((p) => p.startedMs)));
    bareCosts.started.push(await counted());
    await sleep(3_000);
    const countedStop = await countBurst({ groups, daemon: null, audit: null });
    const stoppedMs = Math.max(...(await bareStop(lab, pods, GRACE_SECONDS)));
    bareCosts.stopped.push(await countedStop());
    bareStoppedMs.push(stoppedMs);
    bareGoneMs.push(stoppedMs + Math.max(...(await bareRemoval(lab, pods))));
  }
  const bareOne: number[] = [];
  for (let i = 0; only.has('one') && i < 10; i++) {
    const pods = await bareBurst(lab, { count: 1, round: 1000 + i, logs, script: RUN });
    bareOne.push(...pods.map((p) => p.startedMs));
    await bareStop(lab, pods, GRACE_SECONDS);
    await bareRemoval(lab, pods);
  }
  rmSync(logs, { recursive: true });
  plane = await startControlPlane({ controllerManager: true, scheduler: true, flags: { 'kube-apiserver': audit.flags } });
  daemon = await createDaemon(
    lab,
    {
      cgroupRoot: lab.cgroupParent,
      cgroupsPerQOS: false,
      enforceNodeAllocatable: [],
      maxPods: podCount + 10,
      kubeAPIQPS: 50,
      kubeAPIBurst: 100,
    },
    ['--kubeconfig', plane.nodeKubeconfig(NODE_NAME)],
  );
  for (const name of ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const) {
    groups.place(name, plane.pid(name));
  }
  await daemon.start();
  view = await ClusterView.open(plane);
  const { kubectl } = { kubectl: plane.kubectl.bind(plane) };
  /** Version of its agent. */
  const nodeIsReady = (o: { notOf?: string } = {}): Promise<string> =>
    until(
      'the node to be Ready and unmarked',
      async () => {
        const { spec, status } = JSON.parse(await kubectl('get', 'node', NODE_NAME, '-o', 'json')) as {
          spec: { taints?: object[] };
          status: { conditions: { type: string; status: string }[]; nodeInfo: { kubeletVersion: string } };
        };
        const { kubeletVersion } = status.nodeInfo;
        const ready = status.conditions.some((c) => c.type === 'Ready' && c.status === 'True');
        return spec.taints === undefined && ready && kubeletVersion !== o.notOf ? kubeletVersion : undefined;
      },
      { timeoutMs: 90_000, everyMs: 200 },
    );
  const ours = await nodeIsReady();
  const server = plane;
  await until('the service account', async () => ((await server.hasAccount()) ? true : undefined), { timeoutMs: 90_000, everyMs: 200 });
  const bench = new Bench({ lab, daemon, view, audit });
  const results: Record<string, unknown> = {};
  if (only.has('one')) {
    say('one');
    results.one = { ...(await bench.one()), bareStarted: withSamples(bareOne) };
  }
  if (only.has('few')) {
    say('few');
    results.few = await bench.few();
  }
  const bare =
    bareMs.length === 0
      ? {}
      : {
          bareAllStarted: withSamples(bareMs),
          bareAllStopped: withSamples(bareStoppedMs),
          bareAllGone: withSamples(bareGoneMs),
          bareCosts,
        };
  if (only.has('many') || only.has('steady')) Object.assign(results, await bench.many(bare, groups));
  if (only.has('killed')) {
    say('killed');
    results.killed = await killed(bench, rounds);
  }
  if (only.has('runtime')) {
    say('runtime');
    results.runtime = await runtimeLost(bench, rounds);
  }
  if (only.has('evicted')) {
    say('evicted');
    results.evicted = await evicted(bench, EVICTIONS);
  }
  if (only.has('reference')) {
    say('the reference kubelet');
    await daemon.end('SIGTERM');
    reference = await createReferenceKubelet({ plane, daemon, port: await freePort() });
    await reference.start();
    await nodeIsReady({ notOf: ours });
    const there = new Bench({ lab, daemon, view, audit, agent: reference });
    const its: Record<string, unknown> = {};
    if (only.has('one')) its.one = await there.one();
    if (only.has('few')) its.few = await there.few();
    if (only.has('many')) Object.assign(its, await there.many({}, null));
    if (only.has('killed')) its.killed = await killed(there, rounds);
    results.reference = its;
    results.shareOfReference = shares(results, its);
    if (only.has('takeover')) results.takeover = await takenOver(bench, reference);
  }
  await report('cluster', results);
} catch (error) {
  say(daemon?.log().slice(-3000) ?? '');
  throw error;
} finally {
  await cleanUp();
}
