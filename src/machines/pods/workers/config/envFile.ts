/**
 * Files that containers of a pod wrote for the environment of others (`fileKeyRef`), read as Kubernetes 1.36 reads them:
 * `NAME='VALUE'`, where the value may go over several lines and nothing in it has a meaning. Blank lines and comments
 * (`#` first in a line, or after the value) say nothing. White space after `=` makes the value empty. Pure.
 */
import type { FileKeyRef } from '../../../kube/podTable.ts';
import { type Built, built, refused } from '../../../result.ts';
import { trimEndOf, trimStartOf } from '../../../text/trim.ts';

/** Limit of this node: the reference bounds lines alone. */
export const ENV_FILE_BYTES_MAX = 1_048_576;
/** A longer line ends the reading, as in the reference. */
const LINE_BYTES_MAX = 65_535;

/** What became of looking at one file. `path`: where it is, or would be, on the node. */
export type EnvFile =
  | { kind: 'found'; path: string; content: Uint8Array }
  | { kind: 'absent'; path: string }
  | { kind: 'unreadable'; why: string }
  /** No container mounts it. */
  | { kind: 'noVolume' };
/** By {@link envFileKey}. */
export type EnvFiles = ReadonlyMap<string, EnvFile>;

export function envFileKey(ref: Pick<FileKeyRef, 'volumeName' | 'path'>): string {
  return `${ref.volumeName}/${ref.path}`;
}

/** `line`: the one that it begins on, from 1. */
interface Assignment {
  name: string;
  value: string;
  line: number;
}
const BLANK = ' \t';
const NEWLINE = 0x0a;
const malformed = (line: number, what: string): Built<never> => refused(`couldn't parse env file: line ${line} ${what}`);

/** A file is read up to its first mistake: what stands before it counts. */
function* assignments(content: Uint8Array): Generator<Built<Assignment>> {
  // A line ends with its newline, also in text that is no UTF-8.
  const lines = new TextDecoder('utf-8', { ignoreBOM: true }).decode(content).split('\n');
  if (lines.at(-1) === '') lines.pop();
  const readable = Math.min(lines.length, longLine(content));
  const lineAt = (i: number): string => (lines[i]?.endsWith('\r') ? lines[i].slice(0, -1) : (lines[i] ?? ''));
  for (let i = 0; i < readable; i++) {
    const line = i + 1;
    const said = trimStartOf(lineAt(i), BLANK);
    if (said === '' || said.startsWith('#')) continue;
    const eq = said.indexOf('=');
    const name = said.slice(0, Math.max(0, eq));
    const mistake = mistakeBefore(eq, { name, value: said.slice(eq + 1) });
    if (mistake !== '') return yield malformed(line, mistake);
    if (BLANK.includes(said.charAt(eq + 1)) && said.length > eq + 1) {
      yield built({ name, value: '', line });
      continue;
    }
    const parts: string[] = [];
    let rest = said.slice(eq + 2);
    for (let end = rest.indexOf("'"); end < 0; end = rest.indexOf("'")) {
      parts.push(rest);
      i += 1;
      if (i >= readable) return yield malformed(line, 'begins a value whose quote is not closed');
      rest = lineAt(i);
    }
    const end = rest.indexOf("'");
    const after = trimStartOf(rest.slice(end + 1), BLANK);
    if (after !== '' && !after.startsWith('#')) return yield malformed(i + 1, 'has something behind the closing quote');
    parts.push(rest.slice(0, end));
    yield built({ name, value: parts.join('\n'), line });
  }
  if (readable < lines.length) yield malformed(readable + 1, `is longer than ${LINE_BYTES_MAX} bytes`);
}

/** '' for none. */
function mistakeBefore(eq: number, { name, value }: { name: string; value: string }): string {
  if (eq < 0) return 'has no =';
  if (trimEndOf(name, BLANK) === '') return 'has no name before =';
  if (trimEndOf(name, BLANK) !== name) return 'has white space before =';
  const quoted = value.startsWith("'") || (value !== '' && BLANK.includes(value.charAt(0)));
  return quoted ? '' : 'has a value that is not in single quotes';
}

/** How many lines stand before the first that is too long. */
function longLine(content: Uint8Array): number {
  let lines = 0;
  for (let from = 0; content.length - from > LINE_BYTES_MAX; lines++) {
    const end = content.indexOf(NEWLINE, from);
    if ((end < 0 ? content.length : end) - from > LINE_BYTES_MAX) return lines;
    from = end + 1;
  }
  return Number.POSITIVE_INFINITY;
}

/** What a file says up to its first mistake. */
interface Contents {
  /** By name, the first line of each. */
  values: ReadonlyMap<string, Built<string>>;
  mistake: Built<never> | null;
}

/** Thousands of variables may come from one file of a MiB: it is read once for all of them. */
const read = new WeakMap<Uint8Array, Contents>();

/** The first line of that name counts. Null: there is none. */
export function envFileValue(content: Uint8Array, key: string): Built<string | null> {
  const { values, mistake } = read.get(content) ?? contentsOf(content);
  return values.get(key) ?? mistake ?? built(null);
}

function contentsOf(content: Uint8Array): Contents {
  const contents: { values: Map<string, Built<string>>; mistake: Built<never> | null } = { values: new Map(), mistake: null };
  read.set(content, contents);
  for (const assignment of assignments(content)) {
    if (!assignment.ok) {
      contents.mistake = assignment;
      break;
    }
    const { name, value, line } = assignment.value;
    if (!contents.values.has(name)) contents.values.set(name, usable(value, line));
  }
  return contents;
}

/** What no runtime could be sent is said here. Bytes that are no UTF-8 are U+FFFD by now, as in a variable from a Secret. */
function usable(value: string, line: number): Built<string> {
  return value.includes('\0') ? malformed(line, 'has a zero byte') : built(value);
}

/** A variable's value from a file. Null: the key is optional and not there. A key without a value is not there, as in the kubelet. */
export function fileKeyValue(ref: FileKeyRef, files: EnvFiles): Built<string | null> {
  const file = files.get(envFileKey(ref)) ?? { kind: 'noVolume' };
  if (file.kind === 'noVolume') return refused(`cannot find the volume "${ref.volumeName}" referenced by FileKeyRef`);
  if (file.kind === 'unreadable') return refused(`couldn't parse env file: ${file.why}`);
  const optional = ref.optional === true;
  if (file.kind === 'absent') return optional ? built(null) : refused(`couldn't parse env file: there is no file "${file.path}"`);
  const value = envFileValue(file.content, ref.key);
  if (!value.ok || (value.value !== null && value.value !== '')) return value;
  return optional ? built(null) : refused(`environment variable key "${ref.key}" not found in file "${file.path}"`);
}
