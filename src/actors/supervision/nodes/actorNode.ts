/** A leaf of the tree: one address with its mailbox, and behind it one incarnation at a time. */
import type { AnyActorRef } from 'xstate';
import type { Message } from '../../../machines/supervision/address.ts';
import { describeExit } from '../../../machines/supervision/supervision.ts';
import { reasonOf } from '../../../machines/xstate/words.ts';
import type { Item } from '../mailbox/item.ts';
import { Mailbox } from '../mailbox/mailbox.ts';
import { complete } from '../policy.ts';
import type { TreeServices } from '../services.ts';
import type { ActorSpec, ActorState, Complete, ExitReason } from '../types.ts';
import { ActorCell, type CellHost } from './actorCell.ts';
import type { Owner, TreeNode } from './node.ts';

/** Crashes on one item before it is dead-lettered. */
export const POISON_MAX_DEFAULT = 2;

export class ActorNode<E extends Message> implements TreeNode, CellHost {
  readonly id: string;
  readonly path: string;
  incarnation = 0;
  readonly #spec: Complete<ActorSpec<E>>;
  readonly #services: TreeServices;
  readonly #owner: Owner;
  readonly #mailbox: Mailbox<E>;
  #cell: ActorCell<E> | null = null;
  #current: Item<E> | null = null;
  #lastError: string | null = null;
  /** The last crash was held against an item: the restart it causes does not free quarantined keys. */
  #suspectEnd = false;
  /** Starts after the first. */
  #restarts = 0;
  #sinceMonoMs: number;

  constructor(path: string, spec: ActorSpec<E>, env: { services: TreeServices; owner: Owner }) {
    this.id = spec.id;
    this.path = path;
    this.#spec = complete(spec);
    this.#services = env.services;
    this.#owner = env.owner;
    this.#sinceMonoMs = env.services.ports.clock.monoMs();
    this.#mailbox = new Mailbox(path, spec.mailbox ?? {}, { services: env.services, consumer: this });
    env.services.registry.add(this.#mailbox, { dynamic: false });
    env.services.metrics.track(this.#mailbox);
  }

  start(incarnation: number): void {
    if (this.incarnation > 0) this.#restarts += 1;
    this.incarnation = incarnation;
    this.#sinceMonoMs = this.#services.ports.clock.monoMs();
    if (!this.#suspectEnd) this.#mailbox.liftQuarantine();
    this.#suspectEnd = false;
    const { path, id } = this;
    this.#mailbox.reopen();
    this.#owner.started(id, incarnation);
    const cell = new ActorCell({ path, id, incarnation }, this.#spec, { services: this.#services, host: this });
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
    if (item.crashedAtMs.length > 0 && cell.ended?.kind !== 'error') this.#owner.counted(this.id, item.crashedAtMs);
  }

  onReady(): void {
    this.#owner.ready(this.id, this.incarnation);
  }

  onEnd(reason: ExitReason, orderly: boolean): void {
    this.#mailbox.suspend();
    this.#cell = null;
    this.#sinceMonoMs = this.#services.ports.clock.monoMs();
    const { log } = this.#services;
    if (reason.kind === 'error') {
      this.#lastError = describeExit(reason);
      const fields = { actor: this.path, incarnation: this.incarnation, err: reason.error };
      if (orderly) log.warn(fields, 'the actor failed while it was being stopped');
      else log.error(fields, 'the actor crashed');
    } else if (reason.kind === 'killed') {
      this.#lastError = describeExit(reason);
      log.warn({ actor: this.path, incarnation: this.incarnation, by: reason.by }, 'the actor was killed');
    }
    const counts = this.#settleItems(reason, orderly);
    this.#owner.exited(this.id, this.incarnation, { reason, counts });
  }

  /** What becomes of the items the incarnation had; false when its crash is held against one. */
  #settleItems(reason: ExitReason, orderly: boolean): boolean {
    const box = this.#mailbox;
    let suspect: Item<E> | null = null;
    if (reason.kind === 'error' && !orderly) {
      suspect = this.#current;
      // A question is not asked again: its asker has been told that it is lost.
      if (suspect?.ask !== undefined) suspect = null;
    }
    if (suspect === null || reason.kind !== 'error') return true;
    this.#suspectEnd = true;
    suspect.crashedAtMs.push(this.#services.ports.clock.monoMs());
    if (suspect.crashedAtMs.length < (this.#spec.poisonMax ?? POISON_MAX_DEFAULT)) box.retry(suspect);
    else box.poison(suspect, { error: reason.error, quarantine: true });
    return false;
  }

  state(lifecycle: string): ActorState {
    return cellState(this.#cell, {
      path: this.path,
      type: 'actor',
      lifecycle,
      incarnation: this.incarnation,
      restarts: this.#restarts,
      sinceMonoMs: this.#sinceMonoMs,
      nowMonoMs: this.#services.ports.clock.monoMs(),
      lastError: this.#lastError,
      mailbox: this.#mailbox,
    });
  }

  stateAt(path: string, lifecycle: string): ActorState | undefined {
    return path === this.path ? this.state(lifecycle) : undefined;
  }

  find(path: string): TreeNode | null {
    return path === this.path ? this : null;
  }
  killPath(path: string, by: string): boolean {
    if (path !== this.path || this.#cell === null) return false;
    this.#services.scheduler.post(path, () => void this.kill({ kind: 'killed', by }));
    return true;
  }
  actorAt(path: string): AnyActorRef | null {
    return path === this.path ? (this.#cell?.actor ?? null) : null;
  }
  aliveActors(): number {
    return this.#cell?.aliveActors ?? 0;
  }
}

interface StateFacts {
  path: string;
  type: ActorState['type'];
  lifecycle: string;
  incarnation: number;
  restarts: number;
  sinceMonoMs: number;
  nowMonoMs: number;
  lastError: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: figures only.
  mailbox?: Mailbox<any>;
}

/** The /statez entry of a leaf. */
// biome-ignore lint/suspicious/noExplicitAny: the event type does not matter here.
export function cellState(cell: ActorCell<any> | null, facts: StateFacts): ActorState {
  const said = cell?.actor == null ? { reason: '', message: '' } : reasonOf(cell.actor.getSnapshot(), cell.actor);
  const state: ActorState = {
    path: facts.path,
    type: facts.type,
    lifecycle: facts.lifecycle,
    state: cell?.state ?? '',
    reason: said.reason !== '' ? said.reason : (cell?.note ?? ''),
    message: said.message,
    ageMs: Math.max(0, facts.nowMonoMs - (cell?.sinceMonoMs ?? facts.sinceMonoMs)),
    incarnation: facts.incarnation,
    restarts: facts.restarts,
    children: [],
  };
  if (facts.lastError !== null) state.lastError = facts.lastError;
  if (facts.mailbox !== undefined) state.mailbox = mailboxState(facts.mailbox, facts.nowMonoMs);
  return state;
}

// biome-ignore lint/suspicious/noExplicitAny: figures only.
export function mailboxState(box: Mailbox<any>, nowMonoMs: number): NonNullable<ActorState['mailbox']> {
  const { figures } = box;
  return {
    depth: box.depth,
    depthMax: box.depthMax,
    oldestAgeMs: box.oldestAgeMs(nowMonoMs),
    coalesced: figures.coalesced,
    dropped: Object.values(figures.dropped).reduce((sum, n) => sum + n, 0),
    suspended: box.suspended,
  };
}
