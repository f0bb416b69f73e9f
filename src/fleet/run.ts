/** A fleet file lived through: its steps at their times, and whether what it expects came in time. */

import type { Scenario } from '../machines/faults/types.ts';
import type { Clock } from '../ports/ports.ts';
import type { ExpectSpec, FleetSpec, StepSpec } from './file.ts';
import type { Fleet, NodeTrouble } from './fleet.ts';
import type { FleetOverview } from './overview.ts';

/** How often the fleet is looked at. */
const LOOK_EVERY_MS = 250;

export interface StepReport {
  atMs: number;
  what: string;
  nodes: number;
  troubles: readonly NodeTrouble[];
}
export interface ExpectReport {
  expected: ExpectSpec;
  /** Milliseconds since the start of the fleet at which it was first seen; null: it was not, in its time. */
  metMs: number | null;
  /** What there was then, or at the end. */
  is: number;
}
export interface FleetReport {
  /** All daemons had begun. */
  startedMs: number;
  /** Nodes whose daemon could not be started. */
  troubles: readonly NodeTrouble[];
  steps: readonly StepReport[];
  expect: readonly ExpectReport[];
  overview: FleetOverview;
  /** Seconds from the start of a node's daemon until it was seen Ready, of the nodes that are; absent: none is. */
  readySeconds?: Percentiles;
  /** Requests to the API server, by verb and resource. */
  calls: Readonly<Record<string, number>>;
}
interface Percentiles {
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

export interface RunOptions {
  fleet: Fleet;
  spec: FleetSpec;
  clock: Clock;
  /** By the file names in the steps. */
  scenarios: ReadonlyMap<string, Scenario>;
  /** Each look at the fleet. */
  onLook(overview: FleetOverview, atMs: number): void;
  onStep(step: StepReport): void;
  /** Aborted: the run ends with what there is. */
  signal: AbortSignal;
}

export class FleetRun {
  readonly #o: RunOptions;
  readonly #fromMs: number;
  readonly #met = new Map<ExpectSpec, { atMs: number; is: number }>();
  readonly #steps: StepReport[] = [];

  constructor(o: RunOptions) {
    this.#o = o;
    this.#fromMs = o.clock.monoMs();
  }

  /** Starts the fleet; ends when all steps are done and each expectation is met or late. */
  async toTheEnd(): Promise<FleetReport> {
    const { fleet, spec, signal } = this.#o;
    let started = false;
    const starting = fleet.start().then((troubles) => {
      started = true;
      return { troubles, startedMs: this.#now() };
    });
    let acted = false;
    const acting = this.#act(spec.steps).then(() => {
      acted = true;
    });
    const lastMs = Math.max(0, ...spec.expect.map((e) => e.withinMs));
    for (let over = false; !over && !signal.aborted; ) {
      this.#look();
      over = started && acted && (this.#now() >= lastMs || this.#met.size === spec.expect.length);
      if (!over) await this.#pause(LOOK_EVERY_MS);
    }
    // Starts that are under way end with it.
    if (signal.aborted) await fleet.stop();
    const { startedMs, troubles } = await starting;
    await acting;
    const overview = this.#look();
    const expect = spec.expect.map((e) => this.#judged(e, overview));
    const readySeconds = percentiles(fleet.nodes().flatMap((n) => (n.readyAfterMs === null ? [] : [n.readyAfterMs / 1_000])));
    const calls = Object.fromEntries([...fleet.calls.byKind].sort(([, a], [, b]) => b - a));
    return { startedMs, troubles, steps: this.#steps, expect, overview, ...(readySeconds === null ? {} : { readySeconds }), calls };
  }

  async #act(steps: readonly StepSpec[]): Promise<void> {
    for (const step of steps) {
      await this.#pause(step.atMs - this.#now());
      if (this.#o.signal.aborted) return;
      const done = await this.#do(step);
      this.#steps.push(done);
      this.#o.onStep(done);
    }
  }

  async #do(step: StepSpec): Promise<StepReport> {
    const { fleet, scenarios } = this.#o;
    const atMs = this.#now();
    const members = fleet.select(step.nodes);
    if (step.do === 'restart') {
      return { atMs, what: 'restart', nodes: members.length, troubles: await fleet.restart(members) };
    }
    const scenario = scenarios.get(step.scenario);
    if (scenario === undefined) throw new Error(`the scenario ${step.scenario} was not read`);
    return { atMs, what: `inject ${scenario.name}`, nodes: members.length, troubles: await fleet.inject(members, scenario) };
  }

  #look(): FleetOverview {
    const overview = this.#o.fleet.overview();
    const atMs = this.#now();
    for (const e of this.#o.spec.expect) {
      const is = countOf(e, overview);
      if (!this.#met.has(e) && atMs <= e.withinMs && is >= e.count) this.#met.set(e, { atMs, is });
    }
    this.#o.onLook(overview, atMs);
    return overview;
  }

  #judged(expected: ExpectSpec, overview: FleetOverview): ExpectReport {
    const met = this.#met.get(expected);
    return met === undefined ? { expected, metMs: null, is: countOf(expected, overview) } : { expected, metMs: met.atMs, is: met.is };
  }

  #now(): number {
    return this.#o.clock.monoMs() - this.#fromMs;
  }

  /** Until then, or until the run is to end. */
  #pause(ms: number): Promise<void> {
    const { clock, signal } = this.#o;
    if (ms <= 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        clock.clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = clock.setTimeout(end, ms);
      signal.addEventListener('abort', end, { once: true });
    });
  }
}

function countOf(e: ExpectSpec, { nodes, pods }: FleetOverview): number {
  return e.what === 'nodesReady' ? nodes.ready : pods.ready;
}

/** Nearest rank; null without values. */
function percentiles(values: readonly number[]): Percentiles | null {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => Math.round((sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0) * 100) / 100;
  return sorted.length === 0 ? null : { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}
