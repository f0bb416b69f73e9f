/**
 * One child of a dynamic supervisor: its specification, its present incarnation if any, and what is remembered of it. One that sleeps
 * has no incarnation, and is made again like one that crashed, with what it kept.
 */
import type { AnyActorRef } from 'xstate';
import type { Message } from '../../../machines/supervision/address.ts';
import { addCrashes, NO_HISTORY, type RestartHistory } from '../../../machines/supervision/restartPolicy.ts';
import type { Item } from '../mailbox/item.ts';
import type { TreeServices } from '../services.ts';
import type { Slept } from '../sleep/slept.ts';
import type { OnWheel } from '../sleep/wheel.ts';
import type { ActorCtx, ActorSpec, ActorState, Complete, ExitReason } from '../types.ts';
import { ActorCell, type CellHost } from './actorCell.ts';
import { type ActorEnd, Life } from './life.ts';

/** One for all children. */
export interface ChildEnv<E extends Message> {
  services: TreeServices;
  onEnd(child: Child<E>, end: ActorEnd): void;
  onUp(child: Child<E>): void;
  /** Crashes held against an item counted after all, and are over its intensity. */
  onOver(child: Child<E>, error: Error): void;
}

/** Its id is its key. */
export class Child<E extends Message> extends Life implements CellHost, OnWheel {
  readonly spec: Complete<ActorSpec<E>>;
  history: RestartHistory = NO_HISTORY;
  /** Why it is quarantined; null when it is not. */
  quarantine: string | null = null;
  stopping = false;
  lastExit: ExitReason | null = null;
  slot: number | null = null;
  #slept: Slept | null = null;
  /** Steps of its incarnation when it was last looked at. */
  #steps = 0;
  readonly #env: ChildEnv<E>;
  readonly #subject: string | undefined;
  #cell: ActorCell<E> | null = null;
  #timer: unknown = null;
  #restarts = 0;

  /** `after`: its last incarnation before. `subject`: see {@link CellIdentity}. */
  constructor(of: { path: string; key: string; after: number; subject: string | null }, spec: Complete<ActorSpec<E>>, env: ChildEnv<E>) {
    super(of.path, of.key, env.services);
    this.spec = spec;
    this.#env = env;
    this.#subject = of.subject ?? undefined;
    this.incarnation = of.after;
  }

  get isUp(): boolean {
    return this.#cell !== null;
  }
  get actor(): AnyActorRef | null {
    return this.#cell?.actor ?? null;
  }
  get aliveActors(): number {
    return this.#cell?.aliveActors ?? 0;
  }

  get isAsleep(): boolean {
    return this.#slept !== null;
  }

  start(): void {
    this.#begin();
  }

  /** Goes on where it fell asleep. Its crashes count on, and it has not restarted. */
  wake(): void {
    if (this.#slept !== null) this.#begin(this.#slept);
  }

  #begin(slept?: Slept): void {
    this.#slept = null;
    this.begins(this.incarnation + 1);
    if (slept === undefined) this.history = { ...this.history, startedAtMs: this.sinceMonoMs };
    this.#steps = 0;
    const { path, id, incarnation, services } = this;
    const subject = this.#subject;
    const identity = { path, id, incarnation, ...(subject === undefined ? {} : { subject }) };
    const cell = new ActorCell<E>(identity, this.spec, { services, host: this });
    this.#cell = cell;
    cell.start(slept);
    if (this.#cell !== cell) return;
    this.#env.onUp(this);
  }

  /** It rested since the last look, and there is nothing to do: it sleeps from now on. */
  rests(): boolean {
    const cell = this.#cell;
    if (cell === null || this.stopping) return false;
    const { steps } = cell;
    const rested = steps === this.#steps;
    this.#steps = steps;
    if (!rested) return false;
    this.#slept = cell.sleep();
    if (this.#slept === null) return false;
    this.#cell = null;
    this.sinceMonoMs = this.nowMonoMs();
    return true;
  }

  /** What its chart is drawn from, while it sleeps. */
  get machine(): object | null {
    return this.#slept?.machine ?? null;
  }

  /** When its first timer is due, while it sleeps; null: it has none. */
  get dueAtMonoMs(): number | null {
    return this.#slept?.dueAtMonoMs ?? null;
  }

  /** A timer came due. Answers when the next one is, if it sleeps on; null: it is to be woken. */
  look(ctx: ActorCtx): number | null {
    const slept = this.#slept;
    const next = slept === null ? null : (this.spec.passivate?.look?.(slept.kept, ctx) ?? null);
    if (slept !== null && next !== null) this.#slept = { ...slept, dueAtMonoMs: next };
    return next;
  }

  startLater(delayMs: number): void {
    this.#restarts += 1;
    const { services } = this;
    services.observers.touch(this.path);
    this.#timer = services.ports.clock.setTimeout(() => {
      services.scheduler.post(this.path, () => {
        // Cancelled meanwhile: a stop or a quarantine overtook the restart.
        if (this.#timer === null) return;
        this.#timer = null;
        this.start();
      });
    }, delayMs);
  }

  cancel(): void {
    if (this.#timer !== null) this.services.ports.clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  stop(): void {
    this.cancel();
    this.stopping = true;
    this.services.observers.touch(this.path);
    this.#cell?.stop();
  }

  kill(reason: ExitReason): boolean {
    this.cancel();
    const wasUp = this.#cell !== null;
    this.#cell?.kill(reason);
    return wasUp;
  }

  /** What a sleeper kept dies with it: it is made again as after a crash. */
  killAsleep(by: string): void {
    if (this.#slept === null) return;
    this.#slept = null;
    const { observers, ports } = this.services;
    const { path, incarnation } = this;
    const reason: ExitReason = { kind: 'killed', by };
    this.lastExit = reason;
    this.ends(reason, { orderly: false, log: true });
    if (observers.any) observers.emit({ kind: 'child.exited', atMs: ports.clock.wallMs(), path, incarnation, reason });
    this.#env.onEnd(this, { reason, orderly: false });
    observers.touch(path);
  }

  deliver(item: Item<E>): void {
    this.#cell?.deliver(item.event, item.ask);
  }

  /** An item was handled in the end: crashes held against it count now. */
  handled(item: Item<E>): void {
    if (item.crashedAtMs.length === 0) return;
    const { crashes, over } = addCrashes(this.history.crashes, item.crashedAtMs, this.spec.intensity);
    this.history = { ...this.history, crashes };
    if (!over) return;
    const { max, periodMs } = this.spec.intensity;
    this.#env.onOver(this, new Error(`crashed more than ${max} times in ${periodMs} ms; last: ${this.lastError ?? 'unknown'}`));
    this.#cell?.kill({ kind: 'shutdown' });
  }

  onReady(): void {
    // Nobody waits for a dynamic child.
  }

  onEnd(reason: ExitReason, orderly: boolean): void {
    const started = this.#cell;
    this.#cell = null;
    this.lastExit = reason;
    this.ends(reason, { orderly, log: true });
    if (started !== null) this.#env.onEnd(this, { reason, orderly });
  }

  state(): ActorState {
    if (this.#slept !== null) return this.#asleepRow(this.#slept);
    const lifecycle = this.quarantine !== null ? 'quarantined' : this.stopping ? 'stopping' : this.isUp ? 'running' : 'restarting';
    const state = this.cellRow(this.#cell, { lifecycle, restarts: this.#restarts });
    if (this.quarantine !== null) {
      state.reason = 'Quarantined';
      state.message = this.quarantine;
    }
    return state;
  }

  #asleepRow({ state, reason, message, sinceMonoMs }: Slept): ActorState {
    const shown = { lifecycle: 'asleep', state, reason, message, restarts: this.#restarts, children: [] };
    const row = this.row({ type: 'actor', ...shown }, { sinceMonoMs });
    return { ...row, asleepMs: Math.max(0, this.nowMonoMs() - this.sinceMonoMs) };
  }
}
