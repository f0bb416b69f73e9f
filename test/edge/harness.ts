/** Runs one actor of the edge without a supervision tree: a registry of views, a mailbox that delivers at once, a real or fake clock. */
import { createActor } from 'xstate';
import type { ActorCtx, ActorSpec, ActorState, Registry } from '../../src/actors/supervision/types.ts';
import { findActor } from '../../src/machines/supervision/actorState.ts';
import type { Address, Answer, Message, ReplyTo, ViewKey } from '../../src/machines/supervision/address.ts';
import type { Ports } from '../../src/ports/ports.ts';

export interface Views extends Registry {
  /** Who answers questions; by default nobody. */
  answerer: (to: string, event: Message) => Answer<unknown>;
  set<T>(key: ViewKey<T>, value: T): void;
}
export function views(): Views {
  const map = new Map<string, { version: number; value: unknown }>();
  const it: Views = {
    set: (key, value) => void map.set(key.view, { version: (map.get(key.view)?.version ?? 0) + 1, value }),
    send: () => 'dead',
    answerer: () => ({ kind: 'lost', reason: 'no tree here' }),
    ask: async <E extends Message, R>(to: Address<E>, event: (replyTo: ReplyTo<R>) => E): Promise<Answer<R>> => {
      const reply = Object.assign(() => undefined, { refuse: () => undefined, signal: new AbortController().signal });
      return it.answerer(to.path, event(reply)) as Answer<R>;
    },
    read: <T>(key: ViewKey<T>) => map.get(key.view) as { version: number; value: T } | undefined,
    watch: () => ({ [Symbol.dispose]() {} }),
    deadLetters: () => ({ total: 3, byReason: { stopped: 3 }, recent: [] }),
  };
  return it;
}

export interface Running<E extends Message> {
  send(e: E): void;
  ask<R>(make: (replyTo: ReplyTo<R>) => E): Promise<Answer<R>>;
  value(): unknown;
  /** Ends as `supervisor.stop` would after an orderly stop failed. */
  abort(): void;
  /** Sends the stop event and waits for the actor's own end. */
  stop(): Promise<void>;
  notes: string[];
}

export function run<E extends Message>(spec: ActorSpec<E>, ports: Ports, registry: Views = views()): Running<E> {
  const gone = new AbortController();
  const notes: string[] = [];
  const path = `node/test/${spec.id}`;
  const self: Address<E> = { path };
  const ctx: ActorCtx<E> = {
    path,
    id: spec.id,
    incarnation: 1,
    self,
    ports,
    registry,
    log: ports.log,
    signal: gone.signal,
    publish: (key, value) => registry.set(key, value),
    note: (reason) => void notes.push(reason),
  };
  const { logic, input } = spec.start(ctx);
  const actor = createActor(logic, {
    input,
    clock: { setTimeout: (fn, ms) => ports.clock.setTimeout(fn, ms), clearTimeout: (id) => ports.clock.clearTimeout(id) },
  });
  actor.subscribe({ error: (error) => notes.push(`error: ${String(error)}`) });
  actor.start();
  const running: Running<E> = {
    notes,
    send: (e) => actor.send(e),
    ask: <R>(make: (replyTo: ReplyTo<R>) => E): Promise<Answer<R>> =>
      new Promise((resolve) => {
        const reply = (value: unknown) => resolve({ kind: 'reply', value: value as R });
        const replyTo = Object.assign(reply, {
          refuse: (reason: string) => resolve({ kind: 'refused', reason }),
          signal: new AbortController().signal,
        }) as ReplyTo<R>;
        actor.send(make(replyTo));
      }),
    value: () => {
      const s: unknown = actor.getSnapshot();
      return typeof s === 'object' && s !== null && 'value' in s ? s.value : undefined;
    },
    abort: () => {
      actor.stop();
      gone.abort();
    },
    async stop() {
      if (spec.stopEvent !== undefined && actor.getSnapshot().status === 'active') {
        actor.send(spec.stopEvent);
        await until(() => actor.getSnapshot().status === 'done');
      }
      running.abort();
    },
  };
  return running;
}

/** Waits for a condition with a bounded deadline. */
export async function until(condition: () => boolean, timeoutMs = 30_000): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`not so within ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export function actor(path: string, more: Partial<ActorState> = {}): ActorState {
  return {
    path,
    type: 'actor',
    lifecycle: 'running',
    state: 'working',
    reason: '',
    message: '',
    ageMs: 65_000,
    incarnation: 1,
    restarts: 0,
    mailbox: { depth: 0, depthMax: 4, oldestAgeMs: 0, coalesced: 2, dropped: 0, suspended: false },
    children: [],
    ...more,
  };
}
const layer = (path: string, children: ActorState[]): ActorState => {
  const { mailbox: _none, ...rest } = actor(path, { type: 'supervisor', state: 'running', children });
  return rest;
};
/** A small tree; `change` replaces fields of the actors it names. */
/** One actor of it. */
export function stateAt(root: ActorState, path: string): ActorState | undefined {
  return findActor(root, path) as ActorState | undefined;
}

export function sampleTree(change: Record<string, Partial<ActorState>> = {}): ActorState {
  const patch = (a: ActorState): ActorState => ({ ...a, children: a.children.map(patch), ...change[a.path] });
  return patch(
    layer('node', [
      layer('node/edge', [actor('node/edge/admin', { state: 'listening', reason: 'Listening', message: 'answering requests' })]),
      layer('node/runtime', [actor('node/runtime/cri', { state: 'ready', reason: 'Ready' })]),
      layer('node/pods', [
        actor('node/pods/podManager', { state: '', reason: 'holds 2 pods' }),
        actor('node/pods/workers', {
          type: 'dynamic',
          children: [actor('node/pods/workers/uid-web', { state: 'syncing.acting', restarts: 1 })],
        }),
      ]),
    ]),
  );
}

/** Of servers that have nothing to measure. */
export const NO_FIGURES = {
  ...{ pressure: true, fromCri: false, gates: [], podsAtRoot: false },
  systemGroups: () => ({ kubelet: '', runtime: '', misc: '', pods: '' }),
  podGroup: () => undefined,
};
