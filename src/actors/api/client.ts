/** The way to the API server for every other actor: requests that tell the link how they went, and list-watch. Holds nothing. */

import { type AnyActorLogic, fromCallback, fromPromise } from 'xstate';
import {
  type Listed,
  type ListWatchContext,
  listWatchMachine,
  QUIET_MAX_MS,
  type WatchInput,
} from '../../machines/api/listWatchMachine.ts';
import { apiAddr, apiView } from '../../machines/api/messages.ts';
import { shareWithin } from '../../machines/data/sharedData.ts';
import { malformed, readAnswer, readItem } from '../../machines/kube/read/answers.ts';
import { kindAt } from '../../machines/kube/read/kinds.ts';
import {
  decodeWatchLine,
  type KubeFailure,
  type KubeObject,
  type KubeRequest,
  type KubeResult,
  objectKey,
  type ReadItem,
  type WatchEvent,
  wasAnswered,
} from '../../machines/kube/request.ts';
import { isRecord } from '../../machines/shape/conform.ts';
import { textOf } from '../../machines/shape/lenient.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { momentOf } from '../../machines/xstate/facts.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { KubeApi, KubeCallOptions, KubeWatch } from '../../ports/kube.ts';
import type { Ports } from '../../ports/ports.ts';
import type { ActorCtx } from '../supervision/types.ts';

/** An answer that takes longer is given up; the server's own limit is a minute. */
export const API_TIMEOUT_MS = 60_000;
/** Objects asked for at once. */
const LIST_PAGE_MAX = 500;
/** The server ends a watch after between this and twice this. */
export const WATCH_SECONDS_MIN = 1_800;
/** Largest batch of watch events: one machine step takes all of them. */
export const EVENTS_AT_ONCE_MAX = 100;
/** Characters of JSON in a batch: decoding more would hold the event loop for tens of milliseconds. */
const EVENT_CHARS_AT_ONCE_MAX = 1024 * 1024;
/**
 * After a batch the watch rests this many times as long as the batch took, at most {@link REST_MAX_MS}: other actors have several
 * times its work of it.
 */
const REST_FACTOR = 25;
const REST_MAX_MS = 250;
/** One for all watches: an abort without a reason makes an error of its own each time. */
const STOPPED = new Error('the watch was stopped');
/** Key of bookmarks among events that wait: no object has it. */
const BOOKMARK = 'bookmark';

type Ctx = Pick<ActorCtx, 'ports' | 'registry' | 'signal'>;

export interface KubeClient {
  request(request: KubeRequest, o?: Partial<KubeCallOptions>): Promise<KubeResult>;
  watch(request: Pick<KubeRequest, 'path' | 'query'>, o?: Partial<KubeCallOptions>): Promise<KubeWatch>;
}

/** @throws in standalone mode: nothing that needs the API server is in the tree then. */
export function kubePort(ctx: Pick<ActorCtx, 'ports'>): KubeApi {
  const { kube } = ctx.ports;
  if (kube === undefined) throw new Error('there is no API server in standalone mode');
  return kube;
}

export function kubeClient(ctx: Ctx): KubeClient {
  const kube = kubePort(ctx);
  const options = (o: Partial<KubeCallOptions> = {}): KubeCallOptions => ({
    timeoutMs: API_TIMEOUT_MS,
    ...o,
    signal: o.signal ?? ctx.signal,
  });
  // Only what contradicts the link's view is news.
  const tell = (failure: KubeFailure | null): void => {
    if (failure?.reason === 'Aborted') return;
    const state = ctx.registry.read(apiView.link)?.value.state;
    if (failure === null || wasAnswered(failure)) {
      if (state !== 'reachable') ctx.registry.send(apiAddr.link, { type: 'api.answered' });
    } else if (state !== 'lost') ctx.registry.send(apiAddr.link, { type: 'api.failed', reason: failure.reason, message: failure.message });
  };
  return {
    async request(request, o) {
      const result = await kube.request(request, options(o));
      tell(result.ok ? null : result.failure);
      return readAnswer(request, result);
    },
    async watch(request, o) {
      const result = await kube.watch(request, options(o));
      tell(result.ok ? null : result.failure);
      return result;
    },
  };
}

export interface ListWatchOptions {
  /** For people: `pods of node n1`. */
  what: string;
  path: string;
  query?: Readonly<Record<string, string>>;
  /** Default: the way of every other actor. */
  client?: KubeClient;
  /** Takes the initial state from a watch, where the server gives it (gate `WatchListClient`). */
  streams: boolean;
  /** Default: {@link QUIET_MAX_MS}. */
  quietMs?: number;
  /** The object with what is in memory already in place of what says the same. Must not throw. Default: as it is. */
  shared?(object: KubeObject): KubeObject;
  /** After each list and each batch of events. Runs inside the machine: must not throw for what the server sent. */
  deliver(context: ListWatchContext): void;
}

/** What an object is turned into, once per object: one that did not change keeps what was made of it, and nobody compares. */
export function oncePerObject<T>(convert: (object: KubeObject) => T): (object: KubeObject) => T {
  const made = new WeakMap<KubeObject, { it: T }>();
  return (object) => {
    let known = made.get(object);
    if (known === undefined) {
      known = { it: convert(object) };
      made.set(object, known);
    }
    return known.it;
  };
}

/** Logic and input of an actor that keeps what the API server has of one kind. */
export function listWatch(ctx: Ctx & Pick<ActorCtx, 'log'>, o: ListWatchOptions): { logic: AnyActorLogic; input: unknown } {
  const { rng } = ctx.ports;
  const { client = kubeClient(ctx) } = o;
  const trouble = troubleLog(ctx, o.what);
  const item = itemReader(o.path);
  const read: ReadItem = (value) => {
    const object = item(value);
    return object === null || o.shared === undefined ? object : o.shared(object);
  };
  const reader = { ...o, read, nameless: trouble.nameless };
  const logic = provided(
    listWatchMachine,
    {
      actors: {
        list: fromPromise<Listed, { fromCache: boolean }>(({ input, signal }) =>
          listAll(client, reader, { fromCache: input.fromCache, signal }),
        ),
        watch: fromCallback<{ type: 'none' }, WatchInput>(({ input, sendBack }) => {
          const abort = new AbortController();
          const seconds = Math.round(WATCH_SECONDS_MIN * (1 + rng.next()));
          const query = { ...o.query, ...watchQuery(input), timeoutSeconds: String(seconds) };
          const ended = (failure: KubeFailure | null): void => {
            if (!abort.signal.aborted) sendBack({ type: 'watch.ended', failure });
          };
          follow(client, ctx.ports, {
            ...{ path: o.path, query, read: reader.read, nameless: trouble.nameless },
            initial: input.initial,
            signal: abort.signal,
            opened: () => sendBack({ type: 'watch.opened' }),
            sendBack,
          }).then(ended, (error: unknown) => {
            const message = messageOf(error);
            ended({ code: 0, reason: 'WatchCut', message, outcome: 'failed' });
          });
          return () => abort.abort(STOPPED);
        }),
      },
      actions: {
        deliver: (_, context) => {
          trouble.unreadable(context.unreadable);
          o.deliver(context);
        },
      },
    },
    momentOf(ctx.ports),
  );
  return { logic, input: { what: o.what, streams: o.streams, quietMs: o.quietMs ?? QUIET_MAX_MS } };
}

/** Reads what stands at a path of the API. */
export function itemReader(path: string): ReadItem {
  const kind = kindAt(path);
  return (item) => readItem(item, kind);
}

/** One line in the log for each object that cannot be read and each reason. */
function troubleLog({ log }: Pick<ActorCtx, 'log'>, what: string) {
  let known: ReadonlyMap<string, string> = new Map();
  let namelessSeen = false;
  return {
    unreadable(now: ReadonlyMap<string, string>): void {
      for (const [key, why] of now) {
        if (known.get(key) !== why)
          log.warn({ object: key, why }, `${what}: an object cannot be read; it stays as it was, and is read again when it changes`);
      }
      known = now;
    },
    nameless(): void {
      if (!namelessSeen) log.warn({}, `${what}: the API server sends something that has no name; it is passed over`);
      namelessSeen = true;
    },
  };
}

interface Reading extends ListWatchOptions {
  read: ReadItem;
  /** Something came that cannot even be named. */
  nameless(): void;
}

function watchQuery({ resourceVersion, initial }: WatchInput): Record<string, string> {
  const from = resourceVersion === '' ? {} : { resourceVersion };
  // Not older than what is known, or, without a version, the newest state.
  const all = initial ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' } : {};
  return { ...from, ...all, allowWatchBookmarks: 'true' };
}

async function listAll(client: KubeClient, o: Reading, how: { fromCache: boolean; signal: AbortSignal }): Promise<Listed> {
  const items: KubeObject[] = [];
  // Version 0: whatever the server's cache holds; a list that must not be old names none.
  let query: Record<string, string> = { ...o.query, limit: String(LIST_PAGE_MAX), ...(how.fromCache ? { resourceVersion: '0' } : {}) };
  for (;;) {
    const result = await client.request({ verb: 'GET', path: o.path, query }, { signal: how.signal });
    if (!result.ok) return result;
    const { body } = result;
    if (!isRecord(body) || !isRecord(body.metadata)) return { ok: false, failure: malformed(`GET ${o.path} gave no list`) };
    const list = body.items ?? [];
    if (!Array.isArray(list)) return { ok: false, failure: malformed(`GET ${o.path} gave a list without items`) };
    for (const item of shareWithin(list as unknown[])) {
      const read = o.read(item);
      if (read === null) o.nameless();
      else items.push(read);
    }
    const { continue: next, resourceVersion } = body.metadata;
    if (typeof next !== 'string' || next === '') return { ok: true, items, resourceVersion: textOf(resourceVersion) };
    query = { ...o.query, limit: String(LIST_PAGE_MAX), continue: next };
  }
}

interface Followed {
  path: string;
  query: Record<string, string>;
  read: ReadItem;
  nameless(): void;
  /** It begins with initial events. */
  initial: boolean;
  signal: AbortSignal;
  opened(): void;
  sendBack(e: { type: 'watch.events'; events: readonly WatchEvent[] }): void;
}

/** Null when the server closed the watch in order. */
async function follow(client: KubeClient, ports: Pick<Ports, 'clock' | 'yield'>, o: Followed): Promise<KubeFailure | null> {
  const watch = await client.watch({ path: o.path, query: o.query }, { signal: o.signal });
  if (!watch.ok) return watch.failure;
  if (o.signal.aborted) return null;
  o.opened();
  const batches = new Batches(ports, o);
  for await (const line of watch.lines) {
    if (o.signal.aborted) return null;
    const decoded = decodeWatchLine(line, o.read);
    if (!decoded.ok) {
      await batches.empty();
      return decoded.failure;
    }
    if (decoded.event === null) {
      o.nameless();
      continue;
    }
    await batches.add(decoded.event, line.length);
  }
  await batches.empty();
  return null;
}

/**
 * The first event of a quiet watch is sent at once. After each batch the watch rests, and events that come meanwhile are the
 * next batch: a burst of events costs one step per batch, and other work of the event loop gets its turn in between. Of the
 * changes of one object that wait only the newest counts, and of bookmarks the last one: 20,000 changes of one pod are a few
 * batches of one event, with which any other pod comes too. An object made anew under its name has another UID and is another.
 */
class Batches {
  readonly #ports: Pick<Ports, 'clock' | 'yield'>;
  readonly #o: Followed;
  /** By object, in the order of their versions: what changes again goes to the end. */
  readonly #events = new Map<string, { event: WatchEvent; chars: number }>();
  #chars = 0;
  #rest: Promise<void> | null = null;
  /** Initial events cost nobody anything before their end. */
  #gathering: boolean;

  constructor(ports: Pick<Ports, 'clock' | 'yield'>, o: Followed) {
    this.#ports = ports;
    this.#o = o;
    this.#gathering = o.initial;
  }

  /** Resolves when there is room for another event. */
  async add(event: WatchEvent, chars: number): Promise<void> {
    const key = event.type === 'BOOKMARK' ? BOOKMARK : `${objectKey(event.object)}/${event.object.metadata.uid ?? ''}`;
    const older = this.#events.get(key);
    // What waits before the end of the initial events stays there. An object that moves behind it would be missing from them: it would
    // count as gone, and its pod would be ended.
    if (key === BOOKMARK || !this.#endWaits()) this.#events.delete(key);
    // Where the initial events end must not be lost.
    const ends = older?.event.initialEventsEnd === true && event.type === 'BOOKMARK' ? { initialEventsEnd: true as const } : {};
    this.#events.set(key, { event: { ...event, ...ends }, chars });
    this.#chars += chars - (older?.chars ?? 0);
    if (this.#rest === null) this.#send();
    else if (this.#events.size >= EVENTS_AT_ONCE_MAX || this.#chars >= EVENT_CHARS_AT_ONCE_MAX) await this.#rest;
  }

  /** Resolves when all events have been sent. */
  async empty(): Promise<void> {
    while (this.#events.size > 0 && !this.#o.signal.aborted) await this.#rest;
  }

  #endWaits(): boolean {
    return this.#events.get(BOOKMARK)?.event.initialEventsEnd === true;
  }

  /** A bookmark goes alone: it is the moment to look for what was missed, which a batch with changes in it is not. */
  #next(): WatchEvent[] {
    const events: WatchEvent[] = [];
    for (const [key, { event, chars }] of this.#events) {
      if (key === BOOKMARK && events.length > 0) break;
      this.#events.delete(key);
      this.#chars -= chars;
      events.push(event);
      if (key === BOOKMARK) break;
    }
    return events;
  }

  #send(): void {
    const { clock } = this.#ports;
    const events = this.#next();
    const beganMs = clock.monoMs();
    this.#o.sendBack({ type: 'watch.events', events });
    if (events.some((e) => e.initialEventsEnd === true)) this.#gathering = false;
    this.#rest = this.#resting(this.#gathering ? 0 : (clock.monoMs() - beganMs) * REST_FACTOR).then(() => {
      this.#rest = null;
      if (this.#events.size > 0 && !this.#o.signal.aborted) this.#send();
    });
  }

  #resting(ms: number): Promise<void> {
    const { clock, yield: loop } = this.#ports;
    const { signal } = this.#o;
    return new Promise((resolve) => {
      if (ms < 1) return loop.defer(resolve);
      const done = (): void => {
        clock.clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = clock.setTimeout(done, Math.min(REST_MAX_MS, ms));
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
