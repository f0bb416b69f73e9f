/**
 * System calls of a pod's life, by kind of pod, of this daemon and of the reference kubelet on the same node, counted by `strace -c -f`
 * (root; what bench/cluster.ts needs, strace, and a kubelet in KUBEBUILDER_ASSETS). Calls of all threads and of started processes
 * count. Of each kind so many pods at once: `up` until all are Ready and some seconds more, `down` from their deletion until nothing of
 * them is left in the runtime. Figures are calls per pod; `rest` is calls per second with so many pods, nothing happening. strace slows
 * what it counts: times are not taken here.
 * Options: --kinds=plain,volumes,probed,init --pods=20 --rest-seconds=30 --agents=ours,reference --out=FILE
 */
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../test/e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { createReferenceKubelet, type ReferenceKubelet, whyNoReferenceKubelet } from '../test/e2e/lab/cluster/referenceKubelet.ts';
import { startContainerd } from '../test/e2e/lab/containerd.ts';
import { BUSYBOX_IMAGES } from '../test/e2e/lab/images.ts';
import { freePort } from '../test/freePort.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { ClusterView, NAMESPACE } from './lib/cluster.ts';
import { GRACE_SECONDS, LONG_MS, RUN } from './lib/member.ts';
import { tenths } from './lib/onPlane.ts';
import { numberOption, option, report, say, sleep, until } from './lib/report.ts';
import { byGroup, type CallCounts, countSystemCalls } from './lib/systemCalls.ts';

const podCount = numberOption('pods', 20);
const restSeconds = numberOption('rest-seconds', 30);
const agents = new Set((option('agents') ?? 'ours,reference').split(','));
/** After the last pod is Ready: what follows a start, such as events and the last write of a status, is counted too. */
const AFTER_MS = 5_000;

type Spec = Record<string, unknown>;
const main = (more: Spec = {}): Spec => ({
  ...{ name: 'main', image: BUSYBOX_IMAGES[1], imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', RUN] },
  ...more,
});
const mount = (name: string): Spec => ({ name, mountPath: `/volumes/${name}` });
const VOLUMES: readonly Spec[] = [
  { name: 'scratch', emptyDir: {} },
  { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
  { name: 'settings', configMap: { name: 'settings' } },
  { name: 'password', secret: { secretName: 'password' } },
  { name: 'labels', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
];
const KINDS: Readonly<Record<string, Spec>> = {
  plain: { containers: [main()] },
  volumes: { containers: [main({ volumeMounts: VOLUMES.map(({ name }) => mount(String(name))) })], volumes: VOLUMES },
  probed: { containers: [main({ readinessProbe: { exec: { command: ['true'] }, periodSeconds: 5 } })] },
  init: { initContainers: [main({ name: 'first', command: ['true'] })], containers: [main()] },
};
const kinds = (option('kinds') ?? Object.keys(KINDS).join(',')).split(',');

const shared = [
  { path: 'configmaps', body: { metadata: { name: 'settings' }, data: { one: '1', two: '2' } } },
  { path: 'secrets', body: { metadata: { name: 'password' }, stringData: { password: 'of a benchmark' } } },
];

/** Per pod or per second. */
function figures(counts: CallCounts, by: number): object {
  const all = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const divided = (o: CallCounts): Record<string, number> =>
    Object.fromEntries(
      Object.entries(o)
        .map(([name, n]) => [name, tenths(n / by)] as const)
        .filter(([, n]) => n > 0)
        .sort(([, a], [, b]) => b - a),
    );
  return { all: tenths(all / by), groups: divided(byGroup(counts)), calls: divided(counts) };
}

async function measured(view: ClusterView, lab: Awaited<ReturnType<typeof startContainerd>>, pid: number): Promise<object> {
  const results: Record<string, object> = {};
  for (const kind of kinds) {
    const spec = KINDS[kind];
    if (spec === undefined) throw new Error(`--kinds: no kind ${kind}, only ${Object.keys(KINDS).join(', ')}`);
    say(`  ${kind}`);
    const up = await countSystemCalls(pid);
    const pods = Array.from({ length: podCount }, (_, i) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `${kind}-${i}-${pid}`, labels: { app: 'bench' } } },
      spec: { nodeName: NODE_NAME, terminationGracePeriodSeconds: GRACE_SECONDS, ...spec },
    }));
    const made = await Promise.all(pods.map((pod) => view.create(pod)));
    await view.ready(made, LONG_MS);
    await sleep(AFTER_MS);
    const upCounts = await up();
    const rest = await countSystemCalls(pid);
    await sleep(restSeconds * 1000);
    const restCounts = await rest();
    const down = await countSystemCalls(pid);
    await Promise.all(made.map((p) => view.remove(p, GRACE_SECONDS)));
    await view.gone(made, LONG_MS);
    const once = () => ({ timeoutMs: 10_000, signal: new AbortController().signal });
    await until(
      'the runtime to hold nothing any more',
      async () => ((await lab.cri.call('ListPodSandbox', {}, once())).items.length === 0 ? true : undefined),
      { timeoutMs: LONG_MS, everyMs: 500 },
    );
    const downCounts = await down();
    results[kind] = {
      up: figures(upCounts, podCount),
      down: figures(downCounts, podCount),
      rest: figures(restCounts, restSeconds),
    };
  }
  return results;
}

/** Calls of a pod's life, ours as a part of the reference's. */
function shares(ours: object, its: object): Record<string, number> {
  type Results = Record<string, Record<string, { all: number }>>;
  const all = (o: object, kind: string, phase: string): number => (o as Results)[kind]?.[phase]?.all ?? Number.NaN;
  return Object.fromEntries(
    kinds.map((kind) => {
      const life = (o: object): number => all(o, kind, 'up') + all(o, kind, 'down');
      return [kind, Math.round((1000 * life(ours)) / life(its)) / 1000];
    }),
  );
}

await buildDaemon();
const why = agents.has('reference') ? whyNoReferenceKubelet() : undefined;
if (why !== undefined) throw new Error(why);
const lab = await startContainerd();
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
  return left;
});
try {
  plane = await startControlPlane({ controllerManager: true });
  daemon = await createDaemon(lab, { cgroupRoot: lab.cgroupParent, maxPods: podCount + 10, kubeAPIQPS: 50, kubeAPIBurst: 100 }, [
    '--kubeconfig',
    plane.nodeKubeconfig(NODE_NAME),
  ]);
  await daemon.start();
  const server = plane;
  await until('the service account', async () => ((await server.hasAccount()) ? true : undefined), { timeoutMs: 90_000, everyMs: 200 });
  view = await ClusterView.open(plane);
  for (const { path, body } of shared) await view.request('POST', `/api/v1/namespaces/${NAMESPACE}/${path}`, body);
  const results: Record<string, object> = {};
  if (agents.has('ours')) {
    say('ours');
    const { pid } = daemon;
    if (pid === undefined) throw new Error('the daemon ended');
    results.ours = await measured(view, lab, pid);
  }
  if (agents.has('reference')) {
    say('the reference kubelet');
    await daemon.end('SIGTERM');
    reference = await createReferenceKubelet({ plane, daemon, port: await freePort() });
    await reference.start();
    if (reference.pid === undefined) throw new Error('the reference kubelet ended');
    results.reference = await measured(view, lab, reference.pid);
  }
  if (results.ours !== undefined && results.reference !== undefined) results.shareOfReference = shares(results.ours, results.reference);
  await report('calls', results);
} catch (error) {
  say(daemon?.log().slice(-3000) ?? '');
  throw error;
} finally {
  await cleanUp();
}
