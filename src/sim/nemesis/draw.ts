/**
 * Draws a run from its seed: which kinds of fault are on at all (a swarm of different weathers finds more than one
 * average weather), how many, when, and what the operator does meanwhile.
 */
import type { CriMethod } from '../../machines/cri.ts';
import type { NodeTuning } from '../world/node.ts';
import type { SimRng } from '../world/rng.ts';
import type { Fault, FaultAct, FaultKind } from './faults.ts';
import { drawPod, editImages, type SimPod } from './pods.ts';

const METHODS: readonly (CriMethod | '*')[] = [
  '*',
  'RunPodSandbox',
  'StopPodSandbox',
  'RemovePodSandbox',
  'CreateContainer',
  'StartContainer',
  'StopContainer',
  'RemoveContainer',
  'ListContainers',
  'ListPodSandbox',
  'ContainerStatus',
  'PodSandboxStatus',
  'PullImage',
  'ImageStatus',
  'Status',
  'Version',
  'ExecSync',
];
const CODES = [2, 13, 14, 8] as const;

/** How likely a kind is on in a run, and how many a minute there are then. */
const KINDS: Readonly<Record<Exclude<FaultKind, 'pod.put' | 'pod.remove' | 'pod.break' | 'pod.mend'>, { on: number; perMinute: number }>> =
  {
    cri: { on: 0.7, perMinute: 8 },
    hints: { on: 0.5, perMinute: 3 },
    'hints.cut': { on: 0.4, perMinute: 2 },
    'runtime.down': { on: 0.3, perMinute: 1 },
    'network.down': { on: 0.2, perMinute: 0.7 },
    'disk.full': { on: 0.25, perMinute: 1 },
    'disk.slow': { on: 0.25, perMinute: 1 },
    'disk.error': { on: 0.25, perMinute: 1 },
    'disk.deaf': { on: 0.25, perMinute: 1 },
    'watch.break': { on: 0.25, perMinute: 1 },
    'http.down': { on: 0.4, perMinute: 1 },
    'clock.jump': { on: 0.3, perMinute: 1 },
    'actor.kill': { on: 0.5, perMinute: 4 },
    'node.kill': { on: 0.4, perMinute: 1.2 },
    'node.stop': { on: 0.2, perMinute: 0.5 },
    'container.exit': { on: 0.5, perMinute: 4 },
    'sandbox.stop': { on: 0.25, perMinute: 1 },
  };

function act(rng: SimRng, kind: keyof typeof KINDS): FaultAct {
  const forMs = Math.round(rng.chance(0.5) ? rng.between(100, 3_000) : rng.between(1_000, 25_000));
  switch (kind) {
    case 'cri':
      return {
        kind,
        method: rng.chance(0.2) ? '*' : (rng.pick(METHODS) ?? '*'),
        action:
          rng.pick(['delay', 'delay', 'error', 'error', 'lost-without-effect', 'lost-with-effect', 'late-effect'] as const) ?? 'delay',
        probability: rng.chance(0.3) ? 1 : rng.next(),
        forMs,
        delayMs: Math.round(rng.chance(0.7) ? rng.between(1, 2_000) : rng.between(1_000, 20_000)),
        code: rng.pick(CODES) ?? 2,
      };
    case 'hints':
      return {
        kind,
        action: rng.pick(['drop', 'duplicate', 'reorder', 'delay'] as const) ?? 'drop',
        probability: rng.chance(0.3) ? 1 : rng.next(),
        forMs,
        delayMs: Math.round(rng.between(10, 5_000)),
      };
    case 'hints.cut':
    case 'watch.break':
      return { kind };
    case 'runtime.down':
    case 'network.down':
    case 'disk.full':
    case 'disk.deaf':
      return { kind, forMs };
    case 'disk.slow':
      return { kind, forMs, delayMs: Math.round(rng.between(5, 800)) };
    case 'disk.error':
      return { kind, forMs, probability: rng.next(), code: rng.pick(['EIO', 'ENOSPC', 'EROFS'] as const) ?? 'EIO' };
    case 'http.down':
      return { kind, forMs, how: rng.pick(['unreachable', 'error', 'garbage'] as const) ?? 'error' };
    case 'clock.jump':
      return {
        kind,
        byMs: Math.round((rng.chance(0.5) ? 1 : -1) * (rng.chance(0.5) ? rng.between(10, 5_000) : rng.between(5_000, 7_200_000))),
      };
    case 'actor.kill':
      return { kind, pick: rng.next(), among: rng.chance(0.5) ? 'workers' : 'any' };
    case 'node.kill':
      return { kind, how: rng.chance(0.7) ? 'process' : 'power', downMs: Math.round(rng.between(0, 8_000)) };
    case 'node.stop':
      return { kind, downMs: Math.round(rng.between(0, 5_000)) };
    case 'container.exit':
      return { kind, pick: rng.next(), exitCode: rng.pick([0, 1, 137] as const) ?? 1, reason: rng.chance(0.2) ? 'OOMKilled' : '' };
    case 'sandbox.stop':
      return { kind, pick: rng.next() };
  }
}

/** Settings of one node: quick and slow hardware, short and long configured periods. */
export function drawTuning(rng: SimRng): NodeTuning {
  return {
    callLatencyMs: rng.pick([0, 2, 30, 300] as const) ?? 0,
    diskLatencyMs: rng.pick([0, 0, 1, 10] as const) ?? 0,
    requestTimeoutMs: rng.pick([4_000, 15_000, 120_000] as const) ?? 120_000,
    syncFrequencyMs: rng.pick([10_000, 60_000] as const) ?? 60_000,
    fileCheckMs: rng.pick([2_000, 20_000] as const) ?? 20_000,
    httpCheckMs: rng.pick([1_000, 5_000, 20_000] as const) ?? 5_000,
    http: rng.chance(0.3),
    hints: rng.chance(0.85),
  };
}

export interface DrawOptions {
  minutes: number;
  pods: number;
  nodes: number;
  /** Per node: pods may also come over HTTP. */
  http: readonly boolean[];
}

/** The whole schedule, oldest first. */
export function drawSchedule(rng: SimRng, o: DrawOptions): Fault[] {
  const spanMs = o.minutes * 60_000;
  const drawn: { atMs: number; node: number; act: FaultAct; afterSteps: number }[] = [];
  for (let node = 0; node < o.nodes; node++) {
    const mine = rng.fork(`node-${node}`);
    const add = (atMs: number, a: FaultAct): void => {
      drawn.push({ atMs: Math.round(atMs), node, act: a, afterSteps: mine.chance(0.7) ? mine.int(40) : 0 });
    };
    for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
      const { on, perMinute } = KINDS[kind];
      const weather = mine.fork(kind);
      if (!weather.chance(on) || (kind === 'http.down' && o.http[node] !== true)) continue;
      const count = Math.max(1, Math.round(weather.between(0.3, 2) * perMinute * o.minutes));
      for (let i = 0; i < count; i++) add(weather.next() * spanMs, act(weather, kind));
    }
    workload(mine.fork('workload'), { spanMs, pods: o.pods, http: o.http[node] === true, node }, add);
  }
  drawn.sort((a, b) => a.atMs - b.atMs);
  return drawn.map(({ atMs, node, act: a, afterSteps }, id) => ({ id, node, atMs, afterSteps, ...a }));
}

function workload(
  rng: SimRng,
  o: { spanMs: number; pods: number; http: boolean; node: number },
  add: (atMs: number, a: FaultAct) => void,
): void {
  const edits = rng.pick([0, 0.3, 1, 3] as const) ?? 1;
  for (let i = 0; i < o.pods; i++) {
    const mine = rng.fork(`pod-${i}`);
    const name = `p${i}`;
    const source = o.http && mine.chance(0.4) ? 'http' : 'file';
    // An own UID makes an edit change a pod in place, and a name come back as the same pod.
    const uid = mine.chance(0.25) ? `00000000-0000-4000-8000-${String(o.node).padStart(4, '0')}${String(i).padStart(8, '0')}` : undefined;
    let rev = 0;
    // What has ended stays so under its UID, whatever its manifest says then: such a pod is never edited.
    const draw = (): SimPod => drawPod(mine.fork(`rev-${rev}`), { name, rev: rev++, ...(uid === undefined ? {} : { uid }) });
    const first = draw();
    const edited = (): SimPod => {
      if (uid === undefined) return draw();
      if (first.fate === 'ends') return first;
      return editImages(mine.fork(`edit-${rev}`), first, rev++);
    };
    let pod = first;
    let at = mine.chance(0.5) ? 0 : mine.next() * o.spanMs * 0.5;
    add(at, { kind: 'pod.put', pod, source });
    for (;;) {
      if (edits === 0) break;
      at += mine.chance(0.3) ? mine.between(1, 3_000) : (mine.next() * 60_000) / edits;
      if (at >= o.spanMs) break;
      const what = mine.next();
      if (what < 0.3) {
        pod = edited();
        add(at, { kind: 'pod.put', pod, source });
      } else if (what < 0.6) {
        add(at, { kind: 'pod.remove', name });
        if (mine.chance(0.75)) {
          at += mine.chance(0.5) ? mine.between(0, 500) : mine.between(500, 20_000);
          // The same definition again is the same pod, perhaps while its predecessor is still being stopped.
          if (mine.chance(0.5)) pod = edited();
          add(at, { kind: 'pod.put', pod, source });
        } else break;
      } else if (what < 0.75) {
        if (source !== 'file') continue;
        add(at, { kind: 'pod.break', name });
        add(at + mine.between(0, 10_000), { kind: 'pod.put', pod, source });
      } else add(at, { kind: 'pod.put', pod, source });
    }
  }
}
