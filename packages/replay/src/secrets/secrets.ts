/**
 * Stand-ins for what is secret. A value gets its stand-in at the door through which it comes (`doors.ts`), whatever it is. The
 * same value has the same one within one recording, of the same length, under a key that nothing keeps; two values never share one.
 */

import { KnownSecrets } from '@actorlet/kubelet/machines/data/knownSecrets.ts';
import { userOfImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { goQuote } from '@actorlet/kubelet/machines/text/go/goQuote.ts';
import { AUTHORIZATION } from '@actorlet/kubelet/machines/text/shownUrl.ts';
import { seeded } from '../border.ts';
import type { Json } from '../entries.ts';
import { bytesJson, textOf } from '../values.ts';
import { type Door, Doors, type Place } from './doors.ts';
import { decodedBase64, documentOf, encodedBase64, isCredentials, isDeep, parsedOf } from './encodings.ts';
import { devicesText, downwardText, partsText } from './files.ts';
import { KeptTexts } from './keptTexts.ts';
import { LastWords } from './lastWords.ts';
import { type Draw, likeBytes, likePiece, likeText } from './likeness.ts';
import { hasSecretOption, hasSecretUrl, isOpenLink, Links } from './links.ts';
import { type Masked, masked, type Said, type Shown, withTexts } from './masks.ts';

/** Stand-ins that are tried before two short values share one. */
const TRIES_MAX = 64;
/** From the second on further signs are used. */
const FIRST_TRIES = 8;
/** Free texts that were seen, and what was written for them: the same text is always written the same. */
const FREE_MAX = 4_000;
const FREE_CHARS_MAX = 8_192;

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
/**
 * Three parts of base64url, the first of which is the header of a JSON Web Token, or ends with one. It is looked for from where a
 * part begins, where two more follow: from each `eyJ` of a text of many, it would take minutes.
 */
const JWT = /(?<![\w-])(?=[\w-]+\.[\w-]{8,}\.[\w-])([\w-]*?)(eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)/g;
const WHOLE_JWT = /^eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+$/;
/** Before a token among the protocols that a WebSocket asks for. */
const WEB_SOCKET_TOKEN = 'base64url.bearer.authorization.k8s.io.';
const SCHEME = /^\s*(?:Bearer|Basic|Token|Negotiate|Digest)\s+/i;
/** What the tree expands in words of commands and in values of the environment. */
const REFERENCE = /\$\$|\$\([A-Za-z_][A-Za-z0-9_.-]*\)/;
const QUOTES = /["'#]/;
const LETTER = /[\p{L}\p{N}]/u;
const LABEL_SIGNS = /([-_.]+)/;
/** What the tree reads of a program's answer besides its credentials. */
const ANSWER_KEYS: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'cacheKeyType', 'cacheDuration']);
const WORDS = /"((?:[^"\\]|\\.)*)"|[^\s"'`,;()[\]{}]+/g;
const TEXT_OF_JSON = /"(?:[^"\\]|\\.)*"(\s*:)?/gs;

export interface SecretsOptions {
  /** A keyed hash, as hexadecimal text. Null: what comes in has stand-ins already. */
  hash: ((text: string) => string) | null;
  /** Labels, annotations, ConfigMaps and logs get stand-ins, too. */
  isPrivate?: boolean;
}

export class Secrets {
  readonly #hash: ((text: string) => string) | null;
  readonly #doors: Doors;
  readonly #known = new KnownSecrets();
  /** Null: it stays as it is. */
  readonly #free = new Map<string, string | null>();
  readonly #kept = new KeptTexts();
  readonly #lastWords = new LastWords({
    standIn: (part, isTaken) => this.#known.of(part) ?? this.#like(part, (draw, more) => likeText(part, draw, more), isTaken),
    learn: (line, made) => void (this.#known.of(line) === null && this.#learn(line, made)),
  });

  readonly #links = new Links({
    standIn: (text) => this.standIn(text),
    open: (text) => this.#open(text),
    learn: (text, made) => this.#known.of(text) ?? this.#learn(text, made),
  });

  constructor({ hash, isPrivate = false }: SecretsOptions) {
    this.#hash = hash;
    this.#doors = new Doors({ isPrivate });
  }

  door(key: string, owner: object, at: Place): Door {
    // Its annotations come before the secrets that may be in them.
    if (key === 'metadata') this.#learnPod(Reflect.get(owner, 'spec'));
    return this.#doors.of(key, owner, at);
  }

  #learnPod(spec: unknown): void {
    if (this.#hash === null || !isRecord(spec) || !Array.isArray(spec.containers)) return;
    withTexts(
      spec,
      { key: 'spec', door: 'open' },
      { doorOf: (key, owner, at) => this.#doors.of(key, owner, at), text: (t, at) => this.text(t, at) },
    );
  }

  doorOfAnswer(name: string, args: readonly unknown[]): Door {
    return this.#doors.ofAnswer(name, args);
  }

  /** The text as it is written down. */
  text(text: string, at: Place): string {
    switch (at.door) {
      case 'open':
        return this.#open(text);
      case 'free':
        return this.free(text);
      case 'kept':
        return this.#kept.of(text, (one) => this.free(one));
      case 'kept64':
        return this.#kept.ofBase64(text, (one) => this.free(one));
      case 'mixed':
        return this.#kept.known(text) ?? this.standIn(text);
      case 'annotated':
        return downwardText(text, (value) => this.#kept.known(value));
      case 'words':
        return this.#words(text);
      case 'line':
        return text.replace(/\S+/g, (word) => this.standIn(word));
      case 'variable':
        return this.#variable(text);
      case 'variables':
        return text.replace(/[^\n]+/g, (line) => this.#line(line));
      case 'base64':
        return this.#base64(text, (bytes) => this.#bytes(bytes));
      case 'auth':
        return this.#base64(text, (bytes) => this.#nameAndPassword(bytes));
      case 'credentials':
        return this.#credentials(text);
      case 'credentials64':
        return this.#base64(text, (bytes) => {
          const inner = textOf(bytes);
          return inner === null ? this.#bytes(bytes) : new TextEncoder().encode(this.#credentials(inner));
        });
      case 'token':
        return this.#token(text);
      case 'image':
        return this.#links.image(text);
      case 'link':
        return this.#links.link(text);
      case 'stream':
        return this.#links.stream(text);
      case 'option':
        return this.#links.options(text);
      case 'log':
        return this.#lastWords.ofLog(text);
      case 'lines':
        return this.#lastWords.of(text);
      case 'devices':
        return this.#hash === null ? text : devicesText(text, (value, at) => this.text(value, at), this.#doors);
      case 'label':
        return this.#label(text);
      case 'folder':
      case 'bundle':
      case 'address':
        return partsText(at.door, text, (part) => this.#known.of(part) ?? this.#like(part, (draw, more) => likeText(part, draw, more)));
      case 'downward':
        return downwardText(text, (value) => this.#known.of(value));
      case 'piece':
        return textOf(this.#piece(new TextEncoder().encode(text))) ?? '';
      case 'secret':
        return this.standIn(text);
    }
  }

  /** Bytes as they are written down. */
  bytes(bytes: Uint8Array, at: Place): Json {
    if (at.door === 'piece') return bytesJson(this.#piece(bytes));
    const text = textOf(bytes);
    if (text !== null) return { $: 'x', v: this.text(text, at) };
    // The tree takes them for a text, from wherever a tail of it begins.
    if (at.door === 'log' || at.door === 'lines' || at.door === 'bundle') return { $: 'x', v: this.text(lossy.decode(bytes), at) };
    return bytesJson(this.#kept.keepsBytes(at.door, bytes) ? bytes : this.#bytes(bytes));
  }

  /** A text of people or of a program: what is known as a secret is replaced in it. */
  free(text: string): string {
    const key = text.length > FREE_CHARS_MAX ? (this.#hash?.(text) ?? text) : text;
    const known = this.#free.get(key);
    if (known !== undefined) return known ?? text;
    const made = this.#known.without(this.#open(text), (all, part) => this.#doors.names.has(all, part));
    if (this.#free.size >= FREE_MAX) this.#free.clear();
    this.#free.set(key, made === text ? null : made);
    return made;
  }

  standIn(text: string): string {
    if (text === '') return '';
    const known = this.#known.of(text);
    if (known !== null) return known;
    // The node may read it by another door, and take it apart.
    if (isCredentials(text)) return this.#credentials(text);
    return this.#learn(
      text,
      this.#like(text, (draw, more) => likeText(text, draw, more)),
    );
  }

  /** Of `length` bytes that nothing in the tree reads. Nothing of them is looked for elsewhere. */
  opaque(text: string, length: number): Json {
    const digest = this.#hash?.(text) ?? text;
    return { $: 'x', v: digest.repeat(Math.ceil(length / Math.max(1, digest.length))).slice(0, length) };
  }

  /** What the tree says, as a replay compares it. */
  masked(json: Json, of?: { name: string; args: readonly unknown[] }): Masked {
    const by = { shown: (said: Said) => this.#shown(said), doorOf: (key: string, owner: object, at: Place) => this.door(key, owner, at) };
    if (of === undefined) return masked(json, by);
    const { name, args } = of;
    return masked(json, { ...by, itemAt: (i) => ({ key: '', door: this.#doors.ofArgument(name, args, i) }) });
  }

  /** What the tree publishes: its texts are sentences, in which a short word of a command may stand. */
  maskedSentences(json: Json): Masked {
    const shown = (said: Said): Shown => (this.#hasWord(said.text) ? 'nothing' : this.#shown(said));
    return masked(json, { shown, doorOf: (key: string, owner: object, at: Place) => this.door(key, owner, at) });
  }

  #hasWord(text: string): boolean {
    return [...text.matchAll(WORDS)].some(([word, quoted]) => this.#known.of(quoted ?? word) !== null);
  }

  /** Whether a text for people is not compared, since it has a secret in it. */
  hides(text: string): boolean {
    return this.#shown({ text, base64: false, at: { key: '', door: 'free' } }) !== 'all';
  }

  #shown({ text, base64, at: { door } }: Said): Shown {
    if (text === '') return 'all';
    const whole = base64 ? bytesKey(text) : text;
    const known = this.#known.of(whole);
    const isFree = door === 'open' || door === 'free' || door === 'kept';
    if (known !== null)
      return [known, isFree && !base64 ? this.free(text) : whole].every(({ length }) => length === whole.length) ? 'length' : 'nothing';
    if (isFree) return this.#holds(text) ? 'nothing' : 'all';
    switch (door) {
      case 'image':
        return userOfImage(text) !== null || this.#holds(text) ? 'nothing' : 'all';
      case 'option':
        return hasSecretOption(text) || this.#holds(text) ? 'nothing' : 'all';
      case 'link':
        return !isOpenLink(text) || this.#holds(text) ? 'nothing' : 'all';
      case 'words':
      case 'secret':
      case 'variable':
      case 'variables':
      case 'lines':
      case 'label':
        return 'length';
      default:
        return 'nothing';
    }
  }

  #holds(text: string): boolean {
    if (PRIVATE_KEY.test(text) || text.includes(WEB_SOCKET_TOKEN)) return true;
    if (text.includes('eyJ') && text.search(JWT) >= 0) return true;
    if (hasSecretUrl(text) || text.search(AUTHORIZATION) >= 0) return true;
    return this.#known.isIn(text);
  }

  #open(text: string): string {
    if (text.length < 4) return text;
    const json = /^\s*[{[]/.test(text) ? parsedOf(text) : undefined;
    if (json !== undefined) {
      if (isDeep(json)) return this.standIn(text);
      const made = withTexts(
        json,
        { key: '', door: 'open' },
        { doorOf: (key, owner, at) => this.door(key, owner, at), text: (t, at) => this.text(t, at) },
      );
      return made === json ? text : JSON.stringify(made) + (text.endsWith('\n') ? '\n' : '');
    }
    if (text.includes('PRIVATE KEY-----') && PRIVATE_KEY.test(text)) return this.standIn(text);
    let made = text;
    if (made.includes('://')) made = this.#links.urls(made);
    if (made.includes(WEB_SOCKET_TOKEN))
      made = made
        .split(WEB_SOCKET_TOKEN)
        .map((part, i) => (i === 0 ? part : part.replace(/^[\w-]+/, (token) => this.standIn(token))))
        .join(WEB_SOCKET_TOKEN);
    if (made.includes('eyJ')) made = made.replace(JWT, (_, before: string, token: string) => before + this.#token(token));
    return made.replace(AUTHORIZATION, (_, scheme: string, blanks: string, token: string) => scheme + blanks + this.standIn(token));
  }

  #words(text: string): string {
    return this.#between(text, REFERENCE);
  }

  /** What matches `kept` stays. */
  #between(text: string, kept: RegExp): string {
    if (!kept.test(text)) return this.standIn(text);
    let from = 0;
    let made = '';
    for (const match of text.matchAll(new RegExp(kept, 'g'))) {
      made += this.standIn(text.slice(from, match.index)) + match[0];
      from = match.index + match[0].length;
    }
    return made + this.standIn(text.slice(from));
  }

  #variable(text: string): string {
    const at = text.indexOf('=');
    return at < 0 ? this.standIn(text) : text.slice(0, at + 1) + this.#words(text.slice(at + 1));
  }

  #line(line: string): string {
    const name = /^\s*(?:#.*|[\w.-]+\s*=\s*)/.exec(line)?.[0];
    if (name === undefined) return this.#between(line, QUOTES);
    return name.trimStart().startsWith('#') ? line : name + this.#between(line.slice(name.length), QUOTES);
  }

  #base64(text: string, inner: (bytes: Uint8Array) => Uint8Array): string {
    const decoded = decodedBase64(text);
    if (decoded === null) return this.standIn(text);
    const known = this.#known.of(text);
    if (known !== null) return known;
    if (this.#hash === null) return this.#learn(text, text);
    const made = encodedBase64(inner(decoded));
    return this.#learn(text, text.trimEnd().length % 4 === 0 ? made : made.replace(/=+$/, ''));
  }

  #bytes(bytes: Uint8Array): Uint8Array {
    const text = textOf(bytes);
    if (text !== null) return new TextEncoder().encode(this.standIn(text));
    const key = encodedBase64(bytes);
    const known = this.#known.of(bytesKey(key));
    const made = known ?? this.#learn(bytesKey(key), bytesKey(encodedBase64(this.#likeBytes(bytes, key))));
    const like = decodedBase64(made.slice(BYTES.length)) ?? bytes;
    // Where the tree takes them for a text.
    if (known === null) this.#learn(lossy.decode(bytes), lossy.decode(like));
    return like;
  }

  #likeBytes(bytes: Uint8Array, key: string): Uint8Array {
    const made = this.#like(bytesKey(key), (draw) => bytesKey(encodedBase64(likeBytes(bytes, draw))));
    return decodedBase64(made.slice(BYTES.length)) ?? bytes;
  }

  #nameAndPassword(bytes: Uint8Array): Uint8Array {
    const at = bytes.indexOf(':'.charCodeAt(0));
    if (at < 0) return this.#bytes(bytes);
    return Uint8Array.from([...this.#bytes(bytes.subarray(0, at)), ...bytes.subarray(at, at + 1), ...this.#bytes(bytes.subarray(at + 1))]);
  }

  /** All of its texts but keys, in their places. */
  #credentials(text: string): string {
    const known = this.#known.of(text);
    if (known !== null) return known;
    if (documentOf(text) === undefined) return this.standIn(text);
    let key = '';
    const made = text.replace(TEXT_OF_JSON, (token, colon: string | undefined) => {
      const value = JSON.parse(colon === undefined ? token : token.slice(0, -colon.length)) as string;
      if (colon !== undefined) {
        key = value;
        return token;
      }
      if (ANSWER_KEYS.has(key)) return token;
      const hidden = key === 'auth' ? this.text(value, { key, door: 'auth' }) : this.standIn(value);
      return hidden === value ? token : JSON.stringify(hidden);
    });
    return this.#learn(text, made);
  }

  #token(text: string): string {
    const scheme = SCHEME.exec(text)?.[0] ?? '';
    const token = text.slice(scheme.length);
    if (/^\s*basic/i.test(scheme)) return scheme + this.text(token, { key: 'auth', door: 'auth' });
    // The tree takes the first word for the token.
    return scheme + (WHOLE_JWT.test(token) ? this.#webToken(token) : this.text(token, { key: '', door: 'line' }));
  }

  /** The tree reads when it expires. */
  #webToken(token: string): string {
    const known = this.#known.of(token);
    if (known !== null || this.#hash === null) return known ?? this.#learn(token, token);
    const [header = '', payload = '', signature = ''] = token.split('.');
    const like = (text: string): string => this.#like(text, (draw, more) => likeText(text, draw, more));
    const claims = parsedOf(textOf(decodedBase64(payload.replaceAll('-', '+').replaceAll('_', '/')) ?? new Uint8Array()) ?? '');
    const hidden = (value: unknown): unknown => {
      if (typeof value === 'string') return like(value);
      if (Array.isArray(value)) return value.map(hidden);
      return isRecord(value) ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, hidden(v)])) : value;
    };
    const made =
      isRecord(claims) && !isDeep(claims)
        ? encodedBase64(new TextEncoder().encode(JSON.stringify(hidden(claims))))
            .replaceAll('+', '-')
            .replaceAll('/', '_')
            .replace(/=+$/, '')
        : like(payload);
    return this.#learn(token, [header, made, like(signature)].join('.'));
  }

  /** It stays one that a label may have. A downward API shows it in quotes. */
  #label(text: string): string {
    const known = this.#known.of(text);
    if (known !== null) return known;
    if (!LETTER.test(text)) return this.standIn(text);
    const like = (draw: Draw, more: boolean) =>
      text
        .split(LABEL_SIGNS)
        .map((part, i) => (i % 2 === 1 ? part : likeText(part, draw, more)))
        .join('');
    const made = this.#learn(text, this.#like(text, like));
    this.#learn(goQuote(text), goQuote(made));
    return made;
  }

  /** Nothing of it is looked for elsewhere: a log is long, and what the tree serves of it is not compared. */
  #piece(bytes: Uint8Array): Uint8Array {
    const hash = this.#hash;
    if (hash === null) return bytes;
    const random = seeded(Number.parseInt(hash(encodedBase64(bytes)).slice(0, 8), 16));
    return likePiece(bytes, (below) => Math.floor(random() * below));
  }

  #like(text: string, make: (draw: Draw, more: boolean) => string, isTaken = (_: string) => false): string {
    if (this.#hash === null) return text;
    let made = text;
    for (let i = 0; i < TRIES_MAX && (made === text || this.#known.isTaken(made) || isTaken(made)); i++) {
      const random = seeded(Number.parseInt(this.#hash(`${i} ${text}`).slice(0, 8), 16));
      made = make((below) => Math.floor(random() * below), i >= FIRST_TRIES);
    }
    return made;
  }

  #learn(text: string, made: string): string {
    this.#known.add(text, made);
    return made;
  }
}

const lossy = new TextDecoder('utf-8', { ignoreBOM: true });
/** Before base64 of bytes that are no text: no text begins so. */
const BYTES = '\0bytes ';
function bytesKey(base64: string): string {
  return BYTES + base64;
}
