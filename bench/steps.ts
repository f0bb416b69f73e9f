/**
 * Steps per life of a pod: what the node does for each of many pods of the API, from seen to Ready and from deleted to gone, on the
 * hollow runtime in virtual time. It counts and does not time, so two commits compare exactly, on any machine.
 * Options: --pods=100 --volumes=1 (an emptyDir each) --out=FILE
 */
import { cluster, create, drop, inApi, isReady } from '../test/integration/clusterPods.ts';
import type { VirtualNode } from '../test/integration/virtualNode.ts';
import { numberOption, report, say } from './lib/report.ts';

const pods = numberOption('pods', 100);
const volumes = numberOption('volumes', 1);
const LONG_MS = 600_000;

type Count = Map<string, number>;
const add = (count: Count, name: string, by = 1): void => void count.set(name, (count.get(name) ?? 0) + by);
/** Counted since the last `take`. */
const counts = { transitions: new Map(), messages: new Map(), events: new Map(), snapshots: new Map(), files: new Map() } satisfies Record<
  string,
  Count
>;

/** The last part of a path is a pod's UID for most actors; those are counted together. */
const actorOf = (path: string): string => path.replace(/\/[0-9a-f]{8}-[0-9a-f-]{27}(?=\/|$)/g, '/*');

async function node(): Promise<VirtualNode> {
  const h = await cluster({
    inspect: (e) => {
      if (e.type === '@xstate.event') add(counts.events, e.event.type);
      if (e.type === '@xstate.snapshot') add(counts.snapshots, e.event.type);
    },
    ports: (ports) => ({ ...ports, fs: counted(ports.fs) }),
    config: { maxPods: pods + 10, podsPerCore: 0 },
  });
  h.tree.observe((e) => {
    if (e.kind === 'transition') add(counts.transitions, actorOf(e.path));
    if (e.kind === 'message') add(counts.messages, `${actorOf(e.to)} ${e.type}`);
  });
  return h;
}
function counted<T extends object>(fs: T): T {
  return new Proxy(fs, {
    get(target, name, receiver) {
      const own: unknown = Reflect.get(target, name, receiver);
      if (typeof own !== 'function') return own;
      return (...args: unknown[]): unknown => {
        add(counts.files, String(name));
        return Reflect.apply(own, target, args);
      };
    },
  });
}

/** Per pod, rounded to hundredths; `by`: what most of it is. */
function take(h: VirtualNode, from: { calls: number; requests: number }) {
  const perPod = (n: number): number => Math.round((n / pods) * 100) / 100;
  const summed = (count: Count) => {
    const total = perPod([...count.values()].reduce((sum, n) => sum + n, 0));
    const most = [...count].sort((a, b) => b[1] - a[1]).slice(0, 15);
    return { total, by: Object.fromEntries(most.map(([name, n]) => [name, perPod(n)])) };
  };
  const tally = (names: readonly string[]): Count => {
    const count: Count = new Map();
    for (const name of names) add(count, name);
    return count;
  };
  const taken = {
    transitions: summed(counts.transitions),
    messages: summed(counts.messages),
    xstateEvents: summed(counts.events),
    snapshots: summed(counts.snapshots),
    fileOperations: summed(counts.files),
    runtimeCalls: summed(tally(h.calls.slice(from.calls).map((c) => c.method))),
    apiRequests: summed(
      tally(
        h.kube.calls
          .slice(from.requests)
          .map(({ request: { verb, path } }) => `${verb} ${path.split('/').slice(-1)[0]?.replace(/\d+$/, 'N')}`),
      ),
    ),
  };
  for (const count of Object.values(counts)) count.clear();
  return taken;
}
const marks = (h: VirtualNode) => ({ calls: h.calls.length, requests: h.kube.calls.length });

await using h = await node();
const names = Array.from({ length: pods }, (_, i) => `web-${i}`);
const volumeNames = Array.from({ length: volumes }, (_, i) => `v${i}`);
const shape = {
  spec: { volumes: volumeNames.map((name) => ({ name, emptyDir: {} })) },
  container: { volumeMounts: volumeNames.map((name) => ({ name, mountPath: `/${name}` })) },
};
await h.advance(5_000);
take(h, marks(h));
let from = marks(h);
for (const name of names) create(h, name, shape);
await h.until('all are Ready', () => names.every((name) => isReady(h, name)), LONG_MS);
await h.advance(3_000);
const started = take(h, from);
from = marks(h);
await h.advance(60_000);
const atRest = take(h, from);
from = marks(h);
for (const name of names) drop(h, `pods/${name}`, 1);
await h.until('all are gone', () => names.every((name) => inApi(h, name) === undefined), LONG_MS);
await h.advance(3_000);
const ended = take(h, from);
const totals = (o: typeof started) => Object.fromEntries(Object.entries(o).map(([what, { total }]) => [what, total]));
say(`per pod, start ${JSON.stringify(totals(started))}`);
say(`per pod, end ${JSON.stringify(totals(ended))}`);
await report('steps', { pods, perPod: { started, atRestMinute: atRest, ended } });
