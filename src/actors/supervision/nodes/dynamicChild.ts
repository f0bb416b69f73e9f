/** One child of a dynamic supervisor: its specification, its present incarnation if any, and what is remembered of it. */
import type { AnyActorRef } from 'xstate';
import type { Message } from '../../../machines/supervision/address.ts';
import { addCrashes, NO_HISTORY, type RestartHistory } from '../../../machines/supervision/restartPolicy.ts';
import { describeExit } from '../../../machines/supervision/supervision.ts';
import type { Item } from '../mailbox/item.ts';
import type { Mailbox } from '../mailbox/mailbox.ts';
import type { TreeServices } from '../services.ts';
import type { ActorSpec, ActorState, Complete, ExitReason } from '../types.ts';
import { ActorCell, type CellHost } from './actorCell.ts';
import { cellState } from './actorNode.ts';

export interface ChildEnd {
  reason: ExitReason;
  orderly: boolean;
}
export interface ChildEnv<E extends Message> {
  services: TreeServices;
  firstIncarnation: number;
  mailbox: Mailbox<E>;
  metricPath: string;
  onEnd(child: Child<E>, end: ChildEnd): void;
  onUp(child: Child<E>): void;
  /** See {@link CellIdentity}. */
  subject?: string | undefined;
  /** Crashes held against an item counted after all, and are over its intensity. */
  onOver(child: Child<E>, error: Error): void;
}

export class Child<E extends Message> implements CellHost {
  readonly path: string;
  readonly key: string;
  readonly spec: Complete<ActorSpec<E>>;
  incarnation: number;
  history: RestartHistory = NO_HISTORY;
  /** Why it is quarantined; null when it is not. */
  quarantine: string | null = null;
  stopping = false;
  lastExit: ExitReason | null = null;
  readonly #env: ChildEnv<E>;
  #cell: ActorCell<E> | null = null;
  #timer: unknown = null;
  #lastError: string | null = null;
  #restarts = 0;
  #sinceMonoMs: number;

  constructor(path: string, key: string, spec: Complete<ActorSpec<E>>, env: ChildEnv<E>) {
    this.path = path;
    this.key = key;
    this.spec = spec;
    this.#env = env;
    this.incarnation = env.firstIncarnation - 1;
    this.#sinceMonoMs = env.services.ports.clock.monoMs();
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
    const { services } = this.#env;
    this.incarnation += 1;
    const nowMs = services.ports.clock.monoMs();
    this.history = { ...this.history, startedAtMs: nowMs };
    this.#sinceMonoMs = nowMs;
    const { path, key: id, incarnation } = this;
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
    this.#env.services.observers.touch(this.path);
    const { services } = this.#env;
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
    if (this.#timer !== null) this.#env.services.ports.clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  stop(): void {
    this.cancel();
    this.stopping = true;
    this.#env.services.observers.touch(this.path);
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
    this.#env.onOver(this, new Error(`crashed more than ${max} times in ${periodMs} ms; last: ${this.#lastError ?? 'unknown'}`));
    this.#cell?.kill({ kind: 'shutdown' });
  }

  onReady(): void {
    // Nobody waits for a dynamic child.
  }

  onEnd(reason: ExitReason, orderly: boolean): void {
    const started = this.#cell;
    this.#cell = null;
    this.lastExit = reason;
    this.#sinceMonoMs = this.#env.services.ports.clock.monoMs();
    const { log } = this.#env.services;
    if (reason.kind === 'error' || reason.kind === 'killed') this.#lastError = describeExit(reason);
    if (reason.kind === 'error') {
      const fields = { actor: this.path, incarnation: this.incarnation, err: reason.error };
      if (orderly) log.warn(fields, 'the actor failed while it was being stopped');
      else log.error(fields, 'the actor crashed');
    } else if (reason.kind === 'killed') {
      log.warn({ actor: this.path, incarnation: this.incarnation, by: reason.by }, 'the actor was killed');
    }
    if (started !== null) this.#env.onEnd(this, { reason, orderly });
  }

  state(nowMonoMs: number): ActorState {
    const lifecycle = this.quarantine !== null ? 'quarantined' : this.stopping ? 'stopping' : this.isUp ? 'running' : 'restarting';
    const state = cellState(this.#cell, {
      path: this.path,
      type: 'actor',
      lifecycle,
      incarnation: this.incarnation,
      restarts: this.#restarts,
      sinceMonoMs: this.#sinceMonoMs,
      nowMonoMs,
      lastError: this.#lastError,
    });
    if (this.quarantine !== null) {
      state.reason = 'Quarantined';
      state.message = this.quarantine;
    }
    return state;
  }
}
