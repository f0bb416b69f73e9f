/** A layer: runs the supervisor statechart and carries out what it decides about its children. */
import { type ActorRefFrom, type AnyActorRef, createActor } from 'xstate';
import type { ChildRecord, SupervisorEffect, SupervisorEvent } from '../../../machines/supervision/supervision.ts';
import { supervisorMachine } from '../../../machines/supervision/supervisorMachine.ts';
import { noting } from '../../../machines/xstate/inside.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { dottedState, reasonOf } from '../../../machines/xstate/words.ts';
import { EscalationError } from '../errors.ts';
import { complete, rulesOf } from '../policy.ts';
import type { TreeServices } from '../services.ts';
import type { ActorState, Complete, ExitReason, SupervisorSpec } from '../types.ts';
import { BranchLife } from './life.ts';
import type { Owner, TreeNode } from './node.ts';
import { eventName } from './snapshots.ts';

/** Makes the node of one child specification. */
export type BuildChild = (parentPath: string, index: number, owner: Owner) => TreeNode;

export class SupervisorNode extends BranchLife {
  readonly #spec: Complete<SupervisorSpec>;
  readonly #children: TreeNode[];
  #actor: ActorRefFrom<typeof supervisorMachine> | null = null;
  #state = '';
  /** Type of the event that the machine took last. */
  #event = '';
  #reportedReady = false;

  constructor(path: string, spec: SupervisorSpec, env: { services: TreeServices; owner: Owner; build: BuildChild }) {
    super(path, spec.id, env);
    this.#spec = complete(spec);
    const tell = (event: SupervisorEvent) => this.#tell(event);
    const { clock, rng } = env.services.ports;
    const childOwner: Owner = {
      started: (id, incarnation) => tell({ type: 'child.started', id, incarnation, atMs: clock.monoMs() }),
      ready: (id, incarnation) => tell({ type: 'child.ready', id, incarnation }),
      exited: (id, incarnation, { reason, counts }) =>
        tell({ type: 'child.exited', id, incarnation, reason, counts, atMs: clock.monoMs(), random: rng.next() }),
      counted: (id, atMs) => tell({ type: 'child.counted', id, atMs }),
    };
    this.#children = spec.children.map((_, i) => env.build(path, i, childOwner));
  }

  /** Supervision passes through the scheduler, so nothing recurses; an event for an earlier life is dropped. */
  #tell(event: SupervisorEvent): void {
    const actor = this.#actor;
    this.services.scheduler.post(this.path, () => {
      if (actor !== null && actor === this.#actor) actor.send(event);
    });
  }

  get isUp(): boolean {
    return this.#actor !== null;
  }

  start(incarnation: number): void {
    this.begins(incarnation);
    this.#state = '';
    this.#event = '';
    this.#reportedReady = false;
    const { ports, scheduler } = this.services;
    const { path } = this;
    this.#touch();
    const machine = provided(supervisorMachine, {
      actions: { perform: (_args, { effect }) => this.#perform(effect) },
    });
    const { strategy, intensity, escalate, children } = this.#spec;
    const { inspect } = this.services;
    const noted = noting(machine, (type) => {
      this.#event = type;
    });
    const actor = createActor(noted, {
      ...(inspect === undefined ? {} : { inspect }),
      id: this.id,
      clock: {
        setTimeout: (fn, ms) => ports.clock.setTimeout(() => scheduler.stamped(path, fn), ms) as number,
        clearTimeout: (id) => ports.clock.clearTimeout(id),
      },
      input: {
        strategy,
        intensity,
        escalate,
        rules: children.map((c) => rulesOf(c)),
        incarnations: Object.fromEntries(this.#children.map((c) => [c.id, c.incarnation])),
      },
    });
    this.#actor = actor;
    actor.subscribe({
      next: (snapshot) => this.#onSnapshot(snapshot),
      error: (err: unknown) => {
        // Total by construction; should the statechart itself fail, its children must not go on unsupervised.
        for (const child of this.#children.toReversed()) child.kill({ kind: 'shutdown' });
        this.#end({ kind: 'error', error: err instanceof Error ? err : new Error(String(err)) });
      },
    });
    actor.start();
  }

  #perform(effect: SupervisorEffect): void {
    const { ports, observers, log, scheduler, metrics } = this.services;
    const child = 'id' in effect ? this.#children.find((c) => c.id === effect.id) : undefined;
    const asking = this.#actor;
    // What a life of this supervisor decided is void once that life is over: nothing may start under a dead supervisor.
    const later = (fn: (node: TreeNode) => void): void => {
      if (child === undefined) return;
      scheduler.post(child.path, () => {
        if (asking === this.#actor) fn(child);
      });
    };
    switch (effect.type) {
      case 'start':
        later((node) => node.start(effect.incarnation));
        return;
      case 'stop':
        later((node) => node.stop());
        return;
      case 'ended':
        later((node) => node.retire());
        return;
      case 'restarting': {
        const path = child?.path ?? `${this.path}/${effect.id}`;
        metrics.restarted(path, effect.reason);
        this.reportRestart(path, effect);
        return;
      }
      case 'escalated': {
        this.lastError = effect.error;
        this.#touch();
        const then =
          this.#spec.escalate === 'parent' ? 'it fails upwards' : `it is parked and starts over in ${this.#spec.escalate.parkMs} ms`;
        log.error({ actor: this.path, err: effect.error }, `the supervisor gave up: ${then}`);
        if (observers.any)
          observers.emit({ kind: 'supervisor.escalated', atMs: ports.clock.wallMs(), path: this.path, error: effect.error });
        return;
      }
    }
  }

  /** The lifecycles of its children are its own. */
  #touch(): void {
    const { observers } = this.services;
    for (const { path } of [this, ...this.#children]) observers.touch(path);
  }

  #onSnapshot(snapshot: { value: unknown; context: { failure: string | null } }): void {
    this.#touch();
    const to = dottedState(snapshot.value);
    const from = this.#state;
    if (to === from) return;
    this.#state = to;
    const { ports, observers } = this.services;
    const { clock } = ports;
    this.sinceMonoMs = clock.monoMs();
    if (observers.any) {
      const { path } = this;
      const event = eventName(this.#event, this.#actor);
      observers.emit({ kind: 'transition', atMs: clock.wallMs(), path, from, to, event, reason: reasonOf(snapshot).reason });
    }
    if ((to === 'running' || to === 'parked') && !this.#reportedReady) {
      this.#reportedReady = true;
      this.owner.ready(this.id, this.incarnation);
    }
    if (to === 'stopped') this.#end({ kind: 'shutdown' });
    if (to === 'failed') this.#end({ kind: 'error', error: new EscalationError(this.path, snapshot.context.failure ?? 'unknown') });
  }

  #end(reason: ExitReason): void {
    if (this.#actor === null) return;
    this.#actor = null;
    this.exits(reason, () => this.#touch());
  }

  stop(): void {
    if (this.#actor === null || this.isWaitingForEnds) return;
    this.stopWithin(this.#spec.shutdownMs, () => this.#tell({ type: 'sup.stop' }));
  }

  kill(reason: ExitReason): string[] {
    const actor = this.#actor;
    if (actor === null) return [];
    const cut = this.#children.toReversed().flatMap((child) => child.kill({ kind: 'shutdown' }));
    this.#end(reason);
    actor.stop();
    return cut;
  }

  retire(): void {
    for (const child of this.#children) child.retire();
  }

  state(lifecycle: string, deep = true): ActorState {
    const snapshot = this.#actor?.getSnapshot();
    const said = reasonOf(snapshot);
    const records = new Map<string, ChildRecord>((snapshot?.context.children ?? []).map((c) => [c.id, c]));
    return this.row({
      ...{ type: 'supervisor', lifecycle: snapshot === undefined ? lifecycle : this.#state, state: this.#state },
      ...{ reason: said.reason, message: said.message, restarts: Math.max(0, this.incarnation - 1) },
      children: deep ? this.#children.map((c) => c.state(lifecycleOf(records.get(c.id), this.#state))) : [],
    });
  }

  stateAt(path: string, lifecycle: string, deep = true): ActorState | undefined {
    if (path === this.path) return this.state(lifecycle, deep);
    const child = this.#children.find((c) => path === c.path || path.startsWith(`${c.path}/`));
    const record = this.#actor?.getSnapshot().context.children.find((c) => c.id === child?.id);
    return child?.stateAt(path, lifecycleOf(record, this.#state), deep);
  }

  override find(path: string): TreeNode | null {
    if (path === this.path) return this;
    for (const child of this.#children) {
      const found = path === child.path || path.startsWith(`${child.path}/`) ? child.find(path) : null;
      if (found !== null) return found;
    }
    return null;
  }

  override killPath(path: string, by: string): boolean {
    return path === this.path ? super.killPath(path, by) : (this.#below(path)?.killPath(path, by) ?? false);
  }

  override sleepingMachineAt(path: string): object | null {
    return this.#below(path)?.sleepingMachineAt(path) ?? null;
  }

  actorAt(path: string): AnyActorRef | null {
    if (path === this.path) return this.#actor;
    return this.#below(path)?.actorAt(path) ?? null;
  }

  aliveActors(): number {
    return this.#children.reduce((sum, c) => sum + c.aliveActors(), this.#actor === null ? 0 : 1);
  }

  #below(path: string): TreeNode | undefined {
    return this.#children.find((c) => path === c.path || path.startsWith(`${c.path}/`));
  }
}

function lifecycleOf(record: ChildRecord | undefined, supervisor: string): string {
  if (record === undefined) return supervisor === 'failed' ? 'failed' : 'stopped';
  switch (record.status) {
    case 'up':
      return 'running';
    case 'starting':
      return record.history.row > 0 ? 'restarting' : 'starting';
    case 'stopping':
      return 'stopping';
    case 'ended':
      return 'stopped';
    case 'down':
      if (supervisor === 'parked') return 'parked';
      if (supervisor === 'stopping' || supervisor === 'stopped' || supervisor === 'failed') return 'stopped';
      return record.incarnation === 0 ? 'starting' : 'restarting';
  }
}
