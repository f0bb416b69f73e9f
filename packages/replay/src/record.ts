/**
 * Records what comes in through the ports of a node (docs/replay.md). The ports it gives are the real ones behind a border:
 * each call of the tree is numbered; each answer, call back and timer is written down as it is delivered, one at a time.
 */
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Entropy, Ports } from '@actorlet/kubelet/ports/ports.ts';
import { ANSWERS_AT_ONCE, briefOf, configJson, isSpelled, OWN_WAY, SPELLED, seeded, shortDigest, stepOf, withoutBody } from './border.ts';
import { FORMAT, type Header, type Json, type Now } from './entries.ts';
import { type AfterMicrotasks, Inbox } from './inbox.ts';
import { Lines, type LinesOutput } from './lines.ts';
import { type OutsideNode, outsideOf } from './outside.ts';
import { type Asker, recordedChance, recordedEntropy, recordedMetrics } from './ownWay.ts';
import { RecordedTime } from './recordedTime.ts';
import type { Door, Place } from './secrets/doors.ts';
import { HIDDEN, type Masked } from './secrets/masks.ts';
import { Secrets } from './secrets/secrets.ts';
import { Notes } from './seen/notes.ts';
import { publishing } from './seen/published.ts';
import type { WhoActs } from './seen/whose.ts';
import { type Border, bytesJson, type Crossed, cross, isThenable, textOf } from './values.ts';

type Fn = (...args: unknown[]) => unknown;

export interface RecordInput extends LinesOutput {
  config: NodeConfig;
  /** What else the node is given and asks: functions and data. */
  options: object;
  versions: { actorlet: string; node: string };
  afterMicrotasks: AfterMicrotasks;
  /** What the node gets as digests, where they are not those of its texts. All are recorded then. */
  hashes?: Pick<Entropy, 'md5Hex' | 'sha256Hex'> | undefined;
  /** Tells whose doing something is; the node is made with its `acting`. Absent: nothing is told of that. */
  who?: WhoActs | undefined;
  /** Numbers that the node draws, where no seed makes them. All are recorded then. */
  chance?: (() => number) | undefined;
  /** What comes in is of a recording: it has stand-ins in the place of secrets. */
  hasStandIns?: boolean;
  /** Free text of people and programs gets stand-ins, too. */
  isPrivate?: boolean;
}

/** What the tree asks. `digest`: of the arguments, or {@link SPELLED}. */
interface Call {
  readonly name: string;
  readonly digest: string;
  readonly brief: string;
  readonly masks: readonly number[];
  /** Absent: nobody asks for it. */
  readonly said?: Json;
}

const NOWHERE: Place = { key: '', door: 'open' };
const KEY_BYTES = 32;
/** Longer values are not kept to be compared with the next one. */
const LAST_CHARS_MAX = 200;
/** Calls whose last value is kept; then all are told anew. */
const LAST_MAX = 2_000;

/** A node's ports while they are recorded. */
export class InputRecording {
  readonly ports: Ports;
  /** What the node is given in place of `RecordInput.options`. */
  readonly options: unknown;
  readonly #o: RecordInput;
  readonly #outside: Ports;
  readonly #lines: Lines;
  readonly #time: RecordedTime;
  readonly #secrets: Secrets;
  readonly #into: Border;
  readonly #out: Border;
  readonly #notes: Notes;
  readonly #last = new Map<string, string>();
  readonly #opaque = new WeakMap<object, Json>();
  #fns = 0;
  #calls = 0;
  #insides = 0;
  #called = 0;
  #signals = 0;
  /** Outside functions that the tree is in the middle of calling. */
  #depth = 0;
  #prefix = '';
  /** By which door the answers of functions come that are crossing in. */
  #door: Door = 'open';

  constructor(outside: Ports, o: RecordInput) {
    this.#o = o;
    this.#outside = outside;
    this.#lines = new Lines(o, (text) => outside.entropy.md5Hex(text));
    this.#notes = new Notes(this.#lines, o.who);
    const whose = { begins: () => this.#notes.whose.begins(), does: () => this.#notes.does() };
    this.#time = new RecordedTime(outside, { lines: this.#lines, inbox: new Inbox(o.afterMicrotasks), ...whose });
    const key = [...outside.entropy.bytes(KEY_BYTES)].join();
    const hash = o.hasStandIns === true ? null : (text: string) => outside.entropy.sha256Hex(`${key}\n${text}`);
    this.#secrets = new Secrets({ hash, isPrivate: o.isPrivate === true });
    this.#into = this.#borderIn();
    this.#out = this.#borderOut();
    const seed = outside.entropy.bytes(4).reduce((sum, byte) => sum * 256 + byte, 0);
    const { ports, json } = this.#behind(seed);
    this.ports = ports;
    const options = this.#crossIn(o.options, 'options');
    this.options = options.other;
    this.#start({ seed, ports: json, options: options.json });
  }

  /** The node as its outside gets it. */
  around<N extends OutsideNode>(node: N): N {
    publishing(node.tree.registry, (what, key, value) => this.#shown(what, key, value));
    return outsideOf(node, {
      clock: this.#outside.clock,
      unseen: (look) => this.#time.unseen(look),
      step: (e) => this.#step(e),
      inTurn: (code, parts, act) => {
        let given = parts;
        const text = () => {
          const crossed = this.#parts(parts);
          given = crossed.given;
          return crossed.text;
        };
        this.#time.deliver(code, text, () => act(given));
      },
      atOnce: (code, parts) => {
        if (!this.#lines.on) return parts;
        const ms = this.#time.sinceLast();
        return this.#lines.orEnd(() => {
          const { given, text } = this.#parts(parts);
          this.#lines.write(`["${code}",${ms}${text === '' ? '' : `,${text}`}]`);
          return given;
        }, parts);
      },
    });
  }

  /** From here on nothing is written; the node goes on. */
  end(why: string): void {
    this.#lines.end(why);
  }

  /** A step of one of the node's actors. */
  #step(e: SupervisionEvent): void {
    if (!this.#lines.on || e.kind !== 'transition') return;
    const { path, from, to, event, reason } = stepOf(e);
    const write = (): void =>
      this.#lines.write(JSON.stringify(['step', path, from, to, event, this.#secrets.hides(reason) ? HIDDEN : reason]));
    this.#lines.orEnd(write, undefined);
  }

  /** A status or an event that the node publishes. */
  #shown(what: string, key: string, value: unknown): void {
    if (!this.#lines.on) return;
    this.#lines.orEnd(() => {
      const whole = value === null ? null : cross(value, this.#out, NOWHERE).json;
      const { json, masks } = this.#secrets.maskedSentences(whole);
      const digest = json === null ? '' : shortDigest(this.#lines.digest, json);
      if (json === null) this.#notes.does();
      else this.#notes.says(digest, json);
      this.#lines.write(JSON.stringify(['shown', what, key, digest, ...(masks.length > 0 ? [masks] : [])]));
    }, undefined);
  }

  /** Paths and names as they are; all else as the node gets it. */
  #parts(parts: readonly unknown[]): { given: unknown[]; text: string } {
    const texts: string[] = [];
    const given = parts.map((part) => {
      const { json, other } = typeof part === 'string' ? { json: part, other: part } : this.#crossIn(part, 'outside');
      texts.push(this.#lines.value(json));
      return other;
    });
    return { given, text: texts.join() };
  }

  #start(parts: Pick<Header, 'seed' | 'ports' | 'options'>): void {
    const { versions, config } = this.#o;
    const configuration = cross(configJson(config), this.#into, NOWHERE).json;
    const header: Header = {
      format: FORMAT,
      ...versions,
      startedAt: new Date(this.#time.wallMs).toISOString(),
      ...{ monoMs: this.#time.monoMs, wallMs: this.#time.wallMs },
      ...parts,
      config: configuration,
    };
    this.#lines.write(JSON.stringify(header));
    this.#lines.write('["told",0,"create"]');
  }

  #behind(seed: number): { ports: Ports; json: Json } {
    const json: Record<string, Json> = {};
    const behind: Record<string, unknown> = {};
    for (const [name, port] of Object.entries(this.#outside)) {
      if (OWN_WAY.has(name) || port === undefined) continue;
      const crossed = this.#crossIn(port, name);
      json[name] = crossed.json;
      behind[name] = crossed.other;
    }
    const { log, handling, entropy, metrics } = this.#outside;
    const asker = this.#asker();
    const next = this.#o.chance === undefined ? seeded(seed) : recordedChance(this.#o.chance, asker);
    const { clock, yield: turns } = this.#time;
    const own = {
      clock,
      rng: { next },
      entropy: recordedEntropy(entropy, asker, this.#o.hashes),
      yield: turns,
      log,
      metrics: recordedMetrics(metrics, asker),
    };
    if (handling !== undefined) {
      const { of, ...asked } = {
        of: handling.of.bind(handling),
        documentAside: handling.documentAside.bind(handling),
        podAside: handling.podAside.bind(handling),
      };
      const crossed = this.#crossIn(asked, 'handling');
      json.handling = crossed.json;
      behind.handling = { ...(crossed.other as object), of };
    }
    return { ports: { ...behind, ...own } as unknown as Ports, json };
  }

  // What comes in.

  #borderIn(): Border {
    const secrets = this.#secrets;
    return {
      text: (text, at) => secrets.text(text, at),
      bytes: (bytes, at) => this.#opaque.get(bytes) ?? secrets.bytes(bytes, at),
      door: (key, owner, at) => secrets.door(key, owner, at),
      fn: (fn, name) => {
        const id = this.#fns++;
        const full = this.#prefix === '' ? name : name === '' ? this.#prefix : `${this.#prefix}.${name}`;
        const by = this.#door;
        return { json: { $: 'f', v: id, n: full }, other: (...args) => this.#ask({ name: full, fn, by }, args) };
      },
      promise: (promise) => {
        const call = this.#calls++;
        return { json: { $: 'p', v: call }, other: this.#later({ call, name: this.#prefix, by: this.#door }, promise, []) };
      },
      signal: (signal) => {
        const id = this.#signals++;
        const inside = new AbortController();
        const abort = () => this.#time.deliver('aborted', `${id}`, () => inside.abort(signal.reason));
        if (signal.aborted) abort();
        else signal.addEventListener('abort', abort, { once: true });
        return { json: { $: 'a', v: id }, other: inside.signal };
      },
    };
  }

  /** @param by The door by which it comes; that of what came before stays where nothing is said. */
  #crossIn(value: unknown, prefix: string, by: Door = 'open'): Crossed {
    const outer = { prefix: this.#prefix, door: this.#door };
    this.#prefix = prefix;
    this.#door = by;
    try {
      return cross(value, this.#into, by === 'open' ? NOWHERE : { key: '', door: by });
    } finally {
      this.#prefix = outer.prefix;
      this.#door = outer.door;
    }
  }

  // What the tree asks.

  #ask({ name, fn, by }: { name: string; fn: Fn; by: Door }, args: unknown[]): unknown {
    if (!this.#lines.on) return fn(...args);
    const outgoing = this.#lines.orEnd(() => this.#outgoing(name, args), null);
    if (outgoing === null) return fn(...args);
    const { call, given } = outgoing;
    this.#depth += 1;
    let result: unknown;
    try {
      result = fn(...given);
    } catch (error) {
      this.#depth -= 1;
      this.#lines.orEnd(() => this.#asked(call, { thrown: cross(error, this.#into, NOWHERE).json }), undefined);
      throw error;
    }
    this.#depth -= 1;
    const answered = by === 'open' ? this.#secrets.doorOfAnswer(name, args) : by;
    if (isThenable(result)) {
      this.#asked(call, 'later');
      return this.#later({ call: this.#calls++, name, by: answered }, result, args);
    }
    if (result === undefined) {
      this.#asked(call, 'nothing');
      return undefined;
    }
    return this.#lines.orEnd(() => {
      const into = this.#crossIn(result, name, answered);
      this.#asked(call, this.#sameAsLast(call, into) ? 'same' : { value: into.json });
      return into.other;
    }, result);
  }

  #outgoing(name: string, args: unknown[]): { call: Call; given: unknown[] } {
    const { json: whole, other } = cross(args, this.#out, NOWHERE);
    return { call: this.#call(whole, { name, args }), given: other as unknown[] };
  }

  #call(whole: Json, of: { name: string; args: readonly unknown[] }): Call {
    const { json, masks } = this.#secrets.masked(whole, of);
    const digest = isSpelled(json) ? SPELLED : shortDigest(this.#lines.digest, json);
    return { name: of.name, digest, brief: briefOf(json), masks, said: json };
  }

  /** Only data can be the same again: each function has a number of its own. */
  #sameAsLast({ name, digest, brief }: Call, into: Crossed): boolean {
    const key = `${name} ${digest === SPELLED ? brief : digest}`;
    const text = JSON.stringify(into.json);
    const same = this.#last.get(key) === text && !text.includes('"$":"f"');
    if (this.#last.size >= LAST_MAX) this.#last.clear();
    if (text.length <= LAST_CHARS_MAX) this.#last.set(key, text);
    else this.#last.delete(key);
    return same;
  }

  #asked({ name, digest, brief, masks, said }: Call, now: Now): void {
    if (said === undefined) this.#notes.does();
    else this.#notes.says(digest, said);
    const text =
      typeof now === 'string' ? JSON.stringify(now) : 'value' in now ? `{"value":${this.#lines.value(now.value)}}` : JSON.stringify(now);
    this.#lines.write(`["ask",${JSON.stringify(name)},"${digest}",${text},${JSON.stringify(brief)}${maskText(masks)}]`);
  }

  #later(
    { call, name, by }: { call: number; name: string; by: Door },
    result: PromiseLike<unknown>,
    args: readonly unknown[],
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      result.then(
        (value) => {
          let other: unknown = value;
          const json = () => {
            this.#noteOpaque(name, args, value);
            const into = this.#crossIn(value, name, by);
            other = into.other;
            return `${call},${this.#lines.value(into.json)}`;
          };
          this.#time.deliver('settled', json, () => resolve(other));
        },
        (error: unknown) => {
          this.#time.deliver(
            'failed',
            () => `${call},${JSON.stringify(cross(error, this.#into, NOWHERE).json)}`,
            () => reject(error),
          );
        },
      );
    });
  }

  /** A manifest may hold any secret, and the tree hands it on as it is. */
  #noteOpaque(name: string, args: readonly unknown[], value: unknown): void {
    const { config } = this.#o.config;
    const path = typeof args[0] === 'string' ? args[0] : '';
    const below = (dir: string) => dir !== '' && (path === dir || path.startsWith(`${dir}/`));
    let bytes: unknown;
    if (name === 'net.httpGet') bytes = (value as { body?: unknown }).body;
    else if (name.startsWith('fs.') && below(config.staticPodPath)) bytes = value;
    if (bytes instanceof Uint8Array) this.#opaque.set(bytes, this.#secrets.opaque(textOf(bytes) ?? String(bytes.length), bytes.length));
  }

  #borderOut(): Border {
    return {
      text: (text) => text,
      bytes: (bytes) => this.#opaque.get(bytes) ?? bytesJson(bytes),
      door: () => 'open',
      fn: (fn, name) => {
        const id = this.#insides++;
        this.#notes.whose.gave(id);
        return { json: { $: 'i', v: id }, other: (...args) => this.#callBack(id, fn, name, args) };
      },
      promise: (promise) => ({ json: { $: 'p' }, other: promise }),
      signal: (signal) => ({ json: { $: 'a' }, other: signal }),
    };
  }

  /** The outside calls a function of the tree. */
  #callBack(id: number, fn: Fn, name: string, args: unknown[]): unknown {
    if (!this.#lines.on) return fn(...args);
    const now = (head: string): unknown => {
      const given = this.#lines.orEnd(() => {
        const into = this.#crossIn(args, name);
        this.#lines.write(`[${head},${id},${this.#lines.value(into.json)}]`);
        return into.other as unknown[];
      }, args);
      return this.#answered(fn, given);
    };
    if (this.#depth > 0) return now('"inside"');
    if (ANSWERS_AT_ONCE.has(name)) {
      const ms = this.#time.sinceLast();
      this.#notes.whose.calls(id);
      return now(`"called",${ms}`);
    }
    return new Promise((resolve, reject) => {
      let into: unknown[] = args;
      const text = () => {
        const crossed = this.#crossIn(args, name);
        into = crossed.other as unknown[];
        return `${id},${this.#lines.value(crossed.json)}`;
      };
      this.#time.deliver('called', text, () => {
        this.#notes.whose.calls(id);
        try {
          resolve(this.#answered(fn, into));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  #answered(fn: Fn, args: unknown[]): unknown {
    const of = this.#called++;
    const answer = (value: unknown): unknown =>
      this.#lines.orEnd(() => {
        const out = cross(value, this.#out, NOWHERE);
        if (!this.#lines.on) return out.other;
        const { json, masks } = this.#secrets.masked(withoutBody(out.json));
        const digest = shortDigest(this.#lines.digest, json);
        this.#notes.says(digest, json);
        this.#lines.write(`["answer",${of},"${digest}"${maskText(masks)}]`);
        return out.other;
      }, value);
    const result = fn(...args);
    if (!isThenable(result)) return result === undefined ? undefined : answer(result);
    return result.then(answer, (error: unknown) => {
      answer(messageOf(error));
      throw error;
    });
  }

  #masked(value: unknown): Masked & { whole: Json } {
    const whole = cross(value, this.#out, NOWHERE).json;
    return { ...this.#secrets.masked(whole), whole };
  }

  /** For ports with a way of their own. */
  #asker(): Asker {
    const lines = this.#lines;
    return {
      get on() {
        return lines.on;
      },
      out: (value) => this.#masked(value),
      asked: (name, args, now) => {
        const { json, masks } = this.#masked(args);
        this.#asked({ name, digest: shortDigest(lines.digest, json), brief: '', masks }, now);
      },
      nextCall: () => this.#calls++,
      deliver: (head, rest, act) => this.#time.deliver(head, rest, act),
    };
  }
}

function maskText(masks: readonly number[]): string {
  return masks.length === 0 ? '' : `,${JSON.stringify(masks)}`;
}
