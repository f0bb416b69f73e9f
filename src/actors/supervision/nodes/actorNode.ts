/** A leaf of the tree: one address with its mailbox, and behind it one incarnation at a time. */
import type { AnyActorRef } from 'xstate';
import type { Message } from '../../../machines/supervision/address.ts';
import type { Item } from '../mailbox/item.ts';
import { Mailbox } from '../mailbox/mailbox.ts';
import { complete } from '../policy.ts';
import type { TreeServices } from '../services.ts';
import type { ActorSpec, ActorState, Complete, ExitReason } from '../types.ts';
import { ActorCell, type CellHost } from './actorCell.ts';
import { NodeLife, settleItem } from './life.ts';
import type { Owner } from './node.ts';

export class ActorNode<E extends Message> extends NodeLife implements CellHost {
  readonly #spec: Complete<ActorSpec<E>>;
  readonly #mailbox: Mailbox<E>;
  #cell: ActorCell<E> | null = null;
  #current: Item<E> | null = null;
  /** The last crash was held against an item: the restart it causes does not free quarantined keys. */
  #suspectEnd = false;
  /** Starts after the first. */
  #restarts = 0;

  constructor(path: string, spec: ActorSpec<E>, env: { services: TreeServices; owner: Owner }) {
    super(path, spec.id, env);
    this.#spec = complete(spec);
    this.#mailbox = new Mailbox(path, spec.mailbox ?? {}, { services: env.services, consumer: this });
    env.services.registry.add(this.#mailbox, { dynamic: false });
    env.services.metrics.track(this.#mailbox);
  }

  get isUp(): boolean {
    return this.#cell !== null;
  }

  start(incarnation: number): void {
    if (this.incarnation > 0) this.#restarts += 1;
    this.begins(incarnation);
    if (!this.#suspectEnd) this.#mailbox.liftQuarantine();
    this.#suspectEnd = false;
    const { path, id, services } = this;
    this.#mailbox.reopen();
    this.owner.started(id, incarnation);
    const cell = new ActorCell({ path, id, incarnation }, this.#spec, { services, host: this });
    this.#cell = cell;
    cell.start();
    if (cell.ended !== null) return;
    this.#mailbox.live = true;
    this.#mailbox.resume();
  }

  stop(): void {
    this.#mailbox.suspend();
    this.#cell?.stop();
  }

  kill(reason: ExitReason): string[] {
    if (this.#cell === null) return [];
    this.#cell.kill(reason);
    return [this.path];
  }

  retire(): void {
    this.#mailbox.close();
  }

  consume(item: Item<E>): void {
    const cell = this.#cell;
    if (cell === null) {
      this.#mailbox.retry(item);
      return;
    }
    this.#current = item;
    cell.deliver(item.event, item.ask);
    this.#current = null;
    if (item.crashedAtMs.length > 0 && cell.ended?.kind !== 'error') this.owner.counted(this.id, item.crashedAtMs);
  }

  onReady(): void {
    this.owner.ready(this.id, this.incarnation);
  }

  onEnd(reason: ExitReason, orderly: boolean): void {
    this.#mailbox.suspend();
    this.#cell = null;
    this.ends(reason, { orderly, log: true });
    const { poisonMax } = this.#spec;
    const held = settleItem(this.#mailbox, this.#current, { end: { reason, orderly }, atMs: this.nowMonoMs(), poisonMax });
    if (held !== null) this.#suspectEnd = true;
    this.owner.exited(this.id, this.incarnation, { reason, counts: held === null });
  }

  state(lifecycle: string): ActorState {
    return this.cellRow(this.#cell, { lifecycle, restarts: this.#restarts, mailbox: this.#mailbox });
  }

  stateAt(path: string, lifecycle: string): ActorState | undefined {
    return path === this.path ? this.state(lifecycle) : undefined;
  }

  actorAt(path: string): AnyActorRef | null {
    return path === this.path ? (this.#cell?.actor ?? null) : null;
  }
  aliveActors(): number {
    return this.#cell?.aliveActors ?? 0;
  }
}
