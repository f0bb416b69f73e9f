/**
 * Lint: imports go one way (docs/architecture/source-layout.md). Each folder of src/ may import what its row says and nothing
 * else, type imports included; a folder without a row is an error, so that nobody adds a layer by accident. Also finds
 * import cycles, type imports not counted.
 *
 * Own code because both usual tools fall short here: biome's noRestrictedImports sees the text of a specifier, which
 * cannot tell a sibling from a parent, and dependency-cruiser reads TypeScript through an API that TypeScript 7 lacks.
 *
 * Usage: check-imports.mjs [ROOT]   (ROOT: a folder holding src/, default this package)
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Packages that neither do I/O nor read a clock: pure code may use them. */
const PURE = ['xstate', 'yaml'];
const ANY = 'any';

/**
 * First match wins. `in`: which files the row is for. `may`: path prefixes below src/ they may import from, or a function
 * of (importer, imported). `packages`: names, or ANY, which includes node: modules.
 */
export const RULES = [
  // Manifests, configuration and scenario files are YAML text; decoding text is no I/O.
  { in: /^machines\/(document|faults)\//, may: ['machines/'], packages: PURE },
  // Types of the official client, which are erased.
  { in: /^machines\/kube\/wire\.ts$/, may: [], packages: ['@kubernetes/client-node'] },
  { in: /^machines\//, may: ['machines/'], packages: ['xstate'] },
  // The ways out of the process, as types, and what an actor may lean on beside them.
  { in: /^ports\//, may: ['machines/', 'ports/'], packages: [] },
  { in: /^actors\/supervision\//, may: ['machines/', 'ports/', 'actors/supervision/'], packages: ['xstate'] },
  // The tree and the node: the only actor files that know all the others.
  // A node carries its flight recorder, which watches the supervision from outside, and where asked for its fault injector.
  {
    in: /^actors\/node\.ts$/,
    may: [
      'machines/',
      'ports/',
      'actors/',
      'inspect/recorder.ts',
      'inspect/history.ts',
      'inspect/source.ts',
      'actors/foundation/injector/interceptors/',
    ],
    packages: PURE,
  },
  { in: /^actors\/[^/]+\.ts$/, may: ['machines/', 'ports/', 'actors/'], packages: PURE },
  { in: /^actors\//, may: actorMayImport, packages: PURE },
  // The process runtime is a daemon of its own with its own I/O.
  { in: /^sandbox\/process\//, may: ['machines/', 'ports/', 'actors/', 'sandbox/'], packages: ANY },
  { in: /^sandbox\//, may: ['machines/', 'ports/', 'actors/', 'sandbox/'], packages: PURE },
  // The simulation's one access to the process it runs in; a simulated node never sees it.
  { in: /^sim\/globals\.ts$/, may: [], packages: ['node:crypto', 'node:process', 'node:timers'] },
  { in: /^sim\//, may: ['machines/', 'ports/', 'actors/', 'sandbox/hollow/', 'sandbox/shared/', 'sim/'], packages: PURE },
  // The page runs in a browser; what it shares with the daemon are frames and charts.
  {
    in: /^inspect\/page\//,
    may: ['machines/', 'inspect/feed/frames.ts', 'inspect/history.ts', 'inspect/project.ts', 'inspect/recorder.ts', 'inspect/page/'],
    packages: ANY,
  },
  // The page's server, for a running daemon and for a recording.
  { in: /^inspect\/server\//, may: ['machines/', 'ports/', 'actors/', 'inspect/'], packages: ANY },
  { in: /^inspect\//, may: ['machines/', 'ports/', 'actors/', 'inspect/'], packages: PURE },
  // Starts daemons as processes; of the node's own code it shares only what reads manifests and speaks CRI.
  {
    in: /^harness\//,
    may: [
      'machines/',
      'ctl/',
      'actors/pods/sources/manifest.ts',
      'sandbox/process/admin.ts',
      'sandbox/process/signals.ts',
      'sandbox/process/startProcess.ts',
      'harness/',
    ],
    packages: ANY,
  },
  { in: /^ctl\/commands\/try/, may: ['machines/', 'ctl/', 'harness/'], packages: ANY },
  { in: /^ctl\/commands\/sim/, may: ['machines/', 'ctl/', 'sim/', 'sandbox/process/startProcess.ts'], packages: ANY },
  // A recording is opened without a daemon.
  { in: /^ctl\/commands\/recording/, may: ['machines/', 'ports/', 'ctl/', 'inspect/'], packages: ANY },
  { in: /^ctl\//, may: ['machines/', 'ctl/', 'sandbox/process/startProcess.ts'], packages: ANY },
  { in: /^boot\//, may: [''], packages: ANY },
];

/** An actor folder may import the supervision, its own files, and of a sibling only what it offers on purpose: `client.ts`. */
function actorMayImport(importer, imported) {
  const own = `${importer.split('/').slice(0, 2).join('/')}/`;
  return (
    imported.startsWith('machines/') ||
    imported.startsWith('ports/') ||
    imported.startsWith('actors/supervision/') ||
    imported.startsWith(own) ||
    /^actors\/[^/]+\/client\.ts$/.test(imported)
  );
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

/** What one import breaks, or null. `from` and `target` are relative to src/ (target null: a package). */
function verdict(rule, from, { specifier, target }) {
  if (target === null) {
    if (rule.packages === ANY) return null;
    const name = specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : specifier.split('/')[0];
    return rule.packages.includes(name) ? null : `package '${specifier}' (allowed here: ${rule.packages.join(', ')})`;
  }
  if (target.startsWith('..')) return `'${specifier}', which is outside src/`;
  const ok = typeof rule.may === 'function' ? rule.may(from, target) : rule.may.some((prefix) => target.startsWith(prefix));
  const allowed =
    typeof rule.may === 'function' ? "machines, ports, actors/supervision, own folder, a sibling's client.ts" : rule.may.join(', ');
  return ok ? null : `src/${target} (allowed here: ${allowed})`;
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

/** All complaints about the tree below `root`/src, as lines `file:line: text`. */
export function check(root) {
  const src = join(root, 'src');
  const complaints = [];
  const graph = new Map();
  for (const path of sources(src)) {
    const from = relative(src, path);
    const rule = RULES.find((r) => r.in.test(from));
    if (!rule) {
      complaints.push(`src/${from}:1: no import rule for this folder; add a row to scripts/check-imports.mjs`);
      continue;
    }
    const edges = [];
    for (const found of importsOf(readFileSync(path, 'utf8'))) {
      const local = found.specifier.startsWith('.') ? resolve(dirname(path), found.specifier) : null;
      const target = local === null ? null : relative(src, local);
      if (local !== null && !existsSync(local)) {
        complaints.push(`src/${from}:${found.line}: imports '${found.specifier}', which is not there`);
        continue;
      }
      const wrong = verdict(rule, from, { specifier: found.specifier, target });
      if (wrong) complaints.push(`src/${from}:${found.line}: may not import ${wrong}`);
      if (target !== null && !found.typeOnly) edges.push(target);
    }
    graph.set(from, edges);
  }
  for (const loop of cycles(graph)) complaints.push(`src/${loop[0]}:1: import cycle ${loop.join(' -> ')}`);
  return { complaints, files: graph.size };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const root = resolve(process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '..'));
  const { complaints, files } = check(root);
  for (const line of complaints) console.error(line);
  console.log(`check-imports: ${files} files, ${complaints.length} complaints`);
  if (complaints.length > 0) process.exitCode = 1;
}
