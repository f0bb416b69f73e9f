/**
 * Stand-ins for what is secret. The same value has the same stand-in within one recording, of the same length, under a key
 * that nothing keeps. Letters stay letters and digits stay digits, so that what reads the value's shape reads the same.
 */
import { isRecord } from '../machines/shape/conform.ts';
import type { Json } from './entries.ts';

/** Shorter ones are replaced where they stand as a secret, and left alone where they may be an ordinary word. */
const FOUND_ANYWHERE_MIN = 8;
/** Bounds what is looked for in each text. Later ones are still replaced where they stand as a secret. */
const KNOWN_MAX = 2_000;
const LOOKED_AT_CHARS_MAX = 128;
const LOOKED_AT_MAX = 4_000;
/** Characters of secrets that are compared with one text: a quarter of a second. A pod may have thousands that begin alike. */
const COMPARED_CHARS_MAX = 50_000_000;
/** No document that the tree reads is nested as deep. The stack holds some thousand levels. */
const LEVELS_MAX = 200;
/** Environment values that keep no secret, and that programs read. */
const OPEN_VALUE = /^(?:|true|false|\d{1,5}|.{1,3})$/s;
const SECRET_KEYS: ReadonlySet<string> = new Set(
  ['token', 'password', 'passwd', 'auth', 'authorization', 'cookie', 'identityToken', 'identity_token', 'registryToken', 'registry_token']
    .concat(['secrets', 'privateKey', 'proxy-authorization', 'staticPodURLHeader', 'client-key-data'])
    .map((key) => key.toLowerCase()),
);
/** Of keys that were looked at: the same few thousand come again and again. */
const seenKeys = new Map<string, boolean>();
const SEEN_KEYS_MAX = 4_096;
function isSecretKey(key: string): boolean {
  let secret = seenKeys.get(key);
  if (secret === undefined) {
    secret = SECRET_KEYS.has(key.toLowerCase());
    if (seenKeys.size < SEEN_KEYS_MAX) seenKeys.set(key, secret);
  }
  return secret;
}
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
/**
 * Three parts of base64url, the first of which is the header of a JSON Web Token, or ends with one. It is looked for from where a
 * part begins, where two more follow: from each `eyJ` of a text of many, it would take minutes.
 */
const JWT = /(?<![\w-])(?=[\w-]+\.[\w-]{8,}\.[\w-])([\w-]*?)(eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)/g;
/** JSON with something in it that {@link Secrets.isSecret} may name. */
const MAY_HOLD = /^\s*\{[\s\S]*"(?:env|envs|data|stringData|token|password|auth|identityToken)"\s*:/;
const WHOLE_JWT = /^eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+$/;
const PRINTABLE = /^[\t\n\r -~]*$/;
/** A letter that takes as many bytes as this code point in UTF-8. */
function sameLength(code: number, by: number): string {
  if (code < 0x800) return String.fromCodePoint(0x430 + (by % 32));
  return String.fromCodePoint(code < 0x10000 ? 0x4e00 + (by % 256) : 0x20000 + (by % 256));
}
/** Before a token among the protocols that a WebSocket asks for. */
const WEB_SOCKET_TOKEN = 'base64url.bearer.authorization.k8s.io.';
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

export class Secrets {
  readonly #hash: (text: string) => string;
  readonly #known = new Map<string, string>();
  /** Those looked for in every text, by how they begin; longest first. */
  readonly #anywhere = new Map<string, string[]>();
  /** Their beginnings. */
  #pattern: RegExp | null = null;
  /** Names and paths come again and again. */
  readonly #lookedAt = new Map<string, string>();

  /** @param hash A keyed hash, as hexadecimal text. */
  constructor(hash: (text: string) => string) {
    this.#hash = hash;
  }

  /** Whether what `owner` has under this key is secret, in an object that stands under the key `above`. */
  static isSecret(key: string, owner: object, above: string): boolean {
    // `authorization` is a header, and a section of the node's configuration.
    if (isSecretKey(key)) return key !== 'authorization' || !isRecord(Reflect.get(owner, key));
    if (key === 'value') return above === 'env' || above === 'envs';
    // Items of a list have no kind; a ConfigMap has no type.
    if (key === 'data' || key === 'stringData') return isRecord(owner) && (owner.kind === 'Secret' || typeof owner.type === 'string');
    return key === 'command' && owner instanceof URLSearchParams;
  }

  /** The text as it is written down. */
  text(text: string, at: { key: string; secret: boolean }): string {
    if (!at.secret) return this.within(text);
    // The tree reads the scheme before a token.
    const scheme = at.key === 'authorization' ? (/^\s*\w+\s+/.exec(text)?.[0] ?? '') : '';
    return scheme + this.standIn(text.slice(scheme.length), at.key);
  }

  /** With every secret that is known in it replaced. */
  within(text: string): string {
    if (text.length < FOUND_ANYWHERE_MIN) return text;
    if (text.length > LOOKED_AT_CHARS_MAX) return this.#look(text);
    let found = this.#lookedAt.get(text);
    if (found === undefined) {
      found = this.#look(text);
      if (this.#lookedAt.size >= LOOKED_AT_MAX) this.#lookedAt.clear();
      this.#lookedAt.set(text, found);
    }
    return found;
  }

  #look(text: string): string {
    if (text.includes('PRIVATE KEY-----') && PRIVATE_KEY.test(text)) return this.standIn(text, '');
    if (MAY_HOLD.test(text)) {
      const parsed = jsonOf(text);
      if (isDeep(parsed)) return this.standIn(text, '');
      if (parsed !== undefined) return JSON.stringify(this.#data(parsed, '', '', false)) + (text.endsWith('\n') ? '\n' : '');
    }
    if (text.includes(WEB_SOCKET_TOKEN))
      return text
        .split(WEB_SOCKET_TOKEN)
        .map((part, i) => (i === 0 ? part : part.replace(/^[\w-]+/, (token) => this.standIn(token, 'token'))))
        .join(WEB_SOCKET_TOKEN);
    return this.#withoutKnown(
      text.includes('eyJ') ? text.replace(JWT, (_, before: string, token: string) => before + this.standIn(token, 'token')) : text,
    );
  }

  /** A pattern of whole secrets would take as long to make as a busy second has. */
  #withoutKnown(text: string): string {
    if (this.#anywhere.size === 0) return text;
    this.#pattern ??= new RegExp([...this.#anywhere.keys()].map((s) => s.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
    const pattern = this.#pattern;
    pattern.lastIndex = 0;
    let out = '';
    let from = 0;
    let compared = 0;
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      const { index } = match;
      const found = this.#anywhere.get(match[0])?.find((secret) => {
        compared += secret.length;
        return text.startsWith(secret, index);
      });
      if (compared > COMPARED_CHARS_MAX) return out + this.#letters(text.slice(from));
      pattern.lastIndex = index + (found?.length ?? 1);
      if (found === undefined) continue;
      out += text.slice(from, index) + (this.#known.get(found) ?? found);
      from = index + found.length;
    }
    return from === 0 ? text : out + text.slice(from);
  }

  /** The text as a replay compares it with what {@link within} wrote. */
  static normal(text: string): string {
    if (text.length < FOUND_ANYWHERE_MIN || !MAY_HOLD.test(text)) return text;
    const parsed = jsonOf(text);
    return parsed === undefined || isDeep(parsed) ? text : JSON.stringify(parsed) + (text.endsWith('\n') ? '\n' : '');
  }

  /** The stand-in of base64 text where it is known as a secret. */
  exactly(text: string): string {
    return this.#known.get(text) ?? text;
  }

  /** Of `length` bytes that nothing in the tree reads. Nothing of them is looked for elsewhere. */
  opaque(text: string, length: number): Json {
    const digest = this.#hash(text);
    return { $: 'x', v: digest.repeat(Math.ceil(length / digest.length)).slice(0, length) };
  }

  /** Of a decoded document. */
  #data(value: unknown, key: string, above: string, secret: boolean): unknown {
    if (typeof value === 'string') return this.text(value, { key, secret });
    if (Array.isArray(value)) return value.map((item) => this.#data(item, key, above, secret));
    if (!isRecord(value)) return value;
    const entries = Object.entries(value);
    return Object.fromEntries(entries.map(([k, item]) => [k, this.#data(item, k, key, secret || Secrets.isSecret(k, value, key))]));
  }

  /** The stand-in of a secret; open values stay. */
  standIn(text: string, key: string): string {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (key === 'value' && OPEN_VALUE.test(text)) return text;
    // Words of a command: shorter ones go out again among others, where they cannot be told from those.
    if (key === 'command' && text.length < FOUND_ANYWHERE_MIN) return text;
    const made = this.#make(text, key);
    this.#learn(text, made);
    return made;
  }

  #make(text: string, key: string): string {
    const decoded = base64Text(text);
    if (decoded === null) return this.#inner(text);
    // The tree takes name and password of credentials apart, and shows the name.
    const name = /^auth/i.test(key) ? (/^[\w.@-]+:/.exec(decoded)?.[0] ?? '') : '';
    if (name !== '' && PRINTABLE.test(decoded)) return btoa(name + this.standIn(decoded.slice(name.length), 'password'));
    return PRINTABLE.test(decoded) ? btoa(this.#inner(decoded)) : btoa(atob(this.#inner(text)));
  }

  /** JSON keeps its shape: the tree reads what holds credentials of registries. */
  #inner(text: string): string {
    if (/^\s*[{[]/.test(text)) {
      const parsed = jsonOf(text);
      if (parsed !== undefined && !isDeep(parsed))
        return JSON.stringify(mapTexts(parsed, '', (leaf, key) => (/username|email/i.test(key) ? leaf : this.standIn(leaf, key))));
    }
    return this.#letters(text);
  }

  #letters(text: string): string {
    const seed = this.#hash(text);
    let at = 0;
    const next = (): number => {
      at += 1;
      return Number.parseInt(seed.slice((at * 2) % 62, ((at * 2) % 62) + 2), 16) + at;
    };
    return text.replace(/[\p{L}\p{N}]/gu, (c) => {
      if (c > '~') return sameLength(c.codePointAt(0) ?? 0, next());
      if (c >= '0' && c <= '9') return String(next() % 10);
      const letter = LETTERS[next() % 26] ?? 'x';
      return c >= 'a' ? letter : letter.toUpperCase();
    });
  }

  #learn(text: string, made: string): void {
    if (this.#known.size >= KNOWN_MAX) return;
    this.#known.set(text, made);
    const inner = base64Text(text);
    const madeInner = base64Text(made);
    if (inner !== null && madeInner !== null) this.#known.set(inner, madeInner);
    for (const one of inner === null || !PRINTABLE.test(inner) ? [text] : [text, inner]) this.#lookFor(one);
    this.#lookedAt.clear();
  }

  #lookFor(text: string): void {
    // Tokens are found by their shape.
    if (text.length < FOUND_ANYWHERE_MIN || WHOLE_JWT.test(text)) return;
    const begins = text.slice(0, FOUND_ANYWHERE_MIN);
    const list = this.#anywhere.get(begins);
    if (list === undefined) {
      this.#anywhere.set(begins, [text]);
      this.#pattern = null;
    } else {
      list.push(text);
      list.sort((a, b) => b.length - a.length);
    }
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isDeep(value: unknown, levels = LEVELS_MAX): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeep(item, levels - 1));
}

function mapTexts(value: unknown, key: string, map: (text: string, key: string) => string): unknown {
  if (typeof value === 'string') return map(value, key);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, key, map));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([k, item]) => [k, mapTexts(item, k, map)]));
}

/** What base64 text holds, byte by byte as Latin-1; null where the text is no canonical base64. */
function base64Text(text: string): string | null {
  if (text.length < 4 || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  const decoded = atob(text);
  return btoa(decoded) === text ? decoded : null;
}
