/**
 * The dynamic supervisor: many children of one kind in a Map, created by the first message of a new key, behind one
 * mailbox. No xstate here: one machine with thousands of children costs time in the square of their number.
 */
import type { AnyActorRef } from 'xstate';
import type { Message } from '../../../machines/supervision/address.ts';
import { type Exit, judgeExit } from '../../../machines/supervision/restartPolicy.ts';
import { describeExit } from '../../../machines/supervision/supervision.ts';
import { toError } from '../errors.ts';
import type { Item } from '../mailbox/item.ts';
import { Mailbox } from '../mailbox/mailbox.ts';
import { complete } from '../policy.ts';
import type { TreeServices } from '../services.ts';
import { Sleepers } from '../sleep/sleepers.ts';
import type { ActorState, Complete, DynamicSpec, ExitReason } from '../types.ts';
import { Child, type ChildEnv } from './dynamicChild.ts';
import { DynamicIncarnation } from './dynamicIncarnation.ts';
import { type ActorEnd, BranchLife, settleItem } from './life.ts';
import type { Owner } from './node.ts';

/** Ended keys whose last incarnation is remembered exactly; older ones raise the floor for all new keys. */
const TOMBSTONES_MAX = 4096;

export class DynamicNode<E extends Message> extends BranchLife {
  readonly #spec: Complete<DynamicSpec<E>>;
  readonly #mailbox: Mailbox<E>;
  readonly #children = new Map<string, Child<E>>();
  /** Keys whose first events are held until there is room for one more child, in the order of their coming. */
  readonly #crowdedOut = new Set<string>();
  /** Keys that there is a place for now, and whose events are first in the mailbox. */
  readonly #letInNext = new Set<string>();
  #quarantined = 0;
  readonly #tombstones = new Map<string, number>();
  #floor = 0;
  readonly #sleepers: Sleepers<Child<E>>;
  readonly #ofChildren: ChildEnv<E>;
  #present: DynamicIncarnation<E> | null = null;
  #stopping = false;
  #current: Item<E> | null = null;

  constructor(path: string, spec: DynamicSpec<E>, env: { services: TreeServices; owner: Owner }) {
    super(path, spec.id, env);
    this.#spec = complete(spec);
    this.#mailbox = new Mailbox(path, spec.mailbox, { services: env.services, consumer: this });
    env.services.registry.add(this.#mailbox, { dynamic: true });
    env.services.metrics.track(this.#mailbox);
    this.#ofChildren = {
      services: env.services,
      onEnd: (ended, end) => this.#onActorEnd(ended, end),
      onUp: (up) => this.#onUp(up),
      onOver: (over, error) => this.#quarantine(over, error),
    };
    this.#sleepers = new Sleepers(path, env.services, { ctx: () => this.#present, hasMail: () => this.#mailbox.hasReady });
  }

  // ---- as a child of its supervisor ------------------------------------------------------------------------------

  get isUp(): boolean {
    return this.#present !== null;
  }

  start(incarnation: number): void {
    this.#stopping = false;
    this.begins(incarnation);
    const { path, id } = this;
    this.#present = new DynamicIncarnation(this.services, { path, id, incarnation });
    this.services.observers.touch(path);
    this.#mailbox.reopen();
    this.#mailbox.live = true;
    // Each goes to the front.
    for (const key of [...this.#crowdedOut].reverse()) this.#mailbox.unhold(key);
    this.#crowdedOut.clear();
    this.#letInNext.clear();
    this.#mailbox.resume();
    this.owner.ready(this.id, incarnation);
  }

  stop(): void {
    if (this.#present === null || this.#stopping) return;
    this.#stopping = true;
    this.#mailbox.suspend();
    this.stopWithin(this.#spec.shutdownMs, () => {
      for (const child of [...this.#children.values()]) child.stop();
      this.#endIfEmpty();
    });
  }

  kill(reason: ExitReason): string[] {
    if (this.#present === null) return [];
    this.#stopping = true;
    this.#mailbox.suspend();
    const cut = [...this.#children.values()].flatMap((child) => (child.kill({ kind: 'shutdown' }) ? [child.path] : []));
    for (const child of [...this.#children.values()]) this.#forget(child);
    this.#end(reason);
    return [...cut, this.path];
  }

  #endIfEmpty(): void {
    if (!this.#stopping || [...this.#children.values()].some((c) => c.isUp)) return;
    for (const child of [...this.#children.values()]) this.#forget(child);
    this.#end({ kind: 'shutdown' });
  }

  #end(reason: ExitReason): void {
    const present = this.#present;
    if (present === null) return;
    this.#present = null;
    present.end();
    this.exits(reason, () => this.services.observers.touch(this.path));
  }

  retire(): void {
    this.#mailbox.close();
  }

  // ---- messages --------------------------------------------------------------------------------------------------

  consume(item: Item<E>): void {
    let key: string;
    let child: Child<E> | undefined;
    try {
      key = item.route ?? this.#spec.route(item.event);
      item.route = key;
      // A key whose events did not come now has none left: their asker had given up.
      if (!this.#letInNext.delete(key)) this.#letInNext.clear();
      child = this.#children.get(key);
      if (child?.quarantine != null && this.#spec.release?.(item.event) === true) {
        this.#forget(child);
        child = undefined;
      }
      if (child === undefined) child = this.#create(key, item);
    } catch (thrown) {
      // route, release, starts or child threw: nobody can be blamed but the event.
      this.#mailbox.refuse(item, 'poison', toError(thrown));
      return;
    }
    if (child === undefined) return;
    if (child.quarantine !== null) {
      this.#mailbox.refuse(item, 'quarantined');
      return;
    }
    if (child.isAsleep && !child.stopping) {
      this.#sleepers.wake(child);
      if (!child.isUp) {
        this.#afterFailedStart(child, item);
        return;
      }
    }
    if (!child.isUp || child.stopping) {
      this.#mailbox.hold(key, item);
      return;
    }
    this.#current = item;
    child.deliver(item);
    this.#current = null;
    if (child.isUp) child.handled(item);
    this.#letIn();
  }

  #create(key: string, item: Item<E>): Child<E> | undefined {
    if (this.#spec.starts(item.event)) {
      if (!this.#hasRoom) {
        this.#crowdedOut.add(key);
        this.#mailbox.hold(key, item);
        return undefined;
      }
      this.#crowdedOut.delete(key);
      const spec = complete(this.#spec.child(key, item.event));
      const of = {
        path: `${this.path}/${key}`,
        key,
        after: this.#tombstones.get(key) ?? this.#floor,
        subject: this.services.subjectOf(item.event),
      };
      const child = new Child<E>(of, spec, this.#ofChildren);
      this.#children.set(key, child);
      this.services.observers.touch(this.path);
      child.start();
      if (!child.isUp) this.#afterFailedStart(child, item);
      return child.isUp ? child : undefined;
    }
    const present = this.#present;
    if (this.#spec.unknown !== undefined && present !== null) {
      this.#spec.unknown(item.event, present);
    } else {
      this.#mailbox.refuse(item, 'stopped');
    }
    return undefined;
  }

  #onUp(child: Child<E>): void {
    this.#sleepers.watch(child);
    this.#mailbox.unhold(child.id);
  }

  /** The child ended inside its own start: its first message waits for the restart, if there will be one. */
  #afterFailedStart(child: Child<E>, item: Item<E>): void {
    if (child.quarantine !== null) this.#mailbox.refuse(item, 'quarantined');
    else if (this.#children.get(child.id) === child) this.#mailbox.hold(child.id, item);
    else if (child.lastExit?.kind !== 'normal') this.#mailbox.refuse(item, 'stopped');
  }

  // ---- ends of children ------------------------------------------------------------------------------------------

  #onActorEnd(child: Child<E>, end: ActorEnd): void {
    const counts = this.#settleItem(child, end);
    this.#callback('onExit', (present) => this.#spec.onExit?.(child.id, end.reason, present));
    if (this.#stopping) {
      if (end.orderly || this.isWaitingForEnds) this.services.scheduler.post(this.path, () => this.#endIfEmpty());
      return;
    }
    if (child.quarantine !== null) return;
    const { clock, rng } = this.services.ports;
    const exit: Exit = { reason: end.reason, atMs: clock.monoMs(), random: rng.next(), counts };
    const verdict = judgeExit(child.spec, child.history, exit);
    child.history = verdict.history;
    switch (verdict.next) {
      case 'end':
        this.#forget(child);
        return;
      case 'restart':
        child.startLater(verdict.delayMs);
        this.services.metrics.restarted(this.path, end.reason);
        this.reportRestart(child.path, { reason: end.reason, delayMs: verdict.delayMs, inWindow: child.history.crashes.length });
        return;
      case 'give-up': {
        const { max, periodMs } = child.spec.intensity;
        this.#quarantine(child, new Error(`crashed more than ${max} times in ${periodMs} ms; last: ${describeExit(end.reason)}`));
      }
    }
  }

  /** What becomes of the item the child had; false when its crash is held against it. */
  #settleItem(child: Child<E>, end: ActorEnd): boolean {
    // Only an item of this very child can be to blame: `current` may be on its way to another.
    const current = this.#current?.route === child.id ? this.#current : null;
    const { poisonMax } = child.spec;
    const held = settleItem(this.#mailbox, current, { end, atMs: this.nowMonoMs(), poisonMax, hold: child.id });
    if (held !== null && held !== 'retried') this.#quarantine(child, held.poisonedBy);
    return held === null;
  }

  #quarantine(child: Child<E>, error: Error): void {
    if (child.quarantine !== null) return;
    child.quarantine = describeExit({ kind: 'error', error });
    this.#quarantined += 1;
    child.cancel();
    const { ports, observers, log } = this.services;
    log.error({ actor: child.path, err: error }, 'the actor is quarantined: it is not started again until it is released');
    if (observers.any) observers.emit({ kind: 'quarantined', atMs: ports.clock.wallMs(), path: child.path, error: child.quarantine });
    observers.touch(child.path);
    observers.touch(this.path);
    this.#callback('onQuarantine', (present) => this.#spec.onQuarantine?.(child.id, error, present));
    // What waited for it goes through `consume` again, which refuses it, or releases the child.
    this.#mailbox.unhold(child.id);
    this.#letIn();
  }

  #forget(child: Child<E>): void {
    child.cancel();
    this.#sleepers.forget(child);
    if (this.#children.get(child.id) === child) {
      this.#children.delete(child.id);
      if (child.quarantine !== null) this.#quarantined -= 1;
    }
    this.services.observers.touch(child.path);
    this.services.observers.touch(this.path);
    this.#tombstones.delete(child.id);
    this.#tombstones.set(child.id, child.incarnation);
    const oldest = this.#tombstones.entries().next().value;
    if (this.#tombstones.size > TOMBSTONES_MAX && oldest !== undefined) {
      this.#tombstones.delete(oldest[0]);
      this.#floor = Math.max(this.#floor, oldest[1]);
    }
    this.#mailbox.unhold(child.id);
    this.#letIn();
  }

  /** Children that are quarantined do nothing, and take nobody's place. */
  get #hasRoom(): boolean {
    return this.#children.size - this.#quarantined + this.#letInNext.size < (this.#spec.childrenMax ?? Number.POSITIVE_INFINITY);
  }

  /** The next key that waits for a place, if there is one, goes through `consume` again. */
  #letIn(): void {
    const [next] = this.#crowdedOut;
    if (next === undefined || this.#stopping || !this.#hasRoom) return;
    this.#crowdedOut.delete(next);
    this.#letInNext.add(next);
    this.#mailbox.unhold(next);
  }

  #callback(name: string, fn: (present: DynamicIncarnation<E>) => void): void {
    const present = this.#present;
    if (present === null) return;
    try {
      fn(present);
    } catch (thrown) {
      this.services.log.error({ actor: this.path, err: toError(thrown) }, `${name} threw; the children are not affected`);
    }
  }

  // ---- being looked at -------------------------------------------------------------------------------------------

  state(lifecycle: string, deep = true): ActorState {
    const { size } = this.#children;
    const children = deep ? [...this.#children.values()].sort((a, b) => (a.id < b.id ? -1 : 1)) : [];
    return this.row(
      {
        ...{ type: 'dynamic', lifecycle, state: '', reason: this.#present?.noted ?? '' },
        message: this.#quarantined === 0 ? `${size} children` : `${size} children, ${this.#quarantined} quarantined`,
        restarts: Math.max(0, this.incarnation - 1),
        children: children.map((c) => c.state()),
      },
      { mailbox: this.#mailbox },
    );
  }

  stateAt(path: string, lifecycle: string, deep = true): ActorState | undefined {
    if (path === this.path) return this.state(lifecycle, deep);
    return this.#children.get(path.slice(this.path.length + 1))?.state();
  }

  override killPath(path: string, by: string): boolean {
    if (path === this.path) return super.killPath(path, by);
    const child = this.#children.get(path.slice(this.path.length + 1));
    if (child === undefined || !(child.isUp || child.isAsleep)) return false;
    const { incarnation } = child;
    // A second kill before the first has taken effect means the same incarnation, and not the restart that follows it.
    this.services.scheduler.post(path, () => {
      if (child.incarnation !== incarnation) return;
      if (child.isUp) child.kill({ kind: 'killed', by });
      else child.killAsleep(by);
    });
    return true;
  }

  actorAt(path: string): AnyActorRef | null {
    return this.#children.get(path.slice(this.path.length + 1))?.actor ?? null;
  }

  override sleepingMachineAt(path: string): object | null {
    return this.#children.get(path.slice(this.path.length + 1))?.machine ?? null;
  }

  aliveActors(): number {
    let sum = 0;
    for (const child of this.#children.values()) sum += child.aliveActors;
    return sum;
  }
}
