/** Carries out a schedule on the nodes of a world, counts what it did, and heals everything when told to. */

import type { Clock } from '../../actors/kernel/ports.ts';
import type { ActorState } from '../../actors/kernel/types.ts';
import type { SimNode } from '../world/node.ts';
import type { SimRng } from '../world/rng.ts';
import type { SimTime } from '../world/time.ts';
import type { Fault, FaultKind } from './faults.ts';
import type { Operator } from './operator.ts';

export interface NemesisOptions {
  nodes: readonly SimNode[];
  operators: readonly Operator[];
  schedule: readonly Fault[];
  rng: SimRng;
  time: SimTime;
  /** The world's own clock. */
  clock: Clock;
  /** A fault is about to happen: for the trace. */
  on(fault: Fault, what: string): void;
}

export interface Nemesis {
  begin(): void;
  /** After every step of the world. */
  step(): void;
  /** Ends every fault and forgets what was still to come; daemons that are down come up. */
  heal(): void;
  /** How often each kind did something. Calls and hints count one by one. */
  readonly counts: ReadonlyMap<string, number>;
  /** Sandboxes that were stopped behind the node's back. */
  readonly disturbed: ReadonlySet<string>;
  /** Monotonic ms until which a node's disk may have answered slowly. */
  slowUntilMs(node: number): number;
}

/** Kills of one worker that its supervisor forgives, with room to spare: more would put it in quarantine, where it stays. */
const WORKER_KILLS_MAX = 3;

export function createNemesis(o: NemesisOptions): Nemesis {
  const counts = new Map<string, number>();
  const disturbed = new Set<string>();
  const active = new Set<Fault>();
  const chances = new Map<number, SimRng>();
  const slowUntil = new Map<number, number>();
  const kills = new Map<string, number>();
  let waiting: { fault: Fault; steps: number }[] = [];
  let healed = false;
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  const chanceOf = (f: Fault): SimRng => {
    const known = chances.get(f.id);
    if (known !== undefined) return known;
    const made = o.rng.fork(`fault-${f.id}`);
    chances.set(f.id, made);
    return made;
  };
  const on = <K extends FaultKind>(node: number, kind: K): Extract<Fault, { kind: K }>[] =>
    [...active].filter((f): f is Extract<Fault, { kind: K }> => f.kind === kind && f.node === node);

  for (const [index, node] of o.nodes.entries()) {
    node.runtime.trouble.verdict = (method) => {
      for (const f of on(index, 'cri')) {
        if (f.method !== '*' && f.method !== method) continue;
        if (!chanceOf(f).chance(f.probability)) continue;
        count(`cri.${f.action}`);
        if (f.action === 'delay') return { delayMs: f.delayMs };
        if (f.action === 'error') return { delayMs: 0, refuse: { code: f.code, details: `injected failure #${f.id}` } };
        if (f.action === 'late-effect') return { delayMs: 0, lost: 'late-effect', lateMs: f.delayMs };
        return { delayMs: 0, lost: f.action === 'lost-with-effect' ? 'with-effect' : 'without-effect' };
      }
      return { delayMs: 0 };
    };
    node.runtime.trouble.hint = () => {
      for (const f of on(index, 'hints')) {
        if (!chanceOf(f).chance(f.probability)) continue;
        count(`hints.${f.action}`);
        return f.action === 'delay' ? { delayMs: f.delayMs } : f.action;
      }
      return 'pass';
    };
    const { trouble } = node.disk;
    const ordinary = trouble.delayMs;
    trouble.delayMs = (op) => {
      const slow = on(index, 'disk.slow')[0];
      if (slow === undefined) return op === 'write' ? 0 : ordinary(op);
      slowUntil.set(index, o.time.monoMs + slow.delayMs * 3);
      return chanceOf(slow).next() * slow.delayMs;
    };
    trouble.failing = (op) => {
      if (op.startsWith('read') || op.includes('stat')) return undefined;
      for (const f of on(index, 'disk.error')) {
        if (!chanceOf(f).chance(f.probability)) continue;
        count('disk.error.hit');
        return f.code;
      }
      return undefined;
    };
    const http = node.http;
    node.http = () => {
      const f = on(index, 'http.down')[0];
      if (f === undefined) return http();
      if (f.how === 'unreachable') return 'unreachable';
      return f.how === 'error' ? { status: 503, body: 'try later' } : { status: 200, body: '<html>' };
    };
  }

  const during = (f: Fault & { forMs: number }, end: () => void = () => {}): void => {
    active.add(f);
    o.clock.setTimeout(() => {
      if (active.delete(f)) end();
    }, f.forMs);
  };

  const killActor = (f: Extract<Fault, { kind: 'actor.kill' }>, node: SimNode): string => {
    const tree = node.daemon?.tree;
    if (tree === undefined) return 'nothing to kill';
    const paths: string[] = [];
    const collect = (a: ActorState): void => {
      if (a.path !== 'node' && a.lifecycle === 'running') paths.push(a.path);
      for (const c of a.children) collect(c);
    };
    collect(tree.state());
    const workers = paths.filter((p) => p.startsWith('node/pods/workers/'));
    const list = f.among === 'workers' && workers.length > 0 ? workers : paths;
    const path = f.path ?? list[Math.floor(f.pick * list.length)];
    if (path === undefined) return 'nothing to kill';
    if (path.startsWith('node/pods/workers/')) {
      const key = `${node.index} ${path}`;
      if ((kills.get(key) ?? 0) >= WORKER_KILLS_MAX) return `${path} was killed often enough`;
      kills.set(key, (kills.get(key) ?? 0) + 1);
    }
    tree.kill(path, 'nemesis');
    return path;
  };

  const stopSandbox = async (node: SimNode, pick: number): Promise<void> => {
    const ready = node.runtime.hollow.dump().sandboxes.filter((s) => s.ready);
    const chosen = ready[Math.floor(pick * ready.length)];
    if (chosen === undefined) return;
    disturbed.add(chosen.id);
    await node.runtime.hollow.call(
      'StopPodSandbox',
      { podSandboxId: chosen.id },
      { timeoutMs: null, signal: new AbortController().signal },
    );
  };

  /** Does it; says what, for the trace. */
  const perform = (f: Fault, node: SimNode, op: Operator): string => {
    switch (f.kind) {
      case 'cri':
      case 'hints':
      case 'disk.slow':
      case 'disk.error':
      case 'http.down':
        during(f);
        return '';
      case 'hints.cut':
        node.runtime.hollow.dropStreams();
        return '';
      case 'runtime.down':
        node.runtime.down();
        during(f, () => {
          if (on(f.node, 'runtime.down').length === 0) node.runtime.up();
        });
        return '';
      case 'network.down':
        node.runtime.hollow.setCondition('NetworkReady', false, 'no network plugin');
        during(f, () => {
          if (on(f.node, 'network.down').length === 0) node.runtime.hollow.setCondition('NetworkReady', true, '');
        });
        return '';
      case 'disk.full':
        node.disk.trouble.full = true;
        during(f, () => {
          node.disk.trouble.full = on(f.node, 'disk.full').length > 0;
        });
        return '';
      case 'disk.deaf':
        node.disk.trouble.deaf = true;
        during(f, () => {
          node.disk.trouble.deaf = on(f.node, 'disk.deaf').length > 0;
        });
        return '';
      case 'watch.break':
        node.disk.breakWatches('the watch was lost');
        return '';
      case 'clock.jump':
        node.wallOffsetMs += f.byMs;
        return '';
      case 'actor.kill':
        return killActor(f, node);
      case 'node.kill':
        if (node.daemon === undefined) return 'no daemon';
        node.kill(f.how);
        o.clock.setTimeout(() => node.boot(), f.downMs);
        return '';
      case 'node.stop':
        if (node.daemon === undefined) return 'no daemon';
        void node.stop().then(() => void o.clock.setTimeout(() => node.boot(), f.downMs));
        return '';
      case 'container.exit': {
        const running = node.runtime.hollow.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING');
        const chosen = running[Math.floor(f.pick * running.length)];
        if (chosen === undefined) return 'no container runs';
        node.runtime.hollow.exit(chosen.id, { exitCode: f.exitCode, reason: f.reason });
        return chosen.name;
      }
      case 'sandbox.stop':
        void stopSandbox(node, f.pick);
        return '';
      case 'pod.put':
        op.put(f.pod, f.source);
        return '';
      case 'pod.remove':
        op.remove(f.name);
        return '';
      case 'pod.break':
        return op.breakManifest(f.name) ? '' : 'nothing to break';
      case 'pod.mend':
        op.mend();
        return '';
    }
  };
  const fire = (f: Fault): void => {
    const node = o.nodes[f.node];
    const op = o.operators[f.node];
    if (healed || node === undefined || op === undefined) return;
    count(f.kind);
    o.on(f, perform(f, node, op));
  };

  return {
    counts,
    disturbed,
    slowUntilMs: (node) => slowUntil.get(node) ?? 0,
    begin() {
      for (const f of o.schedule) {
        o.clock.setTimeout(() => {
          if (f.afterSteps === 0) fire(f);
          else waiting.push({ fault: f, steps: f.afterSteps });
        }, f.atMs);
      }
    },
    step() {
      if (waiting.length === 0) return;
      const due = waiting.filter((w) => --w.steps <= 0);
      if (due.length === 0) return;
      waiting = waiting.filter((w) => w.steps > 0);
      for (const { fault } of due) fire(fault);
    },
    heal() {
      // Workload is never lost: what was due by now is done.
      for (const { fault } of waiting) if (fault.kind.startsWith('pod.')) fire(fault);
      waiting = [];
      healed = true;
      active.clear();
      for (const [i, node] of o.nodes.entries()) {
        node.runtime.up();
        // A clock that stays behind keeps dead containers from being old enough to be collected, as in the reference.
        node.wallOffsetMs = 0;
        node.runtime.hollow.setCondition('NetworkReady', true, '');
        node.disk.trouble.full = false;
        node.disk.trouble.deaf = false;
        o.operators[i]?.mend();
        node.boot();
      }
    },
  };
}
