/**
 * A bounded mailbox with two lanes and keyed coalescing. It belongs to an address, not to an incarnation: while there is
 * no actor behind it, it keeps coalescing. It delivers in slices when the scheduler gives it a turn.
 */
import { joinCauses, type Message } from '../../../machines/supervision/address.ts';
import type { Ports } from '../../../ports/ports.ts';
import { toError } from '../errors.ts';
import type { Observers } from '../observers.ts';
import type { Runnable, Scheduler } from '../scheduler.ts';
import type { DeadLetter, MailboxSpec, SendResult } from '../types.ts';
import type { PendingAsk } from './ask.ts';
import type { DeadLetters } from './deadLetters.ts';
import type { Item } from './item.ts';
import { Lanes } from './lanes.ts';
import { Quarantine } from './quarantine.ts';

const CAPACITY_DEFAULT = 1024;
const SLICE_ITEMS_DEFAULT = 64;
const SLICE_MS_DEFAULT = 4;

/** The actor behind the mailbox. Must not throw. */
export interface Consumer<E extends Message> {
  consume(item: Item<E>): void;
}

/** What a mailbox needs of its tree. */
export interface MailboxServices {
  readonly ports: Pick<Ports, 'clock' | 'log'>;
  readonly scheduler: Scheduler;
  readonly deadLetters: DeadLetters;
  readonly observers: Pick<Observers, 'touch'>;
}

export interface MailboxFigures {
  enqueued: number;
  coalesced: number;
  dropped: Record<DeadLetter['reason'], number>;
}

export class Mailbox<E extends Message> implements Runnable {
  readonly path: string;
  scheduled = false;
  /** Whether an actor is there now: decides between `delivered` and `queued`. */
  live = false;
  readonly figures: MailboxFigures;
  /** First item of a slice: how long it waited and how long its handling took, ms. */
  onSample: ((dwellMs: number, handleMs: number) => void) | null = null;

  readonly #services: MailboxServices;
  readonly #spec: MailboxSpec<E>;
  readonly #consumer: Consumer<E>;
  readonly #capacity: number;
  readonly #sliceMax: number;
  readonly #sliceMs: number;
  readonly #lanes = new Lanes<E>();
  readonly #queued = new Map<string, Item<E>>();
  readonly #quarantine = new Quarantine();
  #open = true;
  #suspended = true;
  #resyncDue = false;

  constructor(path: string, spec: MailboxSpec<E>, env: { services: MailboxServices; consumer: Consumer<E> }) {
    this.path = path;
    this.#spec = spec;
    this.#services = env.services;
    this.#consumer = env.consumer;
    this.#capacity = spec.capacity ?? CAPACITY_DEFAULT;
    this.#sliceMax = spec.sliceMax ?? SLICE_ITEMS_DEFAULT;
    this.#sliceMs = spec.sliceMs ?? SLICE_MS_DEFAULT;
    this.figures = {
      enqueued: 0,
      coalesced: 0,
      dropped: { stopped: 0, overflow: 0, poison: 0, 'unknown-address': 0, quarantined: 0, 'stale-sender': 0, injected: 0 },
    };
  }

  get depth(): number {
    return this.#lanes.depth;
  }
  /** Most that ever waited at once. */
  get depthMax(): number {
    return this.#lanes.depthMax;
  }
  /** A message waits for its turn; what is held for a child that is away does not count. */
  get hasReady(): boolean {
    return this.#lanes.hasReady;
  }
  get suspended(): boolean {
    return this.#suspended;
  }
  oldestAgeMs(nowMonoMs: number): number {
    let oldest = nowMonoMs;
    for (const item of this.#lanes.heads()) oldest = Math.min(oldest, item.atMs);
    return nowMonoMs - oldest;
  }

  /** The coalescing key of an event, for reports; undefined when there is none. */
  keyOf(event: E): string | undefined {
    try {
      return this.#spec.key?.(event);
    } catch {
      // `send` has dead-lettered an event whose key cannot be told.
      return undefined;
    }
  }

  /** Where an event would wait; an event that cannot be placed counts as data here. */
  laneOf(event: E): 'control' | 'data' {
    try {
      return this.#spec.lane?.(event) ?? 'data';
    } catch {
      return 'data';
    }
  }

  /** Looked at once the present step is over: it may be told before the change. */
  #touch(): void {
    this.#services.observers.touch(this.path);
  }

  // ---- sending ---------------------------------------------------------------------------------------------------

  send(event: E, opts: { ask?: PendingAsk | undefined; route?: string | undefined } = {}): SendResult {
    this.#touch();
    let key: string | undefined;
    let control = false;
    try {
      // An ask has one asker waiting for one answer: merging two would leave one of them without.
      key = opts.ask === undefined ? this.#spec.key?.(event) : undefined;
      control = this.#spec.lane?.(event) === 'control';
      if (!this.#open) return this.#dead({ event, key, ask: opts.ask }, 'stopped');
      if (key !== undefined) {
        if (this.#quarantine.refuses(key, event)) return this.#dead({ event, key, ask: opts.ask }, 'quarantined');
        if (this.#merge(key, event, control)) return this.#accepted();
      }
    } catch (thrown) {
      // key, lane or coalesce of the specification threw: the event cannot be placed.
      return this.#dead({ event, key, ask: opts.ask }, 'poison', toError(thrown));
    }
    const item: Item<E> = {
      event,
      key,
      route: opts.route,
      control,
      atMs: this.#services.ports.clock.monoMs(),
      crashedAtMs: [],
      ask: opts.ask,
      gone: false,
      next: null,
    };
    if (this.#lanes.depthOf(item) >= this.#capacity) {
      const result = this.#overflow(item);
      if (result !== null) return result;
    }
    this.#push(item);
    return this.#accepted();
  }

  /** A tap dropped this message on its way here: an asker is told that it is lost. */
  lose(event: E, ask?: PendingAsk): void {
    this.#dead({ event, key: this.keyOf(event), ask }, 'injected');
  }

  #accepted(): SendResult {
    this.figures.enqueued += 1;
    if (!this.#suspended) this.#services.scheduler.wake(this);
    return this.live ? 'delivered' : 'queued';
  }

  #push(item: Item<E>, where: 'back' | 'front' = 'back'): void {
    this.#lanes.push(item, where);
    if (item.key !== undefined) this.#queued.set(item.key, item);
  }

  #merge(key: string, event: E, control: boolean): boolean {
    const waiting = this.#queued.get(key);
    if (waiting === undefined) return false;
    waiting.event = this.#coalesce(waiting.event, event);
    this.figures.coalesced += 1;
    if (control && !waiting.control) {
      if (!this.#lanes.isHeld(waiting)) {
        // Leaves a tombstone in the data lane and takes a new place in the control lane, its age kept.
        waiting.gone = true;
        this.#lanes.count(waiting, -1);
        this.#push({ ...waiting, control: true, gone: false, next: null });
      } else {
        this.#lanes.count(waiting, -1);
        waiting.control = true;
        this.#lanes.count(waiting, 1);
      }
    }
    return true;
  }

  #coalesce(prev: E, next: E): E {
    if (this.#spec.coalesce !== undefined) return this.#spec.coalesce(prev, next);
    return prev.causes === undefined ? next : { ...next, causes: joinCauses(prev.causes, next.causes) };
  }

  /** Null when there is room after all. */
  #overflow(item: Item<E>): SendResult | null {
    switch (this.#spec.overflow ?? 'reject') {
      case 'reject':
        return this.#dead(item, 'overflow');
      case 'mark-resync':
        this.figures.dropped.overflow += 1;
        this.#resyncDue = true;
        item.ask?.refuse(`the mailbox of ${this.path} is full`);
        return 'queued';
      case 'drop-oldest': {
        const victim = this.#lanes.shiftOf(item);
        if (victim === null) return this.#dead(item, 'overflow');
        if (victim.key !== undefined) this.#queued.delete(victim.key);
        victim.ask?.refuse(`the mailbox of ${this.path} is full`);
        this.figures.dropped.overflow += 1;
        return null;
      }
    }
  }

  #dead(item: { event: E; key: string | undefined; ask: PendingAsk | undefined }, reason: DeadLetter['reason'], error?: Error): SendResult {
    this.figures.dropped[reason] += 1;
    const letter = { to: this.path, type: item.event.type, reason };
    this.#services.deadLetters.add(item.key === undefined ? letter : { ...letter, key: item.key }, error);
    if (reason === 'poison') item.ask?.lose(`the message crashed ${this.path}`);
    else if (reason === 'injected') item.ask?.lose(`an injected fault dropped the message to ${this.path}`);
    else item.ask?.refuse(reason === 'overflow' ? `the mailbox of ${this.path} is full` : `${this.path}: ${reason}`);
    return 'dead';
  }

  // ---- delivery --------------------------------------------------------------------------------------------------

  runSlice(): boolean {
    this.#touch();
    const clock = this.#services.ports.clock;
    const began = clock.monoMs();
    for (let n = 0; n < this.#sliceMax && !this.#suspended; n++) {
      const item = this.#take();
      if (item === null) return false;
      this.#consumer.consume(item);
      const now = clock.monoMs();
      if (n === 0) this.onSample?.(Math.max(0, began - item.atMs), now - began);
      if (now - began >= this.#sliceMs) break;
    }
    return !this.#suspended && this.#lanes.hasReady;
  }

  #take(): Item<E> | null {
    for (;;) {
      const item = this.#lanes.shift();
      if (item === null) return null;
      if (item.key !== undefined) this.#queued.delete(item.key);
      this.#enqueueResync();
      if (item.ask?.settled === true) continue;
      return item;
    }
  }

  #enqueueResync(): void {
    if (!this.#resyncDue || this.#spec.resync === undefined) return;
    let event: E;
    let control = false;
    try {
      event = this.#spec.resync();
      control = this.#spec.lane?.(event) === 'control';
    } catch (thrown) {
      this.#services.ports.log.error(
        { actor: this.path, err: toError(thrown) },
        'mailbox.resync threw; it is tried again with the next item',
      );
      return;
    }
    if (this.#lanes.depthOf({ control }) >= this.#capacity) return;
    this.#resyncDue = false;
    const atMs = this.#services.ports.clock.monoMs();
    this.#push({ event, key: undefined, route: undefined, control, atMs, crashedAtMs: [], ask: undefined, gone: false, next: null });
  }

  // ---- for its actor ------------------------------------------------------------------------------

  /** An actor is there: deliveries may flow. */
  resume(): void {
    this.#touch();
    this.#open = true;
    this.#suspended = false;
    if (this.#lanes.hasReady) this.#services.scheduler.wake(this);
  }

  /** The actor is away for now: keep what comes. */
  suspend(): void {
    this.#touch();
    this.#suspended = true;
    this.live = false;
  }

  /** The actor does not come back, unless `reopen`: what waits becomes dead letters. */
  close(): void {
    this.suspend();
    this.#open = false;
    const waiting = this.#lanes.drain();
    this.#queued.clear();
    this.#resyncDue = false;
    for (const item of waiting) this.#dead(item, 'stopped');
  }

  /** The closed address gets an actor again: sends are kept from now on. */
  reopen(): void {
    this.#open = true;
  }

  /** Puts an item back first in line, merged with what came for its key meanwhile. */
  retry(item: Item<E>, where: { hold?: string } = {}): void {
    item.gone = false;
    if (where.hold !== undefined) {
      this.hold(where.hold, item, 'front');
      return;
    }
    this.#absorbNewer(item);
    this.#push(item, 'front');
  }

  /** What was sent for the key of a taken item since joins the item. */
  #absorbNewer(item: Item<E>): void {
    if (item.key === undefined) return;
    const newer = this.#queued.get(item.key);
    if (newer === undefined || newer === item) return;
    this.#queued.delete(item.key);
    this.#lanes.forget(newer);
    this.#lanes.count(newer, -1);
    try {
      item.event = this.#coalesce(item.event, newer.event);
    } catch (thrown) {
      this.#dead(item, 'poison', toError(thrown));
      item.event = newer.event;
    }
  }

  /** Dead-letters an item that crashed its actor too often. `quarantine` also shuts its key out. */
  poison(item: Item<E>, opts: { error: Error; quarantine: boolean }): void {
    this.#dead(item, 'poison', opts.error);
    if (item.key === undefined || !opts.quarantine) return;
    this.#quarantine.add(item.key, item.event);
    const later = this.#queued.get(item.key);
    if (later === undefined || !this.#quarantine.refuses(item.key, later.event)) return;
    this.#queued.delete(item.key);
    this.#lanes.forget(later);
    this.#lanes.count(later, -1);
    this.#dead(later, 'quarantined');
  }

  /** An item that its owner cannot take: nobody to route it to, or a quarantined child. */
  refuse(item: Item<E>, reason: 'stopped' | 'quarantined' | 'poison', error?: Error): void {
    this.#dead(item, reason, error);
  }

  liftQuarantine(): void {
    this.#quarantine.clear();
  }

  /** Sets an item aside; it still counts and, while keyed, still coalesces. */
  hold(route: string, item: Item<E>, where: 'front' | 'back' = 'back'): void {
    this.#absorbNewer(item);
    if (item.key !== undefined) this.#queued.set(item.key, item);
    this.#lanes.hold(route, item, where);
  }

  /** Puts what was held back first in line, in its order. */
  unhold(route: string): void {
    this.#touch();
    for (const item of this.#lanes.unhold(route).toReversed()) if (!item.gone) this.#push(item, 'front');
    if (!this.#suspended && this.#lanes.hasReady) this.#services.scheduler.wake(this);
  }
}
