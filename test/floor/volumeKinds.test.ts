/** A kind of volume is named in its own files, in the two lists and in the API's types: a new kind touches nothing else. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { INLINE_KINDS, PERSISTENT_KINDS } from '../../src/machines/pod/volumes/kinds.ts';

const ROOT = join(import.meta.dirname, '../..');
const SRC = join(ROOT, 'src');

/** Where kinds are at home. */
const HOMES = [
  /^machines\/pod\/volumes\/kinds(\/|\.ts$)/,
  /^actors\/services\/volumes\/kinds(\/|\.ts$)/,
  // The API's types and what each kind of theirs looks like.
  /^machines\/kube\/volumeTable\.ts$/,
  // The simulation checks the node from outside, by the API's words.
  /^(?:sim|world)\//,
];
/** Files that name a kind, and why. */
const REASONS: Readonly<Record<string, string>> = {
  'ctl/commands/node.ts': 'kubectl drain has a flag for emptyDirs',
  'fleet/nodes/member.ts': 'a disk in memory empties a directory',
  'machines/services/volumes/devices/fc.ts': 'what the device of such a volume is on the host',
  'machines/services/volumes/devices/iscsi.ts': 'what the device of such a volume is on the host',
  'machines/pod/volumes/volumePaths.ts': 'the reference keeps the markers of all kinds in the directory of emptyDirs',
  'machines/services/volumes/payload.ts': 'decides for volumes of files: their sources have kinds too',
  'replay/secrets/doors.ts': 'a recording has stand-ins for what such a volume holds',
};
/** Words of kinds that mean something else, too, so that only a comparison with a volume's field or kind is looked at. */
const OTHER_MEANINGS: Readonly<Record<string, string>> = {
  image: 'a container has one',
  secret: 'an object of the API',
  configMap: 'an object of the API',
  ephemeral: 'a kind of container',
  csi: 'a port of the node',
  hostPath: 'a mount of the runtime has one',
  local: 'a plain word',
  claim: 'a plain word',
  files: 'a plain word',
};

const WORDS = new Set([
  ...INLINE_KINDS.flatMap((k) => [k.kind, k.plugin, ...Object.keys(k.fields)]),
  ...PERSISTENT_KINDS.map((k) => k.field),
]);

function patternOf(word: string): RegExp {
  const compared = `(?:\\bsource\\.kind\\s*[!=]==?\\s*'${word}'|\\b(?:v|volume|spec)\\??\\.${word}\\s*[!=]==?\\s*undefined)`;
  return new RegExp(Object.hasOwn(OTHER_MEANINGS, word) ? compared : `${compared}|'${word}'|\\.${word}\\b`);
}

function sources(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? sources(join(dir, e.name)) : /\.tsx?$/.test(e.name) ? [join(dir, e.name)] : [],
  );
}
const withoutComments = (text: string): string => text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '');

it('kinds of volumes are named at home alone, and each exception has a reason that still holds', () => {
  const patterns = [...WORDS].map((word) => ({ word, pattern: patternOf(word) }));
  const found = new Map<string, string[]>();
  const folders = [SRC, ...readdirSync(join(ROOT, 'packages')).map((name) => join(ROOT, 'packages', name, 'src'))];
  for (const path of folders.filter((folder) => existsSync(folder)).flatMap(sources)) {
    const file = relative(ROOT, path)
      .replace(/^src\//, '')
      .replace(/^packages\/([^/]+)\/src\//, '$1/');
    if (HOMES.some((home) => home.test(file))) continue;
    const text = withoutComments(readFileSync(path, 'utf8'));
    const named = patterns.filter(({ pattern }) => pattern.test(text)).map(({ word }) => word);
    if (named.length > 0) found.set(file, named);
  }
  expect([...found.keys()].sort(), JSON.stringify([...found])).toEqual(Object.keys(REASONS).sort());
});

it('code for all kinds of volumes asks no volume for its kind', () => {
  const generic = ['machines/pod/volumes', 'machines/services/volumes', 'actors/services/volumes'].flatMap((dir) =>
    readdirSync(join(SRC, dir), { withFileTypes: true }).flatMap((e) => (e.isFile() ? [join(dir, e.name)] : [])),
  );
  const asking = generic.filter((file) =>
    /source\.kind\s*(?:[!=]==?)|switch \(\S*source\.kind\)/.test(withoutComments(readFileSync(join(SRC, file), 'utf8'))),
  );
  expect(asking.filter((file) => REASONS[file] === undefined)).toEqual([]);
});
