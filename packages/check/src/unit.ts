/**
 * What systemd gives the kubelet: the words of `ExecStart=` in its unit and drop-ins, with the variables of its environment files
 * (systemd.exec(5), systemd.service(5) "Command lines"). Reads only. `packages/check/test/unit` compares it with a real systemd.
 */

import { glob, readdir, realpath } from 'node:fs/promises';
import { basename, isAbsolute } from 'node:path';
import { codeOf, messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { environmentOf } from './environmentFile.ts';
import { type Specifiers, specified, WordReader, wordsOf } from './unitWords.ts';

const FILE_BYTES_MAX = 64 * 1024;
const UNIT = 'kubelet.service';
/** Folders of units; a file in a later one takes the place of one with its name in an earlier one (systemd.unit(5)). */
const FOLDERS = [
  ...['/run/systemd/generator.late', '/lib/systemd/system', '/usr/lib/systemd/system', '/usr/local/lib/systemd/system'],
  ...['/run/systemd/generator', '/run/systemd/system.attached', '/run/systemd/system'],
  ...['/etc/systemd/system.attached', '/etc/systemd/system', '/run/systemd/generator.early', '/run/systemd/transient'],
  ...['/run/systemd/system.control', '/etc/systemd/system.control'],
];
/** Drop-ins of all services come first: one of the unit's own takes the place of one of that name. */
const dropInFolders = (unit: string): string[] => ['service.d', `${unit}.d`];

interface EnvironmentFile {
  /** May be a pattern. */
  path: string;
  /** It may be missing: its line begins with `-`. */
  optional: boolean;
}
export interface ServiceUnit {
  /** Files that it was read from, in order. */
  files: string[];
  /** Commands of `ExecStart=`, the program of each first. Others than `oneshot` have one. */
  commands: string[][];
  /** Variables in the words of the last command count: it does not begin with `:`. */
  expands: boolean;
  /** `Type=`; '' = not set. */
  type: string;
  environment: Map<string, string>;
  environmentFiles: EnvironmentFile[];
  /** Lines that systemd leaves out. */
  ignored: { where: string; why: string }[];
}
interface Place {
  /** The file, without the prefix. */
  path: string;
  prefix: string;
  unit: string;
}

/** A unit with its drop-ins, below a prefix. Null: there is none. @throws when one of its files cannot be read. */
export async function readUnit(prefix: string, name = UNIT): Promise<ServiceUnit | 'masked' | null> {
  const mains = await Promise.all(
    FOLDERS.map(async (folder) => ({ path: `${folder}/${name}`, text: await textOf(`${prefix}${folder}/${name}`) })),
  );
  const main = mains.findLast(({ text }) => text !== null);
  if (main?.text?.trim() === '') return 'masked';
  const dropIns = new Map<string, string>();
  for (const kind of dropInFolders(name))
    for (const folder of FOLDERS) {
      const names = await readdir(`${prefix}${folder}/${kind}`).catch((): string[] => []);
      for (const file of names) if (file.endsWith('.conf')) dropIns.set(file, `${folder}/${kind}/${file}`);
    }
  const paths = [...(main === undefined ? [] : [main.path]), ...[...dropIns].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path)];
  if (paths.length === 0) return null;
  const files = paths.map((path) => `${prefix}${path}`);
  const unit: ServiceUnit = { files, commands: [], expands: true, type: '', environment: new Map(), environmentFiles: [], ignored: [] };
  for (const path of paths) {
    try {
      await addSettings(unit, { path, prefix, unit: name }, (await textOf(`${prefix}${path}`)) ?? '');
    } catch (error) {
      throw new Error(`${prefix}${path}: ${messageOf(error)}`);
    }
  }
  return unit;
}

/** The text of a unit's file. Null: there is no such file. A link to /dev/null is empty. */
async function textOf(path: string): Promise<string | null> {
  try {
    if ((await realpath(path)) === '/dev/null') return '';
    return (await readRegular(path, { bytesMax: FILE_BYTES_MAX })).toString('utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
}

async function addSettings(unit: ServiceUnit, place: Place, text: string): Promise<void> {
  const of = await specifiersOf(place);
  let section = '';
  for (const line of logicalLines(text)) {
    const head = /^\[(.*)\]$/.exec(line);
    if (head !== null) section = head[1] ?? '';
    if (head !== null || section !== 'Service') continue;
    const at = line.indexOf('=');
    const key = line.slice(0, Math.max(0, at)).trim();
    try {
      if (key === '') throw new Error('a line of [Service] without KEY=');
      addSetting(unit, { key, value: line.slice(at + 1).trim(), of });
    } catch (error) {
      unit.ignored.push({ where: `${place.prefix}${place.path}`, why: `${key === '' ? '' : `${key}: `}${messageOf(error)}` });
    }
  }
}

/** An empty value forgets what was set before. @throws for a line that systemd leaves out */
function addSetting(unit: ServiceUnit, { key, value, of }: { key: string; value: string; of: Specifiers }): void {
  if (key === 'Type') unit.type = value;
  else if (key === 'ExecStart') {
    if (value === '') unit.commands = [];
    else addCommands(unit, value, of);
  } else if (key === 'Environment') {
    if (value === '') unit.environment.clear();
    const { words, refused } = wordsOf(value, 'strict');
    for (const word of words) addVariable(unit.environment, specified(word, of));
    if (refused !== '') throw new Error(refused);
  } else if (key === 'EnvironmentFile') {
    const optional = value.startsWith('-');
    const path = specified(optional ? value.slice(1) : value, of);
    if (value === '') unit.environmentFiles = [];
    else if (isAbsolute(path)) unit.environmentFiles.push({ path, optional });
    else throw new Error(`${JSON.stringify(path)} is not an absolute path`);
  }
}
function addVariable(environment: Map<string, string>, word: string): void {
  const [, name = '', value = ''] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(word) ?? [];
  if (name !== '') environment.set(name, value);
}

/** One line may have several commands, with `;` between them. */
function addCommands(unit: ServiceUnit, value: string, of: Specifiers): void {
  const reader = new WordReader(value, 'c');
  const commands: string[][] = [];
  let expands = true;
  for (let first = reader.next(); first !== null; first = reader.next()) {
    const [signs = ''] = /^[-@:+!|]*/.exec(first) ?? [];
    expands = !signs.includes(':');
    const program = specified(first.slice(signs.length), of);
    if (program === '') throw new Error('there is no program');
    // The next word is the name that the program is given for itself.
    if (signs.includes('@') && reader.next() === null) throw new Error('there is no name for the program');
    commands.push([program, ...argumentsOf(reader, of)]);
  }
  unit.commands.push(...commands);
  unit.expands = expands;
}
function argumentsOf(reader: WordReader, of: Specifiers): string[] {
  const words: string[] = [];
  for (;;) {
    if (/^;(?:\s|$)/.test(reader.rest)) {
      reader.pass(1);
      return words;
    }
    if (/^\\;(?:\s|$)/.test(reader.rest)) {
      reader.pass(2);
      words.push(';');
      continue;
    }
    const word = reader.next();
    if (word === null) return words;
    words.push(specified(word, of));
  }
}

/** Lines without comments, those that end in a backslash joined with the next one. */
function logicalLines(text: string): string[] {
  const lines: string[] = [];
  let open: string | null = null;
  for (const raw of text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)) {
    if (/^\s*[#;]/.test(raw)) continue;
    const line: string = (open ?? '') + raw;
    // An even number of them are backslashes of the value.
    const more = (/\\*$/.exec(raw)?.[0].length ?? 0) % 2 === 1;
    open = more ? `${line.slice(0, -1)} ` : null;
    if (!more && line.trim() !== '') lines.push(line.trim());
  }
  return open === null || open.trim() === '' ? lines : [...lines, open.trim()];
}

/** Of the system's manager. Letters that are not here are no specifiers, or say what this program cannot know. */
async function specifiersOf({ path, prefix, unit }: Place): Promise<Specifiers> {
  const [name = ''] = unit.split('.');
  const read = async (file: string): Promise<string> => ((await textOf(`${prefix}${file}`).catch(() => null)) ?? '').trim();
  // Below a prefix it is another machine's.
  const [etcName, machine] = [await read('/etc/hostname'), await read('/etc/machine-id')];
  const host = prefix === '' ? (await read('/proc/sys/kernel/hostname')) || etcName : etcName;
  const fixed: Readonly<Record<string, string>> = {
    ...{
      n: unit,
      N: name,
      p: name,
      P: name,
      j: name,
      J: name,
      i: '',
      I: '',
      f: `/${name}`,
      y: path,
      Y: path.slice(0, path.lastIndexOf('/')),
    },
    ...{ u: 'root', U: '0', g: 'root', G: '0', h: '/root', t: '/run', S: '/var/lib', C: '/var/cache', L: '/var/log', E: '/etc' },
    ...{ T: '/tmp', V: '/var/tmp', D: '/usr/share', d: `/run/credentials/${unit}`, H: host, l: host.split('.')[0] ?? '', m: machine },
  };
  return (letter) => (Object.hasOwn(fixed, letter) ? fixed[letter] : undefined);
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
    const paths = await pathsOf(`${prefix}${named}`);
    if (paths.length === 0) said.missing(`${prefix}${named}`, optional);
    for (const path of paths) {
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
  }
  return all;
}

/** Files of a pattern, sorted. What is no pattern is a file. */
async function pathsOf(path: string): Promise<string[]> {
  if (!/[*?[]/.test(path)) return [path];
  const found: string[] = [];
  for await (const one of glob(path)) found.push(one);
  return found.sort();
}

/** The words that start the node agent, which may be behind a program that starts it. Empty: the unit starts none, or something else. */
export function agentWords({ commands }: Pick<ServiceUnit, 'commands'>): string[] {
  for (const words of commands) {
    const at = words.findIndex((word, i) => isAgent(word) && (i === 0 || isAbsolute(word) || isHyperkube(words[i - 1] ?? '')));
    if (at >= 0) return words.slice(at);
  }
  return [];
}

const isAgent = (word: string): boolean => ['kubelet', 'actorlet'].includes(basename(word));
/** Its first word says which program of Kubernetes it is. */
const isHyperkube = (word: string): boolean => basename(word) === 'hyperkube';
