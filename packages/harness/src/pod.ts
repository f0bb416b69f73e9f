/** One pod of a test node, by its name: what it is, what to wait for, what it wrote, how long things took. */

import type { PodPhase, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { containersOf, isReady, type Look, type PodView, podText, type Timings } from './history.ts';
import { never, notYet, type Verdict, yes } from './observer.ts';

export type PodName = { name: string; namespace: string };

export const PHASES: readonly PodPhase[] = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'];

export interface WaitOptions {
  /** Default: the node's `timeoutMs`. */
  timeoutMs?: number;
}
export interface LogOptions {
  /** Needed when the pod has several. */
  container?: string;
  /** The run before the present one. */
  previous?: boolean;
  /** Only the last so many lines. */
  tail?: number;
}

/** What a pod needs of its node. */
export interface PodNode {
  /** Newest first in meaning: the wanted record of that name, else one that is being wound down. */
  find(look: Look, pod: PodName): PodView | undefined;
  wait<T>(what: string, probe: (look: Look) => Verdict<T> | Promise<Verdict<T>>, o: WaitOptions & { pod: PodName }): Promise<T>;
  timings(pod: PodName, uid: string): Timings;
  logs(pod: PodName, o: LogOptions): Promise<string>;
}

/** For the looks at both ends of a period, on a machine with much else to do. */
const STAYS_SLACK_MS = 30_000;
const OVER: readonly string[] = ['Succeeded', 'Failed'];
/** How long something must hold where nothing else is said: a crash loop (0 s, 10 s, 20 s) has restarted more than once by then. */
export const STAYS_DEFAULT_MS = 30_000;

/** All waits look from the moment they are asked, and reject with a {@link WaitError} that says what was seen last and why. */
export class PodHandle {
  readonly name: string;
  readonly namespace: string;
  readonly #node: PodNode;

  constructor(node: PodNode, o: PodName) {
    this.#node = node;
    this.name = o.name;
    this.namespace = o.namespace;
  }

  /** The pod as it is now; undefined when the node knows none of that name. */
  async get(): Promise<PodView | undefined> {
    const { found } = await this.#wait('an answer of the node', (look) => yes({ found: this.#node.find(look, this) }), {});
    return found;
  }

  /** Its API status now; undefined when the node knows no such pod, or nothing of it yet. */
  async status(): Promise<PodStatus | undefined> {
    return (await this.get())?.pod.status;
  }

  /** Waits for (one of) the phases. Rejects at once when the pod has ended in another one: it stays there. */
  phase(wanted: PodPhase | readonly PodPhase[], o: WaitOptions = {}): Promise<PodStatus> {
    const list: readonly string[] = typeof wanted === 'string' ? [wanted] : wanted;
    const wrong = list.find((name) => !PHASES.some((phase) => phase === name));
    if (wrong !== undefined) return Promise.reject(new Error(`${JSON.stringify(wrong)} is no phase; phases are ${PHASES.join(', ')}`));
    return this.#where(`be ${list.join(' or ')}`, (p) => list.includes(p.phase), o);
  }

  /** Waits until its condition Ready is True. */
  ready(o: WaitOptions = {}): Promise<PodStatus> {
    return this.#where('be ready', isReady, o);
  }

  /** Waits until it is not ready (any more). */
  unready(o: WaitOptions = {}): Promise<PodStatus> {
    return this.#where('be not ready', (p) => !isReady(p), { ...o, evenWhenOver: true });
  }

  /** Waits until its containers, or the named one, were restarted at least `count` times. */
  restarts(count: number, o: WaitOptions & { container?: string } = {}): Promise<PodStatus> {
    if (count < 1) {
      return Promise.reject(new Error(`restarts(${count}) holds at once, for every pod; to see that there is no restart, use stays()`));
    }
    const { container } = o;
    const so = `be restarted ${count} ${count === 1 ? 'time' : 'times'}${container === undefined ? '' : ` in container ${container}`}`;
    return this.#where(
      so,
      (p) =>
        containersOf(p)
          .filter((c) => container === undefined || c.name === container)
          .reduce((n, c) => n + c.restartCount, 0) >= count,
      o,
    );
  }

  /**
   * Waits until `fits` holds; `so` completes the sentence "pod web to ...". With `giveUpWhenOver` it rejects at once when the
   * pod has succeeded or failed and `fits` does not hold.
   */
  where(so: string, fits: (pod: PodView) => boolean, o: WaitOptions & { giveUpWhenOver?: boolean } = {}): Promise<PodStatus> {
    return this.#where(so, fits, { ...o, evenWhenOver: o.giveUpWhenOver !== true });
  }

  /**
   * Watches for `forMs` (default 30 s) and rejects as soon as `fits` does not hold; `so` completes the sentence "pod web to ...".
   * With `mayBegin: 'later'` it need not hold at first: it has to begin within that time, and then to hold until it is over.
   * A pod that has ended no longer changes: the rest of the time is not waited for then.
   */
  stays(so: string, fits: (pod: PodView) => boolean, o: { forMs?: number; mayBegin?: 'later' } = {}): Promise<PodStatus> {
    const { forMs = STAYS_DEFAULT_MS } = o;
    let beganMs: number | undefined;
    let held = o.mayBegin !== 'later';
    return this.#wait(
      `${so} for ${forMs / 1_000} s`,
      (look) => {
        beganMs ??= look.atMs;
        const p = this.#node.find(look, this);
        const fitsNow = p !== undefined && fits(p);
        const ended = p !== undefined && !p.removed && OVER.includes(p.phase);
        const timeIsOver = look.atMs - beganMs >= forMs;
        if (!fitsNow) return held || ended || timeIsOver ? never(podText(p)) : notYet(podText(p));
        held = true;
        return timeIsOver || ended ? yes(p.pod.status ?? {}) : notYet(podText(p));
      },
      { timeoutMs: forMs + STAYS_SLACK_MS },
    );
  }

  /** Waits until the node knows no pod of that name any more: its containers have ended and its status is settled. */
  async gone(o: WaitOptions = {}): Promise<void> {
    await this.#wait(
      'be gone',
      (look) => {
        const found = this.#node.find(look, this);
        return found === undefined ? yes(undefined) : notYet(podText(found));
      },
      o,
    );
  }

  /** Waits until a line of its log matches, and gives the match. */
  logged(pattern: RegExp | string, o: WaitOptions & LogOptions = {}): Promise<RegExpMatchArray> {
    const what = typeof pattern === 'string' ? JSON.stringify(pattern) : String(pattern);
    return this.#wait(
      `write ${what}`,
      async (look) => {
        const p = this.#node.find(look, this);
        const over = p !== undefined && OVER.includes(p.phase);
        let text: string;
        try {
          text = await this.logs(o);
        } catch (error) {
          // It has not started, or its log is being made.
          return notYet(`${podText(p)}; no log: ${messageOf(error)}`);
        }
        const match = typeof pattern === 'string' ? text.match(escaped(pattern)) : text.match(pattern);
        if (match !== null) return yes(match);
        const last = text.trimEnd().split('\n').slice(-3).join(' | ');
        const seen = `${podText(p)}; log ends: ${last === '' ? '(empty)' : last}`;
        return over ? never(seen) : notYet(seen);
      },
      o,
    );
  }

  /** What a container wrote, without times. @throws when there is no such log, with the reason. */
  logs(o: LogOptions = {}): Promise<string> {
    return this.#node.logs(this, o);
  }

  /** Times of the present definition as they were seen. */
  async timings(): Promise<Timings> {
    const p = await this.get();
    if (p === undefined) throw new Error(`pod ${this.name}: the node knows no such pod, so it has no times`);
    return this.#node.timings(this, p.uid);
  }

  #where(so: string, fits: (p: PodView) => boolean, o: WaitOptions & { evenWhenOver?: boolean }): Promise<PodStatus> {
    return this.#wait(
      so,
      (look) => {
        const p = this.#node.find(look, this);
        if (p === undefined) return notYet(podText(p));
        if (fits(p)) return yes(p.pod.status ?? {});
        return OVER.includes(p.phase) && !p.removed && o.evenWhenOver !== true ? never(podText(p)) : notYet(podText(p));
      },
      o,
    );
  }

  #wait<T>(so: string, probe: (look: Look) => Verdict<T> | Promise<Verdict<T>>, o: WaitOptions): Promise<T> {
    return this.#node.wait(`pod ${this.name} to ${so}`, probe, { ...o, pod: this });
  }
}

function escaped(text: string): RegExp {
  return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
}

/** `NAME` is in the namespace `default`, `NAMESPACE/NAME` in its own. */
export function podName(pod: string | PodName): PodName {
  if (typeof pod !== 'string') return { name: pod.name, namespace: pod.namespace };
  const slash = pod.indexOf('/');
  return slash < 0 ? { name: pod, namespace: 'default' } : { name: pod.slice(slash + 1), namespace: pod.slice(0, slash) };
}
export const keyOf = (pod: PodName): string => `${pod.namespace}/${pod.name}`;
