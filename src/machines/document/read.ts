/**
 * The one reader of documents: manifests and configuration, YAML or JSON, read as Kubernetes' Go programs read them. A text that
 * begins with a brace is JSON. Of YAML the first document counts, with the rules of YAML 1.1 (`scalar.ts`). Of a field that
 * is there twice the last one counts. What was read leniently is a note. Pure.
 */
import { cut } from '../text/errorList.ts';
import { messageOf } from '../text/errors.ts';
import { type Places, readJson, type Twice } from './json.ts';
import { readYaml } from './yaml.ts';

/** What a reader of the text may not have meant, and how it was taken. */
interface DocumentNote {
  line: number;
  what: string;
}
export type DocumentRead =
  | {
      ok: true;
      /** Plain data; null for a text without a document. */
      value: unknown;
      notes: readonly DocumentNote[];
      /** Line of a field or an element: `holder` is the object or list of `value` that has it. */
      lineOf(holder: object, key: string | number): number | undefined;
    }
  | { ok: false; line: number; column: number; message: string };

/**
 * Largest YAML text. YAML is parsed at a few MiB a second, so a bigger one would hold everything up; JSON is fast. Far above
 * any real object: one of the API is at most 1.5 MiB.
 */
const YAML_CHARS_MAX = 1536 * 1024;
/** Deepest nesting taken; a Pod needs about a dozen levels. */
const LEVELS_MAX = 100;
/** Brackets open at the same time before the text is parsed at all. */
const OPEN_MAX = 500;
const NOTES_MAX = 20;
const KEY_CHARS_MAX = 100;

interface Extent {
  /** Levels of lists and mappings. */
  depth: number;
  /** Characters of names and texts and one for each value, with what aliases repeat. */
  size: number;
}

/** `known`: what aliases point at is one object, measured once however often it is repeated. */
function extentOf(value: unknown, levels: number, known: Map<object, Extent>): Extent {
  if (typeof value === 'string') return { depth: 0, size: value.length + 1 };
  if (typeof value !== 'object' || value === null) return { depth: 0, size: 1 };
  const before = known.get(value);
  if (before !== undefined) return before;
  const extent = { depth: 1, size: 1 };
  // Deeper than this it is refused: nothing of it is copied or written out.
  for (const [key, part] of levels === 0 ? [] : Object.entries(value)) {
    const of = extentOf(part, levels - 1, known);
    extent.depth = Math.max(extent.depth, of.depth + 1);
    extent.size += of.size + (Array.isArray(value) ? 0 : key.length);
  }
  known.set(value, extent);
  return extent;
}

/**
 * The parser takes tens of milliseconds to give up on a few hundred open brackets, and seconds on a megabyte of them, so such
 * text is turned away before. Counting is rough (it does not know strings), hence a limit above that of levels.
 */
function hopelesslyNested(text: string): boolean {
  if (/(?:- ){200}/.test(text)) return true;
  let open = 0;
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (c === 0x5b || c === 0x7b) open += 1;
    else if (c === 0x5d || c === 0x7d) open -= 1;
    if (open > OPEN_MAX) return true;
  }
  return false;
}

/** Lines of offsets into a text, from the beginnings of its lines. */
function linesOf(text: string): (offset: number) => { line: number; column: number } {
  let starts: number[] | null = null;
  return (offset) => {
    if (starts === null) {
      starts = [0];
      for (const { index } of text.matchAll(/\n|\r(?!\n)/g)) starts.push(index + 1);
    }
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

/** Text of bytes: UTF-8, or UTF-16 with a byte order mark. Null: neither. */
export function textOf(bytes: Uint8Array): string | null {
  const [a, b] = bytes;
  const encoding = a === 0xff && b === 0xfe ? 'utf-16le' : a === 0xfe && b === 0xff ? 'utf-16be' : 'utf-8';
  const text = new TextDecoder(encoding, { ignoreBOM: encoding === 'utf-8' }).decode(bytes);
  // Bytes that are no text become a mark. Go's JSON takes them so; YAML does not.
  return text.includes('\ufffd') && !isJson(text) && !isText(bytes, encoding) ? null : text;
}

function isText(bytes: Uint8Array, encoding: string): boolean {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function isJson(text: string): boolean {
  // What begins with a byte order mark is YAML to Kubernetes.
  return !text.startsWith('\ufeff') && /^[\s\x85]*\{/.test(text);
}

/** Never throws. */
export function readDocument(text: string): DocumentRead {
  let at = linesOf(text);
  const wrong = (offset: number, message: string): DocumentRead => ({ ok: false, ...at(offset), message });
  const notes: DocumentNote[] = [];
  const noteTwice = (twice: readonly Twice[]): void => {
    for (const { key, offset } of twice.slice(0, NOTES_MAX))
      notes.push({ line: at(offset).line, what: `${cut(key, KEY_CHARS_MAX)} is there more than once; the last one counts` });
  };
  const taken = (value: unknown, places: Places, charsMax: number): DocumentRead => {
    const extent = extentOf(value, LEVELS_MAX + 1, new Map());
    if (extent.depth > LEVELS_MAX) return wrong(0, `nested more than ${LEVELS_MAX} levels deep`);
    if (extent.size > charsMax) return wrong(0, `larger than ${charsMax} characters with its aliases written out`);
    const lineOf = (holder: object, key: string | number): number | undefined => {
      const offset = places.get(holder)?.get(key);
      return offset === undefined ? undefined : at(offset).line;
    };
    return { ok: true, value, notes, lineOf };
  };
  if (isJson(text)) {
    const json = readJson(text);
    if (!json.ok) return wrong(json.offset, json.what);
    noteTwice(json.twice);
    // JSON has no aliases: it is as large as its text.
    return taken(json.value, json.places, Number.POSITIVE_INFINITY);
  }
  if (text.length > YAML_CHARS_MAX) return wrong(0, `larger than ${YAML_CHARS_MAX} characters of YAML; write so large a document as JSON`);
  if (hopelesslyNested(text)) return wrong(0, 'nested too deeply');
  try {
    const yaml = readYaml(text);
    if (yaml.ok && yaml.next !== null)
      notes.push({ line: at(yaml.next).line, what: 'another document begins here; only the first one of a file counts' });
    at = linesOf(yaml.text);
    if (!yaml.ok) return wrong(yaml.offset, yaml.what);
    noteTwice(yaml.twice);
    return taken(yaml.value, yaml.places, YAML_CHARS_MAX);
  } catch (error) {
    return wrong(0, error instanceof RangeError ? 'nested too deeply' : messageOf(error));
  }
}
