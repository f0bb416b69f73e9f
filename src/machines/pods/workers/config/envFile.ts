/**
 * Files that containers of a pod wrote for the environment of others (`fileKeyRef`), read as Kubernetes 1.34 reads them:
 * `NAME=VALUE` a line, white space around either left out; blank lines and lines that begin with `#` say nothing; a `\`
 * at the end goes on with the next line, one space between; nothing is quoted. Pure.
 */
import type { EnvVar } from '../../../k8s.ts';
import { trimOf } from '../../../text/trim.ts';
import { type Built, built, refused } from './result.ts';

/** Of this node: the reference bounds a line at 64 KiB and a file not at all. */
export const ENV_FILE_BYTES_MAX = 1_048_576;

export type FileKeyRef = NonNullable<NonNullable<EnvVar['valueFrom']>['fileKeyRef']>;

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

/** `line`: the last one of it, from 1. */
interface Statement {
  text: string;
  line: number;
}
const trimmed = (text: string): string => trimOf(text, ' \t');
const malformed = (line: number, what: string): Built<never> => refused(`couldn't parse env file: line ${line} ${what}`);

/** A file is read up to its first mistake: what stands before it counts. */
function* statements(text: string): Generator<Built<Statement>> {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  let begun: string | null = null;
  for (const [i, raw] of lines.entries()) {
    const line = i + 1;
    const said = trimmed(raw.endsWith('\r') ? raw.slice(0, -1) : raw);
    if (said === '' || said.startsWith('#')) {
      if (begun === null) continue;
      yield malformed(line, `is ${said === '' ? 'blank' : 'a comment'} where the line before goes on`);
      return;
    }
    const goesOn = said.endsWith('\\');
    const part = goesOn ? trimmed(said.slice(0, -1)) : said;
    const whole: string = begun === null ? part : `${begun} ${part}`;
    begun = goesOn ? whole : null;
    if (!goesOn) yield built({ text: whole, line });
  }
  if (begun !== null) yield malformed(lines.length, 'goes on, and the file ends');
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
  const values = new Map<string, Built<string>>();
  const ended = (mistake: Built<never> | null): Contents => {
    const contents = { values, mistake };
    read.set(content, contents);
    return contents;
  };
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return ended(refused("couldn't parse env file: it is not UTF-8 text"));
  }
  for (const statement of statements(text)) {
    if (!statement.ok) return ended(statement);
    const { text: said, line } = statement.value;
    const at = said.indexOf('=');
    const name = at < 0 ? '' : said.slice(0, at).trim();
    if (name === '') return ended(malformed(line, 'is not NAME=VALUE'));
    if (values.has(name)) continue;
    const value = said.slice(at + 1).trim();
    values.set(name, value.includes('\0') ? malformed(line, 'has a zero byte') : built(value));
  }
  return ended(null);
}

/** Null: it is optional and not there. What is written down without a value counts as not there, as in the reference. */
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
