/** One watch at the API server, of everything of a kind, whose lines go to the nodes they are about. `upstreamMachine.ts` says when it begins anew. */
import { failureText, type KubeFailure, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Watched, WatchOutcome } from './messages.ts';
import { bookmarkAt, type Line, type Subscription, versionOf } from './subscription.ts';

/** For watchers that go on from a version. */
const REMEMBERED_MAX = 2_000;
const OPEN_TIMEOUT_MS = 60_000;
const GONE = 410;

export interface UpstreamOptions {
  kube: KubeApi;
  path: string;
  fieldSelector: string;
  /** The node that an object is about. */
  nodeOf(metadata: Readonly<Record<string, unknown>>, object: Readonly<Record<string, unknown>>): unknown;
  ended(): void;
}

export class Upstream implements Watched {
  readonly #o: UpstreamOptions;
  /** By node; under null those that want everything. */
  readonly #readers = new Map<string | null, Set<Subscription>>();
  readonly #keys = new Map<Subscription, string | null>();
  readonly #remembered: { node: string | null; line: Line }[] = [];
  /** Where it began, or the newest version that is no longer remembered. */
  #since = 0;
  #at = '';
  #lines: AsyncIterable<string> | undefined;
  /** Null: it was opened. Anew with each try that failed. */
  #tried = Promise.withResolvers<KubeFailure | null>();
  /** It was, and what came since is known. */
  #isOpen = false;

  constructor(o: UpstreamOptions) {
    this.#o = o;
  }

  add(node: string | null, reader: Subscription): void {
    const readers = this.#readers.get(node) ?? new Set();
    readers.add(reader);
    this.#readers.set(node, readers);
    this.#keys.set(reader, node);
  }

  remove(reader: Subscription): void {
    const node = this.#keys.get(reader) ?? null;
    // A reader closes twice: another watch of the same objects may have begun in between.
    if (!this.#keys.delete(reader)) return;
    const readers = this.#readers.get(node);
    readers?.delete(reader);
    if (readers?.size === 0) this.#readers.delete(node);
    if (this.#keys.size > 0) return;
    this.#o.ended();
  }

  /** Null once the API server sends what changes: what is listed from then on misses nothing. Else why it does not. */
  async opened(signal: AbortSignal): Promise<KubeFailure | null> {
    const { promise, resolve } = Promise.withResolvers<null>();
    const gaveUp = (): void => resolve(null);
    signal.addEventListener('abort', gaveUp, { once: true });
    const failure = await Promise.race([this.#tried.promise, promise]);
    signal.removeEventListener('abort', gaveUp);
    return failure;
  }

  /** What came since that version, and all that comes; false: that is not known here. */
  replay(resourceVersion: string, reader: Subscription): boolean {
    const version = versionOf(resourceVersion);
    if (version === 0 || this.#since === 0 || version < this.#since) return false;
    const node = this.#keys.get(reader) ?? null;
    reader.begin(version);
    for (const { node: about, line } of this.#remembered) if (node === null || about === node) reader.offer(line);
    return true;
  }

  /** Until the API server sends what changes. With the signal the watch ends. Never rejects. */
  async open(signal: AbortSignal): Promise<WatchOutcome> {
    try {
      return await this.#open(signal);
    } catch (error) {
      return { failure: messageOf(error) };
    }
  }

  /** Until the watch that was opened ends. Never rejects. */
  async read(signal: AbortSignal): Promise<WatchOutcome> {
    const lines = this.#lines;
    this.#lines = undefined;
    try {
      for await (const line of lines ?? []) {
        if (signal.aborted) break;
        if (!this.#heard(line)) return { failure: 'the API server has forgotten what came since' };
      }
      return { failure: null };
    } catch (error) {
      return { failure: messageOf(error) };
    }
  }

  async #open(signal: AbortSignal): Promise<WatchOutcome> {
    const { kube, path, fieldSelector } = this.#o;
    const selected = fieldSelector === '' ? {} : { fieldSelector };
    const asked: KubeRequest = { verb: 'GET', path, query: { ...selected, limit: '1' } };
    const listed = await kube.request(asked, { timeoutMs: OPEN_TIMEOUT_MS, signal });
    if (!listed.ok) return this.#failed(asked, listed.failure);
    if (!isRecord(listed.body) || !isRecord(listed.body.metadata)) return { failure: `${path}: the answer is no list` };
    const newest = String(listed.body.metadata.resourceVersion ?? '');
    // Restored from a backup: it would say nothing until it reaches the version that was seen.
    if (versionOf(newest) < versionOf(this.#at)) this.#forget();
    if (this.#at === '') {
      this.#at = newest;
      this.#since = versionOf(newest);
    }
    const query = { ...selected, resourceVersion: this.#at, allowWatchBookmarks: 'true' };
    const watch = await kube.watch({ path, query }, { timeoutMs: OPEN_TIMEOUT_MS, signal });
    if (!watch.ok) {
      if (watch.failure.code === GONE) this.#forget();
      return this.#failed({ ...asked, query }, watch.failure);
    }
    this.#lines = watch.lines;
    this.#isOpen = true;
    this.#tried.resolve(null);
    this.#mark();
    return { failure: null };
  }

  /** Nodes that wait for it hear why, as from a watch of their own. */
  #failed(request: KubeRequest, failure: KubeFailure): WatchOutcome {
    const { resolve } = this.#tried;
    this.#tried = Promise.withResolvers();
    resolve(failure);
    return { failure: failureText(request, failure) };
  }

  /** False: its history is gone. */
  #heard(text: string): boolean {
    const { type, object } = JSON.parse(text) as { type?: unknown; object?: unknown };
    if (type === 'ERROR' || !isRecord(object) || !isRecord(object.metadata)) {
      this.#forget();
      return false;
    }
    this.#at = String(object.metadata.resourceVersion ?? this.#at);
    if (type === 'BOOKMARK') {
      this.#mark();
      return true;
    }
    const node = this.#o.nodeOf(object.metadata, object);
    const line = { version: versionOf(this.#at), text };
    const about = typeof node === 'string' ? node : null;
    this.#remembered.push({ node: about, line });
    if (this.#remembered.length > REMEMBERED_MAX) this.#since = this.#remembered.shift()?.line.version ?? this.#since;
    for (const reader of this.#readers.get(null) ?? []) reader.offer(line);
    if (about !== null) for (const reader of this.#readers.get(about) ?? []) reader.offer(line);
    return true;
  }

  /** To all: a node whose objects do not change must not take its watch for dead. */
  #mark(): void {
    const bookmark = bookmarkAt(this.#at);
    for (const reader of this.#keys.keys()) reader.mark(bookmark);
  }

  /** What changed meanwhile is not known: all that read begin anew, with a list that is no older than where the next watch begins. */
  #forget(): void {
    this.#at = '';
    this.#since = 0;
    this.#remembered.length = 0;
    if (this.#isOpen) this.#tried = Promise.withResolvers();
    this.#isOpen = false;
    for (const reader of [...this.#keys.keys()]) reader.expire();
  }
}
