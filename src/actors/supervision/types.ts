/**
 * The vocabulary of supervision: child specifications, mailboxes, the registry and what an actor is given when it starts.
 * docs/architecture/supervision.md has the semantics; this file is their types. Knows nothing of pods.
 */

import type { AnyActorLogic } from 'xstate';
import type { Address, Message, ViewKey } from '../../machines/supervision/address.ts';
import type { ActorState, Registry, SupervisionEvent } from '../../machines/supervision/observed.ts';
import type { Backoff, ExitReason, Intensity, RestartType, Strategy } from '../../machines/supervision/restartPolicy.ts';
import type { Ready } from '../../machines/xstate/setup.ts';
import type { Logger, Ports } from '../../ports/ports.ts';

export type { ActorState, DeadLetter, Registry, SendResult, SupervisionEvent } from '../../machines/supervision/observed.ts';
export type { ExitReason, RestartType, Strategy };

export interface MailboxSpec<E extends Message> {
  /** Distinct keys plus unkeyed items waiting. Default 1024. */
  capacity?: number;
  /** Control overtakes data; FIFO inside a lane. Default: all data. */
  lane?(e: E): 'control' | 'data';
  /** Events with equal key coalesce while queued. Undefined = never coalesced. */
  key?(e: E): string | undefined;
  /** Must be associative. Default: next wins, causes are joined. */
  coalesce?(prev: E, next: E): E;
  /**
   * `reject`: the sender gets 'dead' (ask: refused). `mark-resync`: the item is dropped and `onResync` is delivered
   * to the owner once there is room. `drop-oldest`: telemetry only. Default `reject`.
   */
  overflow?: 'mark-resync' | 'reject' | 'drop-oldest';
  /** The event that tells the owner that hints were lost; required with `mark-resync`. */
  resync?(): E;
  /** Items per slice before yielding. Default 64. */
  sliceMax?: number;
  /** Milliseconds per slice before yielding. Default 4. */
  sliceMs?: number;
}

/** What a starting actor is given. One per incarnation: a stale context's sends are dead letters, its publishes ignored. */
export interface ActorCtx<E extends Message = Message> {
  readonly path: string;
  readonly id: string;
  /** 1 for the first start of this child, then counting up; never reused within a node. */
  readonly incarnation: number;
  readonly self: Address<E>;
  readonly ports: Ports;
  readonly registry: Registry;
  readonly log: Logger;
  /** Aborted when this incarnation ends, whatever the way. */
  readonly signal: AbortSignal;
  /** Publishes an immutable view; readers see a growing version. */
  publish<T>(key: ViewKey<T>, value: T): void;
  /** Free text shown as this actor's reason in /statez where its machine has no `meta.reason`. */
  note(reason: string): void;
}

interface SpecBase extends Partial<Omit<Policy, 'backoff'>> {
  /** Unique among siblings; no `/`. */
  id: string;
  /** What differs from the default. */
  backoff?: Partial<Backoff>;
}

/** When it starts again, and how it stops. What a specification does not say is that of `POLICY` in `policy.ts`. */
export interface Policy {
  restart: RestartType;
  /** `brutal` or milliseconds that an orderly stop may take before it is abandoned. */
  shutdownMs: number | 'brutal';
  intensity: Intensity;
  backoff: Backoff;
}
/** With everything that decides about its life filled in. */
export type Complete<S extends SpecBase> = Omit<S, 'backoff'> & Policy;

/**
 * Passivation: an actor with nothing to do ends, and its name and its mailbox stay. A message, a question or a timer makes it
 * again, from what it kept. For children of a dynamic supervisor.
 */
export interface Passivation {
  /** It sleeps after so long without a step, at most twice as long. */
  afterMs: number;
  /**
   * A timer of a sleeper came due. Answers when the next one is due (monotonic ms), where a look at the record is enough; null: it is
   * woken. Absent: each timer wakes it. `ctx` is that of its dynamic supervisor. When it throws, the actor is woken.
   */
  look?(kept: unknown, ctx: ActorCtx): number | null;
}

/** What the logic of an incarnation begins with, and what the next one needs of it. */
export interface Started {
  logic: AnyActorLogic & Ready;
  input?: unknown;
  /**
   * What it keeps while it sleeps: plain data, no closure and no actor. Null: it has work, and stays awake. Timers of its machine
   * are no part of it: the supervision wakes it when the first is due.
   */
  keep?(snapshot: unknown): object | null;
}

/** What a woken incarnation begins with. */
export interface Woken {
  /** As `keep` gave it. */
  kept: unknown;
  /** Monotonic ms at which the first of its timers is due, or was; null: it had none. */
  dueAtMonoMs: number | null;
}

/** A leaf: its own xstate root. */
export interface ActorSpec<E extends Message = Message> extends SpecBase {
  type: 'actor';
  mailbox?: MailboxSpec<E>;
  /**
   * Gives the logic of a fresh incarnation. May throw: that counts as a crash. The supervision wraps the logic in
   * `supervisable`, starts it with the node's clock and connects the mailbox. `woken`: it slept, and goes on where it stood.
   */
  start(ctx: ActorCtx<E>, woken?: Woken): Started;
  /** It sleeps while nothing happens, if its incarnations say what to keep. Absent: it never sleeps. */
  passivate?: Passivation;
  /** Waits for this before starting the next sibling. Default: ready at once. */
  ready?: { when(snapshot: unknown): boolean; timeoutMs: number };
  /** Event sent for an orderly stop; the actor should end by itself. Without it the actor is stopped at once. */
  stopEvent?: E;
  /** Poison: crashes on one item before it is dead-lettered. Default 2. */
  poisonMax?: number;
}

/** A layer: children started left to right, stopped right to left. */
export interface SupervisorSpec extends SpecBase {
  type: 'supervisor';
  strategy: Strategy;
  children: readonly AnySpec[];
  /**
   * What happens over the intensity: `parent` fails this supervisor upwards; `park` keeps it failed, says so, and
   * tries again after `parkMs`; never escalates.
   */
  escalate: 'parent' | { parkMs: number };
}

/** Many children of one kind, in a Map, created by the first message of a new key. */
export interface DynamicSpec<E extends Message = Message> extends SpecBase {
  type: 'dynamic';
  mailbox: MailboxSpec<E>;
  /** Which child an event is for. */
  route(e: E): string;
  /** Whether an event of an unknown key creates its child; otherwise it goes to `unknown`, else to dead letters. */
  starts(e: E): boolean;
  /** Children at the same time; events of further keys wait in the mailbox, first come, first served. Default: as many as there are. */
  childrenMax?: number;
  unknown?(e: E, ctx: ActorCtx<E>): void;
  /**
   * The child's specification; its `restart`, `intensity` and `backoff` are its own. Over its intensity the child is
   * quarantined: it stays listed with the reason until `release(e)` says that an event is of a newer life.
   */
  child(key: string, first: E): ActorSpec<E>;
  release?(e: E): boolean;
  onQuarantine?(key: string, error: Error, ctx: ActorCtx<E>): void;
  onExit?(key: string, reason: ExitReason, ctx: ActorCtx<E>): void;
}

// biome-ignore lint/suspicious/noExplicitAny: a list of specifications is heterogeneous; the event type is checked where each is written.
export type AnySpec = ActorSpec<any> | SupervisorSpec | DynamicSpec<any>;

export interface Tree {
  readonly registry: Registry;
  /** Resolves when every child is ready, or rejects with the reason of the first escalation to the root. */
  start(): Promise<void>;
  /** Right to left, in the order of the semantics page. Never rejects; abandoned children are named in the log. */
  stop(): Promise<void>;
  state(): ActorState;
  /** The part of {@link state} at `path`, without the work of building the rest; undefined: there is no such actor. */
  stateAt(path: string): ActorState | undefined;
  /** Kills one incarnation by path, as a crash would; false when there is none. */
  kill(path: string, by: string): boolean;
  observe(fn: (e: SupervisionEvent) => void): Disposable;
  /** Settles when the root itself failed (over its intensity): the process must exit 70. */
  readonly failed: Promise<Error>;
}
