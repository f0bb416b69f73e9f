/**
 * Variants of configurations as people write them: files of real distributions (`configurations/`) and every field, each
 * changed in one way. Both kubelets read them. A variant is made from its name alone, so answers can be kept by name.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KUBELET_CONFIGURATION } from '../../../src/machines/config/schema.ts';
import type { Fields, Shape } from '../../../src/machines/shape/shape.ts';
import { FOLDERS } from './variantDropIns.ts';
import { type Entry, HEADER, HERE, type Variant } from './variantParts.ts';

export type Variants = ReadonlyMap<string, Variant>;

/**
 * Tried one by one. `lines`: each is the end of a file. `flags`: separated by single spaces. `dropIns`: each stands in one drop-in, over
 * `maxPods: 10`, `kubeReserved` and `clusterDNS`.
 */
const PARTS = JSON.parse(readFileSync(join(import.meta.dirname, 'parts.json'), 'utf8')) as Record<'lines' | 'flags' | 'dropIns', string[]>;

const FOLDER = join(import.meta.dirname, '../configurations');
/** What the configurations without a name of their own change nothing in. */
export const PLAIN = 'plain';
const MAIN = 'etc/kubelet.yaml';

function bases(): ReadonlyMap<string, string> {
  const files = readdirSync(FOLDER).sort();
  return new Map([
    [PLAIN, HEADER],
    ...files.map((name): [string, string] => [name.replace(/\..*/, ''), readFileSync(join(FOLDER, name), 'utf8')]),
  ]);
}

const file = (text: Entry, more: Readonly<Record<string, Entry>> = {}): Variant => ({
  args: [`--config=${HERE}/${MAIN}`],
  files: { [MAIN]: text, ...more },
});
const flags = (...args: string[]): Variant => ({ args: [`--config=${HERE}/${MAIN}`, ...args], files: { [MAIN]: HEADER } });
const dropIns = (files: Readonly<Record<string, Entry>>, dir = 'd'): Variant => ({
  args: [`--config=${HERE}/${MAIN}`, `--config-dir=${HERE}/${dir}`],
  files: { [MAIN]: `${HEADER}maxPods: 10\nkubeReserved: {pid: "5"}\nclusterDNS: [192.0.2.1]\n`, d: { folder: true }, ...files },
});

/** All of them. The part of a name before the first slash is the base that the answer is compared with. */
export function variants(): Variants {
  const out = new Map<string, Variant>();
  for (const [base, text] of bases()) {
    out.set(base, file(text));
    for (const [name, changed] of writings(base, text)) out.set(`${base}/${name}`, file(changed));
    if (base !== PLAIN) for (const [name, changed] of slips(base, text)) out.set(`${base}/${name}`, file(changed));
  }
  for (const [path, shape] of leaves(KUBELET_CONFIGURATION, ''))
    for (const value of valuesOf(shape, path))
      out.set(`${PLAIN}/${path}: ${value}`, file(HEADER.replace(new RegExp(`^${path}:.*\n`, 'm'), '') + placed(path, value)));
  for (const line of PARTS.lines) out.set(`${PLAIN}/${line}`, file(`${HEADER}${line}\n`));
  for (const [name, variant] of Object.entries(FOLDERS)) out.set(`${PLAIN}/drop-ins ${name}`, variant);
  for (const body of PARTS.dropIns) out.set(`${PLAIN}/drop-in ${body}`, dropIns({ 'd/10.conf': `${HEADER}${body}\n` }));
  for (const args of PARTS.flags) out.set(`${PLAIN}/flags ${args}`, flags(...args.split(' ')));
  return out;
}

/** Ways to write a whole file. */
function writings(base: string, text: string): Map<string, Entry> {
  const isJson = text.startsWith('{');
  const first = text.split('\n').find((line) => /^\w+: \w/.test(line)) ?? '';
  const other = HEADER.replace('failCgroupV1', 'maxPods: 7\nfailCgroupV1');
  const all: Record<string, Entry> = {
    'a closing ---': `${text}---\n`,
    'a closing --- without an end of line': `${text}---`,
    'a second document': `${text}---\n${other}`,
    'a second document of another kind': `${text}---\nkind: Foo\n`,
    'a second document that is no YAML': `${text}---\na: [\n`,
    'a leading ---': `---\n${text}`,
    'a comment and ---': `# written by hand\n---\n${text}`,
    'an empty document first': `---\n---\n${text}`,
    'a document of comments first': `---\n# none\n---\n${text}`,
    'a closing ...': `${text}...\n`,
    'text behind ...': `${text}...\nmaxPods: 8\n`,
    '%YAML 1.1': `%YAML 1.1\n---\n${text}`,
    '%YAML 1.2': `%YAML 1.2\n---\n${text}`,
    'a byte order mark': `\uFEFF${text}`,
    'ends of lines of DOS': text.replaceAll('\n', '\r\n'),
    'ends of lines of old Macs': text.replaceAll('\n', '\r'),
    'no last end of line': text.replace(/\n$/, ''),
    'empty lines first': `\n\n${text}`,
    'empty lines last': `${text}\n\n \n`,
    'a tab last': `${text}\t\n`,
    'a null character last': `${text}\0`,
    'Latin-1 in a comment': { bytes: `${text}# \xe9\n` },
    'UTF-8 in a comment': `${text}# é\n`,
    'UTF-16': { bytes: [...`\uFEFF${text}`].map((c) => String.fromCharCode(c.charCodeAt(0) & 255, c.charCodeAt(0) >> 8)).join('') },
    'spaces before each line': text.replace(/^/gm, '  '),
    'a tab before each line': text.replace(/^/gm, '\t'),
    'a key twice': isJson ? text.replace('{', '{"maxPods": 31,"maxPods": 32,') : `${text}${first}\n`,
    'an unknown key': isJson ? text.replace('{', '{"maxPodz": 31,') : `${text}maxPodz: 31\n`,
    'a key in another case': isJson ? text.replace('{', '{"MaxPods": 31,') : `${text}MaxPods: 31\n`,
    'an apiVersion of v1': text.replace('k8s.io/v1beta1', 'k8s.io/v1'),
    'an apiVersion of v1alpha1': text.replace('k8s.io/v1beta1', 'k8s.io/v1alpha1'),
    'an apiVersion of v1beta2': text.replace('k8s.io/v1beta1', 'k8s.io/v1beta2'),
    'an apiVersion without a group': text.replace('kubelet.config.k8s.io/', ''),
    'another kind': text.replace(/\bKubeletConfiguration\b/, 'KubeletConfig'),
    'a kind of v1': text.replace(/\bKubeletConfiguration\b/, 'CredentialProviderConfig'),
    'no kind': isJson ? text.replace(/"kind": "\w+",/, '') : text.replace(/^kind:.*\n/m, ''),
    'no apiVersion': isJson ? text.replace(/"apiVersion": "[^"]*",/, '') : text.replace(/^apiVersion:.*\n/m, ''),
    'Kind for kind': text.replace(/\bkind\b/, 'Kind'),
  };
  if (isJson)
    Object.assign(all, {
      'a comma too many': text.replace(/\}\s*$/, ',}'),
      'a comment': text.replace('{', '{ // about\n'),
      'a comment of YAML': text.replace('{', '{ # about\n'),
      'keys without quotes': text.replace(/"(\w+)":/g, '$1: '),
      'single quotes': text.replaceAll('"', "'"),
      'text behind it': `${text}x`,
      'a brace too many': `${text}}`,
      'a second object': `${text}{"maxPods": 7}`,
      'no closing brace': text.replace(/\}\s*$/, ''),
      'a list around it': `[${text}]`,
    });
  if (base === PLAIN)
    Object.assign(all, {
      nothing: '',
      'a space': ' ',
      'an end of line': '\n',
      'a comment alone': '# none\n',
      '--- alone': '---\n',
      null: 'null\n',
      '{}': '{}',
      'a list': '- a\n',
      'a text': 'maxPods',
      'a list of pairs': HEADER.replace(/^/gm, '- '),
      'a template': '{{ if .X }}\n',
    });
  return new Map(Object.entries(all));
}

const SLIPS = 24;

/** What hands and tools do to a file: lines lost, doubled, moved, cut short, letters lost. */
function* slips(base: string, text: string): Generator<[string, string]> {
  const lines = text.split('\n');
  const random = dice(base);
  for (let i = 0; i < SLIPS; i++) {
    const at = random(lines.length - 1);
    const before = lines.slice(0, at).join('\n');
    const after = lines.slice(at + 1).join('\n');
    const line = lines[at] ?? '';
    const letter = random(text.length - 1);
    const kind = (['lost', 'twice', 'deeper', 'higher', 'cut', 'letter', 'value'] as const)[i % 7] ?? 'lost';
    const changed = {
      lost: `${before}\n${after}`,
      twice: `${before}\n${line}\n${line}\n${after}`,
      deeper: `${before}\n ${line}\n${after}`,
      higher: `${before}\n${line.replace(/^ {1,2}/, '')}\n${after}`,
      cut: text.slice(0, letter),
      letter: text.slice(0, letter) + text.slice(letter + 1),
      value: `${before}\n${line.replace(/: .*$/, ':')}\n${after}`,
    }[kind];
    yield [`${kind} ${i}`, changed];
  }
}

/** Numbers below `n`, the same ones for each name. */
function dice(name: string): (n: number) => number {
  let state = [...name].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) >>> 0, 7);
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * Math.max(1, n));
  };
}

/** `a.b: VALUE` as nested mappings. */
function placed(path: string, value: string): string {
  const keys = path.split('.');
  return `${keys.map((key, i) => `${i === 0 ? '' : '\n'}${'  '.repeat(i)}${key}:`).join('')} ${value}\n`;
}

function* leaves(fields: Fields, under: string): Generator<[string, Shape]> {
  for (const [name, shape] of Object.entries(fields)) {
    const path = under === '' ? name : `${under}.${name}`;
    if (shape.t === 'object') yield* leaves(shape.fields, path);
    else yield [path, shape];
  }
}

const OF_TYPE: Readonly<Record<string, readonly string[]>> = {
  boolean: ['true', 'y', 'N', 'off', '"true"', '1', 'null', '~', '[]'],
  integer: ['0', '7', '-1', '"7"', '7.0', '1e1', '0x10', '010', '0o10', '1_0', '2.5', '3000000000', 'null', ''],
  number: ['0.5', '1', '0', '"0.5"', '1.5', '.inf', '-0.5', 'null'],
  string: ['word', '7', 'true', 'yes', '"yes"', '1.10', '2001-01-01', '""', 'null', '[a]', '!!str 7', '|\n  many'],
  duration: ['15s', '0s', '-1s', '15', '"15"', '0', '1d', '1h1m1.5s', '""', 'null', '1.5', '15 s', '100ns', '1us'],
  durationOrNs: ['15s', '0', '15', '-1s', '1.5', '"15"', 'null'],
  list: ['[]', 'null', '[null]', '[1]', '{}', 'word', '[word, null]', '[[]]'],
  map: ['{}', 'null', '{a: b}', '{a: 1}', '{a: null}', '[]', 'word', '{1: b}', '{true: b}', '{a: }'],
};

/** Few for each field, not the same ones for each, and those that only it has. */
function valuesOf(shape: Shape, path: string): Set<string> {
  const pool = OF_TYPE[shape.t] ?? [];
  const random = dice(path);
  const some = [pool[random(pool.length)], pool[random(pool.length)], pool[random(pool.length)], pool[0]];
  const words = shape.t === 'string' && shape.words !== undefined ? [...shape.words.filter((w) => w !== ''), 'other'] : [];
  const limits =
    shape.within?.flatMap((n) => (Math.abs(n) < 1e6 ? [String(n), String(n === shape.within?.[0] ? n - 1 : n + 1)] : [])) ?? [];
  return new Set([...some.filter((v) => v !== undefined), ...words, ...limits]);
}
