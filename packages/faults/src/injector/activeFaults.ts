/**
 * What the interceptors of a node look at: the faults at work now. Belongs to the node; its content belongs to the
 * present incarnation of the injector and is gone the moment that ends, whatever the way.
 */

import type { Rng } from '@actorlet/kubelet/ports/ports.ts';
import { createMatcher, type Matcher } from '@actorlet/shown/src/match.ts';
import { describeFault } from '../describe.ts';
import type { FaultKind, ScenarioFault } from '../types.ts';

export type FaultOf<K extends FaultKind> = Extract<ScenarioFault, { kind: K }>;

/** One window of a fault, while it lasts. */
export interface ActiveFault {
  readonly fault: ScenarioFault;
  /** Aborted when the fault is healed: calls that wait because of it go on. */
  readonly healed: AbortSignal;
  readonly hits: number;
}
export interface ActiveFaultOf<K extends FaultKind> extends ActiveFault {
  readonly fault: FaultOf<K>;
}

/** Called when a fault of its kind begins; gives how many things it hit at once. */
type BeginListener = (active: ActiveFault) => number;
type HitListener = (active: ActiveFault, what: string) => void;

interface Entry extends ActiveFault {
  hits: number;
  readonly heal: AbortController;
}

const NONE: readonly never[] = [];

export class ActiveFaults {
  readonly match: Matcher = createMatcher();
  readonly #rng: Rng;
  readonly #active = new Map<FaultKind, Entry[]>();
  readonly #listeners = new Map<FaultKind, BeginListener[]>();
  #owner: FaultSession | null = null;
  #onHit: HitListener = () => undefined;
  #left: readonly string[] = [];

  constructor(rng: Rng) {
    this.#rng = rng;
  }

  /** The faults of one kind at work now. */
  of<K extends FaultKind>(kind: K): readonly ActiveFaultOf<K>[] {
    // The map's key is the kind of every entry in its list.
    return (this.#active.get(kind) as readonly ActiveFault[] | undefined as readonly ActiveFaultOf<K>[] | undefined) ?? NONE;
  }

  /** How many windows are open now. */
  get size(): number {
    let size = 0;
    for (const list of this.#active.values()) size += list.length;
    return size;
  }

  /** Draws whether a fault hits this time; counts and reports the hit. `what` names what was hit, without payload. */
  strikes(active: ActiveFault, what: string): boolean {
    const { fault } = active;
    if (active.healed.aborted || (fault.times !== undefined && active.hits >= fault.times)) return false;
    if (fault.probability < 1 && this.#rng.next() >= fault.probability) return false;
    this.count(active, what);
    return true;
  }

  /** The first fault of a kind that `fits` and hits. */
  first<K extends FaultKind>(kind: K, what: string, fits: (f: FaultOf<K>) => boolean): ActiveFaultOf<K> | undefined {
    for (const active of this.of(kind)) if (fits(active.fault) && this.strikes(active, what)) return active;
    return undefined;
  }

  /** A hit without a draw. */
  count(active: ActiveFault, what: string): void {
    const entry = this.#active.get(active.fault.kind)?.find((e) => e === active);
    if (entry === undefined) return;
    entry.hits += 1;
    this.#onHit(entry, what);
  }

  /** What was at work when the last session ended, for the next one to tell. */
  get left(): readonly string[] {
    return this.#left;
  }

  /** For interceptors, once, when they are made. */
  onBegin(kind: FaultKind, fn: BeginListener): void {
    const list = this.#listeners.get(kind);
    if (list === undefined) this.#listeners.set(kind, [fn]);
    else list.push(fn);
  }

  /** For the injector: from now on the content is this incarnation's, until `signal` aborts. What another left is healed. */
  session(signal: AbortSignal, onHit: HitListener): FaultSession {
    this.#owner?.end();
    const session: FaultSession = {
      begin: (fault) => this.#begin(session, fault),
      heal: (active) => this.#heal(active),
      end: () => {
        if (this.#owner !== session) return;
        this.#owner = null;
        this.#left = [...this.#active.values()].flat().map(({ fault }) => `${fault.name} (${describeFault(fault)})`);
        for (const list of [...this.#active.values()]) for (const entry of [...list]) this.#heal(entry);
        this.#onHit = () => undefined;
      },
    };
    this.#owner = session;
    this.#onHit = onHit;
    this.#left = [];
    if (signal.aborted) session.end();
    else signal.addEventListener('abort', session.end, { once: true });
    return session;
  }

  #begin(session: FaultSession, fault: ScenarioFault): { active: ActiveFault; atOnce: number } {
    if (this.#owner !== session) throw new Error('the injector that began this fault has ended');
    const heal = new AbortController();
    const entry: Entry = { fault, heal, healed: heal.signal, hits: 0 };
    const list = this.#active.get(fault.kind);
    if (list === undefined) this.#active.set(fault.kind, [entry]);
    else list.push(entry);
    let atOnce = 0;
    for (const fn of this.#listeners.get(fault.kind) ?? NONE) atOnce += fn(entry);
    return { active: entry, atOnce };
  }

  #heal(active: ActiveFault): void {
    const list = this.#active.get(active.fault.kind) ?? [];
    const entry = list.find((e) => e === active);
    if (entry === undefined) return;
    const left = list.filter((e) => e !== entry);
    if (left.length === 0) this.#active.delete(active.fault.kind);
    else this.#active.set(active.fault.kind, left);
    entry.heal.abort(new Error('the injected fault was healed'));
  }
}

/** One incarnation's hold on the active faults. */
export interface FaultSession {
  /** `atOnce`: what the beginning itself hit: watches broken, streams and calls cut. Throws once the session has ended. */
  begin(fault: ScenarioFault): { active: ActiveFault; atOnce: number };
  heal(active: ActiveFault): void;
  /** Heals everything; a second call does nothing. */
  end(): void;
}
