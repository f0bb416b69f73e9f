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

/** A leaf: its own xstate root. */
export interface ActorSpec<E extends Message = Message> extends SpecBase {
  type: 'actor';
  mailbox?: MailboxSpec<E>;
  /**
   * Gives the logic of a fresh incarnation. May throw: that counts as a crash. The supervision wraps the logic in
   * `supervisable`, starts it with the node's clock and connects the mailbox.
   */
  start(ctx: ActorCtx<E>): { logic: AnyActorLogic & Ready; input?: unknown };
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
/** `createTree(spec, ports)` in `tree.ts` of this folder. */
export type CreateTree = (root: SupervisorSpec, ports: Ports, opts?: { observers?: ((e: SupervisionEvent) => void)[] }) => Tree;
