/**
 * One life cycle for all that stands in the tree: an actor, a layer, a dynamic supervisor and each of its children. Incarnations
 * follow one another; each begins, is stopped or killed, and ends once.
 */
import type { AnyActorRef } from 'xstate';
import type { Message } from '../../../machines/supervision/address.ts';
import { describeExit } from '../../../machines/supervision/supervision.ts';
import { reasonOf } from '../../../machines/xstate/words.ts';
import type { Item } from '../mailbox/item.ts';
import type { Mailbox } from '../mailbox/mailbox.ts';
import type { TreeServices } from '../services.ts';
import type { ActorState, ExitReason } from '../types.ts';
import type { ActorCell } from './actorCell.ts';
import type { Owner, TreeNode } from './node.ts';

/** Crashes on one item before it is dead-lettered. */
const POISON_MAX_DEFAULT = 2;

export abstract class Life {
  readonly id: string;
  readonly path: string;
  incarnation = 0;
  protected readonly services: TreeServices;
  protected lastError: string | null = null;
  /** Since when it is up, or down. */
  protected sinceMonoMs: number;

  constructor(path: string, id: string, services: TreeServices) {
    this.id = id;
    this.path = path;
    this.services = services;
    this.sinceMonoMs = this.nowMonoMs();
  }

  protected nowMonoMs(): number {
    return this.services.ports.clock.monoMs();
  }

  protected begins(incarnation: number): void {
    this.incarnation = incarnation;
    this.sinceMonoMs = this.nowMonoMs();
  }

  /** `log` false: the caller has logged the reason. */
  protected ends(reason: ExitReason, o: { orderly: boolean; log: boolean }): void {
    this.sinceMonoMs = this.nowMonoMs();
    if (reason.kind === 'killed' || (reason.kind === 'error' && o.log)) this.lastError = describeExit(reason);
    if (o.log) this.#say(reason, o.orderly);
  }

  #say(reason: ExitReason, orderly: boolean): void {
    const { log } = this.services;
    const who = { actor: this.path, incarnation: this.incarnation };
    if (reason.kind === 'killed') log.warn({ ...who, by: reason.by }, 'the actor was killed');
    if (reason.kind !== 'error') return;
    if (orderly) log.warn({ ...who, err: reason.error }, 'the actor failed while it was being stopped');
    else log.error({ ...who, err: reason.error }, 'the actor crashed');
  }

  /** Its entry in /statez. */
  protected row(
    of: Pick<ActorState, 'type' | 'lifecycle' | 'state' | 'reason' | 'message' | 'restarts' | 'children'>,
    o: { sinceMonoMs?: number | undefined; mailbox?: AnyMailbox } = {},
  ): ActorState {
    const now = this.nowMonoMs();
    const { type, lifecycle, state, reason, message, restarts, children } = of;
    const row: ActorState = {
      ...{ path: this.path, type, lifecycle, state, reason, message },
      ageMs: Math.max(0, now - (o.sinceMonoMs ?? this.sinceMonoMs)),
      ...{ incarnation: this.incarnation, restarts, children },
    };
    if (this.lastError !== null) row.lastError = this.lastError;
    if (o.mailbox !== undefined) row.mailbox = mailboxState(o.mailbox, now);
    return row;
  }

  /** The same of an actor, which has a cell while it is up. */
  // biome-ignore lint/suspicious/noExplicitAny: the event type does not matter here.
  protected cellRow(cell: ActorCell<any> | null, of: { lifecycle: string; restarts: number; mailbox?: AnyMailbox }): ActorState {
    const said = cell?.actor == null ? { reason: '', message: '' } : reasonOf(cell.actor.getSnapshot(), cell.actor);
    const { lifecycle, restarts, mailbox } = of;
    const reason = said.reason !== '' ? said.reason : (cell?.note ?? '');
    return this.row(
      { type: 'actor', lifecycle, state: cell?.state ?? '', reason, message: said.message, restarts, children: [] },
      { sinceMonoMs: cell?.sinceMonoMs, ...(mailbox === undefined ? {} : { mailbox }) },
    );
  }
}

/** What its supervisor starts, stops and hears of. */
export abstract class NodeLife extends Life implements TreeNode {
  protected readonly owner: Owner;

  constructor(path: string, id: string, env: { services: TreeServices; owner: Owner }) {
    super(path, id, env.services);
    this.owner = env.owner;
  }

  /** A child is started again after a back-off; `inWindow`: its crashes that count. */
  protected reportRestart(path: string, { reason, delayMs, inWindow }: { reason: ExitReason; delayMs: number; inWindow: number }): void {
    const { ports, observers, log } = this.services;
    log.warn(
      { actor: path, delayMs: Math.round(delayMs), crashesInWindow: inWindow, because: describeExit(reason) },
      'restarting the actor after a back-off',
    );
    if (observers.any) observers.emit({ kind: 'child.restarting', atMs: ports.clock.wallMs(), path, delayMs, restartsInWindow: inWindow });
  }

  abstract get isUp(): boolean;
  abstract start(incarnation: number): void;
  abstract stop(): void;
  abstract kill(reason: ExitReason): string[];
  abstract retire(): void;
  abstract state(lifecycle: string, deep?: boolean): ActorState;
  abstract stateAt(path: string, lifecycle: string, deep?: boolean): ActorState | undefined;
  abstract actorAt(path: string): AnyActorRef | null;
  abstract aliveActors(): number;

  /** Only children of a dynamic supervisor sleep. */
  sleepingMachineAt(_path: string): object | null {
    return null;
  }

  find(path: string): TreeNode | null {
    return path === this.path ? this : null;
  }

  killPath(path: string, by: string): boolean {
    if (path !== this.path || !this.isUp) return false;
    this.services.scheduler.post(path, () => void this.kill({ kind: 'killed', by }));
    return true;
  }
}

/** One that has others below it: they are given time for an orderly end, and abandoned after it. */
export abstract class BranchLife extends NodeLife {
  #stopTimer: unknown = null;

  protected get isWaitingForEnds(): boolean {
    return this.#stopTimer !== null;
  }

  protected override begins(incarnation: number): void {
    super.begins(incarnation);
    const { ports, observers } = this.services;
    const { path } = this;
    if (observers.any) observers.emit({ kind: 'child.started', atMs: ports.clock.wallMs(), path, incarnation });
    this.owner.started(this.id, incarnation);
  }

  /** `orderly` asks those below to end. */
  protected stopWithin(shutdownMs: number | 'brutal', orderly: () => void): void {
    if (shutdownMs === 'brutal') {
      this.kill({ kind: 'shutdown' });
      return;
    }
    this.#stopTimer = this.services.ports.clock.setTimeout(() => {
      this.#stopTimer = null;
      this.services.scheduler.post(this.path, () => {
        const abandoned = this.kill({ kind: 'shutdown' });
        const fields = { actor: this.path, shutdownMs, abandoned };
        this.services.log.warn(fields, 'children did not end within the shutdown time and were abandoned');
      });
    }, shutdownMs);
    orderly();
  }

  /** `touch`: what is shown otherwise now. */
  protected exits(reason: ExitReason, touch: () => void): void {
    this.ends(reason, { orderly: true, log: false });
    const { ports, observers } = this.services;
    if (this.#stopTimer !== null) ports.clock.clearTimeout(this.#stopTimer);
    this.#stopTimer = null;
    const { path, incarnation } = this;
    if (observers.any) observers.emit({ kind: 'child.exited', atMs: ports.clock.wallMs(), path, incarnation, reason });
    touch();
    this.owner.exited(this.id, incarnation, { reason, counts: true });
  }
}

/** How an incarnation of an actor ended. `orderly`: its supervisor had asked for it. */
export interface ActorEnd {
  reason: ExitReason;
  orderly: boolean;
}

/**
 * The item that an incarnation crashed on is held against, if it is to blame: it is tried again, or dead-lettered when it crashed its
 * receiver too often. A question is not asked again: its asker has been told that it is lost. Null: the crash counts as the actor's.
 */
export function settleItem<E extends Message>(
  box: Mailbox<E>,
  current: Item<E> | null,
  o: { end: ActorEnd; atMs: number; poisonMax: number | undefined; hold?: string },
): 'retried' | { poisonedBy: Error } | null {
  const { reason, orderly } = o.end;
  if (reason.kind !== 'error' || orderly || current === null || current.ask !== undefined) return null;
  current.crashedAtMs.push(o.atMs);
  if (current.crashedAtMs.length < (o.poisonMax ?? POISON_MAX_DEFAULT)) {
    if (o.hold === undefined) box.retry(current);
    else box.retry(current, { hold: o.hold });
    return 'retried';
  }
  box.poison(current, { error: reason.error, quarantine: o.hold === undefined });
  return { poisonedBy: reason.error };
}

// biome-ignore lint/suspicious/noExplicitAny: figures only.
type AnyMailbox = Mailbox<any>;
function mailboxState(box: AnyMailbox, nowMonoMs: number): NonNullable<ActorState['mailbox']> {
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
