/**
 * The world of a recording without its order: each call of the tree has the answer that it, or one like it, had then, and as
 * late; events come when they came. So a tree can run that does less, or something else, than the one that was recorded.
 */
import { type Clock, CriError, type Ports } from '@actorlet/kubelet/ports/ports.ts';
import { OWN_WAY, seeded } from '../border.ts';
import type { ByHand, Header, Json } from '../entries.ts';
import type { Place } from '../secrets/doors.ts';
import { type Border, bytesJson, cross, type Maker, revive } from '../values.ts';
import { Answers, isStream } from './answers.ts';
import type { Edit } from './edit.ts';
import type { Asked, Called, Script } from './script.ts';
import { LooseTime } from './time.ts';

type Fn = (...args: unknown[]) => unknown;
export type Hash = (text: string | Uint8Array) => string;
/** What answers a call of which the recording knows nothing; `undefined`: nothing ever does. */
export type Otherwise = (name: string, args: readonly unknown[]) => { result: unknown } | undefined;

export interface LooseInput {
  readonly header: Header;
  readonly script: Script;
  readonly edit: Edit;
  readonly own: Pick<Ports, 'log' | 'metrics'>;
  readonly hashes: { readonly md5Hex: Hash; readonly sha256Hex: Hash };
  /** Parts of the world that are played: asked before the recording is. */
  readonly played?: ((clock: Clock) => Otherwise) | undefined;
  readonly otherwise?: Otherwise | undefined;
  /** In place of the numbers that were drawn then. */
  readonly chance?: (() => number) | undefined;
}

const NOWHERE: Place = { key: '', door: 'open' };
const NEVER = new Promise<never>(() => {});
const CANCELLED = 1;
const SAME_DRAW_MS = 2;
/** Calls wait for each other: as long as they come about as then, they are answered in the order of then. */
const NEAR_MS = 1_000;

export class LooseWorld {
  readonly time: LooseTime;
  readonly ports: Ports;
  readonly options: unknown;
  /** What the tree gets as digests: those of the names that were recorded. */
  readonly hashes: { readonly md5Hex: Hash; readonly sha256Hex: Hash };
  /** What is done to the node from outside its ports. */
  onHand: (input: ByHand, value: (json: Json) => unknown) => void = () => {};
  /** Calls of which the recording knows nothing, by name. */
  readonly unknown = new Map<string, number>();
  readonly #o: LooseInput;
  readonly #answers: Answers;
  readonly #played: Otherwise | undefined;
  readonly #maker: Maker;
  readonly #signals = new Map<number, AbortController>();
  #made = false;

  constructor(o: LooseInput) {
    this.#o = o;
    this.#answers = new Answers(o.script);
    this.time = new LooseTime(o.script, o.header, { edit: o.edit, inOrder: o.played === undefined });
    this.#played = o.played?.(this.time.free);
    this.#maker = {
      fn:
        (id, name) =>
        (...args) =>
          this.#ask(id, name, args),
      promise: (call) => this.#settles(call, { sinceMs: null, signals: [], name: '' }),
      signal: (id) => this.#signal(id),
    };
    this.hashes = { md5Hex: (text) => this.#hash('md5Hex', text), sha256Hex: (text) => this.#hash('sha256Hex', text) };
    this.ports = this.#makePorts();
    this.options = revive(o.edit.into(o.header.options), this.#maker);
    for (const done of o.script.done) {
      const { order, input } = done;
      if (!o.edit.leavesOut(order, input as unknown as Json))
        this.time.at(done, () => this.onHand(input, (json) => revive(o.edit.into(json), this.#maker)));
    }
  }

  /** To be called once the ports were given to the tree: from now on what it draws is what it drew then. */
  begin(): void {
    this.#made = true;
  }

  #makePorts(): Ports {
    const { header, own, edit, hashes } = this.#o;
    const ports = revive(edit.into(header.ports), this.#maker) as Record<string, object>;
    for (const name of OWN_WAY) if (name !== 'handling') delete ports[name];
    const handling =
      ports.handling === undefined ? {} : { handling: { ...ports.handling, of: <T>(_subject: string, fn: () => T): T => fn() } };
    const made = seeded(header.seed + 1);
    const drawn = (count: number): Uint8Array => {
      // A recorder draws the seed of its node here.
      if (!this.#made && count === 4) return Uint8Array.from([24, 16, 8, 0], (by) => (header.seed >>> by) & 255);
      const known = this.#made && count <= 4 ? this.#answers.of({ fn: -1, name: 'entropy.bytes', args: [count] }, this.#moment()) : null;
      if (known !== null && typeof known.asked.now === 'object' && 'value' in known.asked.now)
        return revive(known.asked.now.value, this.#maker) as Uint8Array;
      return Uint8Array.from({ length: count }, () => Math.floor(made() * 256));
    };
    return {
      ...ports,
      ...handling,
      ...own,
      rng: { next: this.#chance() },
      clock: this.time.clock,
      yield: this.time.yield,
      entropy: { bytes: drawn, ...hashes },
    } as unknown as Ports;
  }

  #moment(): { atMs: number; order: number | null } {
    return { atMs: this.time.nowMs, order: this.time.order };
  }

  /** What is drawn after an input, or at a moment, is what was drawn then, however much was drawn before. */
  #chance(): () => number {
    if (this.#o.chance !== undefined) return this.#o.chance;
    const left = [...this.#o.script.draws];
    const other = seeded(this.#o.header.seed + 2);
    return () => {
      const { atMs, order } = this.#moment();
      const after = left.findIndex((draw) => draw.order === order);
      const at = after >= 0 ? after : left.findIndex((draw) => Math.abs(draw.atMs - atMs) <= SAME_DRAW_MS);
      const [draw] = at < 0 ? [] : left.splice(at, 1);
      return draw?.value ?? other();
    };
  }

  #hash(name: 'md5Hex' | 'sha256Hex', text: string | Uint8Array): string {
    const json = this.#o.edit.back([cross(text, this.#out([]), NOWHERE).json]);
    const known = this.#answers.of({ fn: -1, name: `entropy.${name}`, args: json }, this.#moment());
    const exact = known !== null && JSON.stringify(known.asked.args) === JSON.stringify(json) ? known.asked.now : null;
    if (exact !== null && typeof exact === 'object' && 'value' in exact) return String(exact.value);
    const [original] = revive(json, this.#maker) as [string | Uint8Array];
    return this.#o.hashes[name](original);
  }

  /** What the tree says. `fns` gets its functions, in the order in which a recording numbers them. */
  #out(fns: Fn[], signals: AbortSignal[] = []): Border {
    return {
      text: (text) => text,
      bytes: bytesJson,
      door: () => 'open',
      // Numbers of functions differ with all that was asked before.
      fn: (fn) => ({ json: { $: 'i', v: fns.push(fn) - 1 }, other: fn }),
      promise: (promise) => ({ json: { $: 'p' }, other: promise }),
      signal: (signal) => {
        signals.push(signal);
        return { json: { $: 'a' }, other: signal };
      },
    };
  }

  #ask(fn: number, name: string, args: unknown[]): unknown {
    const { otherwise, edit } = this.#o;
    const own = this.#played?.(name, args);
    if (own !== undefined) return own.result;
    const fns: Fn[] = [];
    const signals: AbortSignal[] = [];
    const json = edit.back(cross(args, this.#out(fns, signals), NOWHERE).json);
    const found = this.#found({ fn, name, args: json });
    if (found === null) {
      this.unknown.set(name, (this.unknown.get(name) ?? 0) + 1);
      const answer = otherwise?.(name, args);
      return answer === undefined ? NEVER : answer.result;
    }
    const { asked, again } = found;
    const byId = new Map(fns.map((one, i) => [asked.insides.from + i, one]));
    for (const call of asked.within) this.#call(byId.get(call.fn), call);
    for (const [id, one] of byId) this.#bind(id, one, again);
    return this.#now(asked, { sinceMs: isStream(name) ? null : asked.atMs, signals, name });
  }

  /** Events of a stream that are left out are passed over. */
  #found(call: { fn: number; name: string; args: Json }): { asked: Asked; again: boolean } | null {
    const { script, edit } = this.#o;
    for (;;) {
      const found = this.#answers.of(call, this.#moment());
      if (found === null || !isStream(call.name) || found.asked.call === null) return found;
      const settled = script.settled.get(found.asked.call);
      if (settled === undefined || !edit.leavesOut(settled.order, settled.value)) return found;
    }
  }

  #bind(id: number, fn: Fn, again: boolean): void {
    for (const call of this.#o.script.called.get(id) ?? []) {
      if (again && call.atMs < this.time.nowMs) continue;
      this.time.at(call, () => this.#call(fn, call));
    }
  }

  #call(fn: Fn | undefined, { args, order, answer }: Called): void {
    const { edit } = this.#o;
    const list = args as readonly Json[];
    if (fn === undefined || list.some((arg) => edit.leavesOut(order, arg))) return;
    const given = list.map((arg) => revive(edit.into(arg), this.#maker));
    const heard = (value: unknown): void => {
      const fns: Fn[] = [];
      cross(value, this.#out(fns), NOWHERE);
      const { insides } = answer;
      if (insides !== null) for (const [i, one] of fns.entries()) this.#bind(insides.from + i, one, false);
    };
    void Promise.resolve(fn(...given)).then(heard, () => {});
  }

  #now(asked: Asked, o: { sinceMs: number | null; signals: AbortSignal[]; name: string }): unknown {
    const { now, call } = asked;
    if (now === 'nothing' || now === 'same') return undefined;
    if (now === 'later') return call === null ? NEVER : this.#settles(call, o);
    const value = (json: Json) => revive(this.#o.edit.into(json), this.#maker);
    if ('thrown' in now) throw value(now.thrown);
    return value(now.value);
  }

  /** At the same moment as then where the call was made at about the same time, or `sinceMs` is null; else after as long as then. */
  #settles(call: number, o: { sinceMs: number | null; signals: readonly AbortSignal[]; name: string }): Promise<unknown> {
    const settled = this.#o.script.settled.get(call);
    return new Promise((resolve, reject) => {
      for (const signal of o.signals) signal.addEventListener('abort', () => reject(abortedCall(o.name)), { once: true });
      if (settled === undefined || !this.#o.edit.keeps(settled.order)) return;
      const { nowMs } = this.time;
      const asThen = o.sinceMs === null || (settled.atMs >= nowMs && Math.abs(nowMs - o.sinceMs) <= NEAR_MS);
      const atMs = asThen ? settled.atMs : nowMs + settled.atMs - (o.sinceMs ?? 0);
      this.time.at({ atMs, order: settled.order }, () => {
        const value = revive(this.#o.edit.into(settled.value), this.#maker);
        if (settled.failed) reject(value);
        else resolve(value);
      });
    });
  }

  #signal(id: number): AbortSignal {
    const controller = this.#signals.get(id) ?? new AbortController();
    this.#signals.set(id, controller);
    const when = this.#o.script.aborted.get(id);
    if (when !== undefined && this.#o.edit.keeps(when.order)) this.time.at(when, () => controller.abort());
    return controller.signal;
  }
}

function abortedCall(name: string): Error {
  return name === 'cri.call'
    ? new CriError({ method: 'any', code: CANCELLED, outcome: 'unknown', details: 'cancelled by the caller' })
    : Object.assign(new Error('This operation was aborted'), { name: 'AbortError' });
}
