/**
 * An API server for a world without one: paths, watches and their ends, bookmarks, pages, expired history; and what
 * happens between it and a node: delays, refusals, lost answers with and without effect, partitions, silent and cut
 * watches. It outlives the daemons that talk to it.
 */

import { INITIAL_EVENTS_END, isKubeRecord, type KubeFailure, type KubeRequest, type KubeResult } from '../../machines/api/kube.ts';
import type { Clock, KubeApi, KubeCallOptions } from '../../ports/ports.ts';
import type { SimCertificate, SimCredentials } from './certificates.ts';
import { carryOut, failureOf, type Route, route, selectorOf, statusOf } from './kubeRoutes.ts';
import { KubeStore, type StoreEvent } from './kubeStore.ts';
import type { SimRng } from './rng.ts';
import type { Power } from './time.ts';

/** What becomes of one request. */
export interface KubeVerdict {
  /** Before its effect. */
  delayMs: number;
  refuse?: { status: number; reason?: string; retryAfterMs?: number };
  /** No answer: without effect, with it, or with an effect that comes `lateMs` after the call. */
  lost?: 'without-effect' | 'with-effect' | 'late-effect';
  lateMs?: number;
}
/**
 * What becomes of one line of a watch. `silence`: this stream says nothing any more and stays open. `duplicate`: it comes twice.
 * `expire`: in its place comes the error that the history is gone. A delay holds back all that comes after it, too.
 */
export type WatchVerdict = 'pass' | 'silence' | 'truncate' | 'close' | 'duplicate' | 'expire' | { delayMs: number };
/**
 * What the server makes of a watch that asks for initial events. `refuse`: as one whose feature is off. `ignore`: as one so old
 * that it does not know the wish, and sends what a watch without a version gets.
 */
export type InitialEvents = 'send' | 'refuse' | 'ignore';

export interface KubeTrouble {
  verdict(request: KubeRequest): KubeVerdict;
  line(watch: { path: string }): WatchVerdict;
  /** Nothing arrives anywhere; what is open hangs. */
  partitioned: boolean;
  /** Lists come from a cache that has not heard of the last change: their version is older than what was seen. */
  behind: boolean;
  /** The server's process is not there: connections are refused, open ones were cut. */
  down: boolean;
}
export interface KubeCall {
  request: KubeRequest;
  /** The answer the server gave, whether or not it arrived; undefined while it never carried the request out. */
  code?: number;
}

interface Daemon {
  power: Power;
  clock: Clock;
  node?: string;
  credentials?: SimCredentials;
}

export interface SimKube {
  readonly store: KubeStore;
  /** The server's own, which is right. */
  wallMs(): number;
  trouble: KubeTrouble;
  initialEvents: InitialEvents;
  /** Requests that were carried out, oldest first, watches included. */
  readonly calls: KubeCall[];
  /** A request of a daemon is about to be carried out; `node`: of which one, where it said so. */
  onRequest: ((request: KubeRequest, node: string) => void) | undefined;
  /** What is being carried out was sent by a daemon that has been killed since. */
  ofTheDead: boolean;
  /** A daemon came with this certificate. */
  onShown: ((certificate: SimCertificate, node: string) => void) | undefined;
  /** As a user of the cluster: at once, without any trouble. */
  handle(request: KubeRequest): KubeResult;
  /** `credentials`: what it goes with; absent: something that is always good. */
  connect(daemon: Daemon): KubeApi;
  /** Ends open watches: as a server that restarts, or in the middle of a line. */
  cutWatches(how: 'close' | 'truncate'): void;
  /** Open watches hang for ever. */
  silenceWatches(): void;
  openWatches(): number;
  /** A partition heals: what waited in open streams arrives. */
  heal(): void;
}

/** Bookmarks come about once a minute. */
const BOOKMARK_MS = 60_000;
/** A watch that names no end is closed after this. */
const WATCH_SECONDS = 1_800;
/** Calls remembered; older ones are dropped. */
const CALLS_MAX = 20_000;

/** Versions by which a list is behind; nothing that happened meanwhile is replayed where the history was compacted. */
const BEHIND = 500;

const OWN_UIDS: ReadonlyMap<string, 'objects' | 'requests' | 'claims'> = new Map([
  ['configmaps', 'objects'],
  ['secrets', 'objects'],
  ['serviceaccounts', 'objects'],
  ['persistentvolumeclaims', 'claims'],
  ['persistentvolumes', 'claims'],
  ['certificatesigningrequests', 'requests'],
]);

/** What the real server says of a watch whose parameters do not go together; null: nothing. */
function invalidWatch({ query = {} }: KubeRequest, known: boolean): string | null {
  const { sendInitialEvents: send, resourceVersionMatch: match } = query;
  const because = (field: string, why: string): string => `ListOptions.meta.k8s.io "" is invalid: ${field}: Forbidden: ${why}`;
  if (send !== undefined && !known)
    return because('sendInitialEvents', 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled');
  if (send === undefined)
    return match === undefined
      ? null
      : because('resourceVersionMatch', 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided');
  if (match !== 'NotOlderThan')
    return because('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
  return null;
}

interface Watcher {
  path: string;
  power: Power;
  lines: { text: string; dueMs: number }[];
  silent: boolean;
  end: 'close' | 'truncate' | null;
  wake: (() => void) | null;
  close(): void;
}

export function simKube(o: {
  clock: Clock;
  rng: SimRng;
  latencyMs(): number;
  /** Longest life of a token. Default: what is asked for. */
  tokenSecondsMax?: number | undefined;
}): SimKube {
  // Objects that pods name, and requests for certificates, have theirs apart: how many there are decides no pod's UID.
  const uidsOf = {
    pods: o.rng.fork('uids'),
    objects: o.rng.fork('object-uids'),
    requests: o.rng.fork('request-uids'),
    claims: o.rng.fork('claim-uids'),
  };
  const newUid = (resource: string): string => {
    const uids = uidsOf[OWN_UIDS.get(resource) ?? 'pods'];
    const hex = (n: number): string => Array.from({ length: n }, () => uids.int(16).toString(16)).join('');
    return `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`;
  };
  const store = new KubeStore({
    newUid,
    wallMs: () => o.clock.wallMs(),
  });
  const calls: KubeCall[] = [];
  const watchers = new Set<Watcher>();
  const wait = (ms: number) => (ms <= 0 ? undefined : new Promise<void>((wake) => void o.clock.setTimeout(wake, ms)));
  const note = (call: KubeCall): void => {
    calls.push(call);
    if (calls.length > CALLS_MAX) calls.splice(0, CALLS_MAX / 2);
  };

  const self: SimKube = {
    store,
    wallMs: () => o.clock.wallMs(),
    trouble: { verdict: () => ({ delayMs: 0 }), line: () => 'pass', partitioned: false, behind: false, down: false },
    initialEvents: 'send',
    calls,
    onRequest: undefined,
    ofTheDead: false,
    onShown: undefined,
    handle: (request) => carryOut(store, o.clock, request, o.tokenSecondsMax),
    cutWatches(how) {
      for (const w of [...watchers]) {
        w.end = how;
        w.wake?.();
      }
    },
    silenceWatches() {
      for (const w of watchers) w.silent = true;
    },
    openWatches: () => [...watchers].filter((w) => w.power.on).length,
    heal() {
      self.trouble.partitioned = false;
      for (const w of watchers) w.wake?.();
    },
    connect: (daemon) => client(daemon),
  };

  function openWatch(request: KubeRequest, power: Power): { failure: KubeFailure } | { watcher: Watcher } {
    let at: Route;
    try {
      at = route(request.path);
    } catch (error) {
      return { failure: failureOf(error) };
    }
    const invalid = self.initialEvents === 'ignore' ? null : invalidWatch(request, self.initialEvents === 'send');
    if (invalid !== null) return { failure: { code: 422, reason: 'Invalid', message: invalid, outcome: 'failed' } };
    const matches = selectorOf(request.query, at.namespace);
    const initial = request.query?.sendInitialEvents === 'true' && self.initialEvents === 'send';
    const from = Number(request.query?.resourceVersion ?? '0');
    const wantsBookmarks = request.query?.allowWatchBookmarks === 'true';
    const timers: unknown[] = [];
    const watcher: Watcher = {
      path: request.path,
      power,
      lines: [],
      silent: false,
      end: null,
      wake: null,
      close() {
        watchers.delete(watcher);
        stop();
        for (const t of timers) o.clock.clearTimeout(t);
      },
    };
    const push = (line: object): void => {
      // Nothing comes after the end of a stream: a line behind one that was cut away would move its reader past what it never heard.
      if (watcher.end !== null) return;
      const verdict = self.trouble.line({ path: request.path });
      if (watcher.silent || verdict === 'silence') {
        watcher.silent = true;
        return;
      }
      const lateMs = typeof verdict === 'object' ? verdict.delayMs : 0;
      const dueMs = Math.max(o.clock.monoMs() + lateMs, watcher.lines.at(-1)?.dueMs ?? 0);
      const put = (it: object): void => void watcher.lines.push({ text: JSON.stringify(it), dueMs });
      if (verdict === 'expire') put({ type: 'ERROR', object: statusOf(410, 'Expired', 'too old resource version') });
      else if (verdict !== 'truncate' && verdict !== 'close') for (let i = verdict === 'duplicate' ? 2 : 1; i > 0; i--) put(line);
      if (verdict === 'truncate' || verdict === 'close') watcher.end = verdict;
      if (verdict === 'expire') watcher.end = 'close';
      timers.push(o.clock.setTimeout(() => watcher.wake?.(), o.latencyMs() + Math.max(0, dueMs - o.clock.monoMs())));
    };
    const show = (e: StoreEvent): void => {
      if (e.resource !== at.resource.name) return;
      const was = e.before !== undefined && matches(e.before);
      const is = e.type !== 'DELETED' && matches(e.object);
      if (is) push({ type: was ? 'MODIFIED' : 'ADDED', object: e.object });
      else if (was) push({ type: 'DELETED', object: e.object });
    };
    const stop = store.onEvent(show);
    watchers.add(watcher);
    const bookmarkOf = (metadata: object) => ({
      type: 'BOOKMARK',
      object: { kind: at.resource.kind, metadata: { resourceVersion: String(store.resourceVersion), ...metadata } },
    });
    if (initial || from === 0) {
      for (const object of store.list(at.resource.name)) if (matches(object)) push({ type: 'ADDED', object });
      if (initial && wantsBookmarks) push(bookmarkOf({ annotations: { [INITIAL_EVENTS_END]: 'true' } }));
    } else if (from < store.compactedTo) {
      push({ type: 'ERROR', object: statusOf(410, 'Expired', `too old resource version: ${from} (${store.compactedTo})`) });
      watcher.end = 'close';
    } else for (const e of store.since(from)) show(e);
    const bookmark = (): void => {
      push(bookmarkOf({}));
      timers.push(o.clock.setTimeout(bookmark, BOOKMARK_MS));
    };
    if (wantsBookmarks) timers.push(o.clock.setTimeout(bookmark, BOOKMARK_MS));
    const seconds = Number(request.query?.timeoutSeconds ?? WATCH_SECONDS);
    timers.push(
      o.clock.setTimeout(() => {
        if (watcher.silent) return;
        watcher.end = 'close';
        watcher.wake?.();
      }, seconds * 1000),
    );
    return { watcher };
  }

  async function* read(watcher: Watcher, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
    const wake = (): void => watcher.wake?.();
    signal.addEventListener('abort', wake, { once: true });
    try {
      for (;;) {
        if (!watcher.power.on) await new Promise(() => {});
        if (signal.aborted) throw new Error('aborted');
        const held = watcher.silent || self.trouble.partitioned;
        const early = (watcher.lines[0]?.dueMs ?? 0) > o.clock.monoMs();
        const line = held || early ? undefined : watcher.lines.shift();
        if (line !== undefined) {
          yield line.text;
          continue;
        }
        if (watcher.end === 'truncate' && !held && !early) throw new Error('the watch ended inside a line');
        if (watcher.end === 'close' && !held && !early) return;
        await new Promise<void>((go) => {
          watcher.wake = go;
        });
        watcher.wake = null;
      }
    } finally {
      signal.removeEventListener('abort', wake);
      watcher.close();
    }
  }

  /** Only an answer from the cache may be old; that is asked for with version 0. */
  function outdated({ query }: KubeRequest, answer: KubeResult): KubeResult {
    if (
      !self.trouble.behind ||
      query?.resourceVersion !== '0' ||
      !answer.ok ||
      !isKubeRecord(answer.body) ||
      !Array.isArray(answer.body.items)
    )
      return answer;
    const metadata = {
      ...(isKubeRecord(answer.body.metadata) ? answer.body.metadata : {}),
      resourceVersion: String(Math.max(1, store.resourceVersion - BEHIND)),
    };
    return { ...answer, body: { ...answer.body, metadata } };
  }

  function client(daemon: Daemon): KubeApi {
    const { power, credentials, node = '' } = daemon;
    const unauthorized: KubeFailure = { code: 401, reason: 'Unauthorized', message: 'Unauthorized', outcome: 'failed' };
    const cuts = new Map<string, Set<() => void>>();

    /** Runs `effect` behind everything that can go wrong on the way. */
    function exchange<T extends { ok: boolean }>(
      request: KubeRequest,
      opts: KubeCallOptions,
      effect: () => T,
    ): Promise<T | { ok: false; failure: KubeFailure }> {
      return new Promise((resolve) => {
        if (!power.on) return;
        let open = true;
        const write = request.verb !== 'GET';
        const of = opts.class ?? 'kube';
        const mine = cuts.get(of) ?? new Set();
        cuts.set(of, mine);
        const end = (value: T | { ok: false; failure: KubeFailure }): void => {
          if (!open) return;
          open = false;
          daemon.clock.clearTimeout(timer);
          opts.signal.removeEventListener('abort', cancel);
          mine.delete(cut);
          if (power.on) resolve(value);
        };
        const lost = (reason: string, message: string): void =>
          end({ ok: false, failure: { code: 0, reason, message, outcome: write ? 'unknown' : 'failed' } });
        const cancel = (): void => lost('Aborted', 'the call was given up');
        const cut = (): void => lost('ECONNRESET', 'the connection was closed');
        const { timeoutMs } = opts;
        const timer =
          timeoutMs === null ? undefined : daemon.clock.setTimeout(() => lost('Timeout', `no answer within ${timeoutMs} ms`), timeoutMs);
        if (opts.signal.aborted) {
          cancel();
          return;
        }
        const shown = credentials?.current();
        if (shown === null) {
          const message = 'the files of the client certificate are not there';
          end({ ok: false, failure: { code: 0, reason: 'NoCredentials', message, outcome: 'failed' } });
          return;
        }
        opts.signal.addEventListener('abort', cancel, { once: true });
        mine.add(cut);
        const verdict = self.trouble.verdict(request);
        const work = async (): Promise<void> => {
          await wait(o.latencyMs() + verdict.delayMs + (verdict.lost === 'late-effect' ? (verdict.lateMs ?? 0) : 0));
          if (self.trouble.down) {
            end({ ok: false, failure: { code: 0, reason: 'ECONNREFUSED', message: 'connection refused', outcome: 'failed' } });
            return;
          }
          // What was sent into a partition is not delivered later: its connection is long given up.
          if (self.trouble.partitioned) return;
          if (verdict.refuse !== undefined) {
            const { status, reason, retryAfterMs } = verdict.refuse;
            const failure: KubeFailure = {
              code: status,
              reason:
                reason ?? (status === 429 ? 'TooManyRequests' : status === 409 ? 'Conflict' : status === 410 ? 'Expired' : 'InternalError'),
              message: 'injected',
              outcome: 'failed',
              ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
            };
            note({ request, code: status });
            end({ ok: false, failure });
            return;
          }
          if (verdict.lost === 'without-effect') return;
          if (shown !== undefined) self.onShown?.(shown, node);
          if (shown !== undefined && shown.notAfterMs <= o.clock.wallMs()) {
            note({ request, code: 401 });
            credentials?.suspect();
            end({ ok: false, failure: unauthorized });
            return;
          }
          const value = effect();
          if (verdict.lost !== undefined) return;
          end(value);
        };
        void work();
      });
    }

    return {
      server: 'https://kube.sim',
      request: (request, opts) =>
        exchange(request, opts, () => {
          self.ofTheDead = !power.on;
          self.onRequest?.(request, node);
          const answer = outdated(request, self.handle(request));
          self.ofTheDead = false;
          note({ request: structuredClone(request), code: answer.ok ? answer.code : answer.failure.code });
          return answer;
        }),
      watch: (request, opts) =>
        exchange({ verb: 'GET', ...request, query: { ...request.query, watch: 'true' } }, { ...opts, timeoutMs: opts.timeoutMs }, () => {
          const opened = openWatch({ verb: 'GET', ...request }, power);
          note({
            request: { verb: 'GET', path: request.path, query: { ...request.query, watch: 'true' } },
            code: 'failure' in opened ? opened.failure.code : 200,
          });
          if ('failure' in opened) return { ok: false, failure: opened.failure };
          // Nobody is there to read it: the connection was closed on the way.
          if (opts.signal.aborted) opened.watcher.close();
          return { ok: true, lines: read(opened.watcher, opts.signal) };
        }),
      ...(credentials === undefined ? {} : { reload: async () => credentials.suspect() }),
      closeConnections(of) {
        for (const cut of [...(cuts.get(of) ?? [])]) cut();
      },
      close() {
        for (const set of cuts.values()) for (const cut of [...set]) cut();
      },
    };
  }
  return self;
}
