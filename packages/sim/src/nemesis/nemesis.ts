/** Carries out a schedule on the nodes of a world, counts what it did, and heals everything when told to. */

import { FAULT_KINDS } from '@actorlet/faults/src/kinds.ts';
import type { FaultKind as FaultSpecKind } from '@actorlet/faults/src/types.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { createMatcher } from '@actorlet/shown/src/match.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { SimTime } from '@actorlet/world/src/time.ts';
import type { Acts, Outcome, Stage } from './acts/act.ts';
import { actorActs } from './acts/actors.ts';
import { callActs } from './acts/calls.ts';
import { clusterActs } from './acts/cluster.ts';
import { machineActs, mendSettings } from './acts/machine.ts';
import { type AskedRestart, PodRestarts } from './acts/restarts.ts';
import { RuntimeTrouble } from './acts/runtime.ts';
import { Windows } from './acts/windows.ts';
import { HEALTHY, workloadActs } from './acts/workload.ts';
import { Delays } from './attack/delays.ts';
import { type ActiveFaults, activeFaults } from './attack/hits.ts';
import { intercept, interceptKube } from './attack/interceptors.ts';
import { type Fault, type FaultEntry, isWorkload } from './faults.ts';
import type { Operator } from './workload/operator.ts';

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

export class Nemesis {
  readonly #o: NemesisOptions;
  readonly #active: ActiveFaults;
  readonly #delays: Delays;
  readonly #runtime: RuntimeTrouble;
  readonly #restarts: PodRestarts;
  readonly #acts: Acts<FaultSpecKind>;
  readonly #work: ReturnType<typeof workloadActs>;
  #waiting: { fault: Fault; steps: number }[] = [];
  #healed = false;

  constructor(o: NemesisOptions) {
    const { nodes, clock, kube } = o;
    const active = activeFaults(o.rng);
    const stage: Stage = { nodes, kube, active, windows: new Windows(active, clock), match: createMatcher(), clock };
    this.#o = o;
    this.#active = active;
    this.#delays = new Delays(o.time);
    this.#runtime = new RuntimeTrouble(stage);
    this.#acts = {
      ...callActs(stage),
      ...clusterActs(stage),
      ...this.#runtime.acts,
      ...actorActs(stage),
      ...machineActs(stage, (node) => this.halt(node)),
    };
    this.#restarts = new PodRestarts(clock);
    this.#work = workloadActs(stage, this.#restarts);
    this.#intercept();
  }

  /** How often each kind did something: calls, hints and messages one by one. Windows that are felt only by calls count apart. */
  get counts(): ReadonlyMap<string, number> {
    return this.#active.counts;
  }
  /** Hits of each named fault of a scenario. */
  get byName(): ReadonlyMap<string, number> {
    return this.#active.byName;
  }
  /** That people asked for. */
  get restarts(): readonly AskedRestart[] {
    return this.#restarts.all;
  }
  /** Sandboxes that were stopped behind the node's back. */
  get disturbed(): ReadonlySet<string> {
    return this.#runtime.disturbed;
  }
  /** UIDs of pods of which somebody removed a container. */
  get robbed(): ReadonlySet<string> {
    return this.#runtime.robbed;
  }
  /** Whatever runs on this node ends at once, and nobody knows how. */
  halt(node: SimNode): void {
    this.#runtime.halt(node);
  }
  /** Monotonic ms until which a node's disk may have answered slowly. */
  slowUntilMs(node: number): number {
    return this.#delays.slowUntilMs(node);
  }
  /** Longest delay of a message to this actor that came at this monotonic ms or later; 0: none was held back. */
  lateMs(node: number, path: string, sinceMs: number): number {
    return this.#delays.lateMs(node, path, sinceMs);
  }

  begin(): void {
    for (const f of this.#o.schedule) {
      this.#o.clock.setTimeout(() => {
        if (f.afterSteps === 0) this.#fire(f);
        else this.#waiting.push({ fault: f, steps: f.afterSteps });
      }, f.atMs);
    }
  }

  /** After every step of the world. */
  step(): void {
    if (this.#waiting.length === 0) return;
    const due = this.#waiting.filter((w) => --w.steps <= 0);
    if (due.length === 0) return;
    this.#waiting = this.#waiting.filter((w) => w.steps > 0);
    for (const { fault } of due) this.#fire(fault);
  }

  /** Ends every fault and forgets what was still to come; daemons that are down come up. */
  heal(): void {
    const { kube, nodes, operators } = this.#o;
    // Workload is never lost: what was due by now is done.
    for (const { fault } of this.#waiting) if (isWorkload(fault)) this.#fire(fault);
    this.#waiting = [];
    this.#healed = true;
    this.#active.clear();
    if (kube !== undefined) kube.trouble.behind = false;
    kube?.heal();
    for (const [i, node] of nodes.entries()) {
      node.runtime.up();
      // A clock that stays behind keeps dead containers from being old enough to be collected, as in the reference.
      node.wallOffsetMs = 0;
      node.probed = HEALTHY;
      mendSettings(node);
      node.runtime.hollow.setCondition('NetworkReady', true, '');
      operators[i]?.mend();
      operators[i]?.restoreObjects();
      node.boot();
    }
  }

  #intercept(): void {
    const { nodes, kube, schedule } = this.#o;
    if (kube !== undefined) interceptKube(kube, { active: this.#active, nodes: nodes.length });
    for (const [index, node] of nodes.entries()) {
      intercept({
        node,
        active: this.#active,
        mailboxes: schedule.some((f) => f.kind === 'mailbox' && f.node === index),
        slow: (delayMs) => this.#delays.slow(index, delayMs),
        late: (path, delayMs) => this.#delays.late(index, path, delayMs),
      });
    }
  }

  #fire(f: Fault): void {
    const node = this.#o.nodes[f.node];
    const operator = this.#o.operators[f.node];
    if (this.#healed || node === undefined || operator === undefined) return;
    if (!isWorkload(f)) this.#o.on(f, this.#inject(f, node));
    else {
      this.#active.counts.set(f.kind, (this.#active.counts.get(f.kind) ?? 0) + 1);
      this.#o.on(f, this.#work(f, { node, operator }));
    }
  }

  #inject(f: FaultEntry, node: SimNode): string {
    const { lasts } = FAULT_KINDS[f.kind];
    // What lasts rolls its dice at each hit, what does not only here.
    if (!lasts && f.probability < 1 && !this.#active.chanceOf(f).chance(f.probability)) return 'spared';
    // The compiler does not see that the act of this kind takes a fault of this kind.
    const act = this.#acts[f.kind] as (f: FaultEntry, node: SimNode) => Outcome;
    const { hits, what } = act(f, node);
    // Windows that need no call to be felt count when they begin; the others count what they hit.
    if (FELT_BY_CALLS.has(f.kind) && hits > 0) this.#active.countWindow(f);
    else for (let i = 0; i < hits; i++) this.#active.count(f, '');
    return what;
  }
}
