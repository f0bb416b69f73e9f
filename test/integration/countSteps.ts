/**
 * Counts what the node does for each of many pods of the API: from seen to Ready, and from deleted until nothing is left of it in the
 * API, in the runtime and on the disk. On the hollow runtime in virtual time: two commits compare exactly, on any machine.
 */
import { apiView } from '../../src/machines/api/messages.ts';
import { eventsView } from '../../src/machines/foundation/messages.ts';
import { waitingPodsView } from '../../src/machines/pods/admission/messages.ts';
import { podsView } from '../../src/machines/pods/manager/messages.ts';
import { sourceErrorsView } from '../../src/machines/pods/podConfig/messages.ts';
import { statusesView } from '../../src/machines/pods/status/messages.ts';
import { removingDirs } from '../../src/machines/reclaim/messages.ts';
import { criView, runtimeBusy } from '../../src/machines/runtime/cri/messages.ts';
import { imagePulls } from '../../src/machines/runtime/imagePuller/messages.ts';
import { runtimePodsView } from '../../src/machines/runtime/pleg/messages.ts';
import { probesView } from '../../src/machines/services/probes/messages.ts';
import { volumesInUseView, volumesView } from '../../src/machines/services/volumes/messages.ts';
import type { Clock } from '../../src/ports/ports.ts';
import { cluster, create, drop, inApi, isReady } from './cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from './virtualNode.ts';

const LONG_MS = 600_000;
/** Those that change with pods. */
const VIEWS = [
  ...[podsView, waitingPodsView, sourceErrorsView, statusesView, eventsView, removingDirs, criView, runtimeBusy, imagePulls],
  ...[runtimePodsView, probesView, volumesView, volumesInUseView, apiView.pods, apiView.podsHeard],
];

type Count = Map<string, number>;
const add = (count: Count, name: string, by = 1): void => void count.set(name, (count.get(name) ?? 0) + by);

/** Per pod. `by`: what most of it is. */
export interface Steps {
  total: number;
  by: Record<string, number>;
}
const KINDS = [
  'timers',
  'transitions',
  'messages',
  'xstateEvents',
  'snapshots',
  'views',
  'fileOperations',
  'runtimeCalls',
  'apiRequests',
] as const;
export type Kind = (typeof KINDS)[number];
export type Phase = Record<Kind, Steps>;
export interface Counted {
  started: Phase;
  atRestMinute: Phase;
  ended: Phase;
}

/** The last part of a path is a pod's UID for most actors; those are counted together. */
const actorOf = (path: string): string => path.replace(/\/[0-9a-f]{8}-[0-9a-f-]{27}(?=\/|$)/g, '/*');

class Counter {
  readonly #pods: number;
  readonly #counts: Record<Kind, Count>;
  readonly #h: VirtualNode;
  #from = { calls: 0, requests: 0, views: new Map<string, number>() };

  private constructor(pods: number, counts: Record<Kind, Count>, h: VirtualNode) {
    this.#pods = pods;
    this.#counts = counts;
    this.#h = h;
    h.tree.observe((e) => {
      if (e.kind === 'transition') add(counts.transitions, `${actorOf(e.path)} ${e.to}`);
      if (e.kind === 'message') add(counts.messages, `${actorOf(e.from ?? '')} -> ${actorOf(e.to)} ${e.type}`);
    });
  }

  static async start(pods: number): Promise<{ h: VirtualNode; counter: Counter }> {
    const counts = Object.fromEntries(KINDS.map((kind) => [kind, new Map()])) as Record<Kind, Count>;
    const timers = new Timers(counts.timers);
    const h = await cluster({
      inspect: (e) => {
        if (e.type === '@xstate.event') add(counts.xstateEvents, e.event.type);
        if (e.type === '@xstate.snapshot') add(counts.snapshots, e.event.type);
      },
      ports: (ports) => ({ ...ports, fs: countedCalls(ports.fs, counts.fileOperations), clock: timers.counted(onlyForward(ports.clock)) }),
      config: { maxPods: pods + 10, podsPerCore: 0 },
    });
    timers.follow(h.tree.heartbeat);
    return { h, counter: new Counter(pods, counts, h) };
  }

  /** What was counted since the last call. */
  take(): Phase {
    const { calls, kube, tree } = this.#h;
    for (const { method } of calls.slice(this.#from.calls)) add(this.#counts.runtimeCalls, method);
    for (const { request } of kube.calls.slice(this.#from.requests)) {
      add(this.#counts.apiRequests, `${request.verb} ${request.path.split('/').at(-1)?.replace(/\d+$/, 'N')}`);
    }
    for (const key of VIEWS) {
      const version = tree.registry.read<unknown>(key)?.version ?? 0;
      add(this.#counts.views, key.view, version - (this.#from.views.get(key.view) ?? 0));
      this.#from.views.set(key.view, version);
    }
    Object.assign(this.#from, { calls: calls.length, requests: kube.calls.length });
    const taken = Object.fromEntries(KINDS.map((kind) => [kind, this.#perPod(this.#counts[kind])])) as Phase;
    for (const count of Object.values(this.#counts)) count.clear();
    return taken;
  }

  #perPod(count: Count): Steps {
    const perPod = (n: number): number => Math.round((n / this.#pods) * 100) / 100;
    const most = [...count].sort((a, b) => b[1] - a[1]).slice(0, 60);
    const total = [...count.values()].reduce((sum, n) => sum + n, 0);
    return { total: perPod(total), by: Object.fromEntries(most.map(([name, n]) => [name, perPod(n)]).filter(([, n]) => n !== 0)) };
  }
}

/** Timers that fired, by the actor that ran, else by the code that armed them, and by how long they waited. */
class Timers {
  readonly #count: Count;
  /** Of the timer that fires now. */
  #ran: string | null = null;

  constructor(count: Count) {
    this.#count = count;
  }
  follow(heartbeat: { begin(path: string, monoMs: number): void }): void {
    const begin = heartbeat.begin.bind(heartbeat);
    heartbeat.begin = (path, monoMs) => {
      this.#ran ??= actorOf(path);
      begin(path, monoMs);
    };
  }
  counted(clock: Clock): Clock {
    return {
      ...clock,
      setTimeout: (fn, ms) => {
        const armed = armedBy(new Error('armed').stack ?? '');
        return clock.setTimeout(() => {
          this.#ran = null;
          fn();
          add(this.#count, `${this.#ran ?? armed} after ${Math.round(ms)} ms`);
        }, ms);
      },
    };
  }
}

const MECHANISM = /\/(supervision|integration|xstate)\//;
function armedBy(stack: string): string {
  const files = [...stack.matchAll(/\/((?:src|packages)\/[\w/.-]+\.ts)/g)].map((match) => match[1] ?? '');
  return files.find((file) => !MECHANISM.test(file)) ?? 'supervision';
}

/** A real clock never shows one moment twice, so a look begins later than the act before it has ended. */
function onlyForward(clock: Clock): Clock {
  let reads = 0;
  return { ...clock, monoMs: () => clock.monoMs() + ++reads * 1e-6 };
}
function countedCalls<T extends object>(of: T, count: Count): T {
  return new Proxy(of, {
    get(target, name, receiver) {
      const own: unknown = Reflect.get(target, name, receiver);
      if (typeof own !== 'function') return own;
      return (...args: unknown[]): unknown => {
        add(count, String(name));
        return Reflect.apply(own, target, args);
      };
    },
  });
}

/** `volumes`: an emptyDir each. */
export async function countSteps({ pods, volumes }: { pods: number; volumes: number }): Promise<Counted> {
  const { h, counter } = await Counter.start(pods);
  await using _ = h;
  const names = Array.from({ length: pods }, (_, i) => `web-${i}`);
  const volumeNames = Array.from({ length: volumes }, (_, i) => `v${i}`);
  const shape = {
    spec: { volumes: volumeNames.map((name) => ({ name, emptyDir: {} })) },
    container: { volumeMounts: volumeNames.map((name) => ({ name, mountPath: `/${name}` })) },
  };
  await h.advance(5_000);
  counter.take();
  for (const name of names) create(h, name, shape);
  await h.until('all are Ready', () => names.every((name) => isReady(h, name)), LONG_MS);
  await h.advance(3_000);
  const started = counter.take();
  await h.advance(60_000);
  const atRestMinute = counter.take();
  for (const name of names) drop(h, `pods/${name}`, 1);
  await h.until('all are gone', () => names.every((name) => inApi(h, name) === undefined), LONG_MS);
  await h.until('the runtime holds none', () => h.runtime.dump().sandboxes.length === 0, LONG_MS);
  await h.until('their directories are gone', () => h.fs.below(`${ROOT}/pods`).length === 0, LONG_MS);
  await h.advance(3_000);
  return { started, atRestMinute, ended: counter.take() };
}
