/** All objects of a kind, as they are at the API server: those that come, and those that go, also while no watch was there. */
import { failureText, isKubeObject, type KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import { asked } from './asking.ts';
import type { WatchOutcome } from './messages.ts';

const ASKED_MS = 30_000;
const PAGE_MAX = 500;

export interface Listened {
  kube: KubeApi;
  path: string;
  /** Of all of them; '': there is none. */
  selector?: string;
  /** It is there, or has changed. It is told again with each list. */
  seen(object: KubeObject): void;
  gone(key: string): void;
}

/** Namespace and name; the name alone of what has no namespace. */
export function keyOf({ metadata: { namespace, name } }: KubeObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

export class ListWatch {
  readonly #o: Listened;
  #known = new Set<string>();
  #version = '';

  constructor(o: Listened) {
    this.#o = o;
  }

  /** Those that are not there any more are gone. Never rejects. */
  async list(signal: AbortSignal): Promise<WatchOutcome> {
    try {
      const present = new Set<string>();
      for (let next = ''; ; ) {
        const query = { ...this.#query(), limit: String(PAGE_MAX), ...(next === '' ? {} : { continue: next }) };
        const list = await asked({ verb: 'GET', path: this.#o.path, query }, { kube: this.#o.kube, signal }, { none: [] });
        const { items, metadata } = isRecord(list) ? list : {};
        const objects = Array.isArray(items) ? items.filter(isKubeObject) : [];
        for (const object of [...objects].sort(byCreation)) {
          present.add(keyOf(object));
          this.#o.seen(object);
        }
        const { continue: more, resourceVersion } = isRecord(metadata) ? metadata : {};
        this.#version = String(resourceVersion ?? '');
        next = typeof more === 'string' ? more : '';
        if (next === '') break;
      }
      const before = this.#known;
      this.#known = present;
      for (const key of before) if (!present.has(key)) this.#o.gone(key);
      return { failure: null };
    } catch (error) {
      return { failure: messageOf(error) };
    }
  }

  /** What changes, until the API server ends the watch. Never rejects. */
  async read(signal: AbortSignal): Promise<WatchOutcome> {
    const { kube, path } = this.#o;
    try {
      const query = { ...this.#query(), resourceVersion: this.#version, allowWatchBookmarks: 'true' };
      const watch = await kube.watch({ path, query }, { timeoutMs: ASKED_MS, signal });
      if (!watch.ok) return { failure: failureText({ verb: 'GET', path }, watch.failure) };
      let isEmpty = true;
      for await (const line of watch.lines) {
        if (signal.aborted) break;
        isEmpty = false;
        const { type, object } = JSON.parse(line) as { type?: unknown; object?: unknown };
        if (type === 'ERROR') return { failure: 'the API server has forgotten what came since' };
        if (!isKubeObject(object) || type === 'BOOKMARK') continue;
        if (type === 'DELETED') {
          this.#known.delete(keyOf(object));
          this.#o.gone(keyOf(object));
        } else {
          this.#known.add(keyOf(object));
          this.#o.seen(object);
        }
      }
      // One that ends at once, again and again, must not be asked for without a pause.
      return { failure: isEmpty ? 'the API server ended the watch before anything changed' : null };
    } catch (error) {
      return { failure: messageOf(error) };
    }
  }

  #query(): Record<string, string> {
    const { selector = '' } = this.#o;
    return selector === '' ? {} : { labelSelector: selector };
  }
}

function byCreation(a: KubeObject, b: KubeObject): number {
  const [x, y] = [a, b].map(({ metadata }) => `${String(metadata.creationTimestamp ?? '')} ${metadata.name}`);
  return (x ?? '') < (y ?? '') ? -1 : 1;
}
