/**
 * The world of a recording without its order: each call of the tree has the answer that it, or one like it, had then, and as
 * late; events come when they came. So a tree can run that does less, or something else, than the one that was recorded.
 */
import { type Clock, CriError, type Entropy, type Yield } from '@actorlet/kubelet/ports/ports.ts';
import { seeded } from '../border.ts';
import type { Header, Json } from '../entries.ts';
import { crossed, type Fn, type Matching, makerOf, type OnHand } from '../player/ports.ts';
import { revive } from '../values.ts';
import { Answers, isStream } from './answers.ts';
import type { Edit } from './edit.ts';
import type { Asked, Called, Script } from './script.ts';
import { LenientTime } from './time.ts';

export type Hash = (text: string | Uint8Array) => string;
/** What answers a call of which the recording knows nothing; `undefined`: nothing ever does. */
export type Otherwise = (name: string, args: readonly unknown[]) => { result: unknown } | undefined;

export interface LenientInput {
  readonly header: Header;
  readonly script: Script;
  readonly edit: Edit;
  readonly hashes: { readonly md5Hex: Hash; readonly sha256Hex: Hash };
  /** Parts of the world that are played: asked before the recording is. */
  readonly played?: ((clock: Clock) => Otherwise) | undefined;
  readonly otherwise?: Otherwise | undefined;
  /** In place of the numbers that were drawn then. */
  readonly chance?: (() => number) | undefined;
  /** Monotonic time at which it ends. */
  readonly endMs: number;
  /** Asked after each step; true ends the run. */
  readonly ended?: (() => boolean) | undefined;
}
/** A call under way. `sinceMs`: when it was made then; null: its answer comes when it came then. */
interface Calling {
  readonly sinceMs: number | null;
  readonly signals: readonly AbortSignal[];
  readonly name: string;
}

const NEVER = new Promise<never>(() => {});
const CANCELLED = 1;
/** A world in which one thing follows another without time passing. */
const STEPS_PER_MS_MAX = 100_000;
const SAME_DRAW_MS = 2;
/** Calls wait for each other: as long as they come about as then, they are answered in the order of then. */
const NEAR_MS = 1_000;

export class Lenient implements Matching {
  readonly time: LenientTime;
  readonly clock: Clock;
  readonly yield: Yield;
  readonly entropy: Entropy;
  readonly drawn: () => number;
  /** What the tree gets as digests: those of the names that were recorded. */
  readonly hashes: { readonly md5Hex: Hash; readonly sha256Hex: Hash };
  /** What is done to the node from outside its ports. */
  onHand: OnHand = () => {};
  /** Calls of which the recording knows nothing, by name. */
  readonly unknown = new Map<string, number>();
  readonly #o: LenientInput;
  readonly #answers: Answers;
  readonly #played: Otherwise | undefined;
  readonly #maker = makerOf(this);
  readonly #made: () => number;
  readonly #signals = new Map<number, AbortController>();
  #isBegun = false;
  #steps = 0;

  constructor(o: LenientInput) {
    this.#o = o;
    this.#answers = new Answers(o.script);
    this.time = new LenientTime(o.script, o.header, { edit: o.edit, inOrder: o.played === undefined });
    this.#played = o.played?.(this.time.free);
    this.hashes = { md5Hex: (text) => this.#hash('md5Hex', text), sha256Hex: (text) => this.#hash('sha256Hex', text) };
    this.clock = this.time.clock;
    this.yield = this.time.yield;
    this.#made = seeded(o.header.seed + 1);
    this.entropy = { bytes: (count) => this.#bytes(count), ...this.hashes };
    this.drawn = this.#chance();
    for (const done of o.script.done) {
      const { order, input } = done;
      if (!o.edit.leavesOut(order, input as unknown as Json))
        this.time.at(done, () => this.onHand(input, (json) => revive(o.edit.into(json), this.#maker)));
    }
  }

  get isOver(): boolean {
    return this.#o.ended?.() === true;
  }

  /** To be called once the ports were given to the tree: from now on what it draws is what it drew then. */
  begin(): void {
    this.#isBegun = true;
  }

  deliver(): boolean {
    const atMs = this.time.nowMs;
    if (!this.time.step(this.#o.endMs)) return false;
    this.#steps = this.time.nowMs === atMs ? this.#steps + 1 : 0;
    if (this.#steps > STEPS_PER_MS_MAX) throw new Error(`${STEPS_PER_MS_MAX} steps without time: the node spins`);
    return true;
  }

  #bytes(count: number): Uint8Array {
    // A recorder draws the seed of its node here.
    if (!this.#isBegun && count === 4) return Uint8Array.from([24, 16, 8, 0], (by) => (this.#o.header.seed >>> by) & 255);
    const known = this.#isBegun && count <= 4 ? this.#answers.of({ fn: -1, name: 'entropy.bytes', args: [count] }, this.#moment()) : null;
    if (known !== null && typeof known.asked.now === 'object' && 'value' in known.asked.now)
      return revive(known.asked.now.value, this.#maker) as Uint8Array;
    return Uint8Array.from({ length: count }, () => Math.floor(this.#made() * 256));
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
    const json = this.#o.edit.back([crossed(text).json]);
    const known = this.#answers.of({ fn: -1, name: `entropy.${name}`, args: json }, this.#moment());
    const exact = known !== null && JSON.stringify(known.asked.args) === JSON.stringify(json) ? known.asked.now : null;
    if (exact !== null && typeof exact === 'object' && 'value' in exact) return String(exact.value);
    const [original] = revive(json, this.#maker) as [string | Uint8Array];
    return this.#o.hashes[name](original);
  }

  ask(fn: number, name: string, args: unknown[]): unknown {
    const { otherwise, edit } = this.#o;
    const own = this.#played?.(name, args);
    if (own !== undefined) return own.result;
    const { json: said, fns, signals } = crossed(args);
    const json = edit.back(said);
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
      const { insides } = answer;
      if (insides !== null) for (const [i, one] of crossed(value).fns.entries()) this.#bind(insides.from + i, one, false);
    };
    void Promise.resolve(fn(...given)).then(heard, () => {});
  }

  #now(asked: Asked, o: Calling): unknown {
    const { now, call } = asked;
    if (now === 'nothing' || now === 'same') return undefined;
    if (now === 'later') return call === null ? NEVER : this.#settles(call, o);
    const value = (json: Json) => revive(this.#o.edit.into(json), this.#maker);
    if ('thrown' in now) throw value(now.thrown);
    return value(now.value);
  }

  /** At the same moment as then where the call was made at about the same time, or `sinceMs` is null; else after as long as then. */
  #settles(call: number, o: Calling): Promise<unknown> {
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

  promise(call: number): Promise<unknown> {
    return this.#settles(call, { sinceMs: null, signals: [], name: '' });
  }

  signal(id: number): AbortSignal {
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
