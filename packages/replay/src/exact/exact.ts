/**
 * A recording in its order: the ports answer what they answered then, and time stands where it stood. What the tree asks is
 * compared with what it asked then; the first difference is the divergence.
 */

import type { SupervisionEvent, Tree } from '@actorlet/kubelet/actors/supervision/types.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock, Entropy, Yield } from '@actorlet/kubelet/ports/ports.ts';
import { briefOf, SPELLED, seeded, stepOf, timerMs, withoutBody } from '../border.ts';
import { FORMAT_BEFORE, type Input, isInput, isOutcome, type Json, type Now, type Outcome } from '../entries.ts';
import { BODIES_MAX } from '../lines.ts';
import type { Due } from '../player/due.ts';
import { type Look, Looks } from '../player/looks.ts';
import { crossed, type Fn, type Matching, makerOf, type OnHand } from '../player/ports.ts';
import { NO_FUNCTIONS, type PlayerInput, type Range } from '../player/watch.ts';
import { maskedAs } from '../secrets/masks.ts';
import { publishing } from '../seen/published.ts';
import { saidOf } from '../seen/said.ts';
import { type By, Whose } from '../seen/whose.ts';
import type { Divergence, Parted } from '../told/divergence.ts';
import { type Did, didOf, inputWords, type Moment, type PodOf, Report } from '../told/report.ts';
import { outcomeWords } from '../told/words.ts';
import { isThenable } from '../values.ts';
import { Beyond } from './beyond.ts';
import { Bodies } from './bodies.ts';
import { SaidDigests } from './digests.ts';
import { type Expected, isSame, LIKENESSES, Numbers } from './expected.ts';

/** Of ECMAScript. */
const DATE_MS_MAX = 8.64e15;
const NEVER = new Promise<never>(() => {});
const NO_ONE: By = { path: '', event: '' };
/** What was said stays known for so many more. */
const SAID_MAX = 2 * BODIES_MAX;
/** What is done so many inputs sooner or later is the same. */
const APART_INPUTS_MAX = 20;
/** Timers that are known in words, also once they are cleared. */
const SETS_MAX = 5_000;

export class Exact implements Matching {
  readonly clock: Clock;
  readonly yield: Yield;
  readonly entropy: Entropy;
  readonly #o: PlayerInput;
  readonly #maker = makerOf(this);
  readonly #seed: () => number;
  readonly #whose: Whose;
  readonly #report = new Report();
  readonly #beyond = new Beyond();
  /** Of the recording. */
  readonly #numbers = new Numbers();
  readonly #timers = new Map<number, () => void>();
  readonly #turns = new Map<number, () => void>();
  readonly #insides = new Map<number, Fn>();
  readonly #promises = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  readonly #signals = new Map<number, AbortController>();
  readonly #last = new Map<string, Json>();
  readonly #bodies = new Bodies();
  readonly #digests: SaidDigests;
  /** JSON text by digest. */
  readonly #said = new Map<string, string>();
  /** What is asked and not answered yet, and what timers are, in words. */
  readonly #asks = new Map<number, string>();
  readonly #sets = new Map<number, Did>();
  /** States of actors, and who acts, as the recording has them. */
  readonly #states = new Map<string, string>();
  /** States of the actors now: to ask the tree for them would be a look at its clock. */
  readonly #statesNow = new Map<string, string>();
  /** Digests of the statuses of pods that stand in the recording, and the statuses that stand now. */
  readonly #statusesThen = new Map<string, string>();
  readonly #statusesNow = new Map<string, Json>();
  #by: By = NO_ONE;
  #expected: Expected[] = [];
  #seen = 0;
  /** Done then and not yet now, and done now and not yet then, once it went another way. */
  readonly #late: { one: Expected; did: Did; at: Moment }[] = [];
  readonly #early: { was: Did | null; did: Did; now: Doing; at: Moment }[] = [];
  /** What the tree does after this input is known in part only. */
  #open = false;
  /** It went another way, and goes on: what it does is looked for among all that is left of the input. */
  #apart = false;
  /** Functions of the call that is compared now. */
  #pending = 0;
  readonly #looks = new Looks();
  #next: Input | null = null;
  #nextWallMs: number | null = null;
  #turnIds = 0;
  #called = 0;
  /** The node has taken its last input: what looks now is no part of it. */
  #isBetween = false;
  #nowMs: number;
  #wallOffsetMs: number;
  #inputs = -1;
  #input: Input = ['told', 0, 'create'];
  #inputIs = '';
  /** The entries around the first divergence. */
  parted: Parted | null = null;
  /** Why the recording ends; null: it was cut off. */
  endedBecause: string | null = null;
  /** What is done to the node by hand; `value` gives the values of its line as the node gets them. */
  onHand: OnHand = () => {};

  constructor(o: PlayerInput) {
    this.#o = o;
    this.#whose = new Whose(o.who);
    this.#digests = new SaidDigests(o);
    this.#nowMs = o.header.monoMs;
    this.#wallOffsetMs = o.header.wallMs - o.header.monoMs;
    this.#seed = seeded(o.header.seed);
    this.clock = this.#clock();
    this.yield = { defer: (fn) => this.#defer(fn) };
    this.entropy = this.#entropy();
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
  /** The first one. */
  get divergence(): Divergence | null {
    return this.#report.all[0] ?? null;
  }
  get divergences(): readonly Divergence[] {
    return this.#report.all;
  }
  /** Nothing more of the recording can be told of the tree. */
  get isOver(): boolean {
    return this.#report.all.length > 0 && (!this.#apart || this.#report.isFull);
  }

  /** When the next input comes, by the wall clock then; null: there is none. */
  get nextWallMs(): number | null {
    if (this.#next === null) return null;
    return this.#nowMs + this.#looks.restMs + this.#next[1] + (this.#nextWallMs ?? this.#wallOffsetMs);
  }

  /** The tree that it plays to, once it is made. */
  plays(tree: Pick<Tree, 'registry'>, podOf: PodOf): void {
    this.#report.podOf = podOf;
    if (this.#o.header.format !== FORMAT_BEFORE) publishing(tree.registry, (what, key, value) => this.#shown(what, key, value));
  }

  /** Gives the tree its next input. False at the end of the recording. */
  deliver(): boolean {
    const input = this.#next;
    if (input === null) return false;
    this.#inputs += 1;
    this.#input = input;
    this.#isBetween = false;
    // Pages and tools look at the clock of the node too, between its inputs.
    this.#nowMs += this.#looks.restMs + input[1];
    if (this.#nextWallMs !== null) this.#wallOffsetMs = this.#nextWallMs;
    this.#whose.begins();
    this.#checkTime();
    const [given, at] = [this.#bodies.inInput(input), { monoMs: this.#nowMs, wallOffsetMs: this.#wallOffsetMs }];
    if (this.#apart && (input[0] === 'settled' || input[0] === 'called')) this.#numbers.promisesIn(this.#bodies.textIn(input[3]));
    const looks = this.#read();
    if (this.#apart) this.#number();
    this.#tellOld(this.#inputs - APART_INPUTS_MAX);
    this.#o.watch?.input(given, { ...at, looks });
    this.#act(input);
    return true;
  }

  /** Once it went another way: does one thing that the recording has nothing of. False: there is nothing to do. */
  catchUp(): boolean {
    return this.#apart && this.#beyond.catchUp(this.#nowMs, this.#inputs);
  }

  /** A step of one of the node's actors. */
  step(e: SupervisionEvent): void {
    if (e.kind !== 'transition' || this.isOver) return;
    const { path, from, to, event, reason } = stepOf(e);
    this.#expect(always(['step', path, from, to, event, reason]));
    this.#statesNow.set(path, to);
  }

  /** To be called once all promises have run: what the tree asked then, and not now, is a divergence. */
  settled(): void {
    const missing = this.#expected[this.#seen];
    if (missing !== undefined && !this.isOver) {
      this.#part(missing, null);
      const left = this.#apart ? this.#expected.filter((one) => one.outcome[0] !== 'inside') : [missing];
      // The first divergence is told at once.
      if (this.#report.all.length === 0) for (const one of left.splice(0, 1)) this.#tell(this.#didThen(one), null);
      this.#late.push(...left.map((one) => ({ one, did: this.#didThen(one), at: this.#moment() })));
      this.#expected = [];
      this.#seen = 0;
    }
    this.#isBetween = true;
  }

  #checkTime(): void {
    if (Math.abs(this.wallMs) > DATE_MS_MAX) throw new Error('it tells of a time that no clock shows');
  }

  /** What belongs to the input that is delivered now, up to the next one. */
  #read(): readonly Look[] {
    const looks: Look[] = [];
    this.#expected = [];
    this.#seen = 0;
    this.#next = null;
    this.#nextWallMs = null;
    this.#open = false;
    for (let entry = this.#o.next(); entry !== null; entry = this.#o.next()) {
      if (isInput(entry)) {
        this.#next = entry;
        break;
      }
      if (isOutcome(entry)) this.#expects(entry);
      else if (entry[0] === 'clock') looks.push({ look: entry[1], ms: entry[2] });
      else if (entry[0] === 'wall') this.#nextWallMs = entry[1];
      else if (entry[0] === 'body') this.#bodies.add(entry[1]);
      else if (entry[0] === 'end') this.endedBecause = entry[1];
      else if (entry[0] === 'open') this.#open = true;
      else if (entry[0] === 'by') this.#by = { path: entry[1], event: entry[2] };
      else this.#knows(entry[1], this.#bodies.textIn(entry[2]));
    }
    this.#looks.begin(looks);
    return looks;
  }

  #knows(digest: string, text: string): void {
    this.#said.delete(digest);
    this.#said.set(digest, text);
    if (this.#said.size > SAID_MAX) this.#said.delete(this.#said.keys().next().value ?? '');
  }

  #expects(outcome: Outcome): void {
    const isStep = outcome[0] === 'step';
    const by = isStep ? { path: outcome[1], event: outcome[4] } : this.#by;
    this.#expected.push({ outcome, by, state: this.#states.get(by.path) ?? '', call: null, timer: null, insides: NO_FUNCTIONS, now: null });
    if (isStep) this.#states.set(outcome[1], outcome[3]);
    if (outcome[0] === 'shown' && outcome[1] === 'status') this.#statusesThen.set(outcome[2], outcome[3]);
  }

  /** Gives all that is left of this input its numbers. */
  #number(): void {
    for (const one of this.#expected) {
      const { outcome } = one;
      this.#numbers.give(one, this.#saidThen(outcome), (json) => this.#bodies.textIn(json));
      if (outcome[0] !== 'ask') continue;
      const key = keyOf(outcome);
      one.now = outcome[3] === 'same' ? { value: this.#last.get(key) ?? null } : outcome[3];
      if (typeof one.now === 'object' && 'value' in one.now) this.#last.set(key, one.now.value);
    }
    // What the tree did shortly before is done now in the recording.
    this.#expected = this.#expected.filter(({ outcome }) => {
      const i = this.#early.findIndex(({ now }) => this.#isSame(outcome, now, now.as([])));
      if (i >= 0) this.#early.splice(i, 1);
      return i < 0;
    });
  }

  /** Tells of what is done in one of both alone, and not in the other one shortly before or after. */
  #tellOld(before: number): void {
    for (; this.#late[0] !== undefined && this.#late[0].at.input < before; this.#late.shift())
      this.#report.add(this.#late[0].did, null, this.#late[0].at);
    for (; this.#early[0] !== undefined && this.#early[0].at.input < before; this.#early.shift())
      this.#report.add(this.#early[0].was, this.#early[0].did, this.#early[0].at);
  }

  /** The recording is played. */
  end(): void {
    this.#tellOld(Infinity);
  }

  #saidThen(outcome: Outcome): Json | undefined {
    if (outcome[0] === 'ask' && outcome[2] === SPELLED) return [outcome[4] ?? ''];
    const digest = outcome[0] === 'ask' || outcome[0] === 'answer' ? outcome[2] : outcome[0] === 'shown' ? outcome[3] : '';
    const text = this.#said.get(digest);
    return text === undefined ? undefined : (JSON.parse(text) as Json);
  }

  #act(input: Input): void {
    this.#inputIs = inputWords(input, this.#wordsOf(input));
    switch (input[0]) {
      case 'settled':
      case 'failed':
        this.#settle(input[2], input[0] === 'failed', input[3]);
        return;
      case 'called':
        this.#whose.calls(input[2]);
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

  /** Which call, or timer, it is. */
  #wordsOf(input: Input): string {
    if (input[0] === 'settled' || input[0] === 'failed') return this.#asks.get(input[2]) ?? '';
    const set = input[0] === 'timer' ? this.#sets.get(input[2]) : undefined;
    return set === undefined ? '' : `${set.words}${set.by.actor === '' ? '' : ` of ${set.by.actor}`}`;
  }

  #settle(call: number, failed: boolean, json: Json): void {
    this.#asks.delete(call);
    if (this.#o.goesOn === true) this.#beyond.settled(call, failed, json);
    const promise = this.#promises.get(call);
    this.#promises.delete(call);
    if (failed) promise?.reject(this.#value(json));
    else promise?.resolve(this.#value(json));
  }

  #fire(id: number): void {
    const fn = this.#timers.get(id);
    const set = this.#sets.get(id);
    this.#sets.delete(id);
    if (fn === undefined) {
      // One that is not set any more was told.
      if (!this.#apart || set !== undefined)
        this.#lost(`timer ${id} fired${set === undefined ? '' : `: ${set.words}`}`, 'no such timer is set', set);
      return;
    }
    this.#timers.delete(id);
    fn();
  }

  #turn(id: number): void {
    if (this.#apart) {
      this.#beyond.takeTurn(id);
      return;
    }
    const fn = this.#turns.get(id);
    if (fn === undefined) {
      this.#lost(`the tree had turn ${id}`, 'it did not ask for that one');
      return;
    }
    this.#turns.delete(id);
    fn();
  }

  #callBack(id: number, args: Json): void {
    const of = this.#called++;
    const fn = this.#insides.get(id);
    if (fn === undefined) {
      if (!this.#apart) this.#lost(`function ${id} of the tree was called`, 'there is none');
      return;
    }
    this.#o.watch?.called({ fn: id, of, args: this.#bodies.in(args) });
    this.#answered(fn, of, this.#value(args) as unknown[]);
  }

  #answered(fn: Fn, of: number, args: unknown[]): void {
    const answer = (value: unknown): void => {
      const { json: whole, fns } = this.#crossed(value);
      const insides = this.#apart ? NO_FUNCTIONS : this.#give(fns);
      this.#o.watch?.answered(of, insides);
      const one = this.#expect(this.#doing(withoutBody(whole), (said) => ['answer', of, this.#digests.of(said)]));
      if (this.#apart) this.#giveAs(fns, one);
    };
    const result = fn(...args);
    if (isThenable(result)) result.then(answer, (error: unknown) => answer(messageOf(error)));
    else if (result !== undefined) answer(result);
  }

  /** A status or an event that the tree publishes. */
  #shown(what: string, key: string, value: unknown): void {
    if (this.isOver) return;
    const gone = always(['shown', what, key, '']);
    const { json } = this.#crossed(value);
    if (what === 'status' && value !== null) this.#statusesNow.set(key, this.#kept(json));
    else this.#statusesNow.delete(key);
    this.#expect(value === null ? gone : this.#doing(json, (said) => ['shown', what, key, this.#digests.of(said)]));
  }

  /** What is said, and the functions in it: numbered as the next ones. */
  #crossed(value: unknown): { json: Json; fns: readonly Fn[] } {
    return crossed(value, this.#numbers.insides);
  }

  #give(fns: readonly Fn[]): Range {
    const from = this.#numbers.insides;
    this.#numbers.insides += fns.length;
    const insides = { from, to: this.#numbers.insides };
    this.#giveFrom(fns, from);
    return insides;
  }

  /** Functions get the numbers of those in the recording, where there are as many. */
  #giveAs(fns: readonly Fn[], one: Expected | null): void {
    if (one !== null && one.insides.to - one.insides.from === fns.length) this.#giveFrom(fns, one.insides.from);
  }

  #giveFrom(fns: readonly Fn[], from: number): void {
    for (const [i, fn] of fns.entries()) {
      this.#insides.set(from + i, fn);
      this.#whose.gave(from + i);
    }
  }

  /** @param whole What is said; each outcome of the recording tells which texts of it are compared. */
  #doing(whole: Json, as: (said: Json) => Outcome): Doing {
    return { as: (masks) => as(maskedAs(whole, masks)), said: (masks) => this.#kept(maskedAs(whole, masks)) };
  }

  /** Takes what the recording has for this; null: it has nothing for it. */
  #expect(now: Doing): Expected | null {
    if (this.isOver) return null;
    const head = this.#expected[this.#seen];
    const first = now.as(head === undefined ? [] : masksOf(head.outcome));
    if (!this.#apart && head !== undefined && isSame(head.outcome, first, this.#open)) {
      this.#seen += 1;
      return head;
    }
    // What the tree did after the last input may not have been written any more.
    const isUnknown = this.#open || (this.#next === null && this.endedBecause === null);
    if (!this.#apart && head === undefined && isUnknown) return null;
    const isFirst = this.#part(head ?? null, first);
    if (!this.#apart) this.#tell(head === undefined ? null : this.#didThen(head), this.#didNow(now, head));
    return this.#apart ? this.#paired(now, { isFirst, isUnknown }) : null;
  }

  /** In what is left of the input, wherever it stands. */
  #paired(now: Doing, { isFirst, isUnknown }: { isFirst: boolean; isUnknown: boolean }): Expected | null {
    const plain = now.as([]);
    const by = plain[0] === 'step' ? { path: plain[1], event: plain[4] } : this.#whose.by;
    const [head] = this.#expected;
    const same = this.#take((one) => this.#isSame(one.outcome, now, plain));
    if (same !== null) {
      // Only the order is another one.
      if (isFirst) this.#tell(head === undefined ? null : this.#didThen(head), this.#didNow(now, same));
      return same;
    }
    const late = isFirst ? -1 : this.#late.findIndex(({ one }) => this.#isSame(one.outcome, now, plain));
    if (late >= 0) return this.#late.splice(late, 1)[0]?.one ?? null;
    for (const isLike of LIKENESSES) {
      const like = this.#take((one) => isLike(one, now.as(masksOf(one.outcome)), by));
      if (like === null) continue;
      this.#tell(this.#didThen(like), this.#didNow(now, like));
      return like;
    }
    if (isUnknown) return null;
    // Something else was done in its place.
    const other = this.#take((one) => one.by.path === by.path && by.path !== '' && one.outcome[0] === plain[0]);
    const was = other === null ? null : this.#didThen(other);
    const did = this.#didNow(now, other ?? undefined);
    if (isFirst) this.#tell(was, did);
    else this.#early.push({ was, did, now, at: this.#moment() });
    return null;
  }

  /** Functions have other numbers once the tree went another way. */
  #isSame(then: Outcome, now: Doing, plain: Outcome): boolean {
    if (then[0] !== plain[0] || then[1] !== plain[1]) return then[0] === 'set' && isSame(then, plain, this.#open);
    const masks = masksOf(then);
    if (isSame(then, now.as(masks), this.#open)) return true;
    if ((then[0] !== 'ask' && then[0] !== 'answer') || then[2] === SPELLED) return false;
    const text = this.#said.get(String(then[2]));
    return text !== undefined && text === JSON.stringify(now.said(masks));
  }

  #take(is: (one: Expected) => boolean): Expected | null {
    const i = this.#expected.findIndex(is);
    return i < 0 ? null : (this.#expected.splice(i, 1)[0] ?? null);
  }

  #kept(said: Json): Json {
    return saidOf(said, (text) => this.#o.entropy.md5Hex(text));
  }

  ask(fn: number, name: string, args: unknown[]): unknown {
    if (this.isOver) return NEVER;
    const { json, fns } = this.#crossed(args);
    if (!this.#apart && this.#mayBeNext(name)) this.#pending = this.#give(fns).to - this.#numbers.insides + fns.length;
    const insides = { from: this.#numbers.insides - fns.length, to: this.#numbers.insides };
    if (!this.#apart) this.#callInside();
    const one = this.#expect(this.#doing(json, (said) => ['ask', name, this.#digests.ofArguments(said), 'nothing', briefOf(said)]));
    this.#pending = 0;
    const whole = this.#o.goesOn === true ? `${name} ${JSON.stringify(json)}` : '';
    if (this.#apart) {
      this.#giveAs(fns, one);
      if (one === null) return this.#answeredBeyond(whole, name);
    }
    const then = one?.outcome;
    if (one === null || then?.[0] !== 'ask') return NEVER;
    const key = keyOf(then);
    const said: Now = one.now ?? (then[3] === 'same' ? { value: this.#last.get(key) ?? null } : then[3]);
    const call = said === 'later' ? (one.call ?? this.#numbers.calls) : null;
    this.#o.watch?.asked({ fn, name, args: json, insides, call, now: this.#spelled(said) });
    if (this.#o.goesOn === true) for (const known of [whole, name]) this.#beyond.saw(known, said, call);
    if (call !== null) this.#asks.set(call, outcomeWords(then));
    return this.#now(key, said, one.call);
  }

  /** Functions get the next numbers where the call is the next one; those that are called back before it are of it. */
  #mayBeNext(name: string): boolean {
    const head = this.#expected[this.#seen]?.outcome;
    return head === undefined || head[0] === 'inside' || (head[0] === 'ask' && head[1] === name);
  }

  /** Functions that were called back before the call returned. */
  #callInside(): void {
    for (let then = this.#expected[this.#seen]?.outcome; then?.[0] === 'inside'; then = this.#expected[this.#seen]?.outcome) {
      this.#seen += 1;
      this.#callBack(then[1], then[2]);
    }
  }

  /** What the recording has no answer for. */
  #answeredBeyond(key: string, name: string): unknown {
    const last = this.#beyond.last(key);
    const now = (last ?? this.#beyond.last(name))?.now;
    if (now === 'nothing' || now === undefined) return undefined;
    if (now === 'later' || now === 'same') {
      if (last?.settled === undefined) return NEVER;
      const value = this.#value(last.settled.value);
      return last.settled.failed ? Promise.reject(value) : Promise.resolve(value);
    }
    if ('thrown' in now) throw this.#value(now.thrown);
    return this.#value(now.value);
  }

  /** With its body in it. */
  #spelled(now: Now): Now {
    return typeof now === 'object' && 'value' in now ? { value: this.#bodies.in(now.value) } : now;
  }

  #now(key: string, now: Now, call: number | null): unknown {
    if (now === 'nothing') return undefined;
    if (now === 'later') {
      const number = call ?? this.#numbers.calls++;
      return this.#promise(number);
    }
    if (now === 'same') return this.#value(this.#last.get(key) ?? null);
    if ('thrown' in now) throw this.#value(now.thrown);
    this.#last.set(key, now.value);
    return this.#value(now.value);
  }

  promise(call: number): Promise<unknown> {
    this.#numbers.calls = Math.max(this.#numbers.calls, call + 1);
    return this.#promise(call);
  }

  signal(id: number): AbortSignal {
    const controller = new AbortController();
    this.#signals.set(id, controller);
    return controller.signal;
  }

  #promise(call: number): Promise<unknown> {
    return new Promise((resolve, reject) => void this.#promises.set(call, { resolve, reject }));
  }

  #value(json: Json): unknown {
    return this.#bodies.revived(json, this.#maker);
  }

  /** The tree goes another way from here on. False: it did so before. */
  #part(was: Expected | null, now: Outcome | null): boolean {
    if (this.#report.all.length > 0 || this.#apart) return false;
    const done = this.#expected.slice(0, this.#seen).map((one) => one.outcome);
    this.parted = { input: this.#bodies.inInput(this.#input), done, was: was?.outcome ?? null, now };
    this.#goOn();
    return true;
  }

  #goOn(): void {
    if (this.#o.goesOn !== true || this.#o.header.format === FORMAT_BEFORE) return;
    this.#apart = true;
    this.#numbers.insides -= this.#pending;
    this.#expected = this.#expected.slice(this.#seen);
    this.#seen = 0;
    this.#number();
    for (const [id, fn] of [...this.#turns].sort(([a], [b]) => a - b)) this.#beyond.turn(id, fn, this.#inputs);
    this.#turns.clear();
  }

  /** What came in has no place in the tree any more. */
  #lost(was: string, now: string, set?: Did): void {
    if (this.isOver) return;
    const by = set?.by ?? { actor: '', state: '', event: '' };
    this.#tell({ words: was, outcome: null, by, said: undefined }, { words: now, outcome: null, by, said: undefined });
    if (!this.#apart) this.#goOn();
  }

  #tell(was: Did | null, now: Did | null): void {
    this.#report.add(was, now, this.#moment());
  }

  #moment(): Moment {
    return { input: this.#inputs, inputIs: this.#inputIs, monoMs: this.monoMs, wallMs: this.wallMs };
  }

  #didThen({ outcome, by, state }: Expected): Did {
    const did = didOf(outcome, { actor: by.path, event: by.event, state }, this.#saidThen(outcome));
    return outcome[0] === 'shown' ? { ...did, beside: this.#statusesNow.get(outcome[2]) } : did;
  }

  /** @param as What it is compared with: the same texts are compared. */
  #didNow(now: Doing, as?: Expected): Did {
    const masks = as === undefined ? [] : masksOf(as.outcome);
    const outcome = now.as(masks);
    if (outcome[0] === 'step') return didOf(outcome, { actor: outcome[1], event: outcome[4], state: outcome[2] }, undefined);
    const { path, event } = this.#whose.by;
    const did = didOf(outcome, { actor: path, event, state: this.#statesNow.get(path) ?? '' }, now.said(masks));
    if (outcome[0] !== 'shown') return did;
    return { ...did, beside: this.#saidThen(['shown', outcome[1], outcome[2], this.#statusesThen.get(outcome[2]) ?? '']) };
  }

  #clock(): Clock {
    const look = (): number => {
      if (!this.#isBetween) this.#nowMs += this.#looks.next();
      return this.#nowMs;
    };
    return {
      monoMs: look,
      wallMs: () => look() + this.#wallOffsetMs,
      setTimeout: (fn, ms) => {
        const now = always(['set', timerMs(ms)]);
        const one = this.#expect(now);
        const id = this.#apart ? one?.timer : this.#numbers.timers++;
        if (id == null) return this.#beyond.timer(fn, this.#nowMs + ms);
        this.#o.watch?.set(id, timerMs(ms));
        this.#timers.set(id, fn);
        this.#sets.set(id, this.#didNow(now));
        if (this.#sets.size > SETS_MAX) this.#sets.delete(this.#sets.keys().next().value ?? 0);
        return id;
      },
      clearTimeout: (id) => {
        if (typeof id === 'object' && id !== null) (id as Due).run = null;
        if (this.#timers.delete(id as number)) this.#o.watch?.cleared(id as number);
      },
    };
  }

  #defer(fn: () => void): void {
    const id = this.#turnIds++;
    this.#o.watch?.deferred(id);
    if (this.#apart) this.#beyond.turn(id, fn, this.#inputs);
    else this.#turns.set(id, fn);
  }

  drawn(): number {
    const value = this.#recorded('rng.next', [], this.#seed) as number;
    this.#o.watch?.drew(value);
    return value;
  }

  /** What the tree got by itself, where the recording tells; else `otherwise`. */
  #recorded(name: string, args: Json, otherwise: () => unknown): unknown {
    const isIt = ({ outcome }: Expected): boolean =>
      outcome[0] === 'ask' && outcome[1] === name && outcome[2] === this.#digests.of(maskedAs(args, outcome[5]));
    const head = this.#expected[this.#seen];
    const one = this.#apart ? this.#take(isIt) : head !== undefined && isIt(head) ? head : null;
    if (one === null || one.outcome[0] !== 'ask') return otherwise();
    if (!this.#apart) this.#seen += 1;
    const result = this.#now(keyOf(one.outcome), one.now ?? one.outcome[3], one.call);
    this.#o.watch?.asked({ fn: -1, name, args, insides: NO_FUNCTIONS, call: null, now: { value: this.#crossed(result).json } });
    return result;
  }

  #entropy(): Entropy {
    const made = seeded(this.#o.header.seed + 1);
    const digest = (name: 'md5Hex' | 'sha256Hex') => (text: string | Uint8Array) => {
      const args = [this.#crossed(text).json];
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

/** Of a call whose last answer is told apart by what was said. */
function keyOf(ask: Outcome & { readonly 0: 'ask' }): string {
  return `${ask[1]} ${ask[2] === SPELLED ? ask[4] : ask[2]}`;
}

/** Texts of it that are not compared. */
function masksOf(then: Outcome): readonly number[] {
  return (then[0] === 'ask' ? then[5] : then[0] === 'answer' ? then[3] : then[0] === 'shown' ? then[4] : undefined) ?? [];
}

/** What the tree does: as it is compared with something that it did then, whose masks are known. */
interface Doing {
  as(masks: readonly number[]): Outcome;
  said(masks: readonly number[]): Json | undefined;
}

function always(outcome: Outcome): Doing {
  return { as: () => outcome, said: () => undefined };
}
