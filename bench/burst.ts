/**
 * Processor time and resident memory of bursts of pods, of this daemon and of the reference kubelet in turns on one node (root; what
 * bench/cluster.ts needs, and a kubelet in KUBEBUILDER_ASSETS). Each turn starts the agent, makes so many pods at once, deletes them at
 * once, and does both again: `first` is of a program that has just started, `second` of one that did the same before. The ratio of the
 * medians holds on other machines better than the seconds do.
 * --rest-seconds=N: of the first burst, before it is deleted, what the agent takes in so long once its pods have settled. --bursts=1: no
 * second one.
 * Options: --pods=100 --turns=3 --bursts=2 --rest-seconds=0 --agents=ours,reference --out=FILE. `ours:FILE` is our daemon with FILE as its ACTORLET_NODE.
 */
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../test/e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { createReferenceKubelet, type ReferenceKubelet, whyNoReferenceKubelet } from '../test/e2e/lab/cluster/referenceKubelet.ts';
import { type Containerd, startContainerd } from '../test/e2e/lab/containerd.ts';
import { freePort } from '../test/freePort.ts';
import { createAudit } from './lib/audit.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { ClusterView } from './lib/cluster.ts';
import { LONG_MS, Member, since, withSamples } from './lib/member.ts';
import { residentPeak } from './lib/peak.ts';
import { threadsOf, usageOf } from './lib/procs.ts';
import { numberOption, option, report, say, sleep, until } from './lib/report.ts';

const podCount = numberOption('pods', 100);
const turns = numberOption('turns', 3);
const agents = (option('agents') ?? 'ours,reference').split(',');
const bursts = numberOption('bursts', 2);
const restSeconds = Number(option('rest-seconds') ?? 0);
const SETTLED_MS = 30_000;
/** After the start: the agent's own start is no part of a burst. */
const SETTLE_MS = 8_000;
/** After a burst: its last writes count. */
const AFTER_MS = 3_000;

type Figures = Record<string, number[]>;

/** One burst up and down. */
async function burst(member: Member, { prefix, rests }: { prefix: string; rests: boolean }, into: Figures): Promise<void> {
  const note = (name: string, value: number): void => {
    into[name] = [...(into[name] ?? []), value];
  };
  const peak = residentPeak(member.pid);
  const cpu = (): number => usageOf(member.pid).cpuMs;
  const before = cpu();
  const threadsBefore = threadsOf(member.pid);
  const from = performance.now();
  const made = await member.create(prefix, podCount);
  await member.view.ready(made, LONG_MS);
  note('allReadyMs', Math.max(...made.map((p) => since(p.readyMs, from))));
  await sleep(AFTER_MS);
  const up = cpu();
  note('readyCpuMs', up - before);
  if (rests && restSeconds > 0) {
    await sleep(SETTLED_MS);
    const settled = cpu();
    await sleep(restSeconds * 1000);
    note('restPercentOfOneCore', (cpu() - settled) / restSeconds / 10);
    note('restMiB', usageOf(member.pid).rssBytes / 2 ** 20);
  }
  const beforeEnd = cpu();
  const deletedAt = performance.now();
  await member.remove(made);
  await member.view.gone(made, LONG_MS);
  note('allGoneMs', performance.now() - deletedAt);
  await member.rest();
  await sleep(AFTER_MS);
  note('goneCpuMs', cpu() - beforeEnd);
  for (const [thread, ms] of threadsOf(member.pid)) note(`thread ${thread}`, ms - (threadsBefore.get(thread) ?? 0));
  note('peakMiB', peak());
}

await buildDaemon();
const why = agents.includes('reference') ? whyNoReferenceKubelet() : undefined;
if (why !== undefined) throw new Error(why);
const audit = createAudit(NODE_NAME);
const lab: Containerd = await startContainerd();
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
  return left;
});
try {
  plane = await startControlPlane({ controllerManager: true, scheduler: true });
  daemon = await createDaemon(lab, { cgroupRoot: lab.cgroupParent, maxPods: podCount + 10, kubeAPIQPS: 50, kubeAPIBurst: 100 }, [
    '--kubeconfig',
    plane.nodeKubeconfig(NODE_NAME),
  ]);
  const server = plane;
  const own = daemon;
  const nodeIsReady = async (): Promise<true | undefined> => {
    const { spec, status } = JSON.parse(await server.kubectl('get', 'node', NODE_NAME, '-o', 'json')) as {
      spec: { taints?: object[] };
      status: { conditions: { type: string; status: string }[] };
    };
    return spec.taints === undefined && status.conditions.some((c) => c.type === 'Ready' && c.status === 'True') ? true : undefined;
  };
  if (agents.includes('reference')) reference = await createReferenceKubelet({ plane, daemon, port: await freePort() });
  const results: Record<string, { first: Figures; second: Figures }> = {};
  for (let turn = 0; turn < turns; turn++) {
    for (const name of agents) {
      say(`turn ${turn + 1} of ${turns}: ${name}`);
      const agent = name === 'reference' ? reference : own;
      if (agent === undefined) throw new Error(`--agents: no agent ${name}`);
      const node = name.split(':')[1];
      if (node === undefined) delete process.env.ACTORLET_NODE;
      else process.env.ACTORLET_NODE = node;
      await agent.start();
      view ??= await ClusterView.open(plane);
      await until('the service account', async () => ((await server.hasAccount()) ? true : undefined), { timeoutMs: 90_000, everyMs: 200 });
      await sleep(SETTLE_MS);
      await until('the node to be Ready', nodeIsReady, { timeoutMs: 90_000, everyMs: 200 });
      const member = new Member({ lab, daemon: own, view, audit, agent });
      const figures = results[name] ?? { first: {}, second: {} };
      results[name] = figures;
      await burst(member, { prefix: `a${turn}${agents.indexOf(name)}`, rests: true }, figures.first);
      if (bursts > 1) await burst(member, { prefix: `b${turn}${agents.indexOf(name)}`, rests: false }, figures.second);
      await agent.end('SIGTERM');
    }
  }
  const summaries = (o: Figures): object => Object.fromEntries(Object.entries(o).map(([name, samples]) => [name, withSamples(samples)]));
  const median = (o: Figures | undefined, name: string): number =>
    [...(o?.[name] ?? [])].sort((a, b) => a - b)[Math.floor(turns / 2)] ?? Number.NaN;
  const base = results[agents.at(-1) ?? ''];
  const ratios = (burstName: 'first' | 'second', o: Figures): object =>
    Object.fromEntries(Object.keys(o).map((name) => [name, Math.round((1000 * median(o, name)) / median(base?.[burstName], name)) / 1000]));
  await report('burst', {
    pods: podCount,
    agents: Object.fromEntries(
      Object.entries(results).map(([name, o]) => [name, { first: summaries(o.first), second: summaries(o.second) }]),
    ),
    /** Medians as parts of those of the last agent. */
    shares: Object.fromEntries(
      Object.entries(results)
        .slice(0, -1)
        .map(([name, o]) => [name, { first: ratios('first', o.first), second: ratios('second', o.second) }]),
    ),
  });
} catch (error) {
  say(daemon?.log().slice(-3000) ?? '');
  throw error;
} finally {
  await cleanUp();
}
