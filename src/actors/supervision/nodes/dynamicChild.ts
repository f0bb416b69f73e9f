/** One child of a dynamic supervisor: its specification, its present incarnation if any, and what is remembered of it. */
import type { AnyActorRef } from 'xstate';
import type { Message } from '../../../machines/supervision/address.ts';
import { addCrashes, NO_HISTORY, type RestartHistory } from '../../../machines/supervision/restartPolicy.ts';
import type { Item } from '../mailbox/item.ts';
import type { Mailbox } from '../mailbox/mailbox.ts';
import type { TreeServices } from '../services.ts';
import type { ActorSpec, ActorState, Complete, ExitReason } from '../types.ts';
import { ActorCell, type CellHost } from './actorCell.ts';
import { type ActorEnd, Life } from './life.ts';

export interface ChildEnv<E extends Message> {
  services: TreeServices;
  firstIncarnation: number;
  mailbox: Mailbox<E>;
  metricPath: string;
  onEnd(child: Child<E>, end: ActorEnd): void;
  onUp(child: Child<E>): void;
  /** See {@link CellIdentity}. */
  subject?: string | undefined;
  /** Crashes held against an item counted after all, and are over its intensity. */
  onOver(child: Child<E>, error: Error): void;
}

/** Its id is its key. */
export class Child<E extends Message> extends Life implements CellHost {
  readonly spec: Complete<ActorSpec<E>>;
  history: RestartHistory = NO_HISTORY;
  /** Why it is quarantined; null when it is not. */
  quarantine: string | null = null;
  stopping = false;
  lastExit: ExitReason | null = null;
  readonly #env: ChildEnv<E>;
  #cell: ActorCell<E> | null = null;
  #timer: unknown = null;
  #restarts = 0;

  constructor(path: string, key: string, spec: Complete<ActorSpec<E>>, env: ChildEnv<E>) {
    super(path, key, env.services);
    this.spec = spec;
    this.#env = env;
    this.incarnation = env.firstIncarnation - 1;
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

  start(): void {
    this.begins(this.incarnation + 1);
    this.history = { ...this.history, startedAtMs: this.sinceMonoMs };
    const { path, id, incarnation, services } = this;
    const { subject } = this.#env;
    const identity = { path, id, incarnation, ...(subject === undefined ? {} : { subject }) };
    const cell = new ActorCell<E>(identity, this.spec, { services, host: this });
    this.#cell = cell;
    cell.start();
    if (this.#cell !== cell) return;
    this.#env.onUp(this);
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
    const lifecycle = this.quarantine !== null ? 'quarantined' : this.stopping ? 'stopping' : this.isUp ? 'running' : 'restarting';
    const state = this.cellRow(this.#cell, { lifecycle, restarts: this.#restarts });
    if (this.quarantine !== null) {
      state.reason = 'Quarantined';
      state.message = this.quarantine;
    }
    return state;
  }
}
