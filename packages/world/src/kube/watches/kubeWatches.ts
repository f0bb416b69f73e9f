/** Open watches of the simulated API server: initial events, changes, bookmarks, and their ends. */

import { INITIAL_EVENTS_END, type KubeFailure, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Power } from '../../time.ts';
import { failureOf, integerOf, type Route, route, statusOf, versionOf } from '../kubeRoutes.ts';
import { type Selector, selectorOf } from '../kubeSelectors.ts';
import type { StoreEvent } from '../kubeStore.ts';
import type { SimKube, WhichWatches } from '../types.ts';
import { type Indexed, WatchIndex } from './watchIndex.ts';

/** Bookmarks come about once a minute. */
const BOOKMARK_MS = 60_000;
/** A watch that names no end is closed after this. */
const WATCH_SECONDS = 1_800;
/** Changes that wait for a slow reader; then its watch ends, and it goes on from the last one it read. */
const WAITING_MAX = 5_000;
/** The same for all readers of a server that forgets. Each costs some 100 bytes: the objects are those of the store and its history. */
const WAITING_IN_ALL_MAX = 500_000;

export interface KubeWatchesOptions {
  /** Read at each line. */
  kube: Pick<SimKube, 'store' | 'trouble' | 'initialEvents' | 'progress'>;
  clock: Clock;
  latencyMs(): number;
}

export class KubeWatches {
  readonly #open = new Set<WatchStream>();
  readonly #index = new WatchIndex<WatchStream>();
  readonly #o: KubeWatchesOptions;
  /** In all watches. */
  #waiting = 0;
  #opened = 0;
  /** Up to this version of the history slow readers were looked for. */
  #compacted = 0;

  constructor(o: KubeWatchesOptions) {
    this.#o = o;
  }

  #show(e: StoreEvent): void {
    const { store } = this.#o.kube;
    if (store.forgets && store.compactedTo !== this.#compacted) {
      this.#compacted = store.compactedTo;
      for (const watch of [...this.#open]) watch.endIfBehind(store.compactedTo);
    }
    for (const watch of this.#index.concerned(e.resource, e.object, e.before)) watch.show(e);
  }

  /** The slowest readers go first. */
  #count(by: number): void {
    this.#waiting += by;
    if (by < 0 || !this.#o.kube.store.forgets) return;
    while (this.#waiting > WAITING_IN_ALL_MAX) [...this.#open].reduce((a, b) => (b.waiting > a.waiting ? b : a)).giveUp();
  }

  open(request: KubeRequest, power: Power): { failure: KubeFailure } | { watch: WatchStream } {
    let at: Route;
    let selector: Selector;
    let from: number;
    let seconds: number;
    try {
      at = route(request.path);
      selector = selectorOf(at.resource, request.query, at.namespace);
      from = versionOf(request.query?.resourceVersion ?? '');
      seconds = integerOf(request.query?.timeoutSeconds) || WATCH_SECONDS;
    } catch (error) {
      return { failure: failureOf(error) };
    }
    const { initialEvents } = this.#o.kube;
    const invalid = initialEvents === 'ignore' ? null : invalidWatch(request, initialEvents === 'send');
    if (invalid !== null) return { failure: { code: 422, reason: 'Invalid', message: invalid, outcome: 'failed' } };
    // After the listeners that were there before the first watch: what they do about a change comes first.
    if (this.#opened === 0) this.#o.kube.store.onEvent((e) => this.#show(e));
    const watch = new WatchStream(this.#o, {
      order: this.#opened++,
      request,
      at,
      selector,
      from,
      seconds,
      power,
      count: (by) => this.#count(by),
      onClose: (closed) => {
        this.#open.delete(closed);
        this.#index.delete(closed);
      },
    });
    this.#open.add(watch);
    this.#index.add(watch);
    watch.begin();
    return { watch };
  }

  cut(how: 'close' | 'truncate', which: WhichWatches = () => true): void {
    for (const w of [...this.#open]) if (which(w.request)) w.finish(how);
  }

  silence(): void {
    for (const w of this.#open) w.silence();
  }

  /** Watches of daemons that are alive. */
  count(): number {
    return [...this.#open].filter((w) => w.power.on).length;
  }

  heal(): void {
    for (const w of this.#open) w.heal();
  }
}

const ENDS_LATE = new Set(['secrets', 'configmaps']);

interface WatchOptions {
  /** So many were opened before. */
  order: number;
  request: KubeRequest;
  at: Route;
  selector: Selector;
  /** A server whose etcd was restored is silent until it comes to this version again. */
  from: number;
  /** Until it ends. */
  seconds: number;
  power: Power;
  /** So many lines more wait for the reader. */
  count(by: number): void;
  onClose(watch: WatchStream): void;
}

/** What a watch says: an object of the store, or one that the server made for this line. `rv`: the version it was made at. */
interface Line {
  said: { type: string; object: object };
  rv: number;
  dueMs: number;
}

/** One text serves all watches that send it at the same time. */
const texts = new WeakMap<object, Map<string, WeakRef<{ text: string }>>>();
function textOf({ type, object }: Line['said']): { text: string } {
  const known = texts.get(object) ?? new Map<string, WeakRef<{ text: string }>>();
  const there = known.get(type)?.deref();
  if (there !== undefined) return there;
  const made = { text: JSON.stringify({ type, object }) };
  texts.set(object, known.set(type, new WeakRef(made)));
  return made;
}

export class WatchStream implements Indexed {
  readonly order: number;
  readonly resource: string;
  readonly pin: Selector['pin'];
  readonly power: Power;
  readonly #server: KubeWatchesOptions;
  readonly #o: WatchOptions;
  readonly #lines: Line[] = [];
  readonly #timers = new Set<unknown>();
  #silent = false;
  #end: 'close' | 'truncate' | null = null;
  #wake: (() => void) | null = null;

  constructor(server: KubeWatchesOptions, o: WatchOptions) {
    this.order = o.order;
    this.resource = o.at.resource.name;
    this.pin = o.selector.pin;
    this.power = o.power;
    this.#server = server;
    this.#o = o;
  }

  /** Sends what is there already, and arms bookmarks and the end. */
  begin(): void {
    const { query } = this.#o.request;
    const wantsBookmarks = query?.allowWatchBookmarks === 'true';
    this.#sendPast(wantsBookmarks);
    if (wantsBookmarks) this.#after(BOOKMARK_MS, () => this.#bookmark());
    this.#after(this.#o.seconds * 1000, () => {
      if (!this.#silent) this.finish('close');
    });
  }

  /** Unless it is closed before. */
  #after(ms: number, fn: () => void): void {
    const timer = this.#server.clock.setTimeout(() => {
      this.#timers.delete(timer);
      fn();
    }, ms);
    this.#timers.add(timer);
  }

  get request(): KubeRequest {
    return this.#o.request;
  }

  get waiting(): number {
    return this.#lines.length;
  }

  /** Its reader is too slow: what waits is dropped. The reader goes on from the last line that it read. */
  giveUp(): void {
    this.#drop();
    this.finish('close');
  }
  #drop(): void {
    this.#o.count(-this.#lines.length);
    this.#lines.length = 0;
  }

  finish(how: 'close' | 'truncate'): void {
    this.#end = how;
    this.wake();
  }

  silence(): void {
    this.#silent = true;
  }

  wake(): void {
    this.#wake?.();
  }

  /** A node finds a silent watch itself, but one of these: that would last up to an hour, as in the kubelet. It ends. */
  heal(): void {
    if (this.#silent && ENDS_LATE.has(this.resource)) {
      this.#silent = false;
      this.finish('close');
    } else this.wake();
  }

  close(): void {
    this.#o.onClose(this);
    this.#drop();
    for (const t of this.#timers) this.#server.clock.clearTimeout(t);
  }

  async *read(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
    const wake = (): void => this.wake();
    signal.addEventListener('abort', wake, { once: true });
    try {
      for (;;) {
        if (!this.power.on) await new Promise(() => {});
        if (signal.aborted) throw new Error('aborted');
        const held = this.#silent || this.#server.kube.trouble.partitioned;
        const early = (this.#lines[0]?.dueMs ?? 0) > this.#server.clock.monoMs();
        const line = held || early ? undefined : this.#lines.shift();
        if (line !== undefined) {
          this.#o.count(-1);
          const shared = textOf(line.said);
          yield shared.text;
          continue;
        }
        if (this.#end === 'truncate' && !held && !early) throw new Error('the watch ended inside a line');
        if (this.#end === 'close' && !held && !early) return;
        await new Promise<void>((go) => {
          this.#wake = go;
        });
        this.#wake = null;
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.close();
    }
  }

  #sendPast(wantsBookmarks: boolean): void {
    const { store, initialEvents } = this.#server.kube;
    const { query } = this.#o.request;
    const initial = query?.sendInitialEvents === 'true' && initialEvents === 'send';
    const { from } = this.#o;
    if (initial || from === 0) {
      const { matches, pin } = this.#o.selector;
      for (const object of store.list(this.resource, pin)) if (matches(object)) this.#push({ type: 'ADDED', object });
      if (initial && wantsBookmarks) this.#push(this.#bookmarkOf({ annotations: { [INITIAL_EVENTS_END]: 'true' } }));
    } else if (from < store.compactedTo) {
      this.#push({ type: 'ERROR', object: statusOf(410, 'Expired', `too old resource version: ${from} (${store.compactedTo})`) });
      this.#end = 'close';
    } else for (const e of store.since(from)) this.show(e);
  }

  /** What waits for its reader must not outlive the history. */
  endIfBehind(compactedTo: number): void {
    const oldest = this.#lines[0];
    if (oldest !== undefined && oldest.rv < compactedTo) this.giveUp();
  }

  /** Sends a change that its selector selects. */
  show(e: StoreEvent): void {
    if (e.resource !== this.resource || e.rv <= this.#o.from) return;
    if (this.#lines.length >= WAITING_MAX) this.finish('close');
    const { matches } = this.#o.selector;
    const was = e.before !== undefined && matches(e.before);
    const is = e.type !== 'DELETED' && matches(e.object);
    if (is) this.#push({ type: was ? 'MODIFIED' : 'ADDED', object: e.object });
    else if (was) this.#push({ type: 'DELETED', object: e.object });
  }

  /** Without progress of etcd the server knows of the last change of that kind alone, and says no version that the watch began at. */
  #bookmark(): void {
    const { store, progress } = this.#server.kube;
    const hasNews = progress ? store.resourceVersion >= this.#o.from : store.changedAt(this.resource) > this.#o.from;
    if (hasNews) this.#push(this.#bookmarkOf({}));
    this.#after(BOOKMARK_MS, () => this.#bookmark());
  }

  #bookmarkOf(metadata: object): Line['said'] {
    const resourceVersion = String(this.#server.kube.store.resourceVersion);
    return { type: 'BOOKMARK', object: { kind: this.#o.at.resource.kind, metadata: { resourceVersion, ...metadata } } };
  }

  #push(line: Line['said']): void {
    // Nothing comes after the end of a stream: a line behind one that was cut away would move its reader past what it never heard.
    if (this.#end !== null) return;
    const { clock, kube, latencyMs } = this.#server;
    const verdict = kube.trouble.line({ path: this.#o.request.path });
    if (this.#silent || verdict === 'silence') {
      this.#silent = true;
      return;
    }
    const lateMs = typeof verdict === 'object' ? verdict.delayMs : 0;
    const dueMs = Math.max(clock.monoMs() + lateMs, this.#lines.at(-1)?.dueMs ?? 0);
    const rv = kube.store.resourceVersion;
    const put = (said: Line['said']): void => {
      this.#lines.push({ said, rv, dueMs });
      this.#o.count(1);
    };
    if (verdict === 'expire') put({ type: 'ERROR', object: statusOf(410, 'Expired', 'too old resource version') });
    else if (verdict !== 'truncate' && verdict !== 'close') for (let i = verdict === 'duplicate' ? 2 : 1; i > 0; i--) put(line);
    if (verdict === 'truncate' || verdict === 'close') this.#end = verdict;
    if (verdict === 'expire') this.#end = 'close';
    this.#after(latencyMs() + Math.max(0, dueMs - clock.monoMs()), () => this.wake());
  }
}

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
