/** A YAML file of one kind that a person writes: its first and only document as a {@link MapReader}, or what is wrong with it. */
import { yamlFault } from '@actorlet/kubelet/machines/document/yaml.ts';
import { type Document, isMap, isScalar, LineCounter, parseAllDocuments, visit } from 'yaml';
import { SCENARIO_API_VERSION } from '../table.ts';
import type { ScenarioError } from '../types.ts';
import { MapReader, type Problems, problems } from './reader.ts';

/** Larger files were written by no person. */
export const DOCUMENT_BYTES_MAX = 1024 * 1024;

export type ReadDocument<T> = { ok: true; value: T } | { ok: false; errors: readonly ScenarioError[] };

interface ReadOptions {
  kind: string;
  /** Default {@link DOCUMENT_BYTES_MAX}. */
  bytesMax?: number;
}

/** `read` complains to `found` or to its reader. Never throws. Errors come in the order of the file. */
export function readDocument<T>(text: string, of: string | ReadOptions, read: (root: MapReader, found: Problems) => T): ReadDocument<T> {
  const { kind, bytesMax = DOCUMENT_BYTES_MAX }: ReadOptions = typeof of === 'string' ? { kind: of } : of;
  if (text.length > bytesMax) return refused([{ line: 0, field: '', message: `is longer than ${bytesMax} bytes` }]);
  const lines = new LineCounter();
  const found = problems(lines);
  // The parser's own check for equal keys compares each key with all before it.
  const documents = parseAllDocuments(text, { version: '1.2', lineCounter: lines, uniqueKeys: false, prettyErrors: false });
  const list = Array.isArray(documents) ? documents : [];
  for (const doc of list) {
    for (const e of doc.errors) {
      found.errors.push({ line: lines.linePos(e.pos[0]).line, field: '', message: `is not valid YAML: ${yamlFault(e.message)}` });
    }
    repeatedKeys(doc, found);
  }
  if (found.errors.length > 0) return refused(found.errors);
  const [first, second] = list;
  if (first === undefined || first.contents === null) {
    return refused([{ line: 0, field: '', message: `is empty; it must begin with apiVersion: ${SCENARIO_API_VERSION} and kind: ${kind}` }]);
  }
  if (second !== undefined) found.at(second.contents, '', `holds more than one document; one file is one ${kind}`);
  const node = first.contents;
  if (!isMap(node)) return refused([{ line: 1, field: '', message: `must be a mapping of kind ${kind}` }]);
  const root = new MapReader(node, '', found);
  expectText(root, 'apiVersion', SCENARIO_API_VERSION);
  expectText(root, 'kind', kind);
  const value = read(root, found);
  return found.errors.length > 0 ? refused(found.errors) : { ok: true, value };
}

function repeatedKeys(doc: Document, found: Problems): void {
  visit(doc, {
    Map: (_, map) => {
      const keys = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) found.at(key, '', 'is not valid YAML: Map keys must be unique');
        keys.add(key.value);
      }
    },
  });
}

/** Errors that are told: a file has as many as it has lines. */
const ERRORS_MAX = 100;

function refused(errors: ScenarioError[]): { ok: false; errors: readonly ScenarioError[] } {
  const sorted = [...errors].sort((a, b) => a.line - b.line);
  const more = sorted.length - ERRORS_MAX;
  if (more <= 0) return { ok: false, errors: sorted };
  return { ok: false, errors: [...sorted.slice(0, ERRORS_MAX), { line: 0, field: '', message: `and ${more} more` }] };
}

function expectText(root: MapReader, field: string, wanted: string): void {
  if (!root.has(field)) {
    root.get(field);
    root.wrong(field, `is missing; it must be ${wanted}`);
    return;
  }
  const is = root.text(field);
  if (is !== undefined && is !== wanted) root.wrong(field, `must be ${wanted}, is ${is}`);
}
