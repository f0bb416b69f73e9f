/** `createTree`: builds the nodes of a specification, starts them, stops them, and shows what they do. */
import type { AnyActorRef, InspectionEvent } from 'xstate';
import type { Message } from '../../machines/supervision/address.ts';
import type { MailboxTap } from '../../machines/supervision/mailboxTap.ts';
import { logicOf } from '../../machines/xstate/inside.ts';
import type { Ports } from '../../ports/ports.ts';
import { SpecError } from './errors.ts';
import { DeadLetters } from './mailbox/deadLetters.ts';
import { SupervisionMetrics } from './metrics.ts';
import { ActorNode } from './nodes/actorNode.ts';
import { DynamicNode } from './nodes/dynamicNode.ts';
import type { Owner, TreeNode } from './nodes/node.ts';
import { SupervisorNode } from './nodes/supervisorNode.ts';
import { Observers } from './observers.ts';
import { RegistryCore } from './registry.ts';
import { type Acting, Scheduler } from './scheduler.ts';
import type { TreeServices } from './services.ts';
import type { ActorState, AnySpec, ExitReason, Registry, SupervisionEvent, SupervisorSpec, Tree } from './types.ts';
import { specProblems } from './validate.ts';
import type { Heartbeat } from './watchdog.ts';

/** What a tree offers beyond the contract of {@link Tree}: for the watchdog, inspectors and leak checks. */
export interface SupervisionTree extends Tree {
  /** Which actor's slice is running since when; readable from another thread. */
  readonly heartbeat: Heartbeat;
  /** The live xstate actor at a path; null when there is none just now. */
  actorAt(path: string): AnyActorRef | null;
  /** The machine at a path, also of an actor that sleeps; null: there is none. */
  machineAt(path: string): object | null;
  /**
   * Raw xstate inspection of the present incarnation at a path, through the safe wrapper; null when there is none.
   * Costs three events a message while attached; attach again at `child.started`.
   */
  inspect(path: string, fn: (e: InspectionEvent) => void): Disposable | null;
  /** As {@link Tree.stateAt}, without children. */
  rowAt(path: string): ActorState | undefined;
  /** Calls `fn` with the path of each actor of which something else may be shown once the present step is over. */
  touched(fn: (path: string) => void): Disposable;
  /** xstate actors alive in the whole tree, invoked and spawned ones included. */
  aliveActors(): number;
  /**
   * Puts a tap on every mailbox, for fault injection; a later one replaces it. Disposed, or at the end of the tree, what
   * it holds back is handed over.
   */
  tap(tap: MailboxTap): Disposable;
}

export interface TreeOptions {
  observers?: ((e: SupervisionEvent) => void)[];
  /** As {@link SupervisionTree.tap}, from the first message on. */
  tap?: MailboxTap;
  /** Beats from before the tree was there; a fresh one by default. */
  heartbeat?: Heartbeat;
  /** What a message is about, by its id (a pod's UID): its steps run inside `around`. Default: messages are about nothing. */
  subjectOf?: (message: Message) => string | null;
  /** Runs `step` once, in the name of `subject`. Default: runs it. */
  around?: (subject: string, step: () => void) => void;
  /** Each step of an actor runs inside it, and what the step begins to wait for. Default: nobody asks who acts. */
  acting?: Acting | undefined;
  /** Raw xstate inspection of every actor from its first step on; costs three events a message. It must not throw. */
  inspect?: (e: InspectionEvent) => void;
}

/** Throws {@link SpecError} naming every wrong field. Nothing runs before `start()`; addresses take messages at once. */
export function createTree(root: SupervisorSpec, ports: Ports, opts: TreeOptions = {}): SupervisionTree {
  const problems = specProblems(root);
  if (problems.length > 0) throw new SpecError(problems);
  return new RunningTree(root, ports, opts);
}

function buildServices(ports: Ports, opts: TreeOptions): TreeServices {
  const observers = new Observers(ports.log, opts.observers);
  const deadLetters = new DeadLetters(ports, observers);
  return {
    ports,
    log: ports.log,
    observers,
    deadLetters,
    scheduler: new Scheduler(ports, { heartbeat: opts.heartbeat, acting: opts.acting }),
    subjectOf: opts.subjectOf ?? (() => null),
    around: opts.around ?? ((_, step) => step()),
    inspect: opts.inspect,
    registry: new RegistryCore({ ports, observers, deadLetters }),
    metrics: new SupervisionMetrics(ports.metrics),
  };
}

function buildNode(spec: AnySpec, parentPath: string, env: { services: TreeServices; owner: Owner }): TreeNode {
  const path = parentPath === '' ? spec.id : `${parentPath}/${spec.id}`;
  switch (spec.type) {
    case 'actor':
      return new ActorNode(path, spec, env);
    case 'dynamic':
      return new DynamicNode(path, spec, env);
    case 'supervisor':
      return new SupervisorNode(path, spec, {
        ...env,
        build: (above, index, owner) => {
          const child = spec.children[index];
          if (child === undefined) throw new Error(`${path} has no child ${index}`);
          return buildNode(child, above, { services: env.services, owner });
        },
      });
  }
}

interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

class RunningTree implements SupervisionTree {
  readonly failed: Promise<Error>;
  readonly #services: TreeServices;
  readonly #root: TreeNode;
  #phase: 'new' | 'started' | 'ended' = 'new';
  #stopAsked = false;
  #hasFailed = false;
  readonly #up: Deferred<void> = Promise.withResolvers();
  readonly #down: Deferred<void> = Promise.withResolvers();
  readonly #failure: Deferred<Error> = Promise.withResolvers();

  constructor(spec: SupervisorSpec, ports: Ports, opts: TreeOptions) {
    this.#services = buildServices(ports, opts);
    if (opts.tap !== undefined) this.#services.registry.tap(opts.tap);
    this.failed = this.#failure.promise;
    // A tree may be stopped before its start was awaited: that is no unhandled rejection.
    this.#up.promise.catch(() => undefined);
    const owner: Owner = {
      started: () => undefined,
      ready: () => this.#up.resolve(),
      exited: (_id, _incarnation, { reason }) => this.#onRootEnd(reason),
      counted: () => undefined,
    };
    this.#root = buildNode(spec, '', { services: this.#services, owner });
  }

  get registry(): Registry {
    return this.#services.registry;
  }
  get heartbeat(): Heartbeat {
    return this.#services.scheduler.heartbeat;
  }

  start(): Promise<void> {
    if (this.#phase === 'new') {
      this.#phase = 'started';
      this.#services.scheduler.post(this.#root.path, () => this.#root.start(1));
    }
    return this.#up.promise;
  }

  stop(): Promise<void> {
    if (this.#stopAsked || this.#phase === 'ended') return this.#down.promise;
    this.#stopAsked = true;
    if (this.#phase === 'new') this.#onRootEnd({ kind: 'shutdown' });
    else this.#services.scheduler.post(this.#root.path, () => this.#root.stop());
    return this.#down.promise;
  }

  #onRootEnd(reason: ExitReason): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#root.retire();
    this.#services.observers.touch(this.#root.path);
    this.#services.registry.untap();
    const error = reason.kind === 'error' ? reason.error : null;
    this.#up.reject(error ?? new Error(`the tree ${this.#root.path} was stopped before it was ready`));
    if (error !== null && !this.#stopAsked) {
      this.#services.log.error({ actor: this.#root.path, err: error }, 'the root supervisor failed; the process must exit');
      this.#hasFailed = true;
      this.#failure.resolve(error);
    }
    this.#down.resolve();
  }

  state(): ActorState {
    return this.#root.state(this.#lifecycle());
  }

  stateAt(path: string): ActorState | undefined {
    return this.#root.stateAt(path, this.#lifecycle());
  }

  rowAt(path: string): ActorState | undefined {
    return this.#root.stateAt(path, this.#lifecycle(), false);
  }

  touched(fn: (path: string) => void): Disposable {
    return this.#services.observers.watch(fn);
  }

  #lifecycle(): string {
    if (this.#phase !== 'ended') return 'starting';
    return this.#hasFailed ? 'failed' : 'stopped';
  }

  /** The root itself cannot be killed: there is nothing above it to start it again. */
  kill(path: string, by: string): boolean {
    return path !== this.#root.path && this.#root.killPath(path, by);
  }

  observe(fn: (e: SupervisionEvent) => void): Disposable {
    return this.#services.observers.add(fn);
  }

  actorAt(path: string): AnyActorRef | null {
    return this.#root.actorAt(path);
  }

  machineAt(path: string): object | null {
    const actor = this.#root.actorAt(path);
    return actor === null ? this.#root.sleepingMachineAt(path) : logicOf(actor);
  }

  inspect(path: string, fn: (e: InspectionEvent) => void): Disposable | null {
    const actor = this.#root.actorAt(path);
    if (actor === null) return null;
    const { observers } = this.#services;
    const subscription = actor.system.inspect((e: InspectionEvent) => {
      observers.guard(() => fn(e), `inspection of ${path}`);
    });
    return { [Symbol.dispose]: () => subscription.unsubscribe() };
  }

  aliveActors(): number {
    return this.#root.aliveActors();
  }

  tap(tap: MailboxTap): Disposable {
    return this.#services.registry.tap(tap);
  }
}
