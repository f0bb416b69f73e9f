/** Looks at a node through its admin socket, often while somebody waits and now and then otherwise. */

import type { AdminClient } from '@actorlet/admin/src/client.ts';
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Look, PodView } from './history.ts';

/** Between two looks while somebody waits. */
const BUSY_MS = 50;
/** Between two looks while nobody does: the timeline goes on. */
const IDLE_MS = 250;

/** Wall milliseconds that never go back within this process. */
export const nowMs = (): number => performance.timeOrigin + performance.now();

/** What a look says of a condition. `never`: it cannot come true any more. */
export type Verdict<T> = { kind: 'yes'; value: T } | { kind: 'notYet'; seen: string } | { kind: 'never'; seen: string };
export const yes = <T>(value: T): Verdict<T> => ({ kind: 'yes', value });
export const notYet = (seen: string): Verdict<never> => ({ kind: 'notYet', seen });
export const never = (seen: string): Verdict<never> => ({ kind: 'never', seen });

export type Waited<T> = { ok: true; value: T } | { ok: false; seen: string; why: 'late' | 'never' | 'stopped'; afterMs: number };

interface Waiter {
  /** Looks that were begun earlier say nothing about what was done since. */
  sinceMs: number;
  take(look: Look): Promise<boolean> | boolean;
}

export class Observer {
  readonly #admin: AdminClient;
  readonly #onLook: (look: Look) => void;
  readonly #waiters = new Set<Waiter>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #stopped = false;
  /** Why the last look failed; '' after a good one. */
  problem = 'not asked yet';

  constructor(admin: AdminClient, onLook: (look: Look) => void) {
    this.#admin = admin;
    this.#onLook = onLook;
  }

  start(): void {
    if (this.#timer === undefined && !this.#looking && !this.#stopped) this.#next(0);
  }
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Asks `probe` about every look begun from now on. `broken`: a reason to wait no longer, asked besides. */
  async until<T>(
    probe: (look: Look) => Verdict<T> | Promise<Verdict<T>>,
    o: { timeoutMs: number; broken?: () => string | undefined },
  ): Promise<Waited<T>> {
    const beganMs = nowMs();
    let seen = '';
    return new Promise<Waited<T>>((resolve, reject) => {
      const finish = (result: Waited<T>): void => {
        clearTimeout(late);
        clearInterval(watch);
        this.#waiters.delete(waiter);
        resolve(result);
      };
      const fail = (why: 'late' | 'never' | 'stopped', words: string): void =>
        finish({ ok: false, seen: words, why, afterMs: nowMs() - beganMs });
      const late = setTimeout(() => fail('late', seen === '' ? `nothing: ${this.problem}` : seen), o.timeoutMs);
      const watch = setInterval(() => {
        const broken = o.broken?.();
        if (broken !== undefined) fail('stopped', seen === '' ? broken : `${seen}; then ${broken}`);
      }, BUSY_MS);
      const waiter: Waiter = {
        sinceMs: beganMs,
        take: async (look) => {
          try {
            const verdict = await probe(look);
            if (verdict.kind === 'yes') finish({ ok: true, value: verdict.value });
            else if (verdict.kind === 'never') fail('never', verdict.seen);
            else seen = verdict.seen;
          } catch (error) {
            clearTimeout(late);
            clearInterval(watch);
            this.#waiters.delete(waiter);
            reject(error);
          }
          return true;
        },
      };
      this.#waiters.add(waiter);
      if (!this.#looking) this.#next(0);
    });
  }

  #next(ms: number): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), ms);
    // A node that was forgotten does not keep its runner alive; a wait has a timer of its own.
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    this.#looking = true;
    const beganMs = nowMs();
    try {
      const [list, events] = await Promise.all([this.#admin.json('/pods', { full: '' }), this.#admin.json('/events')]);
      const { pods, sourcesReady } = list as { pods: PodView[]; sourcesReady: boolean };
      if (!sourcesReady) this.problem = 'the node has not read its manifests yet';
      else if (!this.#stopped) {
        this.problem = '';
        const look: Look = { atMs: nowMs(), pods, events: (events as { events: RecordedEvent[] }).events };
        this.#onLook(look);
        await Promise.all([...this.#waiters].filter((w) => w.sinceMs <= beganMs).map((w) => w.take(look)));
      }
    } catch (error) {
      this.problem = messageOf(error);
    } finally {
      this.#looking = false;
      this.#next(this.#waiters.size > 0 ? BUSY_MS : IDLE_MS);
    }
  }
}
