/** What the supervision shows of itself: the registry, the state of actors, and each event for inspectors and the flight recorder. */
import type { ActorView } from './actorState.ts';
import type { Address, Answer, Cause, Message, ReplyTo, ViewKey } from './address.ts';
import type { ExitReason } from './restartPolicy.ts';

export type SendResult = 'delivered' | 'queued' | 'dead';
export interface DeadLetter {
  atMs: number;
  to: string;
  type: string;
  key?: string;
  reason: 'stopped' | 'overflow' | 'poison' | 'unknown-address' | 'quarantined' | 'stale-sender' | 'injected';
}

export interface Registry {
  /** `delivered`: in the mailbox of a live actor, or of one that sleeps. `queued`: in the mailbox of one that is restarting. `dead`: a dead letter. */
  send<E extends Message>(to: Address<E>, event: E): SendResult;
  /** Never rejects. */
  ask<E extends Message, R>(
    to: Address<E>,
    event: (replyTo: ReplyTo<R>) => E,
    opts: { timeoutMs: number; signal?: AbortSignal },
  ): Promise<Answer<R>>;
  /** Undefined until first published. */
  read<T>(key: ViewKey<T>): { version: number; value: T } | undefined;
  /** Called after each publish; the disposer is idempotent. Prefer messages; this is for readers outside the tree. */
  watch<T>(key: ViewKey<T>, fn: (value: T, version: number) => void): Disposable;
  deadLetters(): { total: number; byReason: Record<string, number>; recent: readonly DeadLetter[] };
}

/** One node of /statez. */
export interface ActorState extends ActorView {
  children: ActorState[];
}

/** What inspectors and the flight recorder see; delivered through one wrapper that never throws. */
export type SupervisionEvent =
  | { kind: 'child.started'; atMs: number; path: string; incarnation: number }
  | { kind: 'child.exited'; atMs: number; path: string; incarnation: number; reason: ExitReason }
  /** Ended for now, with nothing to do: its next incarnation goes on in `state`. No exit. */
  | { kind: 'child.asleep'; atMs: number; path: string; incarnation: number; state: string }
  /** Made again in `state` from what it kept. No restart. */
  | { kind: 'child.woken'; atMs: number; path: string; incarnation: number; state: string }
  | { kind: 'child.restarting'; atMs: number; path: string; delayMs: number; restartsInWindow: number }
  | { kind: 'supervisor.escalated'; atMs: number; path: string; error: string }
  | { kind: 'quarantined'; atMs: number; path: string; error: string }
  | { kind: 'transition'; atMs: number; path: string; from: string; to: string; event: string; reason: string }
  /** Without `from`: sent from outside the tree. */
  | { kind: 'message'; atMs: number; to: string; from?: string; type: string; key?: string; causes: readonly Cause[] }
  | { kind: 'dead-letter'; atMs: number; letter: DeadLetter };
