/** The world of one run, built from its seed: nodes, their API server, what is around them, and the faults to come. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import { simNode } from '@actorlet/world/src/node/node.ts';
import type { NodeTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import type { NodeWatcher, SimNode } from '@actorlet/world/src/node/types.ts';
import { type SimRng, simRng } from '@actorlet/world/src/rng.ts';
import { SimTime } from '@actorlet/world/src/time.ts';
import { createTrace } from '@actorlet/world/src/trace.ts';
import { apiServer, Environment } from '../environment.ts';
import type { Scene } from '../invariants/checker.ts';
import { drawSize } from '../nemesis/draw.ts';
import { drawTuning } from '../nemesis/draws/node/tuning.ts';
import type { Fault } from '../nemesis/faults.ts';
import { Nemesis } from '../nemesis/nemesis.ts';
import { planned } from '../nemesis/plan.ts';
import { scenarioTuning } from '../nemesis/scenario.ts';
import { apiUser, registerNode } from '../nemesis/workload/apiUser.ts';
import { Operator } from '../nemesis/workload/operator.ts';
import type { Phase, SimOptions, SimResult } from '../result.ts';
import { Checks } from './checks.ts';
import { Observer } from './observer.ts';

export class World {
  readonly size: SimResult['options'];
  readonly rng: SimRng;
  readonly time: SimTime;
  readonly trace = createTrace();
  readonly checks: Checks;
  readonly observer: Observer;
  readonly nodes: readonly SimNode[];
  readonly operators: readonly Operator[];
  readonly environment: Environment;
  readonly schedule: readonly Fault[];
  readonly nemesis: Nemesis;
  phase: Phase = 'booting';

  constructor(o: SimOptions, inspect: NodeWatcher['inspect']) {
    this.rng = simRng(`seed ${o.seed}`);
    this.size = drawSize(this.rng.fork('size'), o);
    this.time = new SimTime(this.rng.fork('ties'));
    const clock = this.time.clockFor({ on: true });
    this.checks = new Checks({
      sceneOf: (node) => this.sceneOf(node),
      now: () => ({ atSeconds: this.time.monoMs / 1_000, phase: this.phase }),
    });
    this.observer = new Observer({
      checks: this.checks,
      inspect,
      between: o.between as NodeWatcher['between'],
      note: (who, what) => this.note(who, what),
    });
    const tunings = this.#drawTunings(o);
    const kube = tunings.some((t) => t.api) ? apiServer({ rng: this.rng.fork('kube'), clock }) : undefined;
    this.nodes = tunings.map((tuning, index) =>
      simNode({
        index,
        rng: this.#rngOf(index),
        time: this.time,
        tuning,
        watcher: this.observer,
        kube: tuning.api ? kube : undefined,
      }),
    );
    if (kube !== undefined) this.observer.heedKube(kube, this.nodes);
    this.environment = this.#surround(clock, kube);
    for (const n of this.nodes) if (n.kube !== undefined && !n.tuning.registers) registerNode(n, n.kube);
    this.operators = this.nodes.map((n) => new Operator(n, this.time, n.kube === undefined ? undefined : apiUser(n, n.kube)));
    const { minutes, pods } = this.size;
    this.schedule = o.schedule ?? planned(o, { rng: this.rng.fork('schedule'), nodes: this.nodes, minutes, pods });
    this.nemesis = this.#threaten(clock, kube);
    for (const node of this.nodes) this.observer.heedMachine(node);
  }

  note(who: string, what: string): void {
    this.trace.add(this.time.monoMs, who, what);
  }

  sceneOf(node: SimNode): Scene {
    const { nemesis, environment: around, time } = this;
    const op = this.operators[node.index];
    if (op === undefined) throw new Error(`node ${node.name} has no operator`);
    return { node, operator: op, nemesis, monoMs: time.monoMs, kube: node.kube, environment: around };
  }

  #rngOf(index: number): SimRng {
    return this.rng.fork(`n${index}`);
  }

  #drawTunings({ scenario }: SimOptions): NodeTuning[] {
    return Array.from({ length: this.size.nodes }, (_, index) => {
      const drawn = drawTuning(this.#rngOf(index).fork('tuning'));
      return scenario === undefined ? drawn : scenarioTuning(scenario, drawn);
    });
  }

  #surround(clock: Clock, kube: SimKube | undefined): Environment {
    return new Environment({
      nodes: this.nodes,
      kube,
      clock,
      rng: this.rng.fork('outsiders'),
      on: (who, what) => this.note(who, what),
      answered: (node, asked) => this.checks.ask('answered', node, asked),
      shown: (node, certificate) => this.checks.ask('shown', node, certificate),
      halt: (node) => this.nemesis.halt(node),
    });
  }

  #threaten(clock: Clock, kube: SimKube | undefined): Nemesis {
    return new Nemesis({
      nodes: this.nodes,
      operators: this.operators,
      schedule: this.schedule,
      rng: this.rng.fork('nemesis'),
      time: this.time,
      clock,
      ...(kube === undefined ? {} : { kube }),
      on: (f, what) => this.note(`nemesis n${f.node + 1}`, `#${f.id} ${f.kind} ${what}`),
    });
  }
}
