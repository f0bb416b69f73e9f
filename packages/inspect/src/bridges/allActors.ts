/**
 * Every xstate actor of one node, children included, as the stock inspectors want to hear of them: it is there, it got an
 * event, it has another snapshot, it stopped. Raw inspection (three events a message) is attached only while this lives.
 */

import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import type { ActorState, SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import { type Chart, chartOf } from '@actorlet/kubelet/machines/chart/definition.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { childrenOf, logicOf, parentOf } from '@actorlet/kubelet/machines/xstate/inside.ts';
import type { AnyActorRef, InspectionEvent } from 'xstate';
import { podOf } from '../feed/podOf.ts';

/** Events and snapshots of one actor in one second; above it only its last snapshot of that second is told. */
const FRAMES_PER_SECOND_MAX = 100;
const SECOND_MS = 1000;

export interface SeenActor {
  /** Unique over the whole node and its restarts. */
  readonly session: string;
  readonly parent: string | undefined;
  readonly root: string;
  readonly name: string;
  readonly ref: AnyActorRef;
  /** Null: no machine. */
  readonly chart: Chart | null;
}
export interface ActorsListener {
  registered(a: SeenActor): void;
  event(a: SeenActor, e: { event: unknown; source: string | undefined }): void;
  snapshot(a: SeenActor, e: { event: unknown; snapshot: unknown }): void;
  stopped(a: SeenActor): void;
}

interface Known extends SeenActor {
  readonly path: string;
  frames: number;
  /** A snapshot was left out this second. */
  behind: boolean;
}

export class AllActors implements Disposable {
  readonly #node: Inspected;
  readonly #listener: ActorsListener;
  readonly #known = new Map<AnyActorRef, Known>();
  readonly #taps = new Map<string, Disposable>();
  readonly #incarnations = new Map<string, number>();
  /** Paths whose new actor is made right after the kernel's event. */
  readonly #due = new Set<string>();
  readonly #born = new Set<AnyActorRef>();
  readonly #charts = new WeakMap<object, Chart | { none: true }>();
  readonly #watch: Disposable;
  #soon: unknown = null;
  #second: unknown = null;
  /** Frames left out since the start, for their actor's rate. */
  capped = 0;

  constructor(node: Inspected, listener: ActorsListener) {
    this.#node = node;
    this.#listener = listener;
    this.#watch = node.tree.observe((e) => this.#supervision(e));
    const visit = (a: ActorState) => {
      this.#incarnations.set(a.path, a.incarnation);
      this.#attach(a.path);
      a.children.forEach(visit);
    };
    visit(node.tree.state());
    this.#everySecond();
  }

  /** All that live, parents first. */
  get all(): SeenActor[] {
    return [...this.#known.values()];
  }

  #supervision(e: SupervisionEvent): void {
    if (e.kind === 'child.started' || e.kind === 'child.woken') {
      this.#incarnations.set(e.path, e.incarnation);
      this.#due.add(e.path);
      this.#later();
    } else if (e.kind === 'child.exited' || e.kind === 'child.asleep') {
      this.#taps.get(e.path)?.[Symbol.dispose]();
      this.#taps.delete(e.path);
      for (const known of [...this.#known.values()]) if (known.path === e.path) this.#stop(known);
    }
  }

  #later(): void {
    this.#soon ??= this.#node.clock.setTimeout(() => {
      this.#soon = null;
      for (const path of this.#due) this.#attach(path);
      this.#due.clear();
      for (const ref of this.#born) this.#ensure(ref);
      this.#born.clear();
    }, 0);
  }

  #attach(path: string): void {
    const ref = this.#node.tree.actorAt(path);
    if (ref === null || this.#known.has(ref)) return;
    this.#taps.get(path)?.[Symbol.dispose]();
    const tap = this.#node.tree.inspect(path, (e) => this.#see(e));
    if (tap !== null) this.#taps.set(path, tap);
    const session = `${path}:${this.#incarnations.get(path) ?? 0}`;
    this.#register({ ref, path, session, parent: this.#above(path), root: session, name: this.#nameOf(path) });
    this.#children(ref);
  }

  #children(ref: AnyActorRef): void {
    for (const child of Object.values(childrenOf(ref))) {
      if (child === undefined) continue;
      this.#ensure(child);
      this.#children(child);
    }
  }

  /** Session of the nearest supervisor above: a dynamic one is no machine. */
  #above(path: string): string | undefined {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const ref = this.#node.tree.actorAt(path.slice(0, at));
      const known = ref === null ? undefined : this.#known.get(ref);
      if (known !== undefined) return known.session;
    }
    return undefined;
  }

  #nameOf(path: string): string {
    const uid = podOf(path);
    const pod = uid === '' ? undefined : this.#node.tree.registry.read(podsView)?.value.records.get(uid)?.pod.metadata.name;
    return pod === undefined ? path : path.replace(uid, pod);
  }

  /** A child that was spawned or invoked; undefined when its parent is not known (any more). */
  #ensure(ref: AnyActorRef): Known | undefined {
    const known = this.#known.get(ref);
    if (known !== undefined) return known;
    const above = parentOf(ref);
    const parent = above === undefined ? undefined : this.#ensure(above);
    if (parent === undefined || ref.getSnapshot()?.status !== 'active') return undefined;
    const session = `${parent.root}/${ref.sessionId}`;
    return this.#register({ ref, path: parent.path, session, parent: parent.session, root: parent.root, name: ref.id });
  }

  #register(o: Omit<Known, 'chart' | 'frames' | 'behind'>): Known {
    const known: Known = { ...o, chart: this.#chartOf(o.ref), frames: 0, behind: false };
    this.#known.set(o.ref, known);
    this.#listener.registered(known);
    return known;
  }

  #chartOf(ref: AnyActorRef): Chart | null {
    const logic = logicOf(ref);
    if (typeof logic !== 'object' || logic === null) return null;
    // Each actor has a machine of its own, with its own effects; those of one kind share their configuration.
    const config: unknown = Reflect.get(logic, 'config');
    const kind = typeof config === 'object' && config !== null ? config : logic;
    let chart = this.#charts.get(kind);
    if (chart === undefined) {
      chart = chartOf(logic) ?? { none: true };
      this.#charts.set(kind, chart);
    }
    return 'none' in chart ? null : chart;
  }

  #see(e: InspectionEvent): void {
    if (e.type === '@xstate.actor') {
      // Its first snapshot is made inside its constructor, which is where we are.
      this.#born.add(e.actorRef as AnyActorRef);
      this.#later();
      return;
    }
    if (e.type !== '@xstate.event' && e.type !== '@xstate.snapshot') return;
    const known = this.#ensure(e.actorRef as AnyActorRef);
    if (known === undefined) return;
    if (e.type === '@xstate.event') {
      if (this.#allowed(known)) this.#listener.event(known, { event: e.event, source: this.#sourceOf(e.sourceRef) });
      return;
    }
    const ended = (e.snapshot as { status?: string }).status !== 'active';
    if (ended || this.#allowed(known)) this.#listener.snapshot(known, { event: e.event, snapshot: e.snapshot });
    else known.behind = true;
    if (ended) this.#stop(known);
  }

  #sourceOf(ref: unknown): string | undefined {
    return ref === undefined ? undefined : this.#known.get(ref as AnyActorRef)?.session;
  }

  #allowed(known: Known): boolean {
    known.frames += 1;
    if (known.frames <= FRAMES_PER_SECOND_MAX) return true;
    this.capped += 1;
    return false;
  }

  #everySecond(): void {
    this.#second = this.#node.clock.setTimeout(() => {
      for (const known of this.#known.values()) {
        known.frames = 0;
        if (!known.behind) continue;
        known.behind = false;
        this.#listener.snapshot(known, { event: { type: '' }, snapshot: known.ref.getSnapshot() });
      }
      this.#everySecond();
    }, SECOND_MS);
  }

  #stop(known: Known): void {
    if (this.#known.delete(known.ref)) this.#listener.stopped(known);
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]();
    for (const tap of this.#taps.values()) tap[Symbol.dispose]();
    this.#taps.clear();
    this.#known.clear();
    const { clock } = this.#node;
    if (this.#soon !== null) clock.clearTimeout(this.#soon);
    clock.clearTimeout(this.#second);
  }
}
