/** From the bytes of a document to pods: parsing, defaults and validation, and which documents are cheap enough for the main thread. */

import { SHARED_CHARS_MIN, shareWithin } from '../../../machines/data/sharedData.ts';
import { ANY_POD } from '../../../machines/pods/podConfig/kept.ts';
import { type Decoded, decodeManifest } from '../../../machines/pods/sources/decode.ts';
import { jsonOf } from '../../../machines/shape/lenient.ts';
import type { DocumentSource, Documents } from '../../../ports/documents.ts';
import type { Entropy } from '../../../ports/ports.ts';
import { parseManifest } from './manifest.ts';

type Hash = Pick<Entropy, 'md5Hex'>;

export function decodeDocument(bytes: Uint8Array, source: DocumentSource, entropy: Hash): Decoded {
  const parsed = parseManifest(bytes);
  if (!parsed.ok) return { ok: false, errors: [parsed.message], ...(parsed.empty ? {} : { holds: ANY_POD }) };
  const decoded = decodeManifest(parsed.value, { ...source, notes: parsed.notes, md5Hex: (text) => entropy.md5Hex(text) });
  return bytes.byteLength < SHARED_CHARS_MIN ? decoded : shareWithin(decoded);
}

/** Decodes on the spot, whatever it costs: for simulations, whose only time is virtual, and tests. */
export function documentsHere(entropy: Hash): Documents {
  return { decode: async (bytes, source) => decodeDocument(bytes, source, entropy) };
}

/** Largest JSON and YAML that may be cheap: a MiB of JSON takes some 20 ms, one of YAML a second and more. */
const CHEAP_JSON_BYTES_MAX = 64 * 1024;
export const CHEAP_YAML_BYTES_MAX = 8 * 1024;
/** Brackets in brackets of cheap YAML, and columns of indentation. */
const CHEAP_DEPTH_MAX = 16;
const CHEAP_INDENT_MAX = 64;
/** Where a value begins in YAML: after one of these, or at the beginning of a line. */
const BEFORE_VALUE = new Set(['', ':', '-', ',', '[', '{']);
/** Anchors, aliases, tags, keys that are no text, and directives. */
const RARE = new Set(['&', '*', '!', '?', '%']);

/**
 * What this takes costs milliseconds, by its size and by what it does not have: checks of manifests are linear, and so is the
 * parser of YAML but for keys that are lists or mappings, and aliases. Rough: text that only looks like those is refused too.
 */
export function isCheap(bytes: Uint8Array): boolean {
  if (bytes.byteLength > CHEAP_JSON_BYTES_MAX) return false;
  const text = new TextDecoder().decode(bytes);
  if (text.trimStart().startsWith('{') && jsonOf(text) !== undefined) return true;
  return bytes.byteLength <= CHEAP_YAML_BYTES_MAX && isPlainYaml(text);
}

function isPlainYaml(text: string): boolean {
  let open = 0;
  for (const line of text.split('\n')) {
    if (line.length - line.trimStart().length > CHEAP_INDENT_MAX) return false;
    let before = '';
    for (const c of line) {
      if (c === ' ' || c === '\t' || c === '\r') continue;
      if (RARE.has(c) && BEFORE_VALUE.has(before)) return false;
      if (c === '[' || c === '{') open += 1;
      else if (c === ']' || c === '}') open -= 1;
      if (open > CHEAP_DEPTH_MAX) return false;
      before = c;
    }
  }
  return true;
}
