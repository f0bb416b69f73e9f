/** From the bytes of a manifest to plain data: UTF-8, JSON or one YAML document, with limits against hostile input. */

import { type Document, isScalar, LineCounter, parseAllDocuments, type Tags, visit, type YAMLError } from 'yaml';
import { messageOf } from '../../../machines/text/errors.ts';

/** Largest manifest file and largest HTTP body (spec: pod lifecycle 1.2 and 1.3). */
export const MANIFEST_BYTES_MAX = 10 * 1024 * 1024;
/**
 * Largest YAML text. YAML is parsed on the main thread at a few MiB a second, so a bigger one would hold everything
 * up; JSON is fast and may use the whole limit. Far above any real Pod: an API object is at most 1.5 MiB.
 */
const YAML_BYTES_MAX = 1536 * 1024;
/** Aliases may multiply the document by this much. */
const ALIASES_MAX = 100;
/** Aliases in one document. */
const ALIAS_NODES_MAX = 1_000;
/** Deepest nesting taken; a Pod needs about a dozen levels. */
const DEPTH_MAX = 100;
/** Brackets open at the same time before the text is parsed at all. */
const OPEN_MAX = 500;

export type Parsed = { ok: true; value: unknown } | { ok: false; message: string };

const textOf = new TextDecoder('utf-8', { fatal: true });

/**
 * YAML 1.1 as Kubernetes tools read it: yes/no/on/off are booleans, 0644 is octal, `<<` merges. Times, sexagesimal
 * numbers and binary stay the strings they were written as.
 */
function kubernetesTags(tags: Tags): Tags {
  const unwanted = new Set(['timestamp', 'binary', 'omap', 'pairs', 'set', 'intTime', 'floatTime']);
  return tags.flatMap((t): Tags => {
    if (typeof t === 'string') return unwanted.has(t) ? [] : [t];
    const name = t.tag.slice(t.tag.lastIndexOf(':') + 1);
    if (unwanted.has(name) || ('format' in t && t.format === 'TIME')) return [];
    // A bare y or n is a name or a flag far more often than a boolean, and Kubernetes tools read it as text.
    if (name === 'bool' && 'test' in t && t.test !== undefined) {
      const own = t.test;
      const strict = new RegExp(`^(?![YyNn]$)${own.source.replace(/^\^/, '')}`);
      return [{ ...t, test: strict }];
    }
    return [t];
  });
}

function firstLine(e: YAMLError): string {
  return (e.message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/, '');
}

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

function parseYaml(text: string): Parsed {
  const lines = new LineCounter();
  // The parser's own check for equal keys compares each key with all before it.
  const docs = parseAllDocuments(text, {
    lineCounter: lines,
    version: '1.1',
    customTags: kubernetesTags,
    prettyErrors: true,
    uniqueKeys: false,
    merge: true,
    logLevel: 'silent',
  });
  if (!Array.isArray(docs)) return { ok: false, message: 'the document is empty' };
  for (const doc of docs) {
    const error = doc.errors[0];
    if (error === undefined) continue;
    const at = error.linePos?.[0] ?? lines.linePos(error.pos[0]);
    return { ok: false, message: `line ${at.line}, column ${at.col}: ${firstLine(error)}` };
  }
  const values: unknown[] = [];
  for (const doc of docs) {
    const wrong = unusable(doc);
    if (wrong !== null) {
      const at = lines.linePos(wrong.offset);
      return { ok: false, message: `line ${at.line}, column ${at.col}: ${wrong.what}` };
    }
    const value: unknown = doc.contents === null ? null : doc.toJS({ maxAliasCount: ALIASES_MAX });
    if (value !== null) values.push(value);
  }
  if (values.length === 0) return { ok: false, message: 'the document is empty' };
  if (values.length > 1)
    return { ok: false, message: `${values.length} YAML documents in one manifest; put each pod in a file of its own` };
  return { ok: true, value: values[0] };
}

/**
 * What a manifest must not have, looked at before values are made of it: the library writes each level of a key that is a
 * list or a mapping anew for each level around it, and walks all anchors for each alias.
 */
function unusable(doc: Document): { offset: number; what: string } | null {
  let wrong: { offset: number; what: string } | null = null;
  let aliases = 0;
  const refuse = (offset: number | undefined, what: string): symbol => {
    wrong = { offset: offset ?? 0, what };
    return visit.BREAK;
  };
  visit(doc, {
    Alias: (_, alias) => (++aliases > ALIAS_NODES_MAX ? refuse(alias.range?.[0], `more than ${ALIAS_NODES_MAX} aliases`) : undefined),
    Map: (_, map) => {
      const keys = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) return refuse(map.range?.[0], 'a key must be text, not an alias, a list or a mapping');
        if (keys.has(key.value)) return refuse(key.range?.[0], 'Map keys must be unique');
        keys.add(key.value);
      }
      return undefined;
    },
  });
  return wrong;
}

/** Parses one manifest. Never throws; the message carries line and column where the text is at fault. */
export function parseManifest(bytes: Uint8Array): Parsed {
  let text: string;
  try {
    text = textOf.decode(bytes);
  } catch {
    return { ok: false, message: 'not UTF-8 text' };
  }
  if (text.trim() === '') return { ok: false, message: 'the document is empty' };
  const result = parseText(text, bytes.byteLength);
  if (!result.ok) return result;
  const extent = extentOf(result.value, DEPTH_MAX + 1, new Map());
  if (extent.depth > DEPTH_MAX) return { ok: false, message: `nested more than ${DEPTH_MAX} levels deep` };
  // JSON has no aliases: it is as large as its bytes.
  if (extent.size > Math.max(bytes.byteLength, YAML_BYTES_MAX))
    return { ok: false, message: `larger than ${YAML_BYTES_MAX} characters with its aliases written out` };
  return result;
}

function parseText(text: string, bytes: number): Parsed {
  if (text.trimStart().startsWith('{')) {
    try {
      return { ok: true, value: JSON.parse(text) };
    } catch {
      // A flow mapping of YAML begins with a brace too, and the YAML parser names line and column.
    }
  }
  if (bytes > YAML_BYTES_MAX)
    return { ok: false, message: `larger than ${YAML_BYTES_MAX} bytes of YAML; write so large a manifest as JSON` };
  if (hopelesslyNested(text)) return { ok: false, message: 'nested too deeply' };
  try {
    return parseYaml(text);
  } catch (error) {
    if (error instanceof RangeError) return { ok: false, message: 'nested too deeply' };
    const what = messageOf(error);
    return { ok: false, message: /alias/i.test(what) ? `aliases: ${what}` : what };
  }
}
