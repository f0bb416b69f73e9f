/**
 * Notes what changes of a node as it changes: the parts of its views, and the row of each actor, each with the time of the
 * change. What it notes waits until it is taken, and is compared only then.
 */

import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import type { ActorState } from '@actorlet/kubelet/actors/supervision/types.ts';
import { type Chart, chartOf } from '@actorlet/kubelet/machines/chart/definition.ts';
import { CLOCK, FAULTS } from './names.ts';
import type { RowFact } from './row.ts';
import { KEPT_VIEWS, type KeptView, WHOLE } from './views.ts';

/** A part of a view, as JSON text; null: it is gone. */
export interface Fact {
  atMs: number;
  view: string;
  key: string;
  text: string | null;
}
/** The clocks drift against each other, and are read one after the other. */
const CLOCK_JITTER_MS = 2;
/** What no event tells, such as a certificate that ends: the whole tree is looked at so often, while something happens. */
const TREE_EVERY_MS = 5_000;

interface KnownPart {
  part: unknown;
  text: string;
}

export class Look implements Disposable {
  readonly #node: Inspected;
  readonly #onChange: () => void;
  readonly #taps: Disposable[];
  readonly #known = new Map<string, Map<string, KnownPart>>();
  readonly #rows = new Map<string, string>();
  /** Charts by the configuration of their machines, numbered as they were seen. */
  readonly #chartIds = new Map<unknown, number>();
  readonly charts: Chart[] = [];
  /** Views that were published since they were taken, in order. */
  #published: { atMs: number; view: KeptView; value: unknown }[] = [];
  /** Actors that changed in the present step, and when. */
  readonly #touched = new Map<string, number>();
  #armed = false;
  #facts: Fact[] = [];
  #rowFacts: RowFact[] = [];
  #treeMonoMs = Number.NEGATIVE_INFINITY;

  constructor(node: Inspected, onChange: () => void) {
    this.#node = node;
    this.#onChange = onChange;
    const { registry } = node.tree;
    this.#taps = [
      ...KEPT_VIEWS.map((view) => registry.watch({ view: view.view }, (value) => this.#publish(view, value))),
      node.tree.touched((path) => this.#touch(path)),
    ];
  }

  [Symbol.dispose](): void {
    for (const tap of this.#taps) tap[Symbol.dispose]();
  }

  #publish(view: KeptView, value: unknown): void {
    // The timeline of the node itself has the time of its history: between two readings of the clock it may go on.
    this.#published.push({ atMs: this.#node.history.seenMs(value) ?? this.#node.clock.wallMs(), view, value });
    this.#onChange();
  }

  #touch(path: string): void {
    this.#touched.set(path, this.#node.clock.wallMs());
    if (this.#armed) return;
    this.#armed = true;
    // Once the step is over, and before the next begins.
    void Promise.resolve().then(() => this.#sample());
    this.#onChange();
  }

  #sample(): void {
    this.#armed = false;
    this.#noteClock();
    for (const [path, atMs] of this.#touched) this.#noteRow(path, atMs, this.#node.tree.rowAt(path));
    this.#touched.clear();
  }

  #noteClock(): void {
    const { clock, faults } = this.#node;
    const offsetMs = clock.wallMs() - clock.monoMs();
    const known = Number(this.#known.get(CLOCK)?.get(WHOLE)?.text ?? Number.NaN);
    if (!(Math.abs(offsetMs - known) < CLOCK_JITTER_MS)) this.#note(CLOCK, WHOLE, { atMs: clock.wallMs(), text: JSON.stringify(offsetMs) });
    this.#note(FAULTS, WHOLE, { atMs: clock.wallMs(), text: JSON.stringify(faults?.size ?? null) });
  }

  #note(view: string, key: string, o: { atMs: number; text: string; part?: unknown }): void {
    const parts = this.#known.get(view) ?? new Map<string, KnownPart>();
    this.#known.set(view, parts);
    const before = parts.get(key);
    parts.set(key, { part: o.part, text: o.text });
    if (before?.text !== o.text) this.#facts.push({ atMs: o.atMs, view, key, text: o.text });
  }

  #noteView(view: KeptView, value: unknown, atMs: number): void {
    const known = this.#known.get(view.view);
    const there = new Set<string>();
    for (const [key, part] of view.parts(value as never)) {
      there.add(key);
      const before = known?.get(key);
      if (before !== undefined && before.part === part && typeof part === 'object' && key !== WHOLE) continue;
      this.#note(view.view, key, { atMs, part, text: JSON.stringify(view.pack(part as never)) });
    }
    for (const key of known?.keys() ?? []) {
      if (there.has(key)) continue;
      known?.delete(key);
      this.#facts.push({ atMs, view: view.view, key, text: null });
    }
  }

  #noteRow(path: string, atMs: number, state: ActorState | undefined): void {
    if (state === undefined) {
      if (this.#rows.delete(path)) this.#rowFacts.push({ atMs, path, row: null });
      return;
    }
    const monoMs = this.#node.clock.monoMs();
    const { ageMs, asleepMs, children: _, mailbox, ...rest } = state;
    const sleptMonoMs = asleepMs === undefined ? null : micros(monoMs - asleepMs);
    const sinceMonoMs = micros(monoMs - ageMs);
    const oldestMonoMs = mailbox === undefined || mailbox.depth === 0 ? 0 : micros(monoMs - mailbox.oldestAgeMs);
    const chart = this.#chartOf(path);
    const { oldestAgeMs: __, ...mail } = mailbox ?? {};
    const text = JSON.stringify([rest, sinceMonoMs, sleptMonoMs, mail, oldestMonoMs, chart]);
    if (this.#rows.get(path) === text) return;
    this.#rows.set(path, text);
    this.#rowFacts.push({ atMs, path, row: { state, sinceMonoMs, sleptMonoMs, oldestMonoMs, chart } });
  }

  /** -1: it is no machine. */
  #chartOf(path: string): number {
    const logic = this.#node.tree.machineAt(path);
    const config: unknown = (logic as { config?: unknown } | null)?.config;
    const known = config === undefined ? undefined : this.#chartIds.get(config);
    if (known !== undefined) return known;
    const chart = chartOf(logic);
    const made = chart === null ? -1 : this.charts.push(chart) - 1;
    if (config !== undefined) this.#chartIds.set(config, made);
    return made;
  }

  /** What waits is not taken: all facts will be. */
  forget(): void {
    this.#published = [];
    this.#facts = [];
    this.#rowFacts = [];
  }

  /** What was noted since the last time, in order. `whole`: everything that there is, whatever was noted before. */
  take({ whole }: { whole: boolean }): { facts: Fact[]; rows: RowFact[] } {
    const { tree, clock } = this.#node;
    if (whole) {
      this.#published = KEPT_VIEWS.flatMap((view) => {
        const read = tree.registry.read({ view: view.view });
        return read === undefined ? [] : [{ atMs: clock.wallMs(), view, value: read.value }];
      });
      this.#known.clear();
      this.#rows.clear();
      this.#facts = [];
      this.#rowFacts = [];
      this.#touched.clear();
    }
    this.#sample();
    if (whole || clock.monoMs() - this.#treeMonoMs >= TREE_EVERY_MS) this.#noteTree();
    for (const { view, value, atMs } of this.#published) this.#noteView(view, value, atMs);
    this.#published = [];
    const taken = { facts: this.#facts, rows: this.#rowFacts };
    this.#facts = [];
    this.#rowFacts = [];
    return taken;
  }

  #noteTree(): void {
    const { tree, clock } = this.#node;
    this.#treeMonoMs = clock.monoMs();
    const atMs = clock.wallMs();
    const there = new Set<string>();
    const visit = (state: ActorState): void => {
      there.add(state.path);
      this.#noteRow(state.path, atMs, state);
      for (const child of state.children) visit(child);
    };
    visit(tree.state());
    for (const path of this.#rows.keys()) if (!there.has(path)) this.#noteRow(path, atMs, undefined);
  }
}

function micros(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
