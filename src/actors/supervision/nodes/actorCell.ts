/**
 * One incarnation of one actor: an xstate root with the node's clock, its context, its end. Everything that user code
 * throws is caught here and becomes the reason of the exit.
 */
import { type AnyActorRef, createActor, type InspectionEvent } from 'xstate';
import type { Message } from '../../../machines/supervision/address.ts';
import { rememberNamedEventsAlone } from '../../../machines/xstate/candidates.ts';
import { noting, sharedMachine } from '../../../machines/xstate/inside.ts';
import { type Alive, supervisable } from '../../../machines/xstate/supervisable.ts';
import { dottedState, reasonOf } from '../../../machines/xstate/words.ts';
import { NotReadyError, toError } from '../errors.ts';
import type { PendingAsk } from '../mailbox/ask.ts';
import type { TreeServices } from '../services.ts';
import { Due, type Timers } from '../sleep/due.ts';
import type { Slept } from '../sleep/slept.ts';
import type { ActorSpec, Complete, ExitReason, Started } from '../types.ts';
import { ActorContext } from './actorContext.ts';
import { eventName } from './snapshots.ts';

rememberNamedEventsAlone();

/** The supervisor of the incarnation. Called synchronously, possibly inside `start`, `deliver` or a timer; must not throw. */
export interface CellHost {
  onReady(): void;
  /** Exactly once. `orderly`: the host had asked for this end. */
  onEnd(reason: ExitReason, orderly: boolean): void;
}

export interface CellIdentity {
  path: string;
  id: string;
  incarnation: number;
  /** Id of what all its work is for; absent: nothing, or several things. */
  subject?: string;
}

type XstateClock = NonNullable<NonNullable<Parameters<typeof createActor>[1]>['clock']>;

interface SnapshotLike {
  status: string;
  value?: unknown;
  error?: unknown;
}

export class ActorCell<E extends Message> {
  readonly identity: CellIdentity;
  note = '';
  /** Monotonic ms of the last change of state value, else of the start. */
  sinceMonoMs: number;
  ended: ExitReason | null = null;
  readonly #services: TreeServices;
  readonly #spec: Complete<ActorSpec<E>>;
  readonly #host: CellHost;
  #actor: AnyActorRef | null = null;
  #alive: Alive | null = null;
  #abort: AbortController | null = null;
  #ready = false;
  #stopping = false;
  /** Reason that the caller of stop gives; without one the snapshot tells it. */
  #given: ExitReason | null = null;
  #timer: unknown = null;
  #value: unknown;
  #state = '';
  /** Type of the event that the machine took last. */
  #event = '';
  #inside = false;
  #asks: Set<PendingAsk> | null = null;
  /** Times of its machine's timers; null: it never sleeps. */
  readonly #due: Due | null;
  #keep: Started['keep'];
  /** Steps taken so far: whether it rests is seen by them, without a look at the clock. */
  steps = 0;

  constructor(identity: CellIdentity, spec: Complete<ActorSpec<E>>, env: { services: TreeServices; host: CellHost }) {
    this.identity = identity;
    this.#spec = spec;
    this.#services = env.services;
    this.#host = env.host;
    this.sinceMonoMs = env.services.ports.clock.monoMs();
    this.#due = spec.passivate === undefined ? null : new Due();
  }

  get path(): string {
    return this.identity.path;
  }
  get actor(): AnyActorRef | null {
    return this.#actor;
  }
  get state(): string {
    return this.#state;
  }
  get stale(): boolean {
    return this.ended !== null;
  }
  get isReady(): boolean {
    return this.#ready;
  }
  /** xstate actors alive in this incarnation's system; 0 after its end. */
  get aliveActors(): number {
    return this.#alive?.count() ?? 0;
  }
  get signal(): AbortSignal {
    // Made on demand: most idle actors never look at it.
    this.#abort ??= new AbortController();
    if (this.ended !== null && !this.#abort.signal.aborted) this.#abort.abort();
    return this.#abort.signal;
  }

  /** `slept`: what the incarnation before left when it fell asleep. */
  start(slept?: Slept): void {
    const { path } = this.identity;
    const { ports, observers } = this.#services;
    this.#begins(slept);
    try {
      const { logic, input, keep } = this.#spec.start(new ActorContext(this, this.#services), slept);
      this.#keep = keep;
      const noted = noting(logic, (type) => {
        this.#event = type;
        this.#services.scheduler.took(type);
      });
      const actor = createActor(noted, { clock: this.#xstateClock(), id: this.identity.id, input, ...this.#inspection() });
      this.#actor = actor;
      this.#alive = supervisable(actor, (step) => this.#stamped(step));
      actor.subscribe({
        next: (snapshot: SnapshotLike) => this.#onSnapshot(snapshot),
        error: (err: unknown) => this.#end({ kind: 'error', error: toError(err) }),
        complete: () => this.#end(this.#given ?? { kind: this.#stopping ? 'shutdown' : 'normal' }),
      });
      this.#stamped(() => actor.start());
    } catch (thrown) {
      // `spec.start` threw, or gave no logic.
      this.#end({ kind: 'error', error: toError(thrown) });
    }
    if (this.ended !== null) return;
    this.checkReady();
    const { ready } = this.#spec;
    observers.touch(path);
    if (this.#ready || ready === undefined || this.ended !== null) return;
    this.#timer = ports.clock.setTimeout(() => {
      this.#timer = null;
      this.#forceStop({ kind: 'error', error: new NotReadyError(path, ready.timeoutMs) });
    }, ready.timeoutMs);
  }

  /** In the state that it slept in, as if it had never left it. */
  #begins(slept: Slept | undefined): void {
    const { ports, observers } = this.#services;
    const { path, incarnation } = this.identity;
    if (slept !== undefined) {
      this.#state = slept.state;
      this.sinceMonoMs = slept.sinceMonoMs;
    }
    if (!observers.any) return;
    const atMs = ports.clock.wallMs();
    if (slept === undefined) observers.emit({ kind: 'child.started', atMs, path, incarnation });
    else observers.emit({ kind: 'child.woken', atMs, path, incarnation, state: slept.state });
  }

  /**
   * Ends it for now, without an exit, and gives what is left of it. Null: it has something to do, and stays. Work is a question that it
   * has not answered, a promise or a callback that it invoked, and whatever its own `keep` calls so.
   */
  sleep(): Slept | null {
    const actor = this.#actor;
    if (actor === null || this.#keep === undefined || !this.#ready || this.#stopping || this.#inside) return null;
    if ((this.#asks?.size ?? 0) > 0 || this.#alive?.working() === true) return null;
    const snapshot: SnapshotLike = actor.getSnapshot();
    const kept = snapshot.status === 'active' ? this.#keep(snapshot) : null;
    if (kept === null) return null;
    const { reason, message } = reasonOf(snapshot, actor);
    const state = this.#state;
    const { sinceMonoMs, note } = this;
    const said = { state, reason: reason === '' ? note : reason, message, machine: sharedMachine(actor) };
    const slept: Slept = { kept, dueAtMonoMs: this.#due?.first ?? null, ...said, sinceMonoMs };
    const { ports, observers } = this.#services;
    const { path, incarnation } = this.identity;
    this.ended = { kind: 'shutdown' };
    this.#actor = null;
    this.#value = undefined;
    actor.stop();
    this.#abort?.abort(new Error(`${path} incarnation ${incarnation} fell asleep`));
    if (observers.any) observers.emit({ kind: 'child.asleep', atMs: ports.clock.wallMs(), path, incarnation, state });
    observers.touch(path);
    return slept;
  }

  /** Handles one event synchronously. Afterwards `ended` tells whether it was the last. */
  deliver(event: E, ask: PendingAsk | undefined): void {
    if (this.#actor === null || this.ended !== null) return;
    if (ask !== undefined) this.#track(ask);
    const actor = this.#actor;
    const subject = this.identity.subject ?? this.#services.subjectOf(event);
    if (subject === null) this.#stamped(() => actor.send(event));
    else this.#services.around(subject, () => this.#stamped(() => actor.send(event)));
  }

  /** Orderly: `stopEvent` and time to finish, else at once. The end is told to the host, perhaps before this returns. */
  stop(): void {
    if (this.ended !== null || this.#stopping) return;
    this.#stopping = true;
    this.#clearTimer();
    const { stopEvent, shutdownMs } = this.#spec;
    if (stopEvent === undefined || shutdownMs === 'brutal' || this.#actor === null) {
      this.#forceStop({ kind: 'shutdown' });
      return;
    }
    this.#timer = this.#services.ports.clock.setTimeout(() => {
      this.#timer = null;
      this.#services.log.warn(
        { actor: this.identity.path, incarnation: this.identity.incarnation, state: this.#state, shutdownMs },
        'the actor did not end within its shutdown time and was abandoned',
      );
      this.#forceStop({ kind: 'shutdown' });
    }, shutdownMs);
    this.#actor.send(stopEvent);
  }

  /** Ends it where it is. */
  kill(reason: ExitReason): void {
    this.#forceStop(reason);
  }

  #forceStop(reason: ExitReason): void {
    if (this.ended !== null) return;
    this.#given = reason;
    try {
      this.#actor?.stop();
    } catch (thrown) {
      this.#services.log.error({ actor: this.identity.path, err: toError(thrown) }, 'stopping the actor threw');
    }
    // Stopped from inside its own handling xstate stops it a little later; for us it has ended now.
    this.#end(reason);
  }

  checkReady(): void {
    if (this.#ready || this.ended !== null || this.#actor === null) return;
    try {
      if (this.#spec.ready !== undefined && !this.#spec.ready.when(this.#actor.getSnapshot())) return;
    } catch (thrown) {
      this.#forceStop({ kind: 'error', error: toError(thrown) });
      return;
    }
    this.#ready = true;
    if (!this.#stopping) this.#clearTimer();
    this.#host.onReady();
  }

  #onSnapshot(snapshot: SnapshotLike): void {
    this.#services.observers.touch(this.identity.path);
    if (snapshot.value !== undefined && snapshot.value !== this.#value) this.#onValue(snapshot);
    if (!this.#ready && this.#spec.ready !== undefined) this.checkReady();
  }

  #onValue(snapshot: SnapshotLike): void {
    this.#value = snapshot.value;
    const to = dottedState(snapshot.value);
    const from = this.#state;
    if (to === from) return;
    this.#state = to;
    const { clock } = this.#services.ports;
    this.sinceMonoMs = clock.monoMs();
    if (!this.#services.observers.any) return;
    const event = eventName(this.#event, this.#actor);
    const { path } = this.identity;
    this.#services.observers.emit({
      kind: 'transition',
      atMs: clock.wallMs(),
      path,
      from,
      to,
      event,
      reason: reasonOf(snapshot, this.#actor).reason,
    });
  }

  #end(reason: ExitReason): void {
    if (this.ended !== null) return;
    this.ended = reason;
    this.#clearTimer();
    const asks = this.#asks;
    this.#asks = null;
    this.#actor = null;
    this.#value = undefined;
    this.#abort?.abort(new Error(`${this.identity.path} incarnation ${this.identity.incarnation} ended`));
    for (const ask of asks ?? []) ask.lose(`${this.identity.path} ended before it answered`);
    const { ports, observers } = this.#services;
    if (observers.any) {
      const { path, incarnation } = this.identity;
      observers.emit({ kind: 'child.exited', atMs: ports.clock.wallMs(), path, incarnation, reason });
    }
    this.#host.onEnd(reason, this.#stopping);
    observers.touch(this.identity.path);
  }

  #track(ask: PendingAsk): void {
    if (ask.settled) return;
    this.#asks ??= new Set();
    const asks = this.#asks;
    asks.add(ask);
    ask.onSettled(() => asks.delete(ask));
  }

  #clearTimer(): void {
    if (this.#timer === null) return;
    this.#services.ports.clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  #inspection(): { inspect?: (e: InspectionEvent) => void } {
    const { inspect } = this.#services;
    return inspect === undefined ? {} : { inspect };
  }

  /** Under the heartbeat, once per step; of an actor with one subject, in the name of that. */
  #stamped(step: () => void): void {
    if (this.#inside) {
      step();
      return;
    }
    const { scheduler, around } = this.#services;
    const { path, subject } = this.identity;
    this.#inside = true;
    this.steps += 1;
    try {
      if (subject !== undefined) around(subject, () => scheduler.stamped(path, step));
      else if (scheduler.heartbeat.running === path) step();
      else scheduler.stamped(path, step);
    } finally {
      this.#inside = false;
    }
  }

  /** xstate's timers run under the heartbeat, so that a stall names the actor whose `after` it was. */
  #xstateClock(): XstateClock {
    const { clock } = this.#services.ports;
    const own: Timers = {
      setTimeout: (fn, ms) => clock.setTimeout(() => this.#stamped(fn), ms),
      clearTimeout: (id) => clock.clearTimeout(id),
    };
    // xstate treats the id as opaque but types it as a number.
    return (this.#due?.watching(own, () => clock.monoMs()) ?? own) as XstateClock;
  }
}
