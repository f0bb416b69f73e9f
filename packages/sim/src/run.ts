/**
 * One run: builds a world from a seed, lets faults rain, heals, waits for rest, kills what may be killed without a trace,
 * empties the nodes, and stops them. The first broken invariant ends it.
 */

import { onUncaught } from '@actorlet/world/src/globals.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { type CoverageMeter, coverageMeter } from './coverage.ts';
import { renewalMs } from './environment.ts';
import { unsettled } from './invariants/pods/liveness.ts';
import type { Phase, SimOptions, SimResult } from './result.ts';
import type { Checks } from './run/checks.ts';
import { Loop } from './run/loop.ts';
import { World } from './run/world.ts';
import { isWhole, keptChildren, lastingActors, pathsOf, settledContainers, steadyContainers } from './steady.ts';

/** Longer than any call of a runtime is drawn to take. */
const UNDER_WAY_MS_MAX = 120_000;
const TAIL_LINES = 200;
/** From a container's end to its worker's look at the runtime. */
const LOOK_WITHIN_MS = 500;

export async function runSim(o: SimOptions): Promise<SimResult> {
  const run = new Run(o);
  using _ = onUncaught((error) => run.fail('nothing-escapes', error.stack ?? error.message));
  return await run.all();
}

class Run {
  readonly #coverage: CoverageMeter | undefined;
  readonly #onPhase: SimOptions['onPhase'];
  /** Names of the scenario's faults. */
  readonly #names: readonly string[];
  readonly #world: World;
  readonly #checks: Checks;
  readonly #loop: Loop;
  /** Actors of each node without pods, by its name. */
  readonly #baseline = new Map<string, number>();

  constructor(o: SimOptions) {
    this.#coverage = o.coverage === true ? coverageMeter() : undefined;
    this.#onPhase = o.onPhase;
    this.#names = o.scenario?.faults.map((f) => f.name) ?? [];
    this.#world = new World(o, this.#coverage?.see);
    this.#checks = this.#world.checks;
    this.#loop = new Loop(this.#world, o.signal);
  }

  fail(invariant: string, what: string): void {
    this.#checks.fail(invariant, what);
  }

  async all(): Promise<SimResult> {
    const { nodes, environment } = this.#world;
    for (const n of nodes) n.boot();
    environment.begin();
    await this.#phaseOf('booting', () => this.#boot());
    await this.#phaseOf('faults', () => this.#rain());
    await this.#phaseOf('healing', () => this.#heal());
    await this.#phaseOf('restarts', () => this.#restarts());
    await this.#phaseOf('emptying', () => this.#empty());
    await this.#phaseOf('stopping', () => this.#stop());
    const result = this.#result();
    for (const n of nodes) n.kill('process');
    return result;
  }

  async #phaseOf(phase: Phase, fn: () => Promise<void>): Promise<void> {
    if (!this.#checks.hold) return;
    this.#world.phase = phase;
    this.#onPhase?.(phase);
    this.#world.note('world', phase);
    await fn();
  }

  async #boot(): Promise<void> {
    const { nodes } = this.#world;
    const up = await this.#loop.within(60_000, () => nodes.every((n) => n.daemon?.up === true));
    if (!up) return this.fail('comes-up', 'a node did not come up within a minute of fair weather');
    await this.#loop.advance(2_000);
    // The fewest: some acts are under way at any moment, and count as actors.
    await this.#loop.within(3_000, () => {
      for (const n of nodes) {
        // What a test has killed by hand is not there now, and comes again.
        if (!isWhole(n.daemon?.tree.state())) continue;
        this.#baseline.set(n.name, Math.min(lastingActors(n), this.#baseline.get(n.name) ?? Number.POSITIVE_INFINITY));
      }
      return false;
    });
  }

  async #rain(): Promise<void> {
    this.#world.nemesis.begin();
    this.#world.environment.misbehave();
    await this.#loop.advance(this.#world.size.minutes * 60_000);
  }

  async #heal(): Promise<void> {
    this.#world.nemesis.heal();
    this.#world.environment.heal();
    await this.#rest('comes-to-rest');
  }

  /** Waits until nothing is left to do; names what is otherwise. Looks once a virtual second. */
  async #rest(invariant: string): Promise<void> {
    const { nodes, observer, time, size } = this.#world;
    const look = (n: SimNode) => unsettled(n, { scene: this.#world.sceneOf(n), uids: observer.uidsOf(n) });
    const endMs = time.monoMs + size.restMinutesMax * 60_000;
    let found: string[] = ['not looked yet'];
    while (this.#checks.hold && time.monoMs < endMs) {
      found = (await Promise.all(nodes.map(look))).flat();
      if (found.length === 0) return;
      await this.#loop.advance(1_000);
    }
    this.fail(invariant, `still so ${size.restMinutesMax} virtual minutes after: ${found.slice(0, 8).join('; ')}`);
  }

  /** Daemons and actors die over healthy pods; no container may notice. */
  async #restarts(): Promise<void> {
    const { nodes } = this.#world;
    const rng = this.#world.rng.fork('restarts');
    const steady = (n: SimNode) => steadyContainers(n, this.#world.sceneOf(n).operator);
    // First lives that end on their own are over by then.
    await this.#loop.advance(30_000);
    await this.#loop.advance(renewalMs(nodes.map((n) => n.tuning)));
    // What a daemon that is gone asked for: it may end what runs.
    await this.#loop.within(UNDER_WAY_MS_MAX, () => nodes.every((n) => n.runtime.underWay() === 0));
    await this.#rest('stays-at-rest');
    for (const n of nodes) await this.#announcedEnd(n, rng);
    await this.#rest('rests-after-an-end');
    const before = nodes.map(steady);
    for (const n of nodes) {
      await this.#loop.advance(rng.between(0, 2_000));
      n.kill('process');
      await this.#loop.advance(rng.between(0, 3_000));
      n.boot();
      await this.#loop.advance(rng.between(0, 5_000));
      for (let i = 0; i < 3; i++) {
        const paths = pathsOf(n.daemon?.tree.state());
        const path = rng.pick(paths);
        if (path !== undefined) n.daemon?.tree.kill(path, 'restarts');
        await this.#loop.advance(rng.between(0, 3_000));
      }
    }
    await this.#rest('rests-after-restarts');
    for (const [i, n] of nodes.entries()) {
      const after = new Set(steady(n));
      const lost = (before[i] ?? []).filter((c) => !after.has(c));
      if (lost.length > 0)
        this.fail('restarts-touch-nothing', `${n.name}: ${lost.join(', ')} did not survive restarts of the daemon and its actors`);
    }
  }

  /** In fair weather an announced end makes its pod look at once, long before the next listing. */
  async #announcedEnd(n: SimNode, rng: SimRng): Promise<void> {
    const { observer, time } = this.#world;
    const chosen = rng.pick(settledContainers(n, this.#world.sceneOf(n).operator));
    if (chosen === undefined) return;
    const worker = `node/pods/workers/${chosen.podUid}`;
    observer.looked.clear();
    const beganMs = time.monoMs;
    n.runtime.hollow.exit(chosen.id, { exitCode: 1, reason: '' });
    const looked = await this.#loop.until(beganMs + LOOK_WITHIN_MS, () => observer.looked.has(worker));
    if (!looked)
      this.fail(
        'hints-are-followed',
        `${n.name}: ${chosen.name} of pod ${chosen.podUid} ended, and its worker did not look within ${LOOK_WITHIN_MS} ms`,
      );
  }

  async #empty(): Promise<void> {
    const { nodes, operators, time } = this.#world;
    for (const op of operators) for (const name of [...op.wanted.keys()]) op.remove(name);
    await this.#rest('comes-to-nothing');
    const endMs = time.monoMs + 60_000;
    for (const n of nodes) {
      const base = this.#baseline.get(n.name) ?? 0;
      const alive = () => lastingActors(n);
      if (!(await this.#loop.until(endMs, () => alive() === base)) && this.#checks.hold) {
        this.fail('no-orphan-actors', `${n.name}: ${alive()} actors are alive with no pod left; after the first boot there were ${base}`);
      }
      const [kept, ...more] = keptChildren(n);
      if (kept !== undefined) this.fail('no-orphan-actors', `${n.name}: ${kept} has ended and is kept, as are ${more.length} more`);
    }
  }

  async #stop(): Promise<void> {
    this.#world.environment.end();
    for (const n of this.#world.nodes) {
      const tree = n.daemon?.tree;
      if (tree === undefined) continue;
      let down = false;
      void n.stop().then(() => {
        down = true;
      });
      await this.#loop.within(120_000, () => down);
      if (!down) return this.fail('stops', `${n.name}: an orderly stop took more than two virtual minutes`);
      if (tree.aliveActors() > 0) this.fail('no-orphan-actors', `${n.name}: ${tree.aliveActors()} actors are alive after the stop`);
    }
  }

  #result(): SimResult {
    const { size, checks, trace, time, schedule, nodes, nemesis, observer } = this.#world;
    const tails = nodes.map((n) => n.tail(TAIL_LINES));
    return {
      options: size,
      violation: checks.violation,
      hash: trace.hash(),
      steps: this.#loop.steps,
      virtualMs: time.monoMs,
      schedule,
      tuning: nodes.map((n) => n.tuning),
      faults: nemesis.counts,
      byName: new Map(this.#names.map((name) => [name, nemesis.byName.get(name) ?? 0])),
      edges: observer.edges,
      coverage: this.#coverage?.result() ?? null,
      tail: {
        trace: trace.tail(TAIL_LINES),
        log: tails.flatMap((t) => t.log),
        recorder: tails.flatMap((t) => t.recorder),
      },
    };
  }
}
