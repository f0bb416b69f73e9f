/**
 * One run: builds a world from a seed, lets faults rain, heals, waits for rest, kills what may be killed without a trace,
 * empties the nodes, and stops them. The first broken invariant ends it.
 */
import type { ActorState } from '../actors/supervision/types.ts';
import type { HollowDump } from '../sandbox/hollow/index.ts';
import { type CoverageMeter, coverageMeter } from './coverage.ts';
import { apiServer, type Environment, environment, renewalMs } from './environment.ts';
import { drain, onUncaught } from './globals.ts';
import { allCheckers } from './invariants/all.ts';
import { type Checker, type Scene, targetOf } from './invariants/checker.ts';
import { unsettled } from './invariants/liveness.ts';
import { apiUser, registerNode } from './nemesis/apiUser.ts';
import { drawSize } from './nemesis/draw.ts';
import { drawTuning } from './nemesis/draws/tuning.ts';
import type { Fault } from './nemesis/faults.ts';
import { createNemesis, type Nemesis } from './nemesis/nemesis.ts';
import { type Operator, operator } from './nemesis/operator.ts';
import { planned } from './nemesis/plan.ts';
import { scenarioTuning } from './nemesis/scenario.ts';
import type { Phase, SimOptions, SimResult, Violation } from './result.ts';
import { lastingActors, pathsOf, settledContainers, steadyContainers } from './steady.ts';
import type { SimKube } from './world/kubeApi.ts';
import { type NodeWatcher, type SimNode, simNode } from './world/node.ts';
import { type SimRng, simRng } from './world/rng.ts';
import type { CallSeen } from './world/runtime.ts';
import { simTime } from './world/time.ts';
import { createTrace, traceText } from './world/trace.ts';

/** Longer than any call of a runtime is drawn to take. */
const UNDER_WAY_MS_MAX = 120_000;
const TAIL_LINES = 200;
/** From a container's end to its worker's look at the runtime. */
const LOOK_WITHIN_MS = 500;
/** A step that takes no time is cheap; a world that never moves on is stuck. */
const STEPS_PER_INSTANT_MAX = 200_000;

export async function runSim(o: SimOptions): Promise<SimResult> {
  const run = new Run(o);
  using _ = onUncaught((error) => run.fail('nothing-escapes', error.stack ?? error.message));
  return await run.all();
}

/** The pods of a node, or the actor of a place: the same machine under many names is one. */
function kindOf(path: string): string {
  return path.startsWith('node/pods/workers/') ? 'worker' : path;
}

type Question = Exclude<keyof Checker, 'name' | 'settled' | 'exited'>;
type About<K extends Question> = Required<Checker>[K] extends (s: Scene, ...about: infer A) => unknown ? A : never;

class Run implements NodeWatcher {
  readonly #o: SimResult['options'];
  readonly #coverage: CoverageMeter | undefined;
  readonly #onPhase: SimOptions['onPhase'];
  readonly inspect: NodeWatcher['inspect'];
  readonly #rng;
  readonly #time;
  readonly #clock;
  readonly #trace = createTrace();
  readonly #edges = new Map<string, number>();
  readonly #kube: SimKube | undefined;
  readonly #nodes: SimNode[];
  readonly #operators: Operator[];
  readonly #nemesis: Nemesis;
  readonly #environment: Environment;
  readonly #schedule: readonly Fault[];
  /** Of the scenario's faults. */
  readonly #names: readonly string[];
  readonly #checkers: Checker[];
  #violation: Violation | null = null;
  #phase: Phase = 'booting';
  #steps = 0;
  #instant = { atMs: -1, steps: 0 };
  #beatAtMs = 0;

  constructor(o: SimOptions) {
    this.#coverage = o.coverage === true ? coverageMeter() : undefined;
    this.inspect = this.#coverage?.see;
    this.#onPhase = o.onPhase;
    this.#rng = simRng(`seed ${o.seed}`);
    this.#o = drawSize(this.#rng.fork('size'), o);
    const { minutes, pods, nodes } = this.#o;
    this.#time = simTime(this.#rng.fork('ties'));
    this.#clock = this.#time.clockFor({ on: true });
    const rngOf = (index: number) => this.#rng.fork(`n${index}`);
    const tunings = Array.from({ length: nodes }, (_, index) => {
      const drawn = drawTuning(rngOf(index).fork('tuning'));
      return o.scenario === undefined ? drawn : scenarioTuning(o.scenario, drawn);
    });
    this.#kube = tunings.some((t) => t.api) ? apiServer({ rng: this.#rng.fork('kube'), clock: this.#clock }) : undefined;
    this.#nodes = tunings.map((tuning, index) => {
      const kube = tuning.api ? this.#kube : undefined;
      return simNode({ index, rng: rngOf(index), time: this.#time, tuning, watcher: this, kube });
    });
    if (this.#kube !== undefined) this.#heed(this.#kube);
    this.#environment = environment({
      nodes: this.#nodes,
      kube: this.#kube,
      clock: this.#clock,
      rng: this.#rng.fork('outsiders'),
      on: (who, what) => this.#trace.add(this.#time.monoMs, who, what),
      answered: (node, asked) => this.#ask('answered', node, asked),
      shown: (node, certificate) => this.#ask('shown', node, certificate),
      halt: (node) => this.#nemesis.halt(node),
    });
    for (const n of this.#nodes) if (n.kube !== undefined && !n.tuning.registers) registerNode(n, n.kube);
    this.#operators = this.#nodes.map((n) => operator(n, this.#time, n.kube === undefined ? undefined : apiUser(n, n.kube)));
    this.#schedule = o.schedule ?? planned(o, { rng: this.#rng.fork('schedule'), nodes: this.#nodes, minutes, pods });
    this.#names = o.scenario?.faults.map((f) => f.name) ?? [];
    this.#nemesis = createNemesis({
      nodes: this.#nodes,
      operators: this.#operators,
      schedule: this.#schedule,
      rng: this.#rng.fork('nemesis'),
      time: this.#time,
      clock: this.#clock,
      ...(this.#kube === undefined ? {} : { kube: this.#kube }),
      on: (f, what) => this.#trace.add(this.#time.monoMs, `nemesis n${f.node + 1}`, `#${f.id} ${f.kind} ${what}`),
    });
    this.#checkers = allCheckers();
    for (const node of this.#nodes) {
      node.runtime.watcher = {
        arrived: (call) => this.#arrived(node, call),
        pulls: (call) => this.#ask('pulls', node, call),
        removesImage: (call) => this.#ask('removesImage', node, call),
        settled: (call, outcome) => {
          for (const c of this.#checkers) c.settled?.(this.#scene(node), call, outcome);
        },
      };
      node.drivers.onCall = (call) => this.#ask('served', node, call);
      node.logind.onRelease = () => this.#ask('released', node);
      node.disk.onRemove = (path) => this.#ask('removing', node, path);
    }
  }

  /** Hears of what it is asked and of what changes in it. */
  #heed(kube: SimKube): void {
    const ofPod = (path: string) => this.#nodes.find((n) => path.split('/').some((part) => part.endsWith(`-${n.name}`)));
    kube.onRequest = (request, name) => {
      const node = this.#nodes.find((n) => n.name === name) ?? ofPod(request.path);
      if (node !== undefined) this.#ask('request', node, request);
    };
    kube.store.onEvent((e) => {
      const node = ofPod(e.object.metadata.name);
      if (node !== undefined) this.#ask('object', node, e);
    });
  }

  async all(): Promise<SimResult> {
    for (const n of this.#nodes) n.boot();
    this.#environment.begin();
    await this.#phaseOf('booting', () => this.#boot());
    await this.#phaseOf('faults', () => this.#rain());
    await this.#phaseOf('healing', () => this.#heal());
    await this.#phaseOf('restarts', () => this.#restarts());
    await this.#phaseOf('emptying', () => this.#empty());
    await this.#phaseOf('stopping', () => this.#stop());
    const result = this.#result();
    for (const n of this.#nodes) n.kill('process');
    return result;
  }

  fail(invariant: string, what: string): void {
    if (this.#violation !== null) return;
    this.#violation = { invariant, what, atSeconds: this.#time.monoMs / 1_000, phase: this.#phase };
  }

  // ---- what the nodes do ----

  supervision(node: SimNode, e: Parameters<NodeWatcher['supervision']>[1]): void {
    const { who, what } = traceText(e);
    this.#trace.add(this.#time.monoMs, `${node.name} ${who}`, what);
    if (e.kind === 'transition' && e.to === 'syncing.inspecting') this.#looked.add(e.path);
    if (e.kind === 'transition') {
      const edge = `${kindOf(e.path)}: ${e.from} -> ${e.to}`;
      this.#edges.set(edge, (this.#edges.get(edge) ?? 0) + 1);
    }
    this.#ask('supervision', node, e);
  }
  statuses(node: SimNode, statuses: Parameters<NodeWatcher['statuses']>[1]): void {
    this.#ask('statuses', node, statuses);
  }
  log(node: SimNode, level: string, text: string): void {
    this.#ask('logged', node, text);
    if (level === 'error' && text.startsWith('fault in the supervision')) this.fail('nothing-escapes', `${node.name}: ${text}`);
  }
  booted(node: SimNode): void {
    this.#trace.add(this.#time.monoMs, node.name, `boot ${node.boots}`);
    this.#ask('booted', node);
  }
  refused(node: SimNode, problems: readonly string[]): void {
    this.#ask('refused', node, problems);
  }
  exited(node: SimNode, why: string): void {
    this.#trace.add(this.#time.monoMs, node.name, why);
    for (const c of this.#checkers) c.exited?.(this.#scene(node));
  }
  broken(node: SimNode, what: string): void {
    this.fail('nothing-escapes', `${node.name}: ${what}`);
  }
  #arrived(node: SimNode, call: CallSeen): void {
    this.#trace.add(
      this.#time.monoMs,
      `${node.name} runtime`,
      `${call.method} ${Object.values(targetOf(call, node.runtime.hollow.dump())).join(' ')}`,
    );
    if (call.method === 'RunPodSandbox') this.#uidsOf(node).add(targetOf(call, node.runtime.hollow.dump()).uid);
    this.#ask('arrived', node, call);
  }

  /** Every pod that ever got a sandbox. */
  readonly #uids = new Map<string, Set<string>>();
  #uidsOf(node: SimNode): Set<string> {
    const known = this.#uids.get(node.name) ?? new Set<string>();
    this.#uids.set(node.name, known);
    return known;
  }

  // ---- the loop ----

  #scene(node: SimNode): Scene {
    const op = this.#operators[node.index];
    if (op === undefined) throw new Error(`node ${node.name} has no operator`);
    return { node, operator: op, nemesis: this.#nemesis, monoMs: this.#time.monoMs, kube: node.kube, environment: this.#environment };
  }
  #ask<K extends Question>(question: K, node: SimNode, ...about: About<K>): void {
    if (this.#violation !== null) return;
    const asked = this.#asked.get(question) ?? this.#checkers.filter((c) => c[question] !== undefined);
    this.#asked.set(question, asked);
    const scene = this.#scene(node);
    for (const c of asked) {
      // The compiler does not see that the method of this name takes what this name is about.
      const method = c[question] as ((s: Scene, ...about: About<K>) => string | undefined) | undefined;
      const what = method?.call(c, scene, ...about);
      if (what !== undefined) this.fail(c.name, what);
    }
  }
  /** Those that have something to say to it: most checkers answer few questions, and a run asks some hundred thousand. */
  readonly #asked = new Map<Question, Checker[]>();

  /** Steps until `done` says so or the time is over; true when it did. Ends at once when an invariant is broken. */
  async #until(endMs: number, done: () => boolean): Promise<boolean> {
    await drain();
    while (this.#violation === null) {
      if (done()) return true;
      if (!(await this.#time.step(endMs))) return done();
      this.#steps += 1;
      this.#afterStep();
    }
    return false;
  }
  async #advance(ms: number): Promise<void> {
    await this.#until(this.#time.monoMs + ms, () => false);
  }

  #afterStep(): void {
    const now = this.#time.monoMs;
    if (now !== this.#instant.atMs) this.#instant = { atMs: now, steps: 0 };
    this.#instant.steps += 1;
    if (this.#instant.steps > STEPS_PER_INSTANT_MAX)
      this.fail('time-goes-on', `${STEPS_PER_INSTANT_MAX} steps without time: somebody spins`);
    if (this.#phase === 'faults') this.#nemesis.step();
    for (const node of this.#nodes) {
      if (!node.runtime.changed) continue;
      node.runtime.changed = false;
      const dump: HollowDump = node.runtime.hollow.dump();
      this.#ask('changed', node, dump);
    }
    if (now - this.#beatAtMs < 1_000) return;
    this.#beatAtMs = now;
    for (const node of this.#nodes) {
      const state: ActorState | undefined = node.daemon?.tree.state();
      if (state !== undefined) this.#ask('beat', node, state);
    }
  }

  // ---- the phases ----

  async #phaseOf(phase: Phase, fn: () => Promise<void>): Promise<void> {
    if (this.#violation !== null) return;
    this.#phase = phase;
    this.#onPhase?.(phase);
    this.#trace.add(this.#time.monoMs, 'world', phase);
    await fn();
  }

  readonly #baseline = new Map<string, number>();

  async #boot(): Promise<void> {
    const up = await this.#until(this.#time.monoMs + 60_000, () => this.#nodes.every((n) => n.daemon?.up === true));
    if (!up) return this.fail('comes-up', 'a node did not come up within a minute of fair weather');
    await this.#advance(2_000);
    // The fewest: some acts are under way at any moment, and count as actors.
    await this.#until(this.#time.monoMs + 3_000, () => {
      for (const n of this.#nodes)
        this.#baseline.set(n.name, Math.min(lastingActors(n), this.#baseline.get(n.name) ?? Number.POSITIVE_INFINITY));
      return false;
    });
  }

  async #rain(): Promise<void> {
    this.#nemesis.begin();
    this.#environment.misbehave();
    await this.#advance(this.#o.minutes * 60_000);
  }

  async #heal(): Promise<void> {
    this.#nemesis.heal();
    this.#environment.heal();
    await this.#rest('comes-to-rest');
  }

  /** Waits until nothing is left to do; names what is otherwise. Looks once a virtual second. */
  async #rest(invariant: string): Promise<void> {
    const endMs = this.#time.monoMs + this.#o.restMinutesMax * 60_000;
    let found: string[] = ['not looked yet'];
    while (this.#violation === null && this.#time.monoMs < endMs) {
      found = (await Promise.all(this.#nodes.map((n) => unsettled(n, { scene: this.#scene(n), uids: this.#uidsOf(n) })))).flat();
      if (found.length === 0) return;
      await this.#advance(1_000);
    }
    this.fail(invariant, `still so ${this.#o.restMinutesMax} virtual minutes after: ${found.slice(0, 8).join('; ')}`);
  }

  /** Daemons and actors die over healthy pods; no container may notice. */
  async #restarts(): Promise<void> {
    const rng = this.#rng.fork('restarts');
    const steady = (n: SimNode) => steadyContainers(n, this.#scene(n).operator);
    // First lives that end on their own are over by then.
    await this.#advance(30_000);
    await this.#advance(renewalMs(this.#nodes.map((n) => n.tuning)));
    // What a daemon that is gone asked for: it may end what runs.
    await this.#until(this.#time.monoMs + UNDER_WAY_MS_MAX, () => this.#nodes.every((n) => n.runtime.underWay() === 0));
    await this.#rest('stays-at-rest');
    for (const n of this.#nodes) await this.#announcedEnd(n, rng);
    await this.#rest('rests-after-an-end');
    const before = this.#nodes.map(steady);
    for (const n of this.#nodes) {
      await this.#advance(rng.between(0, 2_000));
      n.kill('process');
      await this.#advance(rng.between(0, 3_000));
      n.boot();
      await this.#advance(rng.between(0, 5_000));
      for (let i = 0; i < 3; i++) {
        const paths = pathsOf(n.daemon?.tree.state());
        const path = rng.pick(paths);
        if (path !== undefined) n.daemon?.tree.kill(path, 'restarts');
        await this.#advance(rng.between(0, 3_000));
      }
    }
    await this.#rest('rests-after-restarts');
    for (const [i, n] of this.#nodes.entries()) {
      const after = new Set(steady(n));
      const lost = (before[i] ?? []).filter((c) => !after.has(c));
      if (lost.length > 0)
        this.fail('restarts-touch-nothing', `${n.name}: ${lost.join(', ')} did not survive restarts of the daemon and its actors`);
    }
  }

  /** In fair weather an announced end makes its pod look at once, long before the next listing. */
  async #announcedEnd(n: SimNode, rng: SimRng): Promise<void> {
    const steady = settledContainers(n, this.#scene(n).operator);
    const chosen = rng.pick(steady);
    if (chosen === undefined) return;
    const worker = `node/pods/workers/${chosen.podUid}`;
    this.#looked.clear();
    const beganMs = this.#time.monoMs;
    n.runtime.hollow.exit(chosen.id, { exitCode: 1, reason: '' });
    const looked = await this.#until(beganMs + LOOK_WITHIN_MS, () => this.#looked.has(worker));
    if (!looked)
      this.fail(
        'hints-are-followed',
        `${n.name}: ${chosen.name} of pod ${chosen.podUid} ended, and its worker did not look within ${LOOK_WITHIN_MS} ms`,
      );
  }
  /** Paths of the workers that began an inspection since this was last cleared. */
  readonly #looked = new Set<string>();

  async #empty(): Promise<void> {
    for (const op of this.#operators) for (const name of [...op.wanted.keys()]) op.remove(name);
    await this.#rest('comes-to-nothing');
    const endMs = this.#time.monoMs + 60_000;
    for (const n of this.#nodes) {
      const base = this.#baseline.get(n.name) ?? 0;
      const alive = () => lastingActors(n);
      if (!(await this.#until(endMs, () => alive() === base)) && this.#violation === null) {
        this.fail('no-orphan-actors', `${n.name}: ${alive()} actors are alive with no pod left; after the first boot there were ${base}`);
      }
    }
  }

  async #stop(): Promise<void> {
    this.#environment.end();
    for (const n of this.#nodes) {
      const tree = n.daemon?.tree;
      if (tree === undefined) continue;
      let down = false;
      void n.stop().then(() => {
        down = true;
      });
      await this.#until(this.#time.monoMs + 120_000, () => down);
      if (!down) return this.fail('stops', `${n.name}: an orderly stop took more than two virtual minutes`);
      if (tree.aliveActors() > 0) this.fail('no-orphan-actors', `${n.name}: ${tree.aliveActors()} actors are alive after the stop`);
    }
  }

  #result(): SimResult {
    const tails = this.#nodes.map((n) => n.tail(TAIL_LINES));
    return {
      options: this.#o,
      violation: this.#violation,
      hash: this.#trace.hash(),
      steps: this.#steps,
      virtualMs: this.#time.monoMs,
      schedule: this.#schedule,
      tuning: this.#nodes.map((n) => n.tuning),
      faults: this.#nemesis.counts,
      byName: new Map(this.#names.map((name) => [name, this.#nemesis.byName.get(name) ?? 0])),
      edges: this.#edges,
      coverage: this.#coverage?.result() ?? null,
      tail: {
        trace: this.#trace.tail(TAIL_LINES),
        log: tails.flatMap((t) => t.log),
        recorder: tails.flatMap((t) => t.recorder),
      },
    };
  }
}
