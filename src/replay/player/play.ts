/**
 * The world of a recording, played to the tree: its ports answer what they answered then, in the same order, and time stands
 * where it stood. What the tree asks is compared with what it asked then; the first difference is the divergence.
 */

import type { SupervisionEvent } from '../../actors/supervision/types.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Clock, Entropy, Ports } from '../../ports/ports.ts';
import { briefOf, OWN_WAY, SPELLED, seeded, stepOf, timerMs, withoutBody } from '../border.ts';
import { type ByHand, type Input, isInput, type Json, type Now, type Outcome } from '../entries.ts';
import type { Place } from '../secrets/doors.ts';
import { HIDDEN, maskedAs } from '../secrets/masks.ts';
import { type Border, bytesJson, cross, isThenable, type Maker, revive } from '../values.ts';
import { Bodies } from './bodies.ts';
import { SaidDigests, sameArguments } from './digests.ts';
import type { Divergence, Parted } from './divergence.ts';
import { collecting } from './silent.ts';
import { type Look, NO_FUNCTIONS, type PlayerInput } from './watch.ts';
import { inputWords, outcomeWords, stackOf } from './words.ts';

type Fn = (...args: unknown[]) => unknown;

/** A timer in the last, known in part, was set in a node that did more before it. */
const OPEN_MS_MAX = 5;
/** Of ECMAScript. */
const DATE_MS_MAX = 8.64e15;
const NOWHERE: Place = { key: '', door: 'open' };
/** Of a step. */
const REASON = 5;
const NEVER = new Promise<never>(() => {});

export class Player {
  readonly ports: Ports;
  readonly options: unknown;
  readonly #o: PlayerInput;
  readonly #maker: Maker;
  readonly #out: Border;
  readonly #timers = new Map<number, () => void>();
  readonly #turns = new Map<number, () => void>();
  readonly #insides: Fn[] = [];
  readonly #promises = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  readonly #signals = new Map<number, AbortController>();
  readonly #last = new Map<string, Json>();
  readonly #bodies = new Bodies();
  readonly #digests: SaidDigests;
  #expected: Outcome[] = [];
  #seen = 0;
  /** What the tree does after this input is known in part only. */
  #open = false;
  #clocks: Look[] = [];
  #next: Input | null = null;
  #nextWallMs: number | null = null;
  #timerIds = 0;
  #turnIds = 0;
  #calls = 0;
  #called = 0;
  #looks = 0;
  /** The node has taken its last input: what looks now is no part of it. */
  #isBetween = false;
  #nowMs: number;
  #wallOffsetMs: number;
  #inputs = -1;
  #input: Input = ['told', 0, 'create'];
  divergence: Divergence | null = null;
  /** The entries around the divergence. */
  parted: Parted | null = null;
  /** Why the recording ends; null: it was cut off. */
  endedBecause: string | null = null;
  /** What is done to the node by hand; `value` gives the values of its line as the node gets them. */
  onHand: (input: ByHand, value: (json: Json) => unknown) => void = () => {};

  constructor(o: PlayerInput) {
    this.#o = o;
    this.#digests = new SaidDigests(o);
    this.#nowMs = o.header.monoMs;
    this.#wallOffsetMs = o.header.wallMs - o.header.monoMs;
    this.#maker = {
      fn:
        (id, name) =>
        (...args) =>
          this.#ask(id, name, args),
      promise: (call) => {
        this.#calls = Math.max(this.#calls, call + 1);
        return this.#promise(call);
      },
      signal: (id) => {
        const controller = new AbortController();
        this.#signals.set(id, controller);
        return controller.signal;
      },
    };
    this.#out = {
      text: (text) => text,
      bytes: bytesJson,
      door: () => 'open',
      fn: (fn) => ({ json: { $: 'i', v: this.#insides.push(fn) - 1 }, other: fn }),
      promise: (promise) => ({ json: { $: 'p' }, other: promise }),
      signal: (signal) => ({ json: { $: 'a' }, other: signal }),
    };
    this.ports = this.#makePorts();
    this.options = revive(o.header.options, this.#maker);
    this.#read();
    // What a node knew before its first input cannot be asked of a recording.
    const first = this.#next;
    if (first !== null && (first[0] !== 'told' || first[2] !== 'create'))
      throw new Error('it begins in the middle of a node: its first input is not the making of the node');
    this.#checkTime();
  }

  get inputs(): number {
    return this.#inputs + 1;
  }
  get monoMs(): number {
    return this.#nowMs;
  }
  /** For what looks at the node from outside: looks of the node itself were recorded, and are counted. */
  get still(): Clock {
    return { monoMs: () => this.monoMs, wallMs: () => this.wallMs, setTimeout: () => 0, clearTimeout() {} };
  }
  get wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  /** When the next input comes, by the wall clock then; null: there is none. */
  get nextWallMs(): number | null {
    if (this.#next === null) return null;
    return this.#clocks.reduce((sum, { ms }) => sum + ms, this.#nowMs + this.#next[1]) + (this.#nextWallMs ?? this.#wallOffsetMs);
  }

  /** Gives the tree its next input. False at the end of the recording. */
  deliver(): boolean {
    const input = this.#next;
    if (input === null) return false;
    this.#inputs += 1;
    this.#input = input;
    this.#isBetween = false;
    // Pages and tools look at the clock of the node too, between its inputs.
    for (const { ms } of this.#clocks) this.#nowMs += ms;
    this.#nowMs += input[1];
    if (this.#nextWallMs !== null) this.#wallOffsetMs = this.#nextWallMs;
    this.#looks = 0;
    this.#checkTime();
    const [given, at] = [this.#bodies.inInput(input), { monoMs: this.#nowMs, wallOffsetMs: this.#wallOffsetMs }];
    this.#read();
    this.#o.watch?.input(given, { ...at, looks: [...this.#clocks] });
    this.#act(input);
    return true;
  }

  /** A step of one of the node's actors. */
  step(e: SupervisionEvent): void {
    if (e.kind !== 'transition' || this.divergence !== null) return;
    const { path, from, to, event, reason } = stepOf(e);
    const now: Outcome = ['step', path, from, to, event, reason];
    this.#expect((then) => then[0] === 'step' && now.every((part, i) => then[i] === part || (i === REASON && then[i] === HIDDEN)), now);
  }

  /** To be called once all promises have run: what the tree asked then, and not now, is a divergence. */
  settled(): void {
    const missing = this.#expected[this.#seen];
    if (missing !== undefined) this.#diverge(missing, null);
    this.#isBetween = true;
  }

  #checkTime(): void {
    if (Math.abs(this.wallMs) > DATE_MS_MAX) throw new Error('it tells of a time that no clock shows');
  }

  /** What belongs to the input that is delivered now, up to the next one. */
  #read(): void {
    this.#expected = [];
    this.#seen = 0;
    this.#clocks = [];
    this.#next = null;
    this.#nextWallMs = null;
    this.#open = false;
    for (let entry = this.#o.next(); entry !== null; entry = this.#o.next()) {
      if (isInput(entry)) {
        this.#next = entry;
        return;
      }
      if (entry[0] === 'clock') this.#clocks.push({ look: entry[1], ms: entry[2] });
      else if (entry[0] === 'wall') this.#nextWallMs = entry[1];
      else if (entry[0] === 'body') this.#bodies.add(entry[1]);
      else if (entry[0] === 'end') this.endedBecause = entry[1];
      else if (entry[0] === 'open') this.#open = true;
      else this.#expected.push(entry);
    }
  }

  #act(input: Input): void {
    switch (input[0]) {
      case 'settled':
        this.#promises.get(input[2])?.resolve(this.#value(input[3]));
        this.#promises.delete(input[2]);
        return;
      case 'failed':
        this.#promises.get(input[2])?.reject(this.#value(input[3]));
        this.#promises.delete(input[2]);
        return;
      case 'called':
        this.#callBack(input[2], input[3]);
        return;
      case 'timer':
        this.#fire(input[2]);
        return;
      case 'turn':
        this.#turn(input[2]);
        return;
      case 'aborted':
        this.#signals.get(input[2])?.abort();
        return;
      default:
        this.onHand(input, (json) => this.#value(json));
    }
  }

  #fire(id: number): void {
    const fn = this.#timers.get(id);
    if (fn === undefined) {
      this.#lost(`timer ${id} fired`, 'no such timer is set');
      return;
    }
    this.#timers.delete(id);
    fn();
  }

  #turn(id: number): void {
    const fn = this.#turns.get(id);
    if (fn === undefined) {
      this.#lost(`the tree had turn ${id}`, 'it did not ask for that one');
      return;
    }
    this.#turns.delete(id);
    fn();
  }

  #callBack(id: number, args: Json): void {
    const fn = this.#insides[id];
    if (fn === undefined) {
      this.#lost(`function ${id} of the tree was called`, 'there is none');
      return;
    }
    const of = this.#called++;
    this.#o.watch?.called({ fn: id, of, args: this.#bodies.in(args) });
    this.#answered(fn, of, this.#value(args) as unknown[]);
  }

  #answered(fn: Fn, of: number, args: unknown[]): void {
    const answer = (value: unknown): void => {
      const from = this.#insides.length;
      const { json } = cross(value, this.#out, NOWHERE);
      this.#o.watch?.answered(of, { from, to: this.#insides.length });
      const expected = this.#expected[this.#seen];
      const digest = this.#digests.of(maskedAs(withoutBody(json), expected?.[0] === 'answer' ? expected[3] : []));
      const now: Outcome = ['answer', of, digest];
      this.#expect((then) => then[0] === 'answer' && then[1] === of && then[2] === digest, now);
    };
    const result = fn(...args);
    if (isThenable(result)) result.then(answer, (error: unknown) => answer(messageOf(error)));
    else if (result !== undefined) answer(result);
  }

  /** Takes the next outcome of the recording, where it is this one. */
  #expect(is: (then: Outcome) => boolean, now: Outcome): Outcome | null {
    if (this.divergence !== null) return null;
    const then = this.#expected[this.#seen];
    if (then !== undefined && is(then)) {
      this.#seen += 1;
      return then;
    }
    // What the tree did after the last input may not have been written any more.
    const isCut = this.#next === null && this.endedBecause === null;
    if (then !== undefined || !(this.#open || isCut)) this.#diverge(then ?? null, now);
    return null;
  }

  #ask(fn: number, name: string, args: unknown[]): unknown {
    if (this.divergence !== null) return NEVER;
    const from = this.#insides.length;
    const { json } = cross(args, this.#out, NOWHERE);
    const insides = { from, to: this.#insides.length };
    for (let then = this.#expected[this.#seen]; then?.[0] === 'inside'; then = this.#expected[this.#seen]) {
      this.#seen += 1;
      this.#callBack(then[1], then[2]);
    }
    const next = this.#expected[this.#seen];
    const said = maskedAs(json, next?.[0] === 'ask' ? next[5] : []);
    const digest = this.#digests.ofArguments(said);
    const then = this.#asThen(name, digest, said);
    if (then === null || then[0] !== 'ask') return NEVER;
    const key = `${name} ${digest === SPELLED ? then[4] : digest}`;
    const answer = then[3] === 'same' ? { value: this.#last.get(key) ?? null } : then[3];
    this.#o.watch?.asked({ fn, name, args: json, insides, call: answer === 'later' ? this.#calls : null, now: this.#spelled(answer) });
    return this.#now(key, answer);
  }

  #asThen(name: string, digest: string, args: Json): Outcome | null {
    const next = this.#expected[this.#seen];
    if (next?.[0] === 'ask' && next[1] === name && next[2] === digest && digest !== SPELLED) {
      this.#seen += 1;
      return next;
    }
    const now: Outcome = ['ask', name, digest, 'nothing', briefOf(args)];
    return this.#expect((one) => one[0] === 'ask' && one[1] === name && sameArguments(one, now), now);
  }

  /** With its body in it. */
  #spelled(now: Now): Now {
    return typeof now === 'object' && 'value' in now ? { value: this.#bodies.in(now.value) } : now;
  }

  #now(key: string, now: Now): unknown {
    if (now === 'nothing') return undefined;
    if (now === 'later') return this.#promise(this.#calls++);
    if (now === 'same') return this.#value(this.#last.get(key) ?? null);
    if ('thrown' in now) throw this.#value(now.thrown);
    this.#last.set(key, now.value);
    return this.#value(now.value);
  }

  #promise(call: number): Promise<unknown> {
    return new Promise((resolve, reject) => void this.#promises.set(call, { resolve, reject }));
  }

  #value(json: Json): unknown {
    return this.#bodies.revived(json, this.#maker);
  }

  #diverge(was: Outcome | null, now: Outcome | null): void {
    if (this.divergence !== null) return;
    this.parted = { input: this.#bodies.inInput(this.#input), done: this.#expected.slice(0, this.#seen), was, now };
    this.#lost(was === null ? 'nothing' : outcomeWords(was), now === null ? 'nothing' : outcomeWords(now));
  }

  #lost(was: string, now: string): void {
    if (this.divergence !== null) return;
    this.divergence = {
      ...{ input: this.#inputs, inputIs: inputWords(this.#input), monoMs: this.monoMs, wallMs: this.wallMs, was, now },
      stack: now === 'nothing' ? '' : stackOf(new Error('now')),
    };
  }

  #makePorts(): Ports {
    const { header, own } = this.#o;
    const ports = revive(header.ports, this.#maker) as Record<string, object>;
    for (const name of OWN_WAY)
      if (name !== 'handling' && name in ports) throw new Error(`the recording has a port ${name} that none can have`);
    const seed = seeded(header.seed);
    const handling =
      ports.handling === undefined ? {} : { handling: { ...ports.handling, of: <T>(_subject: string, fn: () => T): T => fn() } };
    return {
      ...ports,
      ...handling,
      ...own,
      metrics: collecting(this.#o.own.metrics, () => this.#ask(-1, 'metrics.render', []) as Promise<string>),
      rng: { next: () => this.#drawn(seed) },
      clock: this.#clock(),
      yield: { defer: (fn: () => void) => this.#defer(fn) },
      entropy: this.#entropy(),
    } as unknown as Ports;
  }

  #clock(): Ports['clock'] {
    const look = (): number => {
      if (this.#isBetween) return this.#nowMs;
      this.#looks += 1;
      while (this.#clocks[0] !== undefined && this.#clocks[0].look <= this.#looks) this.#nowMs += this.#clocks.shift()?.ms ?? 0;
      return this.#nowMs;
    };
    return {
      monoMs: look,
      wallMs: () => look() + this.#wallOffsetMs,
      setTimeout: (fn, ms) => {
        const id = this.#timerIds++;
        const now: Outcome = ['set', timerMs(ms)];
        this.#expect((then) => then[0] === 'set' && Math.abs(then[1] - now[1]) <= (this.#open ? OPEN_MS_MAX : 0), now);
        this.#o.watch?.set(id, now[1]);
        this.#timers.set(id, fn);
        return id;
      },
      clearTimeout: (id) => {
        if (this.#timers.delete(id as number)) this.#o.watch?.cleared(id as number);
      },
    };
  }

  #defer(fn: () => void): void {
    const id = this.#turnIds++;
    this.#o.watch?.deferred(id);
    this.#turns.set(id, fn);
  }

  #drawn(seed: () => number): number {
    const value = this.#recorded('rng.next', [], seed) as number;
    this.#o.watch?.drew(value);
    return value;
  }

  /** What the tree got by itself, where the recording tells; else `otherwise`. */
  #recorded(name: string, args: Json, otherwise: () => unknown): unknown {
    const then = this.#expected[this.#seen];
    if (then?.[0] !== 'ask' || then[1] !== name || then[2] !== this.#digests.of(maskedAs(args, then[5]))) return otherwise();
    this.#seen += 1;
    const result = this.#now(`${name} ${then[2]}`, then[3]);
    this.#o.watch?.asked({ fn: -1, name, args, insides: NO_FUNCTIONS, call: null, now: { value: cross(result, this.#out, NOWHERE).json } });
    return result;
  }

  #entropy(): Entropy {
    const made = seeded(this.#o.header.seed + 1);
    const digest = (name: 'md5Hex' | 'sha256Hex') => (text: string | Uint8Array) => {
      const args = [cross(text, this.#out, NOWHERE).json];
      return this.#recorded(`entropy.${name}`, args, () => this.#digests.ofText(name, text)) as string;
    };
    return {
      bytes: (count) =>
        this.#recorded('entropy.bytes', [count], () => Uint8Array.from({ length: count }, () => Math.floor(made() * 256))) as Uint8Array,
      md5Hex: digest('md5Hex'),
      sha256Hex: digest('sha256Hex'),
    };
  }
}
