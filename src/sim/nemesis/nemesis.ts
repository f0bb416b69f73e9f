/** Carries out a schedule on the nodes of a world, counts what it did, and heals everything when told to. */

import type { SupervisionTree } from '../../actors/supervision/tree.ts';
import type { ActorState } from '../../actors/supervision/types.ts';
import type { CriMethod, CriRequest } from '../../machines/cri.ts';
import { FAULT_KINDS } from '../../machines/faults/kinds.ts';
import { createMatcher } from '../../machines/faults/match.ts';
import type { FaultKind as FaultSpecKind } from '../../machines/faults/types.ts';
import { KERNEL_SETTINGS } from '../../machines/host/kernelSettings.ts';
import { view } from '../../machines/protocol.ts';
import { FAMILIES } from '../../machines/services/iptables/families.ts';
import type { Clock } from '../../ports/ports.ts';
import type { HollowDump, HollowSandboxDump } from '../../sandbox/hollow/index.ts';
import type { SimKube } from '../world/kubeApi.ts';
import type { SimNode } from '../world/node.ts';
import type { SimRng } from '../world/rng.ts';
import type { SimTime } from '../world/time.ts';
import { ask } from './ask.ts';
import { type Fault, type FaultEntry, isWorkload, type WorkloadEntry } from './faults.ts';
import { activeFaults, type EntryOf } from './hits.ts';
import { intercept, interceptKube } from './interceptors.ts';
import type { Operator } from './operator.ts';

export interface NemesisOptions {
  nodes: readonly SimNode[];
  operators: readonly Operator[];
  schedule: readonly Fault[];
  rng: SimRng;
  time: SimTime;
  /** The world's own clock. */
  clock: Clock;
  /** The API server of all nodes, where the world has one. */
  kube?: SimKube;
  /** A fault is about to happen: for the trace. */
  on(fault: Fault, what: string): void;
}

export interface Nemesis {
  begin(): void;
  /** After every step of the world. */
  step(): void;
  /** Ends every fault and forgets what was still to come; daemons that are down come up. */
  heal(): void;
  /** How often each kind did something: calls, hints and messages one by one. Windows that are felt only by calls count apart. */
  readonly counts: ReadonlyMap<string, number>;
  /** Hits of each named fault of a scenario. */
  readonly byName: ReadonlyMap<string, number>;
  /** Sandboxes that were stopped behind the node's back. */
  readonly disturbed: ReadonlySet<string>;
  /** Whatever runs on this node ends at once, and nobody knows how. */
  halt(node: SimNode): void;
  /** UIDs of pods of which somebody removed a container. */
  readonly robbed: ReadonlySet<string>;
  /** Monotonic ms until which a node's disk may have answered slowly. */
  slowUntilMs(node: number): number;
  /** Longest delay of a message to this actor that came at this monotonic ms or later; 0: none was held back. */
  lateMs(node: number, path: string, sinceMs: number): number;
}

/** Kills of one worker that its supervisor forgives, with room to spare: more would put it in quarantine, where it stays. */
const WORKER_KILLS_MAX = 3;
const WORKERS = 'node/pods/workers/';
const HEALTHY: SimNode['probed'] = () => ({ kind: 'healthy', afterMs: 1 });
const NOTHING_TO_DO = 'nothing there to hit';
/** Kinds that do nothing until a call, a hint, a message or a file event meets them. */
const FELT_BY_CALLS: ReadonlySet<FaultSpecKind> = new Set<FaultSpecKind>([
  'cri',
  'hints',
  'disk.slow',
  'disk.error',
  'disk.full',
  'disk.deaf',
  'pressure.disk',
  'pressure.memory',
  'http.down',
  'mailbox',
  'api.call',
  'api.watch',
  'iptables',
  'sysctl',
]);

export function createNemesis(o: NemesisOptions): Nemesis {
  const active = activeFaults(o.rng);
  const match = createMatcher();
  const { kube } = o;
  if (kube !== undefined) interceptKube(kube, { active, nodes: o.nodes.length });
  const disturbed = new Set<string>();
  const robbed = new Set<string>();
  const slowUntil = new Map<number, number>();
  const kills = new Map<string, number>();
  const late: { node: number; path: string; delayMs: number; dueMs: number }[] = [];
  /** Windows of failing probes that are open, by node. */
  const sick = new Map<number, number>();
  let waiting: { fault: Fault; steps: number }[] = [];
  let healed = false;

  for (const [index, node] of o.nodes.entries()) {
    intercept({
      node,
      active,
      mailboxes: o.schedule.some((f) => f.kind === 'mailbox' && f.node === index),
      slow: (delayMs) => void slowUntil.set(index, o.time.monoMs + delayMs * 3),
      late: (path, delayMs) => void late.push({ node: index, path, delayMs, dueMs: o.time.monoMs + delayMs }),
    });
  }

  const during = (f: FaultEntry, end: () => void = () => {}): void => {
    active.add(f);
    o.clock.setTimeout(() => {
      if (active.remove(f)) end();
    }, f.forMs);
  };
  /** Lasting faults that overlap end when the last of them does. */
  const duringAny = (f: FaultEntry, end: () => void): void =>
    during(f, () => {
      if (active.of(f.node, f.kind).length === 0) end();
    });

  /** Which actors a fault means; each worker of a drawn fault only as often as its supervisor forgives. */
  const victims = (f: EntryOf<'actor.kill'>, node: SimNode, tree: SupervisionTree): string[] => {
    const paths: string[] = [];
    const collect = (a: ActorState): void => {
      if (a.path !== 'node' && a.lifecycle === 'running') paths.push(a.path);
      for (const c of a.children) collect(c);
    };
    collect(tree.state());
    const { actors, pods, namespaces } = f.select;
    const ofPods = pods !== undefined || namespaces !== undefined;
    const records = ofPods ? tree.registry.read(view.pods)?.value.records : undefined;
    const wanted = paths.filter((path) => {
      if (!match.any(actors, path)) return false;
      if (!ofPods) return true;
      const pod = records?.get(path.startsWith(WORKERS) ? path.slice(WORKERS.length) : '')?.pod.metadata;
      return pod !== undefined && match.any(pods, pod.name) && match.any(namespaces, pod.namespace);
    });
    const chosen = f.pick === 'all' ? wanted : [active.chanceOf(f).pick(wanted) ?? ''];
    return chosen.filter((path) => {
      if (path === '' || f.name !== undefined || !path.startsWith(WORKERS)) return path !== '';
      const key = `${node.index} ${path}`;
      const before = kills.get(key) ?? 0;
      kills.set(key, before + 1);
      return before < WORKER_KILLS_MAX;
    });
  };

  /** Pods of the runtime that a fault means. */
  const sandboxesOf = (f: FaultEntry, dump: HollowDump): HollowSandboxDump[] =>
    dump.sandboxes.filter((s) => match.any(f.select.pods, s.name) && match.any(f.select.namespaces, s.namespace));

  /** What somebody does with a tool of the runtime's own. */
  const byHand = async <M extends CriMethod>(node: SimNode, method: M, request: CriRequest<M>): Promise<void> => {
    await node.runtime.hollow.call(method, request, { timeoutMs: null, signal: new AbortController().signal });
  };

  /** Whatever ran has ended when the machine is on again, and nobody knows how: as containerd has it after a boot. */
  const halt = (node: SimNode): void => {
    const { hollow } = node.runtime;
    const { containers, sandboxes } = hollow.dump();
    for (const { id } of containers) hollow.exit(id, { exitCode: 255, reason: 'Unknown' });
    for (const { id, ready } of sandboxes) {
      if (!ready) continue;
      disturbed.add(id);
      void byHand(node, 'StopPodSandbox', { podSandboxId: id });
    }
  };

  const changeSetting = (f: FaultEntry, node: SimNode): void => {
    const chance = active.chanceOf(f);
    const setting = chance.pick(KERNEL_SETTINGS);
    if (setting !== undefined) node.kernelSettings.set(setting.path, setting.value + 1 + chance.int(100));
  };
  /** The administrator of a machine whose node changes nothing by itself. */
  const mendSettings = (node: SimNode): void => {
    if (node.tuning.kernel?.protect === true) node.kernelSettings.restore();
  };

  /** Does what happens in one instant, or begins what lasts; says what it hit, or that there was nothing to hit. */
  const perform = (f: FaultEntry, node: SimNode): { hits: number; what: string } => {
    const hit = (what = '', hits = 1): { hits: number; what: string } => ({ hits, what });
    const missed = (what = NOTHING_TO_DO): { hits: number; what: string } => ({ hits: 0, what });
    const { hollow } = node.runtime;
    switch (f.kind) {
      case 'cri':
      case 'hints':
      case 'disk.slow':
      case 'disk.error':
      case 'disk.full':
      case 'disk.deaf':
      case 'pressure.disk':
      case 'http.down':
      case 'mailbox':
        during(f);
        return hit();
      case 'iptables':
        if (!node.tuning.packetFilter) return missed('this node keeps nothing in the packet filter');
        during(f);
        return hit();
      case 'iptables.flush':
        if (!node.tuning.packetFilter) return missed('this node keeps nothing in the packet filter');
        node.iptables.flush(active.chanceOf(f).pick(FAMILIES) ?? 4);
        return hit();
      case 'sysctl':
        if (node.tuning.kernel === null) return missed('this node relies on no kernel settings');
        if (f.action === 'changed') changeSetting(f, node);
        during(f, () => mendSettings(node));
        return hit();
      case 'hints.cut':
        hollow.dropStreams();
        return hit();
      case 'runtime.down':
        node.runtime.down();
        duringAny(f, () => node.runtime.up());
        return hit();
      case 'network.down':
        hollow.setCondition('NetworkReady', false, 'no network plugin');
        duringAny(f, () => hollow.setCondition('NetworkReady', true, ''));
        return hit();
      case 'api.call':
      case 'api.watch':
        if (kube === undefined) return missed('this world has no API server');
        during(f);
        return hit();
      case 'api.partition':
        if (kube === undefined) return missed('this world has no API server');
        kube.trouble.partitioned = true;
        during(f, () => {
          if (o.nodes.every((_, i) => active.of(i, f.kind).length === 0)) kube.heal();
        });
        return hit();
      case 'pressure.memory':
        if (node.tuning.eviction === null) return missed('this node has no eviction threshold, and looks at no memory');
        during(f);
        return hit();
      case 'watch.break': {
        const broken = node.disk.breakWatches('the watch was lost', (path) => match.any(f.select.paths, path));
        return broken === 0 ? missed() : hit('', broken);
      }
      case 'clock.jump':
        node.wallOffsetMs += f.byMs;
        return hit();
      case 'actor.kill': {
        const tree = node.daemon?.tree;
        const killed = tree === undefined ? [] : victims(f, node, tree).filter((path) => tree.kill(path, 'nemesis'));
        return killed.length === 0 ? missed() : hit(killed.join(' '), killed.length);
      }
      case 'node.kill':
        if (node.daemon === undefined) return missed('no daemon');
        node.kill(f.action);
        if (f.action === 'power') halt(node);
        o.clock.setTimeout(() => node.boot(), f.downMs);
        return hit(f.action);
      case 'node.stop':
        if (node.daemon === undefined) return missed('no daemon');
        void node.stop().then(() => void o.clock.setTimeout(() => node.boot(), f.downMs));
        return hit();
      case 'container.exit':
      case 'container.remove': {
        const dump = hollow.dump();
        const boxes = new Set(sandboxesOf(f, dump).map((s) => s.id));
        const running = dump.containers.filter(
          (c) => c.state === 'CONTAINER_RUNNING' && boxes.has(c.sandboxId) && match.any(f.select.containers, c.name),
        );
        const chosen = active.chanceOf(f).pick(running);
        if (chosen === undefined) return missed('no container runs');
        if (f.kind === 'container.exit') hollow.exit(chosen.id, { exitCode: f.exitCode, reason: f.reason });
        else {
          robbed.add(chosen.podUid);
          void byHand(node, 'RemoveContainer', { containerId: chosen.id });
        }
        return hit(chosen.name);
      }
      case 'sandbox.stop': {
        const chosen = active.chanceOf(f).pick(sandboxesOf(f, hollow.dump()).filter((s) => s.ready));
        if (chosen === undefined) return missed();
        disturbed.add(chosen.id);
        void byHand(node, 'StopPodSandbox', { podSandboxId: chosen.id });
        return hit(chosen.id);
      }
    }
  };
  const work = (f: WorkloadEntry, op: Operator): string => {
    switch (f.kind) {
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
      case 'pod.delete':
        return op.deleteInApi(f.name, f.graceSeconds) ? '' : NOTHING_TO_DO;
      case 'pod.meddle':
        return op.meddle(f.name, f.what) ? '' : NOTHING_TO_DO;
      case 'object.put':
        return op.putObject(f.object) ? '' : NOTHING_TO_DO;
      case 'object.remove':
        return op.removeObject(f.object) ? '' : NOTHING_TO_DO;
      case 'history.compact':
        return op.compact() ? '' : NOTHING_TO_DO;
      case 'history.behind':
        if (kube === undefined) return NOTHING_TO_DO;
        kube.store.compact();
        kube.trouble.behind = true;
        o.clock.setTimeout(() => {
          kube.trouble.behind = false;
        }, f.forMs);
        return '';
      case 'manifests.away':
        if (!op.takeManifests()) return NOTHING_TO_DO;
        o.clock.setTimeout(() => op.mend(), f.forMs);
        return '';
      case 'ask.listing':
      case 'ask.flood':
      case 'ask.unknown':
      case 'ask.hurry':
      case 'ask.api':
      case 'ask.certificates':
        return ask(f.kind, o.nodes[f.node]?.daemon?.tree) ? '' : NOTHING_TO_DO;
      case 'probes.fail': {
        const node = o.nodes[f.node];
        if (node === undefined) return NOTHING_TO_DO;
        const refused = active.chance(f.id).chance(0.5);
        sick.set(f.node, (sick.get(f.node) ?? 0) + 1);
        node.probed = () => ({ kind: refused ? 'refused' : 'unhealthy', afterMs: 1 });
        o.clock.setTimeout(() => {
          const left = (sick.get(f.node) ?? 1) - 1;
          sick.set(f.node, left);
          if (left === 0) node.probed = HEALTHY;
        }, f.forMs);
        return '';
      }
      case 'figures.away': {
        const node = o.nodes[f.node];
        if (node === undefined) return NOTHING_TO_DO;
        node.runtime.trouble.noFigures += 1;
        o.clock.setTimeout(() => {
          node.runtime.trouble.noFigures -= 1;
        }, f.forMs);
        return '';
      }
      case 'node.moved':
        return op.moveNode() ? '' : NOTHING_TO_DO;
      case 'manifests.swap':
        return op.swapManifests() ? '' : NOTHING_TO_DO;
    }
  };
  const inject = (f: FaultEntry, node: SimNode): string => {
    const { lasts } = FAULT_KINDS[f.kind];
    // What lasts rolls its dice at each hit, what does not only here.
    if (!lasts && f.probability < 1 && !active.chanceOf(f).chance(f.probability)) return 'spared';
    const { hits, what } = perform(f, node);
    // Windows that need no call to be felt count when they begin; the others count what they hit.
    if (FELT_BY_CALLS.has(f.kind) && hits > 0) active.countWindow(f);
    else for (let i = 0; i < hits; i++) active.count(f, '');
    return what;
  };
  const fire = (f: Fault): void => {
    const node = o.nodes[f.node];
    const op = o.operators[f.node];
    if (healed || node === undefined || op === undefined) return;
    if (!isWorkload(f)) o.on(f, inject(f, node));
    else {
      active.counts.set(f.kind, (active.counts.get(f.kind) ?? 0) + 1);
      o.on(f, work(f, op));
    }
  };

  return {
    counts: active.counts,
    byName: active.byName,
    disturbed,
    halt,
    robbed,
    slowUntilMs: (node) => slowUntil.get(node) ?? 0,
    lateMs: (node, path, sinceMs) =>
      late.reduce((max, m) => (m.node === node && m.path === path && m.dueMs >= sinceMs ? Math.max(max, m.delayMs) : max), 0),
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
      for (const { fault } of waiting) if (isWorkload(fault)) fire(fault);
      waiting = [];
      healed = true;
      active.clear();
      if (kube !== undefined) kube.trouble.behind = false;
      kube?.heal();
      for (const [i, node] of o.nodes.entries()) {
        node.runtime.up();
        // A clock that stays behind keeps dead containers from being old enough to be collected, as in the reference.
        node.wallOffsetMs = 0;
        node.probed = HEALTHY;
        mendSettings(node);
        node.runtime.hollow.setCondition('NetworkReady', true, '');
        o.operators[i]?.mend();
        o.operators[i]?.restoreObjects();
        node.boot();
      }
    },
  };
}
