/** What somebody who means harm writes where anything can be written: values, changes of valid documents, changes of text. */
import fc from 'fast-check';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const LENGTH_MAX = 4_000;
/** Snippets that have broken parsers, paths, logs and expressions before. */
const NASTY: readonly string[] = [
  ...['', ' ', '\0', '\n', '\r\n', '\t', '\u001b[2J', '\u202e', '\ud800', '\ufeff', '😀'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty'],
  ...['..', '.', '/', '//', '../../etc/passwd', '/proc/self/fd/0', '..data'],
  ...['$(A)', '$$', '$(A', '%s%n', '{{', '}}', '*', '**', '-', '--', '=', ':', '::', ',', '@'],
  ...['#', '&a', '*a', '<<', '!!js/function', 'null', 'true'],
  ...['NaN', 'Infinity', '-0', '1e999', '1e-999', '9'.repeat(40), '0x10', '1Ki', '1e3Ki', '.5', '5.', '-1', '1.2.3.4'],
  ...['1.2.3.4/33', '::ffff:1.2.3.4'],
  ...['a'.repeat(254), 'a.'.repeat(130), 'a-'.repeat(40), 'sha256:', 'x@sha256:00', 'x:5000/y:z', '2024-13-45T99:99:99Z'],
  ...['9999999-01-01T00:00:00Z', '1h1h', '1000000h', '[::1]', 'http://', 'unix:///', 'file:///etc/passwd'],
];

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...NASTY) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...NASTY.filter((t) => t !== '')), fc.integer({ min: 2, max: LENGTH_MAX }), fc.constantFrom('', 'b', '\n'))
      .map(([unit, times, end]) => unit.repeat(Math.min(times, Math.ceil(LENGTH_MAX / unit.length))) + end),
  },
);
const hostileNumber = fc.constantFrom(0, -0, -1, 1, 0.5, 65_535, 65_536, 2 ** 31, 2 ** 32, 2 ** 53, -(2 ** 53), 1e21, 1e308, -1e308);

export const hostileValue: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: hostileText },
  { weight: 2, arbitrary: hostileNumber },
  { weight: 1, arbitrary: fc.constantFrom<Json>(null, true, false, [], {}, [null], [[]], [{}], { '': '' }) },
  { weight: 1, arbitrary: fc.array(hostileText, { maxLength: 5 }) },
  { weight: 1, arbitrary: fc.dictionary(hostileText, hostileText, { maxKeys: 5, noNullPrototype: true }) },
  { weight: 1, arbitrary: fc.integer({ min: 2, max: 300 }).map(nested) },
);
function nested(depth: number): Json {
  let value: Json = {};
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

/** One change of a document. `at` chooses the place, whatever the document has become by then. */
interface Edit {
  kind: 'replace' | 'remove' | 'add' | 'repeat' | 'copy';
  at: number;
  other: number;
  key: string;
  value: Json;
}
const edit = (kinds: readonly Edit['kind'][], value: fc.Arbitrary<Json>): fc.Arbitrary<Edit> =>
  fc.record({ kind: fc.constantFrom(...kinds), at: fc.nat(), other: fc.nat(), key: hostileText, value });

interface Place {
  owner: Json[] | { [key: string]: Json };
  key: string | number;
}
function places(root: Json): Place[] {
  const found: Place[] = [];
  const walk = (value: Json): void => {
    if (typeof value !== 'object' || value === null) return;
    const keys: (string | number)[] = Array.isArray(value) ? value.map((_, i) => i) : Object.keys(value);
    for (const key of keys) {
      found.push({ owner: value, key });
      walk(read({ owner: value, key }));
    }
  };
  walk(root);
  return found;
}
function read({ owner, key }: Place): Json {
  return (owner as Record<string | number, Json>)[key] ?? null;
}
function write({ owner, key }: Place, value: Json): void {
  Object.defineProperty(owner, key, { value: structuredClone(value), enumerable: true, configurable: true, writable: true });
}

/** What a server with a schema asks for in a pod or a node. */
const REQUIRED: ReadonlySet<string> = new Set([
  ...['metadata', 'spec', 'status', 'name', 'namespace', 'uid', 'containers', 'image', 'mountPath', 'containerPort', 'port'],
  ...['key', 'operator'],
  ...['path', 'ip', 'type', 'fieldPath', 'resource', 'conditionType', 'state', 'lastState', 'ready', 'restartCount', 'imageID'],
  ...['address', 'effect'],
  ...['value', 'driver', 'claimName', 'values', 'nodeSelectorTerms', 'requiredDuringSchedulingIgnoredDuringExecution', 'sources'],
  ...['action', 'exitCodes'],
]);
/** Of one list, at once. */
const REPEATS_MAX = 200;
/** A document with more is not made larger. */
const PLACES_MAX = 2_000;

function apply(root: Json, e: Edit, typed: boolean): void {
  const all = places(root);
  if (all.length > PLACES_MAX) return;
  const place = all[e.at % Math.max(1, all.length)];
  const other = all[e.other % Math.max(1, all.length)];
  if (place === undefined || other === undefined) return;
  const now = read(place);
  if (e.kind === 'replace') {
    const alike = typeof now === typeof e.value && Array.isArray(now) === Array.isArray(e.value);
    if (!typed || (alike && (typeof now !== 'object' || now === null))) write(place, e.value);
  } else if (e.kind === 'remove') {
    if (Array.isArray(place.owner)) {
      if (!typed || place.owner.length > 1) place.owner.splice(Number(place.key), 1);
    } else if (!typed || !REQUIRED.has(String(place.key))) delete place.owner[place.key];
  } else if (e.kind === 'add') {
    if (Array.isArray(now)) now.push(structuredClone(e.value));
    else if (typeof now === 'object' && now !== null) write({ owner: now, key: e.key }, e.value);
  } else if (e.kind === 'repeat') {
    if (Array.isArray(now)) for (let i = e.other % REPEATS_MAX; i > 0 && now.length > 0; i--) now.push(structuredClone(now[0] ?? null));
  } else write(place, read(other));
}

/** A valid document with some changes of any kind. */
export function changed(base: Json): fc.Arbitrary<Json> {
  const edits = fc.array(edit(['replace', 'replace', 'remove', 'add', 'repeat', 'copy'], hostileValue), { minLength: 1, maxLength: 6 });
  return edits.map((list) => withEdits(base, list, false));
}
const WIRE_INTEGERS: readonly string[] = ['0', '-1', '1', '9223372036854775807', '-9223372036854775808', '1714557600000000000'];
const UNKNOWN_ENUM = 99;
const INT32_MAX = 2 ** 31 - 1;
/** What gRPC can give in the place of a value: the same type, enums by name or, when unknown, by number, 64 bits as text. */
function wireValue(now: Json, { key }: Place, e: Edit): Json {
  if (typeof now === 'number') return [0, -1, INT32_MAX, -INT32_MAX][e.other % 4] ?? 0;
  if (typeof now === 'boolean') return !now;
  if (typeof now === 'string' && /^-?\d+$/.test(now)) return WIRE_INTEGERS[e.other % WIRE_INTEGERS.length] ?? '0';
  if (typeof now === 'string' && /^[A-Z]+_[A-Z]+$/.test(now)) return UNKNOWN_ENUM;
  if (typeof now === 'string') return String(e.value).toWellFormed();
  // A message that is not there; lists and maps are always there.
  return Array.isArray(now) ? [] : MAPS.has(key) ? {} : null;
}
const MAPS: ReadonlySet<string | number> = new Set(['labels', 'annotations']);
/** An answer as gRPC decodes it, with some values changed. */
export function changedOnWire(base: Json): fc.Arbitrary<Json> {
  return fc.array(edit(['replace', 'repeat'], hostileText), { minLength: 1, maxLength: 8 }).map((list) => {
    const root: Json = structuredClone(base);
    for (const e of list) {
      const all = places(root);
      const place = all[e.at % Math.max(1, all.length)];
      if (place === undefined) continue;
      const now = read(place);
      const inList = Array.isArray(place.owner);
      if (e.kind === 'repeat') apply(root, e, true);
      else if (!inList || typeof now !== 'object') write(place, wireValue(now, place, e));
    }
    return root;
  });
}
/** The same, but every value keeps its type: what a server with a schema lets through. */
export function changedInType(base: Json): fc.Arbitrary<Json> {
  const whole = fc.constantFrom(0, -1, 1, 65_535, 65_536, 2 ** 31 - 1, -(2 ** 31));
  const value = fc.oneof<fc.Arbitrary<Json>[]>(hostileText, whole, fc.boolean());
  const edits = fc.array(edit(['replace', 'replace', 'replace', 'remove', 'repeat'], value), { minLength: 1, maxLength: 8 });
  return edits.map((list) => withEdits(base, list, true));
}
function withEdits(base: Json, list: readonly Edit[], typed: boolean): Json {
  const root: Json = structuredClone(base);
  for (const e of list) apply(root, e, typed);
  return root;
}

/** A text with parts of it cut, repeated, or other text put in. */
export function changedText(base: fc.Arbitrary<string>, more: readonly string[] = []): fc.Arbitrary<string> {
  const cut = fc.record({
    kind: fc.constantFrom('put', 'cut', 'repeat', 'end'),
    at: fc.nat(),
    length: fc.nat({ max: 200 }),
    times: fc.integer({ min: 2, max: 60 }),
    text: fc.oneof(hostileText, fc.constantFrom('', ...more)),
  });
  return fc.tuple(base, fc.array(cut, { maxLength: 5 })).map(([text, cuts]) =>
    cuts.reduce((now, c) => {
      const at = c.at % (now.length + 1);
      if (c.kind === 'put') return now.slice(0, at) + c.text + now.slice(at);
      if (c.kind === 'cut') return now.slice(0, at) + now.slice(at + c.length);
      if (c.kind === 'end') return now.slice(0, at);
      return now.slice(0, at) + now.slice(at, at + c.length).repeat(c.times) + now.slice(at + c.length);
    }, text),
  );
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
