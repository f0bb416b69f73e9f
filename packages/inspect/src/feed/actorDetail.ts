/** One actor that somebody watches: its chart, where it is in it, the way it came, what it would take next. */

import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import { activeStates as activeIn } from '@actorlet/kubelet/machines/chart/active.ts';
import {
  type Chart,
  type ChartState,
  chartOf,
  eventLabel,
  statesOf,
  type TransitionLike,
  transitionId,
} from '@actorlet/kubelet/machines/chart/definition.ts';
import { own } from '@actorlet/kubelet/machines/data/own.ts';
import { activeStates, childrenOf, logicOf, takenIn } from '@actorlet/kubelet/machines/xstate/inside.ts';
import { dottedState } from '@actorlet/kubelet/machines/xstate/words.ts';
import type { AnyActorRef, InspectionEvent } from 'xstate';
import { projectSnapshot } from '../project.ts';
import type { ActorFrame, ChartFrame, NextEvent, StepTaken } from './frames.ts';

/** Between the path of an actor and the id of one that it spawned or invoked. */
const CHILD_MARK = '>';
const STEPS_MAX = 40;
const HISTORY_MAX = 40;
const CHILDREN_MAX = 60;
/** Instead of a context. */
const ASLEEP = '(asleep: it has none until something wakes it)';

/** The live actor at `path`, or at `path>child>child`. */
function actorRefAt(tree: Inspected['tree'], path: string): AnyActorRef | null {
  const [root = '', ...below] = path.split(CHILD_MARK);
  let ref: AnyActorRef | null = tree.actorAt(root);
  for (const id of below) ref = own(childrenOf(ref), id) ?? null;
  return ref;
}

interface RawStep {
  atMs: number;
  snapshot: unknown;
  event: string;
  taken: readonly TransitionLike[];
}

function stateOf({ snapshot }: RawStep): string {
  return dottedState((snapshot as { value?: unknown }).value);
}

/** Watches one path over restarts of its actor. Raw inspection is attached only while this lives. */
export class WatchedActor implements Disposable {
  readonly path: string;
  readonly #node: Inspected;
  #ref: AnyActorRef | null = null;
  #tap: Disposable | null = null;
  #chart: Chart | null = null;
  #chartText = 'null';
  /** The chart is another one than it was told. */
  #chartChanged = false;
  #steps: StepTaken[] = [];
  /** The last microsteps since the steps were put into words, a ring, and how many there were. */
  readonly #raw: RawStep[] = [];
  #rawSeen = 0;
  #taken = 0;
  #from = '';
  #states = new Map<string, ChartState>();

  constructor(path: string, node: Inspected) {
    this.path = path;
    this.#node = node;
    this.#attach();
  }

  #attach(): void {
    const ref = actorRefAt(this.#node.tree, this.path);
    if (ref === null && this.#ref === null) this.#draw(this.#node.tree.machineAt(this.path));
    if (ref === this.#ref) return;
    this.#tap?.[Symbol.dispose]();
    this.#tap = null;
    this.#settle();
    this.#ref = ref;
    this.#draw(ref === null ? this.#node.tree.machineAt(this.path) : logicOf(ref));
    if (ref === null) return;
    this.#from = dottedState(ref.getSnapshot()?.value);
    this.#tap = this.#node.tree.inspect(this.path.split(CHILD_MARK, 1)[0] ?? '', (e) => this.#see(e));
  }

  /** One that sleeps too. */
  #draw(machine: object | null): void {
    if (machine === null) return;
    this.#chart = chartOf(machine);
    const text = JSON.stringify(this.#chart);
    this.#chartChanged ||= text !== this.#chartText;
    this.#chartText = text;
    this.#states = new Map(this.#chart === null ? [] : statesOf(this.#chart.root).map((s) => [s.id, s]));
  }

  /** An actor may take 200,000 steps a second: of each as little is done as can be. */
  #see(e: InspectionEvent): void {
    if (e.type !== '@xstate.microstep' || e.actorRef !== this.#ref) return;
    this.#raw[this.#rawSeen % STEPS_MAX] = {
      atMs: this.#node.clock.wallMs(),
      snapshot: e.snapshot,
      event: e.event.type,
      taken: takenIn(e),
    };
    this.#rawSeen += 1;
  }

  /** Puts what was seen since the last time into words. */
  #settle(): void {
    const seen = this.#rawSeen;
    const ring = this.#raw.splice(0);
    this.#rawSeen = 0;
    const passed = seen - ring.length;
    this.#taken += passed;
    const invokes = [...this.#states.values()].flatMap((s) => s.invokes);
    for (let n = passed; n < seen; n++) {
      const raw = ring[n % STEPS_MAX];
      if (raw === undefined) continue;
      // Nobody knows where the oldest step that is left came from.
      if (passed > 0 && n === passed) this.#from = stateOf(raw);
      else this.#step(raw, invokes);
    }
  }
  #step(raw: RawStep, invokes: ChartState['invokes']): void {
    const { atMs, taken } = raw;
    const to = stateOf(raw);
    const event = String(raw.event).slice(0, 200);
    const ids = taken.flatMap((t) => transitionId(t) ?? []);
    if (ids.length === 0 && to === this.#from) return;
    // An eventless step is xstate's answer to the event before it.
    const label = taken.length > 0 && taken.every((t) => (t.eventType ?? '') === '') ? 'always' : eventLabel(event, invokes);
    this.#taken += 1;
    this.#steps.push({ n: this.#taken, atMs, event, label, from: this.#from, to, transitions: ids });
    if (this.#steps.length > STEPS_MAX) this.#steps.shift();
    this.#from = to;
  }

  /** The chart, where it is another one than the last time. */
  chart(): ChartFrame | null {
    this.#attach();
    if (!this.#chartChanged) return null;
    this.#chartChanged = false;
    return this.lastChart();
  }
  lastChart(): ChartFrame {
    return { t: 'chart', path: this.path, chart: this.#chart };
  }

  frame(): ActorFrame {
    const ref = this.#ref;
    this.#settle();
    const history = this.#node.recorder.last(HISTORY_MAX, (e) => e.path === this.path);
    return { t: 'actor', path: this.path, live: ref === null ? this.#asleep() : this.#live(ref), steps: [...this.#steps], history };
  }

  /** In its state, with what leads out of it. Null: nothing is there. */
  #asleep(): ActorFrame['live'] {
    const row = this.#node.tree.rowAt(this.path);
    if (row?.asleepMs === undefined) return null;
    const active = this.#chart === null ? [] : activeIn(this.#chart, row.state);
    return { status: 'asleep', value: row.state, active, context: ASLEEP, next: this.#next(active), children: [] };
  }

  #live(ref: AnyActorRef): NonNullable<ActorFrame['live']> {
    const snapshot: unknown = ref.getSnapshot();
    const { status, value } = (snapshot ?? {}) as { status?: string; value?: unknown };
    const active = activeStates(snapshot).map((s) => s.id);
    return {
      status: status ?? '',
      value: dottedState(value),
      active,
      context: projectSnapshot(snapshot),
      next: this.#next(active),
      children: Object.entries(childrenOf(ref))
        .slice(0, CHILDREN_MAX)
        .flatMap(([id, child]) => {
          if (child === undefined) return [];
          const at = child.getSnapshot() as { value?: unknown; status?: string } | undefined;
          return [{ id, state: dottedState(at?.value), status: at?.status ?? '', machine: at?.value !== undefined }];
        }),
    };
  }

  #next(active: readonly string[]): NextEvent[] {
    const out = new Map<string, NextEvent>();
    // Innermost first: an inner state's transition wins over an outer one's.
    for (const id of active.toReversed()) {
      for (const t of this.#states.get(id)?.transitions ?? []) {
        if (t.event === '') continue;
        const key = `${t.event}|${t.guard}|${t.targets.join()}`;
        if (!out.has(key)) out.set(key, { event: t.event, label: t.label, guard: t.guard, targets: t.targets });
      }
    }
    return [...out.values()];
  }

  [Symbol.dispose](): void {
    this.#tap?.[Symbol.dispose]();
    this.#tap = null;
  }
}
