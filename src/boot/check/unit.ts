/**
 * What systemd gives the kubelet: the words of `ExecStart=` in its unit and drop-ins, with the variables of its environment files
 * (systemd.exec(5), systemd.service(5) "Command lines"). Reads only.
 */

import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { codeOf, messageOf } from '../../machines/text/errors.ts';

const FILE_BYTES_MAX = 64 * 1024;
const UNIT = 'kubelet.service';
/** Folders of units; a file in a later one takes the place of one with its name in an earlier one (systemd.unit(5)). */
const FOLDERS = ['/lib/systemd/system', '/usr/lib/systemd/system', '/run/systemd/system', '/etc/systemd/system'];

interface EnvironmentFile {
  path: string;
  /** It may be missing: its line begins with `-`. */
  optional: boolean;
}
export interface ServiceUnit {
  /** Files that it was read from, in order. */
  files: string[];
  /** Words of the last `ExecStart=`, the program first. Empty: there is none. */
  exec: string[];
  environment: Map<string, string>;
  environmentFiles: EnvironmentFile[];
}

/** The kubelet's unit with its drop-ins, below a prefix. Null: there is none. @throws when one of its files cannot be read. */
export async function readUnit(prefix: string): Promise<ServiceUnit | null> {
  const mains = await Promise.all(FOLDERS.map((folder) => textOf(`${prefix}${folder}/${UNIT}`)));
  const main = FOLDERS.flatMap((folder, i) => (mains[i] == null ? [] : [`${prefix}${folder}/${UNIT}`])).at(-1);
  const dropIns = new Map<string, string>();
  for (const folder of FOLDERS) {
    const names = await readdir(`${prefix}${folder}/${UNIT}.d`).catch((): string[] => []);
    for (const name of names) if (name.endsWith('.conf')) dropIns.set(name, `${prefix}${folder}/${UNIT}.d/${name}`);
  }
  const files = [...(main === undefined ? [] : [main]), ...[...dropIns].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path)];
  if (files.length === 0) return null;
  const unit: ServiceUnit = { files, exec: [], environment: new Map(), environmentFiles: [] };
  for (const path of files) {
    try {
      addSettings(unit, (await textOf(path)) ?? '');
    } catch (error) {
      throw new Error(`${path}: ${messageOf(error)}`);
    }
  }
  return unit;
}

async function textOf(path: string): Promise<string | null> {
  try {
    return (await readRegular(path, { bytesMax: FILE_BYTES_MAX })).toString('utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
}

function addSettings(unit: ServiceUnit, text: string): void {
  let section = '';
  for (const line of logicalLines(text)) {
    const head = /^\[(.*)\]$/.exec(line);
    if (head !== null) section = head[1] ?? '';
    if (head !== null || section !== 'Service') continue;
    const at = line.indexOf('=');
    if (at > 0) addSetting(unit, { key: line.slice(0, at).trim(), value: line.slice(at + 1).trim() });
  }
}

/** An empty value forgets what was set before. */
function addSetting(unit: ServiceUnit, { key, value }: { key: string; value: string }): void {
  if (key === 'ExecStart') unit.exec = wordsOf(value.replace(/^[-@:+!]+/, ''));
  else if (key === 'Environment') {
    if (value === '') unit.environment.clear();
    for (const word of wordsOf(value)) {
      const at = word.indexOf('=');
      if (at > 0) unit.environment.set(word.slice(0, at), word.slice(at + 1));
    }
  } else if (key === 'EnvironmentFile') {
    const path = value.replace(/^-/, '');
    if (value === '') unit.environmentFiles = [];
    else unit.environmentFiles.push({ path, optional: value.startsWith('-') });
  }
}

/** Lines without comments, those that end in a backslash joined with the next one. */
function logicalLines(text: string): string[] {
  const lines: string[] = [];
  let open: string | null = null;
  for (const raw of text.split(/\r?\n/)) {
    const line: string = open === null ? raw.trimStart() : raw;
    if (/^\s*[#;]/.test(raw)) continue;
    const more = line.endsWith('\\');
    const joined: string = (open ?? '') + (more ? `${line.slice(0, -1)} ` : line);
    open = more ? joined : null;
    if (!more && joined.trim() !== '') lines.push(joined.trim());
  }
  return open === null || open.trim() === '' ? lines : [...lines, open.trim()];
}

/** Words as systemd splits them: quotes hold words together and go; a backslash takes the next sign as it is. @throws on an open quote */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i] ?? '';
    if (c === '\\' && quote !== "'" && i + 1 < text.length) word = (word ?? '') + (text[++i] ?? '');
    else if (quote !== '') {
      if (c === quote) quote = '';
      else word = (word ?? '') + c;
    } else if (c === '"' || c === "'") {
      quote = c;
      word ??= '';
    } else if (/\s/.test(c)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? '') + c;
  }
  if (quote !== '') throw new Error('a quote is not closed');
  return word === null ? words : [...words, word];
}

/** Variables of an environment file. @throws when a quote is not closed. */
export function environmentOf(text: string): Map<string, string> {
  const found = new Map<string, string>();
  // A quoted value may go over lines: the quote is looked for in the rest of the text.
  const line = /^[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*/my;
  const next = /\n|$/g;
  for (let at = 0; at < text.length; ) {
    line.lastIndex = at;
    const head = line.exec(text);
    if (head === null) {
      next.lastIndex = at;
      at = (next.exec(text)?.index ?? text.length) + 1;
      continue;
    }
    const { value, end } = valueAt(text, line.lastIndex, head[1] ?? '');
    found.set(head[1] ?? '', value);
    at = end;
  }
  return found;
}

/** What is quoted keeps its spaces and, in double quotes, the words that a later split finds in it. */
function valueAt(text: string, start: number, name: string): { value: string; end: number } {
  let value = '';
  let kept = 0;
  let quote = '';
  let i = start;
  for (; i < text.length; i++) {
    const c = text[i] ?? '';
    if (quote === '' && c === '\n') break;
    if (c === '\\' && quote !== "'") {
      const following = text[++i] ?? '';
      // A line that goes on; inside double quotes only these signs are escaped (systemd.exec(5), EnvironmentFile=).
      if (following === '\n') continue;
      value += quote === '"' && !'"\\`$'.includes(following) ? `\\${following}` : following;
      kept = value.length;
    } else if (quote !== '' && c === quote) {
      quote = '';
      kept = value.length;
    } else if (quote === '' && (c === '"' || c === "'")) quote = c;
    else {
      value += c;
      if (quote !== '' || !/\s/.test(c)) kept = value.length;
    }
  }
  if (quote !== '') throw new Error(`the value of ${name} has no closing quote`);
  return { value: value.slice(0, kept), end: i + 1 };
}

/** The variables of files, which win over those of the unit. `missing`: files that the service does not start without. */
export async function variablesOf(
  unit: Pick<ServiceUnit, 'environment' | 'environmentFiles'>,
  prefix: string,
  said: {
    read(path: string, names: readonly string[]): void;
    missing(path: string, optional: boolean): void;
    bad(path: string, why: string): void;
  },
): Promise<Map<string, string>> {
  const all = new Map(unit.environment);
  for (const { path: named, optional } of unit.environmentFiles) {
    const path = `${prefix}${named}`;
    try {
      const text = await textOf(path);
      if (text === null) {
        said.missing(path, optional);
        continue;
      }
      const found = environmentOf(text);
      for (const [name, value] of found) all.set(name, value);
      said.read(path, [...found.keys()]);
    } catch (error) {
      said.bad(path, messageOf(error));
    }
  }
  return all;
}

/** `$NAME` alone becomes the words of its value; `${NAME}` becomes its value as it is. What is not set is empty. */
export function expandedWords(words: readonly string[], variables: ReadonlyMap<string, string>): string[] {
  return words.flatMap((word) => {
    const alone = /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(word)?.[1];
    if (alone !== undefined) return wordsOf(variables.get(alone) ?? '');
    return [word.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => variables.get(name) ?? '')];
  });
}

/** Whether the unit starts a node agent itself, so that its words are flags. */
export function startsAgent({ exec }: Pick<ServiceUnit, 'exec'>): boolean {
  return ['kubelet', 'actorlet'].includes(basename(exec[0] ?? ''));
}
