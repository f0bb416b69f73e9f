/**
 * One secret or config map that pods of this node name: followed by a watch of its own, or asked for and kept for a
 * while (resources and volumes 9). What is known of it stays while the API server is away.
 */

import { type AnyActorLogic, assign, enqueueActions, fromPromise, sendParent, sendTo, setup } from 'xstate';
import type { ApiObject, ObjectResult } from '../../kube/objects.ts';
import { isOlder, type KubeFailure, type KubeObject } from '../../kube/request.ts';
import { kindWord, type ObjectRef, refKey } from '../../pod/volumes/references.ts';
import { factsOf } from '../../xstate/facts.ts';
import { projecting } from '../../xstate/projection.ts';
import { providing, unprovided } from '../../xstate/provide.ts';
import { decodeObject } from './decode.ts';

/** `configMapAndSecretChangeDetectionStrategy`. */
export type ObjectStrategy = 'Watch' | 'Cache' | 'Get';

/** Who asks before the first list has come waits at most so long. */
const FIRST_LIST_WAIT_MS = 1_000;

export type Fetched = { ok: true; object: KubeObject } | { ok: false; failure: KubeFailure };
export interface ObjectIo {
  /**
   * Logic of a child that calls `seen` after the first list and after each change, never in the middle of its own step;
   * null: there is no such object.
   */
  watch(ref: ObjectRef, seen: (object: KubeObject | null) => void): { logic: AnyActorLogic; input: unknown };
  /** `fromCache`: what the API server holds in memory will do. */
  fetch(ref: ObjectRef, o: { fromCache: boolean; signal: AbortSignal }): Promise<Fetched>;
}
/** What comes with each event. */
export interface ObjectFacts {
  /** How long an answer is good for under `Cache`. */
  readonly ttlMs: number;
}
export interface Asker {
  reply(result: ObjectResult<ApiObject>): void;
  signal: AbortSignal;
}
interface Waiting extends Asker {
  id: number;
}
export interface ObjectInput {
  ref: ObjectRef;
  strategy: ObjectStrategy;
}
export interface ObjectContext extends ObjectInput {
  /** The last good word of the API server. */
  held: { result: ObjectResult<ApiObject>; immutable: boolean; uid: string; version: string } | null;
  /** Asked before the question under way was sent. */
  served: readonly Waiting[];
  waiting: readonly Waiting[];
  lastId: number;
  /** It was had before, since the last pod that names it came: the server's cache will do. */
  asked: boolean;
  /** Another pod named it while the question was under way: the answer may be older than that pod. */
  renewed: boolean;
  /** Why the last question failed; '' where it did not. */
  error: string;
}
export type ObjectEvent =
  | { type: 'object.ask'; asker: Asker }
  | { type: 'object.seen'; object: KubeObject | null }
  | { type: 'object.expired'; id: number }
  /** Another pod names it from now on: it must not be shown something old. */
  | { type: 'object.renew' }
  | { type: 'api.found' };
/** To the parent: its content is another than before. */
export interface ObjectChanged {
  type: 'object.changed';
  key: string;
}

interface Question {
  ref: ObjectRef;
  asked: boolean;
}

const setupObject = setup({
  types: { context: {} as ObjectContext, events: {} as ObjectEvent, input: {} as ObjectInput },
  actors: { fetch: unprovided<Fetched, Question>() },
  actions: {
    /** Starts a child `watch`. */
    follow: (_) => {},
    unfollow: enqueueActions(({ enqueue }) => enqueue.stopChild('watch')),
    wake: sendTo('watch', { type: 'api.found' }),
    queue: enqueueActions(({ context, event, enqueue }, params: { limited: boolean }) => {
      if (event.type !== 'object.ask') return;
      const id = context.lastId + 1;
      enqueue.assign({ lastId: id, waiting: [...context.waiting, { ...event.asker, id }] });
      if (params.limited) enqueue.raise({ type: 'object.expired', id }, { id: `wait:${id}`, delay: FIRST_LIST_WAIT_MS });
    }),
    answerNow: ({ context, event }) => {
      if (event.type === 'object.ask' && context.held !== null) event.asker.reply(context.held.result);
    },
    /** To everybody who waits for the first list. */
    answerWaiting: enqueueActions(({ context, enqueue }) => {
      const { held, waiting } = context;
      if (held === null) return;
      for (const w of waiting) {
        enqueue.cancel(`wait:${w.id}`);
        enqueue(() => w.reply(held.result));
      }
      enqueue.assign({ waiting: [] });
    }),
    expire: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'object.expired') return;
      const late = context.waiting.find((w) => w.id === event.id);
      if (late === undefined) return;
      enqueue.assign({ waiting: context.waiting.filter((w) => w !== late) });
      // What was known before is better than nothing.
      const message = `failed to sync ${kindWord(context.ref.kind)} cache: timed out waiting for the condition`;
      enqueue(() => late.reply(context.held?.result ?? { kind: 'failed', message }));
    }),
    takeSeen: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'object.seen') return;
      const held = heldOf(context.ref, event.object);
      enqueue.assign({ held });
      if (isNews(context.held, held)) enqueue(sendParent({ type: 'object.changed', key: refKey(context.ref) } satisfies ObjectChanged));
    }),
    serve: assign(({ context }) => ({ served: context.waiting, waiting: [], renewed: false })),
    /** The answer of the question under way; an error leaves what is known. */
    takeFetched: enqueueActions(({ context, enqueue }, { fetched }: { fetched: Fetched }) => {
      const held = fetched.ok ? heldOf(context.ref, fetched.object) : context.held;
      let result: ObjectResult<ApiObject>;
      if (fetched.ok) result = held?.result ?? { kind: 'absent' };
      else if (fetched.failure.code === 404) result = { kind: 'absent', message: fetched.failure.message };
      else result = context.held?.result.kind === 'found' ? context.held.result : { kind: 'failed', message: fetched.failure.message };
      const older = fetched.ok && context.held !== null && held !== null && isOlder(held.version, context.held.version);
      if (older) result = context.held?.result ?? result;
      for (const w of context.served) enqueue(() => w.reply(result));
      const next = !fetched.ok && fetched.failure.code === 404 ? null : older ? context.held : held;
      // Under `Get` nothing is kept: each question is a question to the API server.
      enqueue.assign({
        served: [],
        asked: context.strategy === 'Cache' && !context.renewed && fetched.ok,
        error: failureIn(fetched),
        held: context.strategy === 'Get' ? null : next,
      });
      if (context.strategy === 'Cache' && isNews(context.held, next))
        enqueue(sendParent({ type: 'object.changed', key: refKey(context.ref) } satisfies ObjectChanged));
    }),
    askAnew: assign({ asked: false, renewed: true }),
  },
  guards: {
    watched: ({ context }) => context.strategy === 'Watch',
    immutable: ({ context }) => context.held?.immutable === true,
    someWait: ({ context }) => context.waiting.length > 0,
    fetchFailed: (_, { fetched }: { fetched: Fetched }) => failureIn(fetched) !== '',
    fetchedToKeep: ({ context }, { fetched }: { fetched: Fetched }) => context.strategy === 'Cache' && fetched.ok && !context.renewed,
  },
  delays: { ttl: ({ event }) => factsOf<ObjectFacts>(event).ttlMs },
});

function heldOf(ref: ObjectRef, object: KubeObject | null): NonNullable<ObjectContext['held']> {
  if (object === null) return { result: { kind: 'absent' }, immutable: false, uid: '', version: '' };
  const decoded = decodeObject(ref, object);
  const { uid, resourceVersion } = object.metadata;
  const result: ObjectResult<ApiObject> = decoded.ok
    ? { kind: 'found', value: decoded.value }
    : { kind: 'failed', message: decoded.message };
  return { result, immutable: decoded.ok && decoded.immutable, uid: uid ?? '', version: resourceVersion ?? '' };
}

/** That there is no such object is an answer. */
function failureIn(fetched: Fetched): string {
  return fetched.ok || fetched.failure.code === 404 ? '' : fetched.failure.message;
}

function isNews(before: ObjectContext['held'], now: ObjectContext['held']): boolean {
  return before !== null && now !== null && (before.uid !== now.uid || before.version !== now.version);
}

/** Where nothing is known that may be served. */
const onDemand = {
  'object.ask': { target: 'fetching', actions: [{ type: 'queue', params: { limited: false } }] },
  'object.renew': { actions: ['askAnew'] },
} as const;

export const objectMachine = setupObject.createMachine({
  id: 'object',
  meta: projecting<ObjectContext>(({ ref, strategy, held, waiting, renewed, error }) => ({
    ...{ kind: ref.kind, namespace: ref.namespace, name: ref.name, strategy, waiting: waiting.length, renewed, error },
    held: held === null ? null : { is: held.result.kind, version: held.version, immutable: held.immutable },
  })),
  context: ({ input }) => ({ ...input, held: null, served: [], waiting: [], lastId: 0, asked: false, renewed: false, error: '' }),
  initial: 'choosing',
  on: { 'object.expired': { actions: ['expire'] } },
  states: {
    choosing: { always: [{ guard: 'watched', target: 'watching' }, { target: 'idle' }] },
    watching: {
      entry: ['follow'],
      exit: ['unfollow'],
      initial: 'listing',
      on: {
        'object.seen': { target: '.following', reenter: false, actions: ['takeSeen', 'answerWaiting'] },
        'api.found': { actions: ['wake'] },
      },
      states: {
        listing: {
          meta: { reason: 'Listing', message: 'waiting for the first word of the API server' },
          on: { 'object.ask': { actions: [{ type: 'queue', params: { limited: true } }] } },
        },
        following: {
          meta: { reason: 'Following', message: 'changes are reported as they happen' },
          always: { guard: 'immutable', target: '#object.settled' },
          on: {
            'object.ask': { actions: ['answerNow'] },
            'object.seen': { target: 'following', reenter: true, actions: ['takeSeen', 'answerWaiting'] },
          },
        },
      },
    },
    settled: {
      meta: { reason: 'Immutable', message: 'it cannot change: it is not watched any more' },
      on: {
        'object.ask': { actions: ['answerNow'] },
        // One of that name may have been made anew since.
        'object.renew': { target: 'watching' },
      },
    },
    idle: {
      meta: { reason: 'Idle', message: 'the API server is asked when a pod needs it' },
      on: onDemand,
    },
    stale: {
      meta: { reason: 'Stale', message: 'it was read too long ago: the API server is asked when a pod needs it' },
      on: onDemand,
    },
    failing: {
      meta: {
        reason: 'FetchFailed',
        message: ({ error }: ObjectContext) => `the API server did not give it: ${error}; it is asked again when a pod needs it`,
      },
      on: onDemand,
    },
    fetching: {
      meta: { reason: 'Fetching', message: 'the API server is being asked' },
      entry: ['serve'],
      invoke: {
        src: 'fetch',
        input: ({ context: { ref, asked } }) => ({ ref, asked }),
        onDone: [
          {
            guard: 'someWait',
            target: 'fetching',
            reenter: true,
            actions: [{ type: 'takeFetched', params: ({ event }) => ({ fetched: event.output }) }],
          },
          {
            guard: { type: 'fetchedToKeep', params: ({ event }) => ({ fetched: event.output }) },
            target: 'fresh',
            actions: [{ type: 'takeFetched', params: ({ event }) => ({ fetched: event.output }) }],
          },
          {
            guard: { type: 'fetchFailed', params: ({ event }) => ({ fetched: event.output }) },
            target: 'failing',
            actions: [{ type: 'takeFetched', params: ({ event }) => ({ fetched: event.output }) }],
          },
          { target: 'idle', actions: [{ type: 'takeFetched', params: ({ event }) => ({ fetched: event.output }) }] },
        ],
      },
      on: { 'object.ask': { actions: [{ type: 'queue', params: { limited: false } }] }, 'object.renew': { actions: ['askAnew'] } },
    },
    fresh: {
      meta: { reason: 'Fresh', message: 'kept for a while before it is asked for again' },
      after: { ttl: { target: 'stale' } },
      on: { 'object.ask': { actions: ['answerNow'] }, 'object.renew': { target: 'stale', actions: ['askAnew'] } },
    },
  },
});

export const objectWith = (io: ObjectIo): typeof objectMachine =>
  providing(objectMachine, {
    actors: { fetch: fromPromise<Fetched, Question>(({ input, signal }) => io.fetch(input.ref, { fromCache: input.asked, signal })) },
    actions: {
      follow: enqueueActions(({ context, enqueue, self }) => {
        const seen = (object: KubeObject | null): void => {
          if (self.getSnapshot().status === 'active') self.send({ type: 'object.seen', object });
        };
        const { logic, input } = io.watch(context.ref, seen);
        // The types of xstate give ids to actors that were named in advance only.
        const spawn = enqueue.spawnChild as unknown as (logic: AnyActorLogic, o: { id: string; input: unknown }) => void;
        spawn(logic, { id: 'watch', input });
      }),
    },
  });
