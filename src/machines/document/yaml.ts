/** The first document of a YAML text, as Kubernetes' Go programs read it: from the nodes of the `yaml` package to plain data. Pure. */
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Pair, parseDocument, type Scalar } from 'yaml';
import { put } from '../data/own.ts';
import type { Places, Twice } from './json.ts';
import { keyOf, plainScalar, taggedScalar } from './scalar.ts';

export type YamlDocument =
  | {
      ok: true;
      /** The text that the offsets are of: its lines are those of the source. */
      text: string;
      value: unknown;
      places: Places;
      twice: Twice[];
      /** Where in the source the next document begins that holds anything; null: there is none. */
      next: number | null;
    }
  | { ok: false; text: string; offset: number; what: string };

/** Aliases in one document, and levels of lists and mappings. */
const ALIASES_MAX = 1_000;
const LEVELS_MAX = 100;

class Wrong extends Error {
  readonly offset: number;
  constructor(offset: number | undefined, what: string) {
    super(what);
    this.offset = offset ?? 0;
  }
}

class Values {
  readonly places: Places = new Map();
  readonly twice: Twice[] = [];
  readonly #anchors = new Map<string, { value: unknown } | 'open'>();
  #aliases = 0;

  of(node: unknown, level = 0): unknown {
    if (node === null || node === undefined) return null;
    if (isAlias(node)) return this.#alias(node.source, node.range?.[0]);
    const anchor = (node as { anchor?: string }).anchor;
    if (anchor !== undefined) this.#anchors.set(anchor, 'open');
    const value = this.#plain(node as Node, level);
    if (anchor !== undefined) this.#anchors.set(anchor, { value });
    return value;
  }

  #alias(name: string, offset: number | undefined): unknown {
    this.#aliases += 1;
    if (this.#aliases > ALIASES_MAX) throw new Wrong(offset, `more than ${ALIASES_MAX} aliases`);
    const known = this.#anchors.get(name);
    if (known === undefined) throw new Wrong(offset, 'there is no such anchor before this alias');
    if (known === 'open') throw new Wrong(offset, `the anchor ${name} contains itself`);
    return known.value;
  }

  #plain(node: Node, level: number): unknown {
    if (isScalar(node)) return scalarOf(node);
    if (level >= LEVELS_MAX) throw new Wrong(node.range?.[0], `nested more than ${LEVELS_MAX} levels deep`);
    if (isSeq(node)) return this.#list(node.items, level);
    if (isMap(node)) return this.#map(node.items, level);
    throw new Wrong(node.range?.[0], 'neither text, a list nor a mapping');
  }

  #list(items: readonly unknown[], level: number): unknown[] {
    const list: unknown[] = [];
    const places = new Map<string | number, number>();
    this.places.set(list, places);
    for (const item of items) {
      const offset = (item as Partial<Node> | null)?.range?.[0];
      if (offset !== undefined) places.set(list.length, offset);
      list.push(this.of(item, level + 1));
    }
    return list;
  }

  #map(pairs: readonly Pair[], level: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    const places = new Map<string | number, number>();
    const own = new Set<string>();
    this.places.set(map, places);
    for (const { key: keyNode, value: node } of pairs) {
      const offset = (keyNode as Node | null)?.range?.[0] ?? 0;
      if (isMergeKey(keyNode)) {
        this.#merge(map, places, { from: this.of(node, level + 1), offset });
        continue;
      }
      // The key first: an anchor on it holds for the value.
      const key = keyOf(isMap(keyNode) || isSeq(keyNode) ? null : this.of(keyNode, level + 1));
      if (key === undefined) throw new Wrong(offset, 'a key must be text, not null, a list or a mapping');
      const value = this.of(node, level + 1);
      if (own.has(key)) this.twice.push({ key, offset });
      own.add(key);
      put(map, key, value);
      places.set(key, offset);
    }
    return map;
  }

  /** What is merged takes the place of what stands before it, and gives way to what stands behind it. */
  #merge(map: Record<string, unknown>, places: Map<string | number, number>, merged: { from: unknown; offset: number }): void {
    const sources = Array.isArray(merged.from) ? [...merged.from].reverse() : [merged.from];
    for (const source of sources) {
      if (typeof source !== 'object' || source === null || Array.isArray(source))
        throw new Wrong(merged.offset, '<< takes a mapping or a list of mappings');
      for (const [key, value] of Object.entries(source)) {
        put(map, key, value);
        places.set(key, this.places.get(source)?.get(key) ?? merged.offset);
      }
    }
  }
}

function isMergeKey(key: unknown): boolean {
  return isScalar(key) && key.source === '<<' && key.type === 'PLAIN';
}

function scalarOf(node: Scalar): unknown {
  const text = node.type === 'PLAIN' || node.tag !== undefined ? (node.source ?? '') : String(node.value ?? '');
  const value = node.tag !== undefined ? taggedScalar(node.tag, text) : node.type === 'PLAIN' ? plainScalar(text) : text;
  if (value === undefined) throw new Wrong(node.range?.[0], `not a ${node.tag?.slice(node.tag.lastIndexOf(':') + 1)}`);
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Wrong(node.range?.[0], 'not a finite number');
  return value;
}

/** The parser's words without what it quotes of the document, behind a colon: that may be a secret. */
export function yamlFault(message: string): string {
  return (message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/, '').replace(/: .*/, '');
}

/** A line that is a mark between documents, in whatever context. */
const MARK = /^(?:---|\.\.\.)(?=[ \t\r\n]|$)/gm;
/** Directives, comments and empty lines. */
const PRELUDE = /^(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n)*/;
const CONTENT = /^(?!(?:---|\.\.\.)?[ \t\r]*(?:#|$)|%)/m;

/** The first document of a text, and where something follows it; null: nothing does. */
function firstDocument(text: string): { text: string; next: number | null } {
  const start = PRELUDE.exec(text)?.[0].length ?? 0;
  MARK.lastIndex = text.startsWith('---', start) ? start + 3 : start;
  const end = MARK.exec(text)?.index ?? text.length;
  const next = CONTENT.exec(text.slice(end))?.index;
  return { text: text.slice(0, end), next: next === undefined ? null : end + next };
}

/** Lines inside brackets or quotes that may stand too far to the left, and the longest text in which they are looked for. */
const OUTDENTS_MAX = 50;
const OUTDENTED_CHARS_MAX = 64 * 1024;
const OUTDENT = /in block collection must be sufficiently indented|Missing closing ['"]quote/;
const INDENT = ' '.repeat(80);
const OPTIONS = { version: '1.1', schema: 'failsafe', merge: false, uniqueKeys: false, strict: false, prettyErrors: false } as const;

/**
 * Parsed without an opinion about scalars: each stays the text it was written as. Equal keys are found later, too. Between
 * brackets and quotes indentation means nothing to Kubernetes: a line that stands too far to the left is moved to the right.
 */
function parsed(text: string): { doc: Document.Parsed; text: string } {
  let source = text;
  let doc = parseDocument(source, { ...OPTIONS, logLevel: 'silent' });
  for (let n = 0; n < OUTDENTS_MAX && source.length <= OUTDENTED_CHARS_MAX; n += 1) {
    const [error] = doc.errors;
    if (error === undefined || !OUTDENT.test(error.message)) break;
    const start = source.lastIndexOf('\n', error.pos[0] - 1) + 1;
    const from = source.slice(start, error.pos[0]).trim() === '' ? start : source.indexOf('\n', error.pos[0]) + 1;
    const line = from === 0 ? -1 : source.slice(from).search(/^.*\S/m);
    if (line < 0) break;
    source = `${source.slice(0, from + line)}${INDENT}${source.slice(from + line)}`;
    doc = parseDocument(source, { ...OPTIONS, logLevel: 'silent' });
  }
  return { doc, text: source };
}

export function readYaml(source: string): YamlDocument {
  const mark = source.startsWith('\ufeff') ? 1 : 0;
  const first = firstDocument(source.slice(mark).replaceAll(/\r(?!\n)/g, '\n'));
  const { doc, text } = parsed(first.text);
  const [error] = doc.errors;
  if (error !== undefined) return { ok: false, text, offset: error.pos[0], what: yamlFault(error.message) };
  const values = new Values();
  try {
    return {
      ok: true,
      text,
      value: values.of(doc.contents),
      places: values.places,
      twice: values.twice,
      next: first.next === null ? null : first.next + mark,
    };
  } catch (error) {
    if (error instanceof Wrong) return { ok: false, text, offset: error.offset, what: error.message };
    throw error;
  }
}
