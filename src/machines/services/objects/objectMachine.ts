/**
 * One secret or config map that pods of this node name: followed by a watch of its own, or asked for and kept for a
 * while (resources and volumes 9). What is known of it stays while the API server is away.
 */

import { assign, sendParent, sendTo } from 'xstate';
import type { ApiObject, ObjectResult } from '../../kube/objects.ts';
import { isOlder, type KubeFailure, type KubeObject } from '../../kube/request.ts';
import { kindWord, type ObjectRef, refKey } from '../../pod/volumes/references.ts';
import { projecting } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { decodeObject } from './decode.ts';

/** `configMapAndSecretChangeDetectionStrategy`. */
export type ObjectStrategy = 'Watch' | 'Cache' | 'Get';

/** A question that comes before the first list waits at most so long. */
const FIRST_LIST_WAIT_MS = 1_000;

export type Fetched = { ok: true; object: KubeObject } | { ok: false; failure: KubeFailure };
export interface ObjectFacts {
  /** How long an answer is good for under `Cache`. */
  readonly ttlMs: number;
}
interface ObjectInput {
  ref: ObjectRef;
  strategy: ObjectStrategy;
}
export interface ObjectContext extends ObjectInput {
  /** The last good word of the API server. */
  held: { result: ObjectResult<ApiObject>; immutable: boolean; uid: string; version: string } | null;
  /** Questions, by number. Those that came before the question under way was sent. */
  served: readonly number[];
  waiting: readonly number[];
  /** It was had before, since the last pod that names it came: the server's cache will do. */
  asked: boolean;
  /** Another pod named it while the question was under way: the answer may be older than that pod. */
  renewed: boolean;
  /** Why the last question failed; '' where it did not. */
  error: string;
}
export type ObjectEvent =
  | { type: 'object.ask'; ask: number }
  | { type: 'object.seen'; object: KubeObject | null }
  | { type: 'object.expired'; ask: number }
  /** Another pod names it from now on: it must not be shown something old. */
  | { type: 'object.renew' }
  | { type: 'api.found' };
/** To the parent: its content is another than before. */
export interface ObjectChanged {
  type: 'object.changed';
  key: string;
}

export interface ObjectReply {
  ask: number;
  result: ObjectResult<ApiObject>;
}
/** `asked`: what the API server holds in memory will do. */
export interface Question {
  ref: ObjectRef;
  asked: boolean;
}

const { setup, facts } = setupWith<ObjectFacts>();

const effects = setup({
  types: { context: {} as ObjectContext, events: {} as ObjectEvent, input: {} as ObjectInput },
  actors: { fetch: unprovided<Fetched, Question>() },
  actions: {
    reply: unprovidedAction<ObjectReply>(),
    /** Starts a child `watch`, after whose first list and after each change comes `object.seen`, never in the middle of a step. */
    follow: unprovidedAction(),
  },
});

const setupObject = effects.extend({
  actions: {
    unfollow: effects.enqueueActions(({ enqueue }) => enqueue.stopChild('watch')),
    wake: sendTo('watch', { type: 'api.found' }),
    queue: enqueuing(effects)(({ context, event, enqueue }, params: { limited: boolean }) => {
      if (event.type !== 'object.ask') return;
      const { ask } = event;
      enqueue.assign({ waiting: [...context.waiting, ask] });
      if (params.limited) enqueue.raise({ type: 'object.expired', ask }, { id: `wait:${ask}`, delay: FIRST_LIST_WAIT_MS });
    }),
    answerNow: effects.enqueueActions(({ context: { held }, event, enqueue }) => {
      if (event.type !== 'object.ask' || held === null) return;
      enqueue({ type: 'reply', params: { ask: event.ask, result: held.result } });
    }),
    /** To everybody who waits for the first list. */
    answerWaiting: effects.enqueueActions(({ context, enqueue }) => {
      const { held, waiting } = context;
      if (held === null) return;
      for (const ask of waiting) {
        enqueue.cancel(`wait:${ask}`);
        enqueue({ type: 'reply', params: { ask, result: held.result } });
      }
      enqueue.assign({ waiting: [] });
    }),
    expire: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'object.expired') return;
      const { ask } = event;
      if (!context.waiting.includes(ask)) return;
      enqueue.assign({ waiting: context.waiting.filter((w) => w !== ask) });
      // What was known before is better than nothing.
      const message = `failed to sync ${kindWord(context.ref.kind)} cache: timed out waiting for the condition`;
      enqueue({ type: 'reply', params: { ask, result: context.held?.result ?? { kind: 'failed', message } } });
    }),
    takeSeen: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'object.seen') return;
      const held = heldOf(context.ref, event.object);
      enqueue.assign({ held });
      if (isNews(context.held, held)) enqueue(sendParent({ type: 'object.changed', key: refKey(context.ref) } satisfies ObjectChanged));
    }),
    serve: assign(({ context }) => ({ served: context.waiting, waiting: [], renewed: false })),
    /** The answer of the question under way; an error leaves what is known. */
    takeFetched: enqueuing(effects)(({ context, enqueue }, { fetched }: { fetched: Fetched }) => {
      const held = fetched.ok ? heldOf(context.ref, fetched.object) : context.held;
      let result: ObjectResult<ApiObject>;
      if (fetched.ok) result = held?.result ?? { kind: 'absent' };
      else if (fetched.failure.code === 404) result = { kind: 'absent', message: fetched.failure.message };
      else result = context.held?.result.kind === 'found' ? context.held.result : { kind: 'failed', message: fetched.failure.message };
      const older = fetched.ok && context.held !== null && held !== null && isOlder(held.version, context.held.version);
      if (older) result = context.held?.result ?? result;
      for (const ask of context.served) enqueue({ type: 'reply', params: { ask, result } });
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
  delays: { ttl: () => facts().ttlMs },
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

/** The answer that there is no such object is no failure. */
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
  context: ({ input }) => ({ ...input, held: null, served: [], waiting: [], asked: false, renewed: false, error: '' }),
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
        // An object of that name may have been made anew since.
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
