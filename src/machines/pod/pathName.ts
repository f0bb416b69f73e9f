/**
 * Names that others choose and that become files or folders: UIDs, names of pods, containers and volumes, drivers, ids of the
 * runtime. They are checked where they come in. What builds paths takes checked names only, which the compiler sees to. Pure.
 */
import type { Pod } from '../kube/types.ts';
import { quoted } from '../text/errorList.ts';

declare const checked: unique symbol;
/** The name of one file or folder. It leads neither up nor down, and fits every common file system. */
export type PathName = string & { readonly [checked]: true };

/** Longest file name of the common file systems. */
export const FILE_NAME_BYTES_MAX = 255;
/** A character of UTF-16 has three bytes at most in UTF-8. */
const BYTES_PER_UNIT_MAX = 3;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const UNSAFE = /[/\u0000-\u001f\u007f]/;

export function isPathName(text: string): text is PathName {
  return text !== '' && text !== '.' && text !== '..' && !UNSAFE.test(text) && fits(text);
}

function fits(text: string): boolean {
  if (text.length > FILE_NAME_BYTES_MAX) return false;
  return text.length * BYTES_PER_UNIT_MAX <= FILE_NAME_BYTES_MAX || new TextEncoder().encode(text).length <= FILE_NAME_BYTES_MAX;
}

/** Something names a file and was not checked where it came in. */
export class UnsafeName extends Error {
  constructor(text: string) {
    super(`${quoted(text)} cannot name a file`);
    this.name = 'UnsafeName';
  }
}

/** For what was checked where it came in. @throws UnsafeName */
export function pathName(text: string): PathName {
  if (!isPathName(text)) throw new UnsafeName(text);
  return text;
}

/** A part of a pod that names files and cannot, with its field; null where all can. */
export function unsafeName(pod: Pod): string | null {
  const { metadata, spec } = pod;
  for (const key of ['uid', 'namespace', 'name'] as const) if (!isPathName(metadata[key])) return said(`metadata.${key}`, metadata[key]);
  for (const kind of ['initContainers', 'containers', 'ephemeralContainers', 'volumes'] as const) {
    for (const [i, { name }] of (spec[kind] ?? []).entries()) if (!isPathName(name)) return said(`spec.${kind}[${i}].name`, name);
  }
  return null;
}

function said(field: string, text: string): string {
  return `${field}: ${quoted(text)} cannot name a file: it must have 1 to ${FILE_NAME_BYTES_MAX} bytes, without "/" and control characters, and not be "." or ".."`;
}
