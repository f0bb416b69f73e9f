/** From the bytes of a manifest to plain data. */

import { readDocument, textOf } from '../../../machines/document/read.ts';

/** Largest manifest file and largest HTTP body (spec: pod lifecycle 1.2 and 1.3). */
export const MANIFEST_BYTES_MAX = 10 * 1024 * 1024;

/** `notes`: what was read leniently, with its line. */
export type Parsed =
  | { ok: true; value: unknown; notes: readonly string[] }
  /** `empty`: there is no document in it. */
  | { ok: false; message: string; empty: boolean };

/** Parses one manifest. Never throws; the message carries line and column where the text is at fault. */
export function parseManifest(bytes: Uint8Array): Parsed {
  const text = textOf(bytes);
  if (text === null) return { ok: false, message: 'not UTF-8 text', empty: false };
  const read = readDocument(text);
  if (!read.ok) return { ok: false, message: `line ${read.line}, column ${read.column}: ${read.message}`, empty: false };
  const notes = read.notes.map(({ line, what }) => `line ${line}: ${what}`);
  if (read.value === null) return { ok: false, message: ['the document is empty', ...notes].join('; '), empty: true };
  return { ok: true, value: read.value, notes };
}
