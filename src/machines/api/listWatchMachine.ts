/**
 * List and watch as a statechart: list once, then follow a watch from the version of the list; open it again where it
 * ended; list again when history has expired. The requests are given with `provide`.
 */
import { assign, fromCallback, fromPromise, type PromiseActorLogic, setup } from 'xstate';
import { factsOf } from '../facts.ts';
import { failureOf, projecting } from '../projection.ts';
import { shareData } from '../sharedData.ts';
import { SharedMap } from '../sharedMap.ts';
import { isExpired, type KubeFailure, type KubeObject, type WatchEvent } from './kube.ts';

/** First wait after a failure, doubled for each further one, lengthened by up to all of itself. */
export const LIST_WATCH_RETRY_MS = 800;
export const LIST_WATCH_RETRY_MAX_MS = 30_000;
/** Bookmarks come about once a minute: a stream that is quiet for longer is taken for dead and opened anew. */
export const SILENCE_MAX_MS = 90_000;
/** A watch that ends sooner than this and has said nothing counts as a failure, lest two of them spin. */
export const WATCH_LIFE_MIN_MS = 1_000;

/** A list in full. */
export type Listed = { ok: true; items: readonly KubeObject[]; resourceVersion: string } | { ok: false; failure: KubeFailure };

export type ListWatchEvent =
  | { type: 'watch.opened' }
  | { type: 'watch.events'; events: readonly WatchEvent[] }
  /** `failure` null: the server closed it, as it does every few minutes. */
  | { type: 'watch.ended'; failure: KubeFailure | null }
  | { type: 'api.found' };

export interface ListWatchInput {
  /** What is watched, for people: `pods of node n1`. */
  what: string;
}
export interface ListWatchContext extends ListWatchInput {
  /** By `namespace/name`. */
  items: ReadonlyMap<string, KubeObject>;
  /** Where the next watch begins; '' before the first list. */
  resourceVersion: string;
  /** The next list may come from the server's cache; not after it proved too old. */
  fromCache: boolean;
  /** In a row. */
  failures: number;
  failure: KubeFailure | null;
  openedAtMs: number;
  /** The present watch has said something. */
  heard: boolean;
  /** What the last event changed: objects as they are now, or as they last were where they are gone. */
  changed: readonly KubeObject[];
  next: 'listing' | 'watching';
}

export function objectKey(o: KubeObject): string {
  return `${o.metadata.namespace ?? ''}/${o.metadata.name}`;
}

/** Versions of one server grow; only whether an answer is older than what is known already is ever asked. */
export function isOlder(version: string, than: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(than)) return false;
  return BigInt(version) < BigInt(than);
}

/** A complete list: what it lacks is gone. */
export function takeList(context: ListWatchContext, items: readonly KubeObject[], resourceVersion: string): Partial<ListWatchContext> {
  const next = new Map(items.map((o) => [objectKey(o), o]));
  const changed: KubeObject[] = [];
  for (const [key, o] of next) {
    const before = context.items.get(key);
    if (before?.metadata.uid === o.metadata.uid && before?.metadata.resourceVersion === o.metadata.resourceVersion) {
      // The same object again: readers know it by identity.
      if (before !== undefined) next.set(key, before);
      continue;
    }
    if (before !== undefined && before.metadata.uid !== o.metadata.uid) changed.push(before);
    const kept = newer(before, o);
    next.set(key, kept);
    changed.push(kept);
  }
  for (const [key, o] of context.items) if (!next.has(key)) changed.push(o);
  return { items: SharedMap.of(next), resourceVersion, changed, failure: null, fromCache: true };
}

/** The newer version of an object, in memory with what the older one already had of it. Always another object. */
function newer(before: KubeObject | undefined, object: KubeObject): KubeObject {
  if (before === undefined || before.metadata.uid !== object.metadata.uid) return object;
  const shared = shareData(before, object);
  return shared === before ? { ...before } : shared;
}

export function takeEvents(context: ListWatchContext, events: readonly WatchEvent[]): Partial<ListWatchContext> {
  const items = SharedMap.draft(context.items);
  const changed: KubeObject[] = [];
  let { resourceVersion } = context;
  for (const { type, object } of events) {
    resourceVersion = object.metadata.resourceVersion ?? resourceVersion;
    if (type === 'BOOKMARK') continue;
    const key = objectKey(object);
    const before = items.get(key);
    // A name that changed hands: whoever had it is gone.
    if (before !== undefined && before.metadata.uid !== object.metadata.uid) changed.push(before);
    const kept = newer(before, object);
    if (type === 'DELETED') items.delete(key);
    else items.set(key, kept);
    changed.push(kept);
  }
  return { items: items.finish(), resourceVersion, changed, failures: 0, failure: null, heard: true };
}

function retryMs(context: ListWatchContext, random: number): number {
  const base = Math.min(LIST_WATCH_RETRY_MS * 2 ** Math.min(16, Math.max(0, context.failures - 1)), LIST_WATCH_RETRY_MAX_MS);
  return Math.max(base * (1 + random), context.failure?.retryAfterMs ?? 0);
}

const list: PromiseActorLogic<Listed, { fromCache: boolean }> = fromPromise(() => Promise.reject(new Error('no list was provided')));
const watch = fromCallback<{ type: 'none' }, { resourceVersion: string }>(() => {
  throw new Error('no watch was provided');
});

type Ended = { type: 'watch.ended'; failure: KubeFailure | null };
const failed = {
  type: 'fail',
  params: ({ event }: { event: Ended }) => ({ failure: event.failure }),
} as const;

export const listWatchMachine = setup({
  types: { context: {} as ListWatchContext, input: {} as ListWatchInput, events: {} as ListWatchEvent },
  actors: { list, watch },
  actions: {
    /** Reads `context.items` and `context.changed`. */
    deliver: () => {},
    takeList: assign(({ context }, p: { listed: Listed }) =>
      p.listed.ok ? takeList(context, p.listed.items, p.listed.resourceVersion) : {},
    ),
    takeEvents: assign(({ context }, p: { events: readonly WatchEvent[] }) => takeEvents(context, p.events)),
    fail: assign(({ context }, p: { failure: KubeFailure | null }): Partial<ListWatchContext> => {
      const expired = p.failure !== null && isExpired(p.failure);
      return {
        failures: context.failures + 1,
        failure: p.failure,
        changed: [],
        next: expired || context.resourceVersion === '' ? 'listing' : 'watching',
        ...(expired ? { fromCache: false } : {}),
      };
    }),
    calm: assign({ failures: 0, failure: null }),
    /** A server that is back may still refuse for a moment: that is no reason to wait as long as for one that is away. */
    hope: assign({ failures: 0 }),
    opened: assign(({ event }) => ({ openedAtMs: factsOf(event).monoMs, heard: false, changed: [] })),
  },
  guards: {
    listed: (_, p: { listed: Listed }) => p.listed.ok,
    wentBack: ({ context }, p: { listed: Listed }) => p.listed.ok && isOlder(p.listed.resourceVersion, context.resourceVersion),
    ordinaryEnd: ({ context, event }, p: { failure: KubeFailure | null }) =>
      p.failure === null && (context.heard || factsOf(event).monoMs - context.openedAtMs >= WATCH_LIFE_MIN_MS),
    firstExpiry: ({ context }, p: { failure: KubeFailure | null }) => p.failure !== null && isExpired(p.failure) && context.failures === 0,
    toList: ({ context }) => context.next === 'listing',
  },
  delays: { retry: ({ context, event }) => retryMs(context, factsOf(event).random), silence: SILENCE_MAX_MS },
}).createMachine({
  id: 'listWatch',
  meta: projecting<ListWatchContext>(({ what, items, resourceVersion, fromCache, heard, failures, failure }) => ({
    ...{ what, objects: items.size, resourceVersion, fromCache, heard, failures },
    failure: failureOf(failure),
  })),
  context: ({ input }) => ({
    ...input,
    items: SharedMap.of<string, KubeObject>(),
    resourceVersion: '',
    fromCache: true,
    failures: 0,
    failure: null,
    openedAtMs: 0,
    heard: false,
    changed: [],
    next: 'listing',
  }),
  initial: 'listing',
  states: {
    listing: {
      meta: { reason: 'Listing', message: ({ what }: ListWatchContext) => `asking for all ${what}` },
      invoke: {
        src: 'list',
        input: ({ context }) => ({ fromCache: context.fromCache }),
        onDone: [
          {
            // A cache that is behind what was seen already would bring back what is gone.
            guard: { type: 'wentBack', params: ({ event }) => ({ listed: event.output }) },
            target: 'backingOff',
            actions: [
              {
                type: 'fail',
                params: { failure: { code: 410, reason: 'Expired', message: 'the list is older than what was seen', outcome: 'failed' } },
              },
            ],
          },
          {
            guard: { type: 'listed', params: ({ event }) => ({ listed: event.output }) },
            target: 'watching',
            actions: [{ type: 'takeList', params: ({ event }) => ({ listed: event.output }) }, 'deliver'],
          },
          {
            target: 'backingOff',
            actions: [{ type: 'fail', params: ({ event }) => ({ failure: event.output.ok ? null : event.output.failure }) }],
          },
        ],
      },
    },
    watching: {
      meta: { reason: 'Watching', message: ({ what }: ListWatchContext) => `following ${what}` },
      entry: ['opened'],
      invoke: { src: 'watch', input: ({ context }) => ({ resourceVersion: context.resourceVersion }) },
      initial: 'opening',
      on: {
        'watch.ended': [
          {
            guard: { type: 'ordinaryEnd', params: ({ event }) => ({ failure: event.failure }) },
            target: 'watching',
            reenter: true,
            actions: ['calm'],
          },
          { guard: { type: 'firstExpiry', params: ({ event }) => ({ failure: event.failure }) }, target: 'listing', actions: [failed] },
          { target: 'backingOff', actions: [failed] },
        ],
        // What was open while the server was away may be dead without a word.
        'api.found': { target: 'watching', reenter: true, actions: ['hope'] },
        'watch.events': {
          target: '.listening',
          reenter: false,
          actions: [{ type: 'takeEvents', params: ({ event }) => ({ events: event.events }) }, 'deliver'],
        },
      },
      states: {
        opening: { on: { 'watch.opened': { target: 'listening', actions: ['opened'] } } },
        listening: { after: { silence: { target: '#listWatch.stale' } } },
      },
    },
    stale: {
      meta: { reason: 'Stale', message: ({ what }: ListWatchContext) => `the watch of ${what} said nothing for too long; opening it anew` },
      always: { target: 'watching' },
    },
    backingOff: {
      meta: {
        reason: 'BackingOff',
        message: ({ what, failure }: ListWatchContext) =>
          `${what}: ${failure === null ? 'the watch ended at once' : failure.message}; trying again, what is known stays`,
      },
      after: {
        retry: [{ guard: 'toList', target: 'listing' }, { target: 'watching' }],
      },
      on: {
        'api.found': [
          { guard: 'toList', target: 'listing', actions: ['hope'] },
          { target: 'watching', actions: ['hope'] },
        ],
      },
    },
  },
});
