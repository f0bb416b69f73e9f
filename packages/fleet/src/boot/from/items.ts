/**
 * Objects in a dump of a cluster, one at a time: a file may be larger than memory allows. YAML: the documents, or the items of a list, as
 * `kubectl get -o yaml` writes them. JSON: the value, or the items of a list.
 */
import { StringDecoder } from 'node:string_decoder';
import { yamlFault } from '@actorlet/kubelet/machines/document/yaml.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { parseDocument, visit } from 'yaml';

export type Item = { object: unknown } | { why: string };

/** Larger objects are in no etcd. */
const OBJECT_CHARS_MAX = 4 * 2 ** 20;
/** kubectl writes none. */
const ALIASES_MAX = 100;
const TOO_LARGE: Item = { why: `an object is longer than ${OBJECT_CHARS_MAX} characters` };

export async function* itemsIn(chunks: AsyncIterable<Buffer>): AsyncGenerator<Item> {
  const decoder = new StringDecoder('utf8');
  let reader: JsonItems | YamlItems | undefined;
  for await (const chunk of chunks) {
    const text = reader === undefined ? decoder.write(chunk).replace(/^\uFEFF/, '') : decoder.write(chunk);
    if (reader === undefined && text.trim() === '') continue;
    reader ??= /^\s*[{[]/.test(text) ? new JsonItems() : new YamlItems();
    yield* reader.read(text);
  }
  if (reader !== undefined) yield* reader.end();
}

/** Values at the depth of `items`, by counting brackets outside of texts. */
class JsonItems {
  #depth = 0;
  #inText = false;
  #isEscaped = false;
  /** Depth of the list whose items are wanted; 0: it has not come. */
  #listDepth = 0;
  /** The last text at depth 1, which may be a key. */
  #key = '';
  #buffer = '';
  #skipping = false;
  #isList = false;

  *read(text: string): Generator<Item> {
    let from = 0;
    for (let at = 0; at < text.length; at += 1) {
      const c = text.charCodeAt(at);
      if (this.#inText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (c === BACKSLASH) this.#isEscaped = true;
        else if (c === QUOTE) this.#inText = false;
        if (this.#depth === 1 && c !== QUOTE) this.#key = (this.#key + text[at]).slice(-KEY_CHARS_MAX);
        continue;
      }
      if (c === QUOTE) {
        this.#inText = true;
        if (this.#depth === 1) this.#key = '';
      } else if (c === OPEN || c === OPEN_LIST) {
        this.#depth += 1;
        const isItems = c === OPEN_LIST && ((this.#depth === 2 && this.#key === 'items') || this.#depth === 1);
        if (isItems && this.#listDepth === 0) {
          this.#listDepth = this.#depth;
          this.#isList = true;
          this.#buffer = '';
          from = at + 1;
        }
      } else if (c === CLOSE || c === CLOSE_LIST) {
        this.#depth -= 1;
        if (this.#listDepth > 0 && this.#depth < this.#listDepth) {
          yield* this.#item(text.slice(from, at));
          this.#listDepth = 0;
          // What follows the items is no object.
          this.#skipping = true;
        } else if (this.#depth === 0 && !this.#isList) {
          yield* this.#item(text.slice(from, at + 1));
          from = at + 1;
        }
        if (this.#depth === 0) [this.#isList, this.#skipping, this.#buffer, from] = [false, false, '', at + 1];
      } else if (c === COMMA && this.#depth === this.#listDepth && this.#depth > 0) {
        yield* this.#item(text.slice(from, at));
        from = at + 1;
      }
    }
    this.#keep(text.slice(from));
  }

  *end(): Generator<Item> {
    if (this.#depth !== 0 || this.#inText) yield { why: 'it is cut: its JSON does not end' };
  }

  #keep(text: string): void {
    // Between the items and the end, and of an object that is too long, nothing is kept.
    if (!this.#skipping) this.#buffer = (this.#buffer + text).slice(0, OBJECT_CHARS_MAX + 1);
  }

  *#item(text: string): Generator<Item> {
    this.#keep(text);
    const whole = this.#buffer;
    this.#buffer = '';
    if (whole.length > OBJECT_CHARS_MAX) yield TOO_LARGE;
    else if (whole.trim() !== '') yield parsed(whole, JSON.parse);
  }
}

const [QUOTE, BACKSLASH, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, COMMA] = [0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d, 0x2c];
const KEY_CHARS_MAX = 16;

/** By lines: an item begins with a dash at the margin of its list. */
class YamlItems {
  #rest = '';
  #lines: string[] = [];
  #chars = 0;
  /** `begins`: `items:` was the last line. `after`: the list has ended. */
  #in: 'document' | 'begins' | 'list' | 'after' = 'document';
  /** What stands before the dash of an item. */
  #margin = '';

  *read(text: string): Generator<Item> {
    const lines = (this.#rest + text).split('\n');
    this.#rest = (lines.pop() ?? '').slice(0, OBJECT_CHARS_MAX + 1);
    for (const line of lines) yield* this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
  }

  *end(): Generator<Item> {
    yield* this.#line(this.#rest);
    yield* this.#item();
  }

  *#line(line: string): Generator<Item> {
    if (/^---(?:\s|$)/.test(line)) {
      yield* this.#item();
      this.#in = 'document';
    } else if (this.#in === 'document' && /^items:\s*$/.test(line)) {
      // What stands before the items is no object.
      [this.#lines, this.#chars, this.#in] = [[], 0, 'begins'];
    } else if (this.#in === 'begins') {
      if (line.trim() === '' || line.trimStart().startsWith('#')) return;
      this.#margin = /^ */.exec(line)?.[0] ?? '';
      this.#in = line.startsWith(`${this.#margin}- `) ? 'list' : 'after';
      if (this.#in === 'list') this.#push(`${this.#margin}  ${line.slice(this.#margin.length + 2)}`);
    } else if (this.#in === 'list') {
      const isItem = line.startsWith(`${this.#margin}- `);
      // A key of the list itself ends it.
      const isKey = !isItem && /^[^\s#-]/.test(line);
      if (isItem || isKey) yield* this.#item();
      if (isKey) this.#in = 'after';
      else this.#push(isItem ? `${this.#margin}  ${line.slice(this.#margin.length + 2)}` : line);
    } else if (this.#in === 'document') this.#push(line);
  }

  #push(line: string): void {
    this.#chars += line.length + 1;
    if (this.#chars > OBJECT_CHARS_MAX) this.#lines = [];
    else this.#lines.push(line);
  }

  *#item(): Generator<Item> {
    const [text, chars] = [this.#lines.join('\n'), this.#chars];
    [this.#lines, this.#chars] = [[], 0];
    if (chars > OBJECT_CHARS_MAX) yield TOO_LARGE;
    else if (text.trim() !== '') {
      const item = parsed(text, yamlOf);
      if (!('object' in item) || item.object !== null) yield item;
    }
  }
}

function parsed(text: string, parse: (text: string) => unknown): Item {
  try {
    return { object: parse(text) };
  } catch (error) {
    return { why: `an object cannot be read: ${messageOf(error).split('\n')[0] ?? ''}` };
  }
}

function yamlOf(text: string): unknown {
  const doc = parseDocument(text, { version: '1.2', prettyErrors: false, uniqueKeys: false, logLevel: 'error' });
  const [error] = doc.errors;
  if (error !== undefined) throw new Error(yamlFault(error.message));
  let aliases = 0;
  visit(doc, {
    Alias: () => {
      aliases += 1;
      // Each costs a walk through the object.
      if (aliases > ALIASES_MAX) throw new Error(`it has more than ${ALIASES_MAX} aliases`);
    },
  });
  return doc.toJS({ maxAliasCount: ALIASES_MAX });
}
