/**
 * Type declarations of what package.json exports, into dist/types: what tsc says of the entries and of whatever they
 * name, and no more of the sources than that. Only for the package (`npm pack`); a checkout is checked by `tsc --noEmit`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isOwn, sourceOf } from '../check-imports.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const target = join(root, 'dist/types');
const scratch = join(root, `dist.${process.pid}`);
const entries = ['packages/fleet/src/index.ts', 'packages/harness/src/index.ts', 'packages/sim/src/index.ts'];

/** tsc reports per declaration; one that no entry reaches (an inferred machine that cannot be named, say) does not matter. */
function emit() {
  mkdirSync(scratch, { recursive: true });
  const config = join(scratch, 'tsconfig.json');
  const compilerOptions = { noEmit: false, declaration: true, emitDeclarationOnly: true, rootDir: root, outDir: scratch };
  writeFileSync(
    config,
    JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files: entries.map((e) => join(root, e)) }),
  );
  const run = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', config, '--pretty', 'false'], { cwd: root, encoding: 'utf8' });
  if (run.error) throw run.error;
  const errors = new Map();
  for (const line of run.stdout.split('\n')) {
    const file = /^(\S+?)\(\d+,\d+\): error /.exec(line)?.[1];
    if (file) errors.set(resolve(root, file), line);
  }
  if (run.status !== 0 && errors.size === 0) throw new Error(`tsc ended with ${run.status}: ${run.stdout}${run.stderr}`);
  return errors;
}

const SPECIFIER = /((?:from|import)\s*\(?\s*['"])((?:\.{1,2}|@actorlet)\/[^'"]+)\.ts(['"])/g;
const declaration = (source) => join(scratch, relative(root, source).replace(/\.ts$/, '.d.ts'));
/** The source that a file names without its `.ts`. */
const named = (source, specifier) => (isOwn(specifier) ? join(root, sourceOf(specifier)) : resolve(dirname(source), specifier));

/** Source files whose declarations the entries need, themselves included. */
function reachable() {
  const found = new Set();
  const visit = (source) => {
    if (found.has(source)) return;
    found.add(source);
    if (!existsSync(declaration(source))) throw new Error(`no declarations of ${relative(root, source)} were emitted`);
    const text = readFileSync(declaration(source), 'utf8');
    for (const m of text.matchAll(SPECIFIER)) visit(`${named(source, m[2])}.ts`);
  };
  for (const entry of entries) visit(join(root, entry));
  return found;
}

try {
  const errors = emit();
  const files = reachable();
  const wrong = [...errors].filter(([file]) => files.has(file)).map(([, line]) => line);
  if (wrong.length > 0) throw new Error(`types of the package:\n${wrong.join('\n')}`);
  rmSync(target, { recursive: true, force: true });
  for (const source of files) {
    const to = join(target, relative(scratch, declaration(source)));
    mkdirSync(dirname(to), { recursive: true });
    // Importers resolve `.js` to the declarations beside it; `.ts` is for sources. Names of packages are for a checkout.
    const text = readFileSync(declaration(source), 'utf8').replace(SPECIFIER, (_, before, specifier, after) => {
      const path = relative(dirname(source), named(source, specifier));
      return `${before}${path.startsWith('.') ? path : `./${path}`}.js${after}`;
    });
    writeFileSync(to, text);
  }
  console.log(`types: ${files.size} files in dist/types`);
} catch (error) {
  console.error(`build-types: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
