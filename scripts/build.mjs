/**
 * Bundles the programs into dist/ and what others import into dist/lib/, with shared chunks: ESM, readable (not minified: stack
 * traces name what they ran), with source maps. Bundling is for memory: the daemon tree-shaken needs a third less than its packages imported.
 * Does nothing when no input is newer than the last build; `--force` builds anyway.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtinsWithoutFacade } from './build/build-builtins.mjs';
import { buildPage } from './build/build-page.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');
const stampFile = join(dist, '.stamp');

/** Program name -> source. A program whose source is not there fails the build, after the others are built. */
const programs = {
  actorlet: 'src/boot/main.ts',
  actorctl: 'packages/ctl/src/main.ts',
  fleet: 'packages/fleet/src/boot/main.ts',
  sandboxd: 'packages/runtimes/src/process/main.ts',
  dial: 'packages/runtimes/src/oci/dial/worker.ts',
  subpath: 'src/boot/dependencies/subPath/main.ts',
  documents: 'src/boot/dependencies/documents/worker.ts',
  watchdog: 'src/boot/process/watchdog/worker.ts',
  debugger: 'src/boot/dependencies/debugger/worker.ts',
  hostfigures: 'packages/inspect/src/boot/hostMain.ts',
};
/** What package.json exports, and the program they start. */
const libraries = {
  'lib/fleet': 'packages/fleet/src/index.ts',
  'lib/harness': 'packages/harness/src/index.ts',
  'lib/reaper': 'packages/harness/src/reaper/main.ts',
  'lib/sim': 'packages/sim/src/index.ts',
};
/** Of the packages, without their tests. */
const sources = readdirSync(join(root, 'packages')).map((name) => `packages/${name}/src`);
/** Folders whose files are read at run time next to the bundle (`<package root>/proto`, not copied) or are inputs. */
const inputs = [
  'src',
  ...sources,
  'proto',
  'package.json',
  'package-lock.json',
  'scripts/build.mjs',
  'scripts/build/build-builtins.mjs',
  'scripts/build/build-page.mjs',
];

/** Every file below `path`, sorted. */
function files(path) {
  const info = statSync(path, { throwIfNoEntry: false });
  if (!info) return [];
  if (!info.isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => files(join(path, name)));
}

/** Content hash of all inputs: a checkout that changes modification times only does not rebuild, a revert does. */
function fingerprint() {
  const hash = createHash('sha256');
  for (const file of inputs.flatMap((input) => files(join(root, input)))) {
    hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
}

const force = process.argv.includes('--force');
const stamp = fingerprint();
/** Those whose source is there. */
function present(table) {
  return Object.entries(table).filter(([name, source]) => {
    if (existsSync(join(root, source))) return true;
    console.error(`build: ${name} left out, ${source} is not there`);
    process.exitCode = 1;
    return false;
  });
}
const entries = present({ ...programs, ...libraries });
const complete = existsSync(join(dist, 'inspect', 'index.html')) && entries.every(([name]) => existsSync(join(dist, `${name}.mjs`)));
if (!force && complete && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) {
  console.log('build: up to date');
  process.exit();
}

const { build } = await import('esbuild');
const started = performance.now();
// Built beside dist/ and moved in, so that a running daemon's next lazy import never meets half a file.
const fresh = join(root, `dist.${process.pid}`);
try {
  // One run for programs and libraries: a chunk holds what several of them share.
  const bundles = build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(entries),
    outdir: fresh,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    // One chunk per lazily imported module: what a mode does not need is not loaded.
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    // Found in node_modules at run time: native code, and what one command or panel alone needs. dbus-native loads xml2js
    // for introspection, which no call of ours asks for.
    external: ['koffi', '@kubernetes/client-node', 'systeminformation', 'xml2js'],
    plugins: [builtinsWithoutFacade],
    // CommonJS packages inside an ES module still want `require`.
    banner: {
      js: "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);",
    },
    // Names stay as they are but where two are the same; kept to the letter each function that is made at run time would be
    // defined a property: 3 % of what the daemon does in a burst of pods.
    keepNames: false,
    sourcemap: 'linked',
    legalComments: 'none',
    logLevel: 'warning',
  });
  // Both at once: each is a program of its own, and the first start of a checkout waits for the slower one alone.
  const [pageBuilt] = await Promise.all([buildPage({ root, dist, outDir: join(fresh, 'inspect'), force, files }), bundles]);
  if (force) rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist, { recursive: true });
  // Chunks of earlier builds stay: a daemon started from them may still load one. `--force` clears them.
  // Chunks first (their names carry a hash), programs last, each by a rename.
  for (const file of files(fresh).sort((a, b) => (Number(a.includes('chunks/')) < Number(b.includes('chunks/')) ? 1 : -1))) {
    const to = join(dist, relative(fresh, file));
    mkdirSync(dirname(to), { recursive: true });
    renameSync(file, to);
  }
  pageBuilt?.();
  writeFileSync(stampFile, stamp);
} catch (error) {
  // esbuild has already said what is wrong and where.
  if (!Array.isArray(error.errors)) throw error;
  rmSync(fresh, { recursive: true, force: true });
  process.exit(1);
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
console.log(`build: ${entries.map(([name]) => `dist/${name}.mjs`).join(', ')} in ${Math.round(performance.now() - started)} ms`);
