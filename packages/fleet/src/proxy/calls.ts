/** Requests that clients made by the proxy, counted by what they are about, second by second. Pure. */
import { type ApiRequest, fullResource, programOf } from './request.ts';
import { type ApiSelection, selects } from './selection.ts';

type Kind = Omit<ApiRequest, 'path' | 'query'>;

/** Of one kind of request. */
interface Counted {
  kind: Kind;
  total: number;
  /** By second. Those of the last hour. */
  seconds: Map<number, number>;
}

/** Kinds beyond that share one without names: a client may ask for ever new objects. */
const KINDS_MAX = 20_000;
/** Of those without names. A client may call itself by ever new names, too: what is beyond that is one kind. */
const NAMELESS_MAX = 2_000;
/** Longer than what any API server has. */
const KEY_CHARS_MAX = 2_048;
const OTHER: Kind = { verb: 'other', resource: '', group: '', namespace: '', name: '', userAgent: '', user: '' };
const SECONDS_MAX = 3_600;
const MINUTE_S = 60;

export class ApiCalls {
  readonly #byKind = new Map<string, Counted>();
  readonly #other: Counted = { kind: OTHER, total: 0, seconds: new Map() };
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  count({ verb, resource, group, namespace, name, userAgent, user }: ApiRequest): void {
    const kind = { verb, resource, group, namespace, name, userAgent, user };
    const it =
      this.#counted(kind, KINDS_MAX) ?? this.#counted({ ...kind, namespace: '', name: '' }, KINDS_MAX + NAMELESS_MAX) ?? this.#other;
    const second = Math.floor(this.#nowMs() / 1_000);
    it.total += 1;
    it.seconds.set(second, (it.seconds.get(second) ?? 0) + 1);
    const [oldest] = it.seconds.keys();
    if (oldest !== undefined && oldest < second - SECONDS_MAX) it.seconds.delete(oldest);
  }

  get isEmpty(): boolean {
    return this.#byKind.size === 0 && this.#other.total === 0;
  }

  #counted(kind: Kind, kindsMax: number): Counted | undefined {
    const key = JSON.stringify(Object.values(kind));
    let it = this.#byKind.get(key);
    if (it === undefined && key.length <= KEY_CHARS_MAX && this.#byKind.size < kindsMax) {
      it = { kind, total: 0, seconds: new Map() };
      this.#byKind.set(key, it);
    }
    return it;
  }

  /** All of them; or the most within a minute, wherever it begins. */
  sum(selection: ApiSelection, per: 'run' | 'minute'): number {
    const fits = selects(selection);
    const selected = [...this.#byKind.values(), this.#other].filter(({ kind }) => fits(kind));
    if (per === 'run') return selected.reduce((sum, { total }) => sum + total, 0);
    const bySecond = new Map<number, number>();
    for (const { seconds } of selected) {
      for (const [second, count] of seconds) bySecond.set(second, (bySecond.get(second) ?? 0) + count);
    }
    const sorted = [...bySecond].sort(([a], [b]) => a - b);
    let [from, within, most] = [0, 0, 0];
    for (const [second, count] of sorted) {
      within += count;
      for (; (sorted[from]?.[0] ?? second) <= second - MINUTE_S; from++) within -= sorted[from]?.[1] ?? 0;
      most = Math.max(most, within);
    }
    return most;
  }

  /** By program, verb and resource, the most first: `website: update deployments.apps`. */
  table(): Record<string, number> {
    const sums = new Map<string, number>();
    for (const { kind, total } of this.#byKind.values()) {
      const { userAgent, verb } = kind;
      if (verb === 'other') continue;
      const key = `${programOf(userAgent)}: ${verb} ${fullResource(kind)}`;
      sums.set(key, (sums.get(key) ?? 0) + total);
    }
    return Object.fromEntries([...sums].sort(([, a], [, b]) => b - a));
  }
}
