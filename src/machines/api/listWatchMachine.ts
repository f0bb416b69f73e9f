/**
 * List and watch as a statechart: take the initial state from a watch that streams it, or from a list, then follow the watch;
 * open it again where it ended; begin anew when history has expired. The requests are given with `provide`.
 */

import { assign } from 'xstate';
import { shareData } from '../data/sharedData.ts';
import { SharedMap } from '../data/sharedMap.ts';
import { isExpired, isRefusal, type KubeFailure, type KubeObject, objectKey, UNREADABLE, type WatchEvent } from '../kube/request.ts';
import { retryDelayMs } from '../supervision/restartPolicy.ts';
import { failureOf, projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../xstate/provide.ts';
import { setupWith } from '../xstate/setup.ts';

/** First wait after a failure, doubled for each further one, lengthened by up to all of itself. */
const LIST_WATCH_RETRY_MS = 800;
const LIST_WATCH_RETRY_MAX_MS = 30_000;
/** A watch that has said something gets a bookmark each minute from then on: one that is silent for longer is taken for dead. */
export const SILENCE_MAX_MS = 90_000;
/** Where etcd tells of no progress, a kind in which nothing changes gets no bookmark. The kubelet opens most watches anew as often. */
export const QUIET_MAX_MS = 600_000;
/** A watch that ends sooner than this and has said nothing counts as a failure, lest two of them spin. */
const WATCH_LIFE_MIN_MS = 1_000;
/** A stream of initial events that is quiet for longer is given up for a list: a server that ignores the wish for it never ends it. */
export const INITIAL_SILENCE_MAX_MS = 15_000;

/** Streams in a row that broke off before the end of the initial events; then a list is asked for. */
const BROKEN_STREAMS_MAX = 2;

/** Code of an answer with more bytes than the client takes. */
const ANSWER_TOO_LARGE = 'EFBIG';

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
  /** Ask for the initial state by a watch (gate `WatchListClient`); else by a list. */
  streams: boolean;
  /** A watch that never said anything is opened anew after this. */
  quietMs: number;
}
export interface WatchInput {
  /** '' with `initial`: the newest state. */
  resourceVersion: string;
  /** Asks for the initial events too, and for the bookmark that ends them. */
  initial: boolean;
}
export interface ListWatchContext extends ListWatchInput {
  /** By `namespace/name`. Of an object whose newest version cannot be read: the last one that could. */
  items: ReadonlyMap<string, KubeObject>;
  /** Why the newest version of an object cannot be read, by the same key. */
  unreadable: ReadonlyMap<string, string>;
  /** Where the next watch begins; '' before the first list. */
  resourceVersion: string;
  /** Initial events of the present stream so far: nothing is delivered before their end. Null: the watch follows a known state. */
  arriving: ReadonlyMap<string, KubeObject> | null;
  /** Streams in a row that ended before their initial events did. */
  broken: number;
  /** The next list may come from the server's cache; not after it proved too old. */
  fromCache: boolean;
  /** A call failed since the last list: a server that was restored from a backup says nothing of versions that it has yet to reach. */
  unsure: boolean;
  /** In a row. */
  failures: number;
  failure: KubeFailure | null;
  /** When the present watch was opened; Infinity before that. */
  openedAtMs: number;
  /** The present watch has said something. */
  heard: boolean;
  /** What the last event changed: objects as they are now, or as they last were where they are gone. */
  changed: readonly KubeObject[];
  next: 'listing' | 'watching';
}

/**
 * What is kept of an object whose newest version cannot be read: the version before, with what names the newest one and says whether
 * it is being deleted. Undefined: there is none of that UID.
 */
function keptOf(before: KubeObject | undefined, newest: KubeObject): KubeObject | undefined {
  const { uid = before?.metadata.uid } = newest.metadata;
  return before === undefined || before.metadata.uid !== uid
    ? undefined
    : { ...before, metadata: { ...before.metadata, ...newest.metadata } };
}

/** A complete list: what it lacks is gone. It may be older than what was seen: then etcd was restored from a backup. */
function takeList(context: ListWatchContext, items: readonly KubeObject[], resourceVersion: string): Partial<ListWatchContext> {
  const next = new Map(items.map((o) => [objectKey(o), o]));
  const unreadable = new Map<string, string>();
  const changed: KubeObject[] = [];
  for (const [key, listed] of next) {
    const before = context.items.get(key);
    const why = listed[UNREADABLE];
    if (why !== undefined) unreadable.set(key, why);
    const o = why === undefined ? listed : keptOf(before, listed);
    if (o === undefined) {
      next.delete(key);
      changed.push(listed);
      continue;
    }
    // What could not be read is read again, though it be the same version.
    const same = why === undefined && context.unreadable.has(key) ? undefined : sameVersion(before, o);
    if (same !== undefined) {
      // The same object again: readers know it by identity.
      next.set(key, same);
      continue;
    }
    if (before !== undefined && before.metadata.uid !== o.metadata.uid) changed.push(before);
    const kept = newer(before, o);
    next.set(key, kept);
    changed.push(kept);
  }
  for (const [key, o] of context.items) if (!next.has(key)) changed.push(o);
  const known = { arriving: null, broken: 0, unsure: false, next: 'watching' } as const;
  return {
    ...known,
    items: SharedMap.of(next),
    unreadable: SharedMap.of(unreadable),
    resourceVersion,
    changed,
    failure: null,
    fromCache: true,
  };
}

/** Initial events, in no order of versions, and with what changed since the stream began: only their end says where it stands. */
function gather(context: ListWatchContext, events: readonly WatchEvent[]): ReadonlyMap<string, KubeObject> {
  const arriving = SharedMap.draft(context.arriving ?? SharedMap.of<string, KubeObject>());
  for (const { type, object } of events) {
    if (type === 'BOOKMARK') continue;
    const key = objectKey(object);
    if (type === 'DELETED') arriving.delete(key);
    // A copy of what is known need not be kept until the end.
    else if (object[UNREADABLE] !== undefined || context.unreadable.has(key)) arriving.set(key, object);
    else arriving.set(key, sameVersion(context.items.get(key), object) ?? object);
  }
  return arriving.finish();
}

function sameVersion(before: KubeObject | undefined, object: KubeObject): KubeObject | undefined {
  const { uid, resourceVersion } = object.metadata;
  return before?.metadata.uid === uid && before?.metadata.resourceVersion === resourceVersion ? before : undefined;
}

/** The version that the initial events stand at; null: these events do not end them. */
function endOf(events: readonly WatchEvent[]): string | null {
  return events.find((e) => e.initialEventsEnd === true)?.object.metadata.resourceVersion ?? null;
}

/** The newer version of an object, in memory with what the older one already had of it. Always another object. */
function newer(before: KubeObject | undefined, object: KubeObject): KubeObject {
  if (before === undefined || before.metadata.uid !== object.metadata.uid) return object;
  const shared = shareData(before, object);
  return shared === before ? { ...before } : shared;
}

function takeEvents(context: ListWatchContext, events: readonly WatchEvent[]): Partial<ListWatchContext> {
  const items = SharedMap.draft(context.items);
  const unreadable = SharedMap.draft(context.unreadable);
  const changed: KubeObject[] = [];
  let { resourceVersion } = context;
  for (const { type, object } of events) {
    resourceVersion = object.metadata.resourceVersion ?? resourceVersion;
    if (type === 'BOOKMARK') continue;
    const key = objectKey(object);
    const before = items.get(key);
    // A name that changed hands: its former object is gone.
    if (before !== undefined && before.metadata.uid !== object.metadata.uid) changed.push(before);
    const why = object[UNREADABLE];
    if (why === undefined || type === 'DELETED') unreadable.delete(key);
    else unreadable.set(key, why);
    const kept = why === undefined ? newer(before, object) : keptOf(before, object);
    if (type === 'DELETED' || kept === undefined) items.delete(key);
    else items.set(key, kept);
    changed.push(kept ?? object);
  }
  return { items: items.finish(), unreadable: unreadable.finish(), resourceVersion, changed, failures: 0, failure: null, heard: true };
}

function retryMs(context: ListWatchContext, random: number): number {
  const backoff = { minMs: LIST_WATCH_RETRY_MS, maxMs: LIST_WATCH_RETRY_MAX_MS, jitter: 1 };
  return Math.max(retryDelayMs(backoff, context.failures - 1, random), context.failure?.retryAfterMs ?? 0);
}

type Ended = { type: 'watch.ended'; failure: KubeFailure | null };
const unended: KubeFailure = { code: 0, reason: 'NoEndOfInitialEvents', message: 'the initial events did not end', outcome: 'failed' };
const inEnded = { params: ({ event }: { event: Ended }) => ({ failure: event.failure }) } as const;
const inBatch = { params: ({ event }: { event: { events: readonly WatchEvent[] } }) => ({ events: event.events }) } as const;
const failed = {
  type: 'fail',
  params: ({ event }: { event: Ended }) => ({ failure: event.failure }),
} as const;
const deliver = { type: 'deliver', params: ({ context }: { context: ListWatchContext }) => context } as const;

const { setup, facts } = setupWith();
export const listWatchMachine = setup({
  types: { context: {} as ListWatchContext, input: {} as ListWatchInput, events: {} as ListWatchEvent },
  actors: { list: unprovided<Listed, { fromCache: boolean }>(), watch: unprovidedCallback<{ type: 'none' }, WatchInput>() },
  actions: {
    deliver: unprovidedAction<ListWatchContext>(),
    takeList: assign(({ context }, p: { listed: Listed }) =>
      p.listed.ok ? takeList(context, p.listed.items, p.listed.resourceVersion) : {},
    ),
    takeEvents: assign(({ context }, p: { events: readonly WatchEvent[] }) => takeEvents(context, p.events)),
    gather: assign(({ context }, p: { events: readonly WatchEvent[] }) => ({ arriving: gather(context, p.events), changed: [] })),
    takeInitial: assign(({ context }, p: { events: readonly WatchEvent[] }) =>
      takeList(context, [...gather(context, p.events).values()], endOf(p.events) ?? ''),
    ),
    fail: assign(({ context }, p: { failure: KubeFailure | null }): Partial<ListWatchContext> => {
      const expired = p.failure !== null && isExpired(p.failure);
      return {
        unsure: true,
        failures: context.failures + 1,
        failure: p.failure,
        changed: [],
        arriving: null,
        broken: context.broken + (context.arriving !== null && !expired ? 1 : 0),
        next: expired || context.next === 'listing' ? 'listing' : 'watching',
        // A server's cache gives all at once, whatever limit it is asked for; without a version the list comes in pages.
        ...(expired || p.failure?.reason === ANSWER_TOO_LARGE ? { fromCache: false } : {}),
      };
    }),
    /** Until a list has succeeded. */
    giveUpStreams: assign((_, p: { failure: KubeFailure | null }) => ({
      ...{ failure: p.failure, changed: [], arriving: null, broken: BROKEN_STREAMS_MAX },
    })),
    calm: assign({ failures: 0, failure: null }),
    /** A server that is back may still refuse for a moment: that is no reason to wait as long as for one that is away. */
    hope: assign({ failures: 0, unsure: true }),
    asked: assign(({ context: { next } }) => ({
      ...{ openedAtMs: Number.POSITIVE_INFINITY, heard: false, changed: [] },
      arriving: next === 'listing' ? SharedMap.of<string, KubeObject>() : null,
    })),
    opened: assign(() => ({ openedAtMs: facts().monoMs })),
  },
  guards: {
    listed: (_, p: { listed: Listed }) => p.listed.ok,
    streams: ({ context }) => context.streams && context.broken < BROKEN_STREAMS_MAX,
    arriving: ({ context }) => context.arriving !== null,
    endsInitial: ({ context }, p: { events: readonly WatchEvent[] }) => context.arriving !== null && endOf(p.events) !== null,
    /** An older server, or one that does not want to: a list may be had where a stream may not. */
    refusesStream: ({ context }, p: { failure: KubeFailure | null }) =>
      context.arriving !== null && p.failure !== null && isRefusal(p.failure) && !isExpired(p.failure) && p.failure.code !== 401,
    ordinaryEnd: ({ context }, p: { failure: KubeFailure | null }) =>
      p.failure === null && context.arriving === null && (context.heard || facts().monoMs - context.openedAtMs >= WATCH_LIFE_MIN_MS),
    firstExpiry: ({ context }, p: { failure: KubeFailure | null }) => p.failure !== null && isExpired(p.failure) && context.failures === 0,
    toList: ({ context }) => context.next === 'listing',
    mustSpeak: ({ context }) => context.heard || context.unsure,
  },
  delays: {
    retry: ({ context }) => retryMs(context, facts().random),
    silence: SILENCE_MAX_MS,
    quiet: ({ context }) => context.quietMs - SILENCE_MAX_MS,
    initialSilence: INITIAL_SILENCE_MAX_MS,
  },
}).createMachine({
  id: 'listWatch',
  meta: projecting<ListWatchContext>(({ what, items, unreadable, arriving, resourceVersion, fromCache, heard, failures, failure }) => ({
    ...{
      what,
      objects: items.size,
      unreadable: unreadable.size,
      arriving: arriving?.size ?? null,
      resourceVersion,
      fromCache,
      heard,
      failures,
    },
    failure: failureOf(failure),
  })),
  context: ({ input }) => ({
    ...input,
    items: SharedMap.of<string, KubeObject>(),
    unreadable: SharedMap.of<string, string>(),
    resourceVersion: '',
    arriving: null,
    broken: 0,
    fromCache: true,
    unsure: false,
    failures: 0,
    failure: null,
    openedAtMs: 0,
    heard: false,
    changed: [],
    next: 'listing',
  }),
  initial: 'beginning',
  states: {
    beginning: {
      meta: { reason: 'Beginning', message: ({ what }: ListWatchContext) => `choosing how to ask for all ${what}` },
      always: [{ guard: 'streams', target: 'watching' }, { target: 'listing' }],
    },
    listing: {
      meta: { reason: 'Listing', message: ({ what }: ListWatchContext) => `asking for all ${what}` },
      invoke: {
        src: 'list',
        input: ({ context }) => ({ fromCache: context.fromCache }),
        onDone: [
          {
            guard: { type: 'listed', params: ({ event }) => ({ listed: event.output }) },
            target: 'watching',
            actions: [{ type: 'takeList', params: ({ event }) => ({ listed: event.output }) }, deliver],
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
      entry: ['asked'],
      invoke: {
        src: 'watch',
        input: ({ context: c }): WatchInput => ({
          resourceVersion: c.arriving === null || c.fromCache ? c.resourceVersion : '',
          initial: c.arriving !== null,
        }),
      },
      initial: 'opening',
      on: {
        'watch.ended': [
          { guard: { type: 'ordinaryEnd', ...inEnded }, target: 'watching', reenter: true, actions: ['calm'] },
          { guard: { type: 'refusesStream', ...inEnded }, target: 'listing', actions: [{ type: 'giveUpStreams', ...inEnded }] },
          { guard: { type: 'firstExpiry', ...inEnded }, target: 'beginning', actions: [failed] },
          { target: 'backingOff', actions: [failed] },
        ],
        // What was open while the server was away may be dead without a word.
        'api.found': { target: 'watching', reenter: true, actions: ['hope'] },
        'watch.events': [
          {
            guard: { type: 'endsInitial', ...inBatch },
            target: '.listening',
            reenter: false,
            actions: [{ type: 'takeInitial', ...inBatch }, deliver],
          },
          { guard: 'arriving', target: '.streaming initial events', reenter: false, actions: [{ type: 'gather', ...inBatch }] },
          { target: '.listening', reenter: false, actions: [{ type: 'takeEvents', ...inBatch }, deliver] },
        ],
      },
      states: {
        opening: {
          on: {
            'watch.opened': [
              { guard: 'arriving', target: 'streaming initial events', actions: ['opened'] },
              { target: 'listening', actions: ['opened'] },
            ],
          },
        },
        'streaming initial events': {
          meta: {
            reason: 'StreamingInitialEvents',
            message: ({ what, arriving }: ListWatchContext) =>
              `the API server streams all ${what}: ${arriving?.size ?? 0} so far, the end has not come`,
          },
          after: { initialSilence: { target: '#listWatch.listing', actions: [{ type: 'giveUpStreams', params: { failure: unended } }] } },
        },
        listening: { after: { silence: [{ guard: 'mustSpeak', target: '#listWatch.stale' }, { target: 'quiet' }] } },
        quiet: {
          meta: { reason: 'Quiet', message: ({ what }: ListWatchContext) => `nothing has changed of ${what} since the watch was opened` },
          after: { quiet: { target: '#listWatch.watching', reenter: true } },
        },
      },
    },
    stale: {
      meta: {
        reason: 'Stale',
        message: ({ what }: ListWatchContext) => `the watch of ${what} said nothing for too long; asking for all anew`,
      },
      entry: [assign({ next: 'listing' })],
      always: { target: 'beginning' },
    },
    backingOff: {
      meta: {
        reason: 'BackingOff',
        message: ({ what, failure }: ListWatchContext) =>
          `${what}: ${failure === null ? 'the watch ended at once' : failure.message}; trying again, what is known stays`,
      },
      after: {
        retry: [{ guard: 'toList', target: 'beginning' }, { target: 'watching' }],
      },
      on: {
        'api.found': [
          { guard: 'toList', target: 'beginning', actions: ['hope'] },
          { target: 'watching', actions: ['hope'] },
        ],
      },
    },
  },
});
