/**
 * Lint: imports go one way (docs/architecture/source-layout.md). Each package and each folder of src/ may import what its row
 * says and nothing else, type imports included; one without a row is an error, so that nobody adds a layer by accident. Below that,
 * src/machines has floors and doors: a manager knows the floors below it, itself, and of another manager its `messages.ts`.
 * Also finds import cycles, type imports counted, and uses of xstate's insides outside of src/machines/xstate.
 *
 * Own code because both usual tools fall short here: biome's noRestrictedImports sees the text of a specifier, which
 * cannot tell a sibling from a parent, and dependency-cruiser reads TypeScript through an API that TypeScript 7 lacks.
 *
 * Usage: check-imports.mjs [ROOT]   (ROOT: a folder holding src/ and packages/, default this repository)
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DOORS, FLOORS, LAYERS, SHARED_BY } from './lint/import-floors.mjs';

const HERE = resolve(dirname(fileURLToPath(import.meta.url)), '..');

/** Packages that neither do I/O nor read a clock: pure code may use them. */
const PURE = ['xstate', 'yaml'];
const ANY = 'any';

/** Names of this repository's packages: `@actorlet/kubelet` is src/, the others are below packages/. */
const OWN = '@actorlet/';
const KUBELET = `${OWN}kubelet/`;

export function isOwn(specifier) {
  return specifier.startsWith(OWN);
}

/** The file that `@actorlet/NAME/PATH` is, from the root of the repository. */
export function sourceOf(specifier) {
  return specifier.startsWith(KUBELET) ? `src/${specifier.slice(KUBELET.length)}` : `packages/${specifier.slice(OWN.length)}`;
}

/** What rules call a file: `machines/pod/x.ts` of src/, `sim/run.ts` of packages/sim/src. */
function nameOf(file) {
  return file.replace(/^src\/|^packages\/(?=[^/]+\/src\/)/, '').replace(/^([^/]+)\/src\//, '$1/');
}

/**
 * First match wins. `in`: which files the row is for; `folder`: the same for people. `may`: prefixes of what they may import, itself included
 * (see {@link nameOf}), or a function of (importer, imported, holders). `packages`: names, or ANY, which includes node: modules.
 */
export const RULES = [
  // Decoding text is no I/O.
  {
    folder: '`machines/document`, the reader of YAML and JSON',
    in: /^machines\/document\//,
    may: ['machines/'],
    packages: PURE,
  },
  // Types of the official client, which are erased.
  {
    folder: '`machines/kube/wire.ts`, types of what is written into the API (types alone)',
    in: /^machines\/kube\/wire\.ts$/,
    may: [],
    packages: ['@kubernetes/client-node'],
  },
  { folder: '`machines`', in: /^machines\//, may: ['machines/'], packages: ['xstate'] },
  // What a person is shown of a node at one moment. It knows every manager. Its pages are an extension of a node.
  {
    folder: '`shown/src/extension.ts`',
    in: /^shown\/extension\.ts$/,
    may: ['machines/', 'shown/', 'ports/', 'actors/'],
    packages: [],
  },
  { folder: '`shown`', in: /^shown\//, may: ['machines/', 'shown/'], packages: [] },
  // The ways out of the process, as types, and what an actor may lean on beside them.
  { folder: '`ports`', in: /^ports\//, may: ['machines/', 'ports/'], packages: [] },
  {
    folder: '`actors/supervision`',
    in: /^actors\/supervision\//,
    may: ['machines/', 'ports/', 'actors/supervision/'],
    packages: ['xstate'],
  },
  // The tree and the node: the only actor files that know all the others.
  {
    folder: '`actors/*.ts`, the tree and one node',
    in: /^actors\/[^/]+\.ts$/,
    may: ['machines/', 'ports/', 'actors/'],
    packages: PURE,
  },
  // The flight recorder is told what the supervision shows of itself; it stands below the node that carries it.
  {
    folder: '`actors/recorder`, the flight recorder',
    in: /^actors\/recorder\//,
    may: ['machines/', 'ports/', 'actors/recorder/'],
    packages: PURE,
  },
  { folder: '`actors/<layer>`', in: /^actors\//, may: actorMayImport, packages: PURE },
  // The injector lives in the tree of a node, which is given it; the language of faults is beside it, for simulations and files.
  {
    folder: '`faults/injector`, `faults/src/extension.ts`',
    in: /^faults\/(?:injector\/|extension\.ts$)/,
    may: ['machines/', 'shown/', 'ports/', 'actors/', 'faults/'],
    packages: PURE,
  },
  { folder: '`faults`, the language', in: /^faults\//, may: ['machines/', 'shown/', 'faults/'], packages: PURE },
  // Lives in the tree of a node, which is given it.
  { folder: '`deaths`', in: /^deaths\//, may: ['machines/', 'shown/', 'ports/', 'actors/', 'deaths/'], packages: PURE },
  // Child processes, .proto files and SPDY, for programs that have I/O of their own.
  { folder: '`process`', in: /^process\//, may: ['machines/', 'process/'], packages: ANY },
  { folder: '`admin`', in: /^admin\//, may: ['machines/', 'shown/', 'process/', 'admin/'], packages: ANY },
  // The process runtime and its kind `oci` are a daemon of its own with its own I/O.
  {
    folder: '`runtimes/process`, `runtimes/oci`',
    in: /^runtimes\/(?:process|oci)\//,
    may: ['machines/', 'ports/', 'process/', 'runtimes/'],
    packages: ANY,
  },
  { folder: '`runtimes`', in: /^runtimes\//, may: ['machines/', 'ports/', 'runtimes/'], packages: PURE },
  // The one access of all that is simulated to the process it runs in; a simulated node never sees it.
  { folder: '`world/src/globals.ts`', in: /^world\/globals\.ts$/, may: [], packages: ['node:crypto', 'node:process', 'node:timers'] },
  {
    folder: '`world`',
    in: /^world\//,
    may: ['machines/', 'deaths/', 'faults/', 'shown/extension.ts', 'ports/', 'actors/', 'runtimes/hollow/', 'world/'],
    packages: PURE,
  },
  {
    folder: '`sim`',
    in: /^sim\//,
    may: ['machines/', 'shown/', 'faults/', 'ports/', 'actors/', 'runtimes/hollow/', 'world/', 'sim/'],
    packages: PURE,
  },
  // Stands between a node and its ports, and runs a node on what it wrote.
  {
    folder: '`replay`',
    in: /^replay\//,
    may: ['machines/', 'deaths/', 'faults/', 'shown/extension.ts', 'ports/', 'actors/', 'replay/'],
    packages: PURE,
  },
  // The page runs in a browser; what it shares with the daemon are frames and charts.
  {
    folder: '`inspect/page`',
    in: /^inspect\/page\//,
    may: [
      'machines/',
      'faults/',
      'shown/',
      'actors/recorder/',
      'inspect/feed/frames.ts',
      'inspect/project.ts',
      'inspect/recording/',
      'inspect/page/',
    ],
    packages: ANY,
  },
  // The page's server, for a running daemon and for a recording.
  {
    folder: '`inspect/server`, `inspect/boot`',
    in: /^inspect\/(?:server|boot)\//,
    may: ['machines/', 'faults/', 'shown/', 'ports/', 'actors/', 'process/', 'inspect/'],
    packages: ANY,
  },
  { folder: '`inspect`', in: /^inspect\//, may: ['machines/', 'faults/', 'shown/', 'ports/', 'actors/', 'inspect/'], packages: PURE },
  // Which program `actorlet` is: the daemon, the observer or the check. It loads one of them.
  {
    folder: '`boot/main.ts`, the program',
    in: /^boot\/main\.ts$/,
    may: ['machines/', 'ports/', 'actors/', 'process/', 'runtimes/', 'replay/', 'inspect/', 'check/', 'observe/', 'boot/'],
    packages: ANY,
  },
  {
    folder: '`boot`, the daemon',
    in: /^boot\//,
    may: ['machines/', 'deaths/', 'faults/', 'shown/', 'ports/', 'actors/', 'process/', 'runtimes/', 'replay/', 'inspect/', 'boot/'],
    packages: ANY,
  },
  // Judges what the daemon would do, with the daemon's own code.
  { folder: '`check`', in: /^check\//, may: ['machines/', 'ports/', 'actors/', 'process/', 'runtimes/', 'boot/', 'check/'], packages: ANY },
  // The tree beside another kubelet is started by the steps of the daemon.
  {
    folder: '`observe`',
    in: /^observe\//,
    may: ['machines/', 'deaths/', 'shown/', 'ports/', 'actors/', 'process/', 'runtimes/', 'check/', 'boot/', 'observe/'],
    packages: ANY,
  },
  // What a fleet has of the outside is what the daemon has.
  {
    folder: '`fleet/boot`, its program and its library',
    in: /^fleet\/(?:boot\/|index\.ts$)/,
    may: ['machines/', 'faults/', 'shown/', 'ports/', 'actors/', 'process/', 'admin/', 'runtimes/hollow/', 'world/', 'boot/', 'fleet/'],
    packages: ANY,
  },
  // Its nodes are the production tree on machines of the simulation, with a real clock and a real API server.
  {
    folder: '`fleet`',
    in: /^fleet\//,
    may: ['machines/', 'deaths/', 'faults/', 'shown/', 'ports/', 'actors/', 'runtimes/hollow/', 'world/', 'fleet/'],
    packages: [...PURE, '@marcbachmann/cel-js', 're2js'],
  },
  // Starts daemons as processes; of the node's own code it shares only what reads manifests.
  {
    folder: '`harness`',
    in: /^harness\//,
    may: [
      'machines/',
      'faults/',
      'shown/',
      'admin/',
      'process/',
      'actors/pods/sources/manifest.ts',
      'runtimes/process/admin.ts',
      'fleet/index.ts',
      'harness/',
    ],
    packages: ANY,
  },
  {
    folder: '`ctl/commands/try*`',
    in: /^ctl\/commands\/try/,
    may: ['machines/', 'faults/', 'shown/', 'admin/', 'process/', 'ctl/', 'harness/'],
    packages: ANY,
  },
  {
    folder: '`ctl/commands/sim*`',
    in: /^ctl\/commands\/sim/,
    may: ['machines/', 'faults/', 'shown/', 'ports/', 'actors/', 'admin/', 'process/', 'ctl/', 'replay/', 'sim/'],
    packages: ANY,
  },
  // What a replay leaves of its recording, the simulation plays. A changed configuration is checked as the daemon checks it.
  {
    folder: '`ctl/commands/replay*`',
    in: /^ctl\/commands\/replay/,
    may: [
      ...['machines/', 'faults/', 'shown/', 'ports/', 'actors/', 'admin/', 'process/', 'ctl/'],
      ...['replay/', 'inspect/', 'observe/observer.ts', 'runtimes/hollow/', 'world/', 'sim/', 'boot/config/'],
    ],
    packages: ANY,
  },
  // A recording is opened without a daemon.
  {
    folder: '`ctl/commands/recording*`',
    in: /^ctl\/commands\/recording/,
    may: ['machines/', 'faults/', 'shown/', 'ports/', 'actors/recorder/', 'admin/', 'ctl/', 'inspect/'],
    packages: ANY,
  },
  { folder: '`ctl`', in: /^ctl\//, may: ['machines/', 'faults/', 'shown/', 'admin/', 'process/', 'ctl/'], packages: ANY },
];

/**
 * A file of an actor may import the supervision, its own files, what its layer shares, and of every layer the door `client.ts`.
 * Another actor is out of reach. `holders`: see {@link holdersIn}.
 */
function actorMayImport(importer, imported, holders) {
  if (['machines/', 'ports/', 'actors/supervision/'].some((below) => imported.startsWith(below))) return true;
  if (/^actors\/[^/]+\/client\.ts$/.test(imported)) return true;
  const [mine, theirs] = [placeOf(importer), placeOf(imported)];
  if (dirname(mine) !== dirname(theirs)) return false;
  return mine === theirs || KNOWS_ITS_LAYER.test(importer) || !holders.has(theirs);
}
/** Files that make the actors of their layer, or speak for them. */
const KNOWS_ITS_LAYER = /^actors\/[^/]+\/(?:client|options|providers)\.ts$/;
/** The folder of a layer in which a file is, or its name without `.ts`: `edge/https` holds `edge/https/pods.ts`, `edge/admin` holds `edge/admin.ts`. */
function placeOf(file) {
  const [, layer, name = ''] = file.split('/');
  return `${layer}/${name.replace(/\.ts$/, '')}`;
}
/** Places in which an actor is: a file there exports its specification, `<name>Spec`. All others of a layer are shared. */
function holdersIn(src) {
  const actors = join(src, 'actors');
  if (!existsSync(actors)) return new Set();
  const specs = sources(actors).filter((path) => /^export function \w+Spec\b/m.test(readFileSync(path, 'utf8')));
  return new Set(specs.map((path) => placeOf(relative(src, path))));
}

/** Blanks comments and the insides of template literals, keeping length, so that only code is searched. */
export function codeOnly(text) {
  let out = '';
  let i = 0;
  const blank = (to) => {
    out += text.slice(i, to).replace(/[^\n]/g, ' ');
    i = to;
  };
  const end = (at) => (at < 0 ? text.length : at);
  while (i < text.length) {
    const two = text.slice(i, i + 2);
    const c = text[i];
    if (two === '//') blank(end(text.indexOf('\n', i)));
    else if (two === '/*') blank(Math.min(text.length, end(text.indexOf('*/', i + 2)) + 2));
    else if (c === "'" || c === '"' || c === '`') {
      let j = i + 1;
      while (j < text.length && text[j] !== c && (c === '`' || text[j] !== '\n')) j += text[j] === '\\' ? 2 : 1;
      j = Math.min(text.length, j + 1);
      if (c === '`') blank(j);
      else {
        out += text.slice(i, j);
        i = j;
      }
    } else {
      out += c;
      i += 1;
    }
  }
  return out;
}

/** Every import and re-export of a file: `{specifier, typeOnly, line}`. */
export function importsOf(text) {
  const code = codeOnly(text);
  const found = [];
  const add = (match, specifier, typeOnly) => {
    found.push({ specifier, typeOnly, line: code.slice(0, match.index).split('\n').length });
  };
  const clause = String.raw`(type\s+)?(?:[\w$*]|\{)[^;'"]*?\sfrom\s*`;
  for (const m of code.matchAll(new RegExp(String.raw`\b(?:import|export)\s+${clause}(['"])([^'"]+)\2`, 'g'))) add(m, m[3], Boolean(m[1]));
  for (const m of code.matchAll(/\bimport\s*(['"])([^'"]+)\1/g)) add(m, m[2], false);
  for (const m of code.matchAll(/\b(?:import|require)\s*\(\s*(['"])([^'"]+)\1/g)) add(m, m[2], false);
  return found;
}

function sources(dir) {
  return readdirSync(dir)
    .sort()
    .flatMap((name) => {
      const path = join(dir, name);
      if (statSync(path).isDirectory()) return sources(path);
      return /\.tsx?$/.test(name) ? [path] : [];
    });
}

/** What one import breaks, or null. `from` and `target` as {@link nameOf} (target null: a package of somebody else). */
function verdict(rule, from, { specifier, target, holders }) {
  if (target === null) {
    if (rule.packages === ANY) return null;
    const name = specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : specifier.split('/')[0];
    return rule.packages.includes(name) ? null : `package '${specifier}' (allowed here: ${rule.packages.join(', ')})`;
  }
  if (!RULES.some((r) => r.in.test(target))) return `'${specifier}', which no rule knows`;
  const ok = typeof rule.may === 'function' ? rule.may(from, target, holders) : rule.may.some((prefix) => target.startsWith(prefix));
  const allowed =
    typeof rule.may === 'function'
      ? "machines, shown, ports, actors/supervision, own files, what the layer shares, a layer's client.ts"
      : rule.may.join(', ');
  return ok ? null : `${target} (allowed here: ${allowed})`;
}

/** The manager whose decisions or acts a file is, as a folder below machines/ and actors/; null: nobody's alone. */
export function managerOf(file) {
  const [, below] = /^(?:machines|actors)\/(.*\/)[^/]+$/.exec(file) ?? [];
  if (below === undefined || FLOORS.some((floor) => file.startsWith(floor))) return null;
  const [layer, name] = below.split('/');
  if (layer === 'supervision') return null;
  if (!LAYERS.includes(layer)) return layer;
  const manager = name === '' || name === undefined ? layer : `${layer}/${name}`;
  return SHARED_BY[manager] ?? manager;
}

/** What of another manager's inside one import reaches, or null. Imports that `DOORS` lists are noted in `opened`. */
function behindDoor(from, target, opened) {
  if (!target.startsWith('machines/')) return null;
  const floor = FLOORS.findIndex((f) => target.startsWith(f));
  const own = FLOORS.findIndex((f) => from.startsWith(f));
  if (own >= 0 && from.startsWith('machines/')) {
    return floor >= 0 && floor <= own ? null : `${target}, which stands above it (FLOORS of scripts/lint/import-floors.mjs)`;
  }
  if (floor >= 0) return null;
  const [mine, theirs] = [managerOf(from), managerOf(target)];
  if (from.startsWith('machines/') && theirs === null && mine !== null) return `${target}, which stands above the managers`;
  if (mine === null || theirs === null || isOptions(from)) return null;
  const related = mine === theirs || mine.startsWith(`${theirs}/`) || theirs.startsWith(`${mine}/`);
  if (related || target.endsWith('/messages.ts')) return null;
  const door = `${from} -> ${target}`;
  if (!DOORS.includes(door)) return `${target}: it is the inside of ${theirs}, whose door is messages.ts`;
  opened.add(door);
  return null;
}
/** Makes the actors of a layer from the configuration, so it knows each of them. */
function isOptions(file) {
  return file.endsWith('/options.ts');
}

/** Fields of xstate that its types or its documents do not show, and copies by prototype. */
const INSIDES = /\b(_nodes|_parent|_register|_unregister|_relay|_transitions|idMap)\b|\bObject\.create\(|\.implementations\b|'logic'/g;

/** Uses of xstate's insides outside of their one home, whose tests fail when xstate changes them. */
function insidesIn(from, text) {
  if (from.startsWith('machines/xstate/')) return [];
  const code = codeOnly(text);
  return [...code.matchAll(INSIDES)].map(
    (m) => `${from}:${code.slice(0, m.index).split('\n').length}: ${m[0]} is an inside of xstate; src/machines/xstate is their home`,
  );
}

/** One path per strongly connected knot, found depth first. */
function cycles(graph) {
  const state = new Map();
  const found = [];
  const visit = (file, trail) => {
    state.set(file, 'open');
    for (const next of graph.get(file) ?? []) {
      if (state.get(next) === 'open') found.push([...trail.slice(trail.indexOf(next)), next]);
      else if (!state.has(next)) visit(next, [...trail, next]);
    }
    state.set(file, 'done');
  };
  for (const file of graph.keys()) if (!state.has(file)) visit(file, [file]);
  return found;
}

/** The table of docs/architecture/source-layout.md. */
export function table() {
  const named = (may) => {
    if (typeof may === 'function')
      return "`machines`, `shown`, `ports`, `actors/supervision`, itself, what its layer shares, a layer's `client.ts`";
    if (may.includes('')) return 'everything';
    return may.length === 0 ? 'nothing' : may.map((m) => `\`${shown(m)}\``).join(', ');
  };
  // A file is named as it is found.
  const shown = (m) => (m.endsWith('.ts') && !/^(?:machines|ports|actors|boot)\//.test(m) ? m.replace('/', '/src/') : m.replace(/\/$/, ''));
  const packages = (list) => (list === ANY ? 'any' : list.length === 0 ? 'none' : list.map((p) => `\`${p}\``).join(', '));
  const rows = RULES.map((r) => `| ${r.folder} | ${named(r.may)} | ${packages(r.packages)} |`);
  return ['| folder | may import | packages |', '|---|---|---|', ...rows].join('\n');
}

/** The drawing of ARCHITECTURE.md: who imports whom in src/machines, a box for each floor and the managers. */
export function drawing(root) {
  const src = join(root, 'src');
  const boxes = [...FLOORS.map((f) => f.replace(/^machines\/|\/$|\.ts$/g, '')), 'managers'];
  const boxOf = (file) => {
    const floor = FLOORS.findIndex((f) => file.startsWith(f));
    if (floor >= 0) return floor;
    return boxes.indexOf('managers');
  };
  const arrows = new Set();
  for (const path of sources(join(src, 'machines'))) {
    for (const { specifier } of importsOf(readFileSync(path, 'utf8'))) {
      if (!specifier.startsWith('.')) continue;
      const [from, to] = [boxOf(relative(src, path)), boxOf(relative(src, resolve(dirname(path), specifier)))];
      if (from !== to) arrows.add(`${String(from).padStart(2, '0')} ${String(to).padStart(2, '0')}`);
    }
  }
  const lines = [...arrows].sort().map((a) => {
    const [from, to] = a.split(' ').map(Number);
    return `  ${boxes[from]} --> ${boxes[to]}${to > from ? ' %% up the floors' : ''}`;
  });
  return ['```mermaid', 'flowchart BT', ...lines, '```'].join('\n');
}

/** Names of all that files import from outside their package, without `node:` modules, sorted. */
export function needed(root, folder) {
  const own = folder === 'src' ? 'kubelet' : folder.split('/')[1];
  const names = new Set();
  for (const path of sources(join(root, folder)))
    for (const { specifier } of importsOf(readFileSync(path, 'utf8'))) {
      if (specifier.startsWith('.') || specifier.startsWith('node:')) continue;
      const [scope, name] = specifier.split('/');
      const needs = scope.startsWith('@') ? `${scope}/${name}` : scope;
      if (needs !== `${OWN}${own}`) names.add(needs);
    }
  return [...names].sort();
}

/** What each package needs: other packages, and of the kubelet which folders; `lines` of its sources, `tests` that stand beside them. */
export function packages(root) {
  const found = {};
  for (const name of readdirSync(join(root, 'packages')).sort()) {
    const home = join(root, 'packages', name);
    if (!existsSync(join(home, 'package.json'))) continue;
    const files = sources(join(home, 'src'));
    const needs = new Set();
    const doors = new Set();
    for (const text of files.map((path) => readFileSync(path, 'utf8')))
      for (const { specifier } of importsOf(text)) {
        if (specifier.startsWith(KUBELET)) doors.add(doorOf(specifier.slice(KUBELET.length)));
        else if (isOwn(specifier)) needs.add(specifier.split('/')[1]);
      }
    const tests = existsSync(join(home, 'test')) ? sources(join(home, 'test')).filter((path) => path.endsWith('.test.ts')).length : 0;
    const lines = files.reduce((sum, path) => sum + readFileSync(path, 'utf8').split('\n').length - 1, 0);
    found[name] = { needs: [...needs].sort(), doors: [...doors].sort(), lines, tests };
  }
  return found;
}

/** `machines/kube`, `actors/node.ts`: what a package uses of the kubelet, as coarse as a reader wants it. */
const doorOf = (place) => place.split('/').slice(0, 2).join('/');

/** The folders of sources below `root`. */
function roots(root) {
  const packages = join(root, 'packages');
  const names = existsSync(packages) ? readdirSync(packages).sort() : [];
  return [join(root, 'src'), ...names.map((name) => join(packages, name, 'src'))].filter((path) => existsSync(path));
}

/** All complaints about the sources of `root`, as lines `file:line: text`. */
export function check(root) {
  const complaints = [];
  const graph = new Map();
  const opened = new Set();
  const holders = holdersIn(join(root, 'src'));
  for (const path of roots(root).flatMap(sources)) {
    const file = relative(root, path);
    const from = nameOf(file);
    const rule = RULES.find((r) => r.in.test(from));
    if (!rule) {
      complaints.push(`${file}:1: no import rule for this folder; add a row to scripts/check-imports.mjs`);
      continue;
    }
    const edges = [];
    const text = readFileSync(path, 'utf8');
    complaints.push(...insidesIn(from, text).map((line) => line.replace(from, file)));
    for (const found of importsOf(text)) {
      const imported = fileOf(root, path, found.specifier);
      const target = imported === null ? null : nameOf(imported);
      if (imported !== null && !existsSync(join(root, imported))) {
        complaints.push(`${file}:${found.line}: imports '${found.specifier}', which is not there`);
        continue;
      }
      const wrong = crossing(file, found.specifier, imported) ?? verdict(rule, from, { specifier: found.specifier, target, holders });
      if (wrong) complaints.push(`${file}:${found.line}: may not import ${wrong}`);
      if (target === null) continue;
      const closed = behindDoor(from, target, opened);
      if (closed) complaints.push(`${file}:${found.line}: may not import ${closed}`);
      edges.push(target);
    }
    graph.set(from, edges);
  }
  if (resolve(root) === HERE)
    for (const door of DOORS)
      if (!opened.has(door)) complaints.push(`scripts/lint/import-floors.mjs:1: nobody needs this any more, take it off DOORS: ${door}`);
  for (const loop of cycles(graph)) complaints.push(`${loop[0]}:1: import cycle ${loop.join(' -> ')}`);
  for (const loop of cycles(houses(graph))) complaints.push(`${loop[0]}:1: packages that need each other: ${loop.join(' -> ')}`);
  return { complaints, files: graph.size };
}

/** The file that is imported, from the root; null: a package of somebody else. */
function fileOf(root, importer, specifier) {
  if (specifier.startsWith('.')) return relative(root, resolve(dirname(importer), specifier));
  return isOwn(specifier) ? sourceOf(specifier) : null;
}

const houseOf = (file) => /^(?:packages\/[^/]+|src)\//.exec(file)?.[0] ?? '';

/** A package names another by its name, and itself by paths. */
function crossing(file, specifier, imported) {
  if (imported === null || isOwn(specifier) !== (houseOf(file) === houseOf(imported))) return null;
  return isOwn(specifier)
    ? `'${specifier}' of its own package by name`
    : `'${specifier}', which is outside ${houseOf(file)}: name its package`;
}

/** Who needs whom, of packages and of the folders of src/. The program stands above what it starts. */
function houses(graph) {
  const found = new Map();
  const house = (place) => (place === 'boot/main.ts' ? place : place.split('/')[0]);
  for (const [from, targets] of graph) {
    const needs = found.get(house(from)) ?? new Set();
    for (const target of targets) if (house(target) !== house(from)) needs.add(house(target));
    found.set(house(from), needs);
  }
  return found;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) report(resolve(process.argv[2] ?? HERE));

function report(root) {
  const { complaints, files } = check(root);
  for (const line of complaints) console.error(line);
  console.log(`check-imports: ${files} files, ${complaints.length} complaints`);
  if (complaints.length > 0) process.exitCode = 1;
}
