/**
 * The file source as a statechart: one region keeps a watch on the directory, the other lists and reads manifests.
 * A watch only hints at names; what is true is what a reading finds.
 */

import { assign, enqueueActions, raise } from 'xstate';
import { SharedMap } from '../../data/sharedMap.ts';
import type { Pod } from '../../kube/types.ts';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import type { ManifestsView, SourceError } from '../podConfig/messages.ts';
import {
  applyListing,
  applyReadings,
  emptyFileStore,
  type FileChange,
  type FileReading,
  type FileStore,
  manifestsOf,
  toSet,
} from './fileStore.ts';

/** A name that appears is read after this: a rename into place needs no more, and most copies have ended by then. */
const SETTLE_CREATE_MS = 5;
/** A file that is being written is read when it has been quiet for this long. */
const SETTLE_MODIFY_MS = 30;
/** A file that never falls quiet is read at least this often. */
const SETTLE_MAX_MS = 1_000;
/** Waits before another look at a hinted file that cannot be used as it stands: it may be half written. */
const SETTLE_RETRY_MS: readonly number[] = [50, 150, 400];
/** Between the end and the beginning of a pod whose manifest went and came back: podConfig takes in one set before the next. */
const SETTLE_ANEW_MS = 50;
/** Watch attempts: every second while the path is missing; other failures double the wait up to the maximum. */
const WATCH_RETRY_MIN_MS = 1_000;
const WATCH_RETRY_MAX_MS = 20_000;

export type ListResult =
  /** `single`: the path is one file, not a directory. `identity`: device and inode of what the watch should be on. */
  | { kind: 'listed'; readings: FileReading[]; identity: string; single: boolean }
  | { kind: 'missing' }
  /** The path itself cannot be used; nothing is known of its manifests. */
  | { kind: 'failed'; message: string };

interface Pending {
  dueMs: number;
  firstMs: number;
  /** Looks already taken since the last hint about this path. */
  attempt: number;
  /** It was away meanwhile. */
  gone?: boolean;
}
type PendingMap = ReadonlyMap<string, Pending>;

interface FileSourceInput {
  /** Directory or file, absolute, without a trailing slash. */
  path: string;
  /** Milliseconds between periodic listings. */
  checkFrequencyMs: number;
}
export interface FileSourceContext extends FileSourceInput {
  store: FileStore;
  /** Hinted paths that wait to be read. */
  pending: PendingMap;
  /** Paths being read now, as they were when taken from `pending`. */
  taken: PendingMap;
  /** Identity found by the last listing; another one means that the watch looks at something else. */
  identity: string;
  /** Monotonic ms of the start of the last periodic listing. */
  listedAtMs: number;
  /** A listing was asked for while files were being listed or read: another one follows. */
  relist: boolean;
  /** A SET was posted: the source counts as seen. */
  posted: boolean;
  /**
   * Files that changed while the first listing read them: the first SET waits for them, until the next listing at most. It
   * is the one whose gaps stop what an earlier daemon left running.
   */
  held: ReadonlySet<string>;
  /** The path is one file. */
  single: boolean;
  watchFailures: number;
  watchMissing: boolean;
}
interface FileHint {
  path: string;
  kind: 'create' | 'modify' | 'delete';
}
export type FileSourceEvent =
  | ({ type: 'file.hint' } & FileHint)
  | { type: 'watch.started' }
  | { type: 'watch.ended'; message: string; missing: boolean }
  | { type: 'list.now' }
  /** To itself: the watch is on something that the path no longer names. */
  | { type: 'watch.reopen' };

type Post =
  /** The complete set; `changes` says what differs since the last one. */
  | { kind: 'set'; pods: readonly Pod[]; errors: readonly SourceError[]; changes: readonly FileChange[] }
  /** What is wrong; the pods of the last set stay. */
  | { kind: 'errors'; errors: readonly SourceError[] };
/** For podConfig; `manifests`: which file holds which pod now. */
export type FilePost = Post & { manifests: ManifestsView };
/** What a listing or a reading leads to. */
interface Step {
  next: Partial<FileSourceContext> & Pick<FileSourceContext, 'store'>;
  /** Null: nothing differs. */
  post: Post | null;
  /** The path names something else than the watch is on. */
  moved?: boolean;
}

function hinted(context: FileSourceContext, hint: FileHint, now: number): PendingMap {
  const prior = context.pending.get(hint.path);
  const firstMs = prior?.firstMs ?? now;
  const modify = hint.kind === 'modify';
  const quietAt = now + (modify ? SETTLE_MODIFY_MS : SETTLE_CREATE_MS);
  // The newest hint decides how long to wait: a rename into place right after a write need not wait for quiet.
  const gone = hint.kind === 'delete' || prior?.gone === true;
  const due = { dueMs: Math.min(firstMs + SETTLE_MAX_MS, quietAt), firstMs, attempt: 0, gone };
  return SharedMap.draft(context.pending).set(hint.path, due).finish();
}

function due(context: FileSourceContext, now: number): PendingMap {
  return new Map([...context.pending].filter(([, p]) => p.dueMs <= now));
}

/**
 * Splits readings into those that count and those to be taken again: a file that cannot be used is looked at a few
 * times before it is called bad, for somebody may be writing it.
 */
function settle(readings: readonly FileReading[], taken: PendingMap, now: number): { count: FileReading[]; retry: Map<string, Pending> } {
  const count: FileReading[] = [];
  const retry = new Map<string, Pending>();
  for (const r of readings) {
    const look = taken.get(r.path);
    const waitMs = r.kind === 'bad' || r.kind === 'changing' ? SETTLE_RETRY_MS[look?.attempt ?? 0] : undefined;
    if (waitMs !== undefined) retry.set(r.path, { dueMs: now + waitMs, firstMs: now, attempt: (look?.attempt ?? 0) + 1 });
    else if (r.kind === 'changing')
      count.push({ path: r.path, kind: 'bad', message: 'the file keeps changing while it is read', digest: '' });
    else if (r.kind === 'same' && look?.gone === true) {
      // Its pod goes, and comes anew with the next look.
      count.push({ path: r.path, kind: 'gone' });
      retry.set(r.path, { dueMs: now + SETTLE_ANEW_MS, firstMs: now, attempt: 0 });
    } else count.push(r);
  }
  return { count, retry };
}

interface Enqueue {
  (action: { type: 'post'; params: FilePost }): void;
  assign(next: Partial<FileSourceContext>): void;
  raise(event: { type: 'watch.reopen' }): void;
}
function follow(enqueue: Enqueue, { next, post, moved }: Step): void {
  enqueue.assign(next);
  if (post !== null) enqueue({ type: 'post', params: { ...post, manifests: manifestsOf(next.store) } });
  if (moved === true) enqueue.raise({ type: 'watch.reopen' });
}

const { setup, facts } = setupWith();
const machineSetup = setup({
  types: { context: {} as FileSourceContext, events: {} as FileSourceEvent, input: {} as FileSourceInput },
  actors: {
    list: unprovided<ListResult, { path: string; store: FileStore }>(),
    read: unprovided<FileReading[], { paths: readonly string[]; store: FileStore }>(),
    watch: unprovidedCallback<FileSourceEvent, { path: string }>(),
  },
  actions: {
    post: unprovidedAction<FilePost>(),
    logWatchEnded: unprovidedAction<{ message: string; missing: boolean }>(),
    takeHint: assign(({ context }, hint: FileHint) => ({ pending: hinted(context, hint, facts().monoMs) })),
  },
  guards: {
    anyPending: ({ context }) => context.pending.size > 0,
    relistWanted: ({ context }) => context.relist,
  },
  delays: {
    untilListing: ({ context }) => Math.max(0, context.listedAtMs + context.checkFrequencyMs - facts().monoMs),
    untilDue: ({ context }) => {
      let first = Number.POSITIVE_INFINITY;
      for (const { dueMs } of context.pending.values()) first = Math.min(first, dueMs);
      return Number.isFinite(first) ? Math.max(0, first - facts().monoMs) : 0;
    },
    watchRetry: ({ context }) =>
      context.watchMissing
        ? WATCH_RETRY_MIN_MS
        : retryDelayMs({ minMs: WATCH_RETRY_MIN_MS, maxMs: WATCH_RETRY_MAX_MS }, context.watchFailures - 1),
  },
});

const takeHint = { type: 'takeHint', params: ({ event }: { event: FileHint }) => event } as const;

/** `periodic`: only such a listing gives up on unusable manifests. */
function afterListing(context: FileSourceContext, result: ListResult, { now, periodic }: { now: number; periodic: boolean }): Step {
  if (result.kind === 'failed') {
    const { store } = context;
    return {
      next: { store },
      post: { kind: 'errors', errors: [...toSet(store).errors, { where: context.path, message: result.message }] },
    };
  }
  if (result.kind === 'missing') {
    const { store, changes } = applyListing(context.store, [], false);
    const errors = [{ where: context.path, message: 'the path does not exist; it counts as empty and is looked for every second' }];
    return {
      next: { store, pending: new Map(), identity: '', posted: true, held: new Set() },
      post: { kind: 'set', pods: [], errors, changes },
    };
  }
  const { store, changes } = applyListing(context.store, result.readings, periodic && !result.single);
  const pending = new Map(context.pending);
  for (const r of result.readings) {
    // Another look soon at whatever was caught half written, unless a hint asks for one already.
    if (r.kind === 'changing' && !pending.has(r.path)) pending.set(r.path, { dueMs: now + SETTLE_MODIFY_MS, firstMs: now, attempt: 0 });
  }
  const set = toSet(store);
  const changing = result.readings.filter((r) => r.kind === 'changing').map((r) => r.path);
  const { single, identity } = result;
  if (!context.posted && context.held.size === 0 && changing.length > 0) {
    return { next: { store, pending, single, identity, held: new Set(changing) }, post: { kind: 'errors', errors: set.errors } };
  }
  // A single file that never held a pod says nothing about which pods are wanted, so the source does not count as seen.
  const silent = single && set.pods.length === 0 && !context.posted && set.errors.length > 0;
  return {
    next: { store, pending, single, identity, posted: context.posted || !silent, held: new Set() },
    post: silent ? { kind: 'errors', errors: set.errors } : { kind: 'set', ...set, changes },
    moved: context.identity !== '' && context.identity !== identity,
  };
}

function afterReading(context: FileSourceContext, readings: readonly FileReading[], now: number): Step {
  const { count, retry } = settle(readings, context.taken, now);
  const { store, changes } = applyReadings(context.store, count);
  const set = toSet(store);
  const silent = context.single && set.pods.length === 0 && !context.posted;
  // A newer hint about the same path stands.
  const pending = new Map([...retry, ...context.pending]);
  const held = new Set([...context.held].filter((path) => pending.has(path)));
  if (held.size > 0) return { next: { store, pending, taken: new Map(), held }, post: null };
  const first = context.held.size > 0;
  return {
    next: { store, pending, taken: new Map(), held, posted: context.posted || ((first || changes.length > 0) && !silent) },
    post: changes.length === 0 && !first ? null : silent ? { kind: 'errors', errors: set.errors } : { kind: 'set', ...set, changes },
  };
}

const listing = ({ periodic }: { periodic: boolean }) => {
  const after = ({ context, event }: { context: FileSourceContext; event: { output: ListResult } }) =>
    afterListing(context, event.output, { now: facts().monoMs, periodic });
  return machineSetup.createStateConfig({
    meta: { reason: 'Listing', message: 'reading every manifest of the path' },
    entry: assign(() => ({ relist: false, ...(periodic ? { listedAtMs: facts().monoMs } : {}) })),
    invoke: {
      src: 'list',
      input: ({ context }) => ({ path: context.path, store: context.store }),
      onDone: [
        {
          guard: ({ event }) => event.output.kind === 'missing',
          target: 'missing',
          actions: enqueueActions(({ enqueue, ...of }) => follow(enqueue, after(of))),
        },
        {
          guard: ({ event }) => event.output.kind === 'failed',
          target: 'unreadable',
          actions: enqueueActions(({ enqueue, ...of }) => follow(enqueue, after(of))),
        },
        { target: 'watching', actions: enqueueActions(({ enqueue, ...of }) => follow(enqueue, after(of))) },
      ],
    },
  });
};

export const fileSourceMachine = machineSetup.createMachine({
  id: 'fileSource',
  meta: projecting<FileSourceContext>((c) => ({
    ...{ path: c.path, single: c.single, checkFrequencyMs: c.checkFrequencyMs, files: c.store.entries.size, posted: c.posted },
    pending: names(c.pending.keys()),
    held: names(c.held),
    ...{ relist: c.relist, watchFailures: c.watchFailures, watchMissing: c.watchMissing },
  })),
  context: ({ input }) => ({
    ...input,
    store: emptyFileStore,
    pending: new Map(),
    taken: new Map(),
    identity: '',
    listedAtMs: 0,
    relist: false,
    posted: false,
    held: new Set(),
    single: false,
    watchFailures: 0,
    watchMissing: false,
  }),
  type: 'parallel',
  states: {
    // First, so that the watch stands before the first listing begins: nothing can slip in between.
    watch: {
      initial: 'trying',
      states: {
        trying: {
          initial: 'opening',
          invoke: { src: 'watch', input: ({ context }) => ({ path: context.path }) },
          on: {
            'watch.reopen': { target: 'trying', reenter: true },
            'watch.ended': {
              target: 'broken',
              actions: [
                assign(({ context, event }) => ({ watchFailures: context.watchFailures + 1, watchMissing: event.missing })),
                { type: 'logWatchEnded', params: ({ event }) => event },
              ],
            },
          },
          states: {
            opening: {
              meta: { reason: 'OpeningWatch', message: 'asking the kernel to report changes of the path' },
              on: { 'watch.started': 'open' },
            },
            open: {
              meta: { reason: 'Watching', message: 'changes of the path are reported as they happen' },
              entry: [assign({ watchFailures: 0, watchMissing: false }), raise({ type: 'list.now' })],
            },
          },
        },
        broken: {
          meta: { reason: 'WatchBroken', message: 'changes are found by listing only, until the watch can be opened again' },
          after: { watchRetry: 'trying' },
        },
      },
    },
    files: {
      initial: 'starting',
      on: {
        'file.hint': { actions: takeHint },
        'list.now': { actions: assign({ relist: true }) },
      },
      states: {
        starting: {
          meta: { reason: 'OpeningWatch', message: 'the first listing follows the first attempt to watch' },
          on: { 'list.now': 'listing', 'watch.ended': 'listing' },
        },
        listing: listing({ periodic: true }),
        relisting: listing({ periodic: false }),
        watching: {
          initial: 'idle',
          always: { guard: 'relistWanted', target: 'relisting' },
          after: { untilListing: 'listing' },
          on: { 'file.hint': { target: '.settling', actions: takeHint } },
          states: {
            idle: {
              meta: { reason: 'UpToDate', message: 'the last listing is at most one check period old' },
              always: { guard: 'anyPending', target: 'settling' },
            },
            settling: {
              meta: { reason: 'Settling', message: 'a file changed and is read as soon as it is quiet' },
              after: { untilDue: '#fileSource.files.reading' },
            },
          },
        },
        reading: {
          meta: { reason: 'Reading', message: 'reading the files that changed' },
          entry: assign(({ context }) => {
            const taken = due(context, facts().monoMs);
            return { taken, pending: new Map([...context.pending].filter(([path]) => !taken.has(path))) };
          }),
          invoke: {
            src: 'read',
            input: ({ context }) => ({ paths: [...context.taken.keys()], store: context.store }),
            onDone: {
              target: 'watching',
              actions: enqueueActions(({ context, event, enqueue }) =>
                follow(enqueue, afterReading(context, event.output, facts().monoMs)),
              ),
            },
          },
        },
        missing: {
          meta: { reason: 'PathMissing', message: 'the static pod path does not exist; it counts as empty' },
          always: { guard: 'relistWanted', target: 'relisting' },
          after: { untilListing: 'listing' },
          on: { 'file.hint': 'relisting' },
        },
        unreadable: {
          meta: { reason: 'PathUnreadable', message: 'the static pod path cannot be listed; the pods of the last listing stay' },
          always: { guard: 'relistWanted', target: 'relisting' },
          after: { untilListing: 'listing' },
          on: { 'file.hint': 'relisting' },
        },
      },
    },
  },
});
