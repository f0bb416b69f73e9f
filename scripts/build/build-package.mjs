/**
 * A workspace as JavaScript, for `npm pack`: each source of it into its dist/, types stripped, imports of `.ts` made imports of what
 * is packed, and names of programs and threads too. Run by `prepack` in the folder of the package. The page of `inspect` is packed where
 * `npm run build` has made it.
 */
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { transform } from 'esbuild';

const home = resolve(process.argv[2] ?? '.');
const kubelet = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')).name === '@actorlet/kubelet';
const from = kubelet ? home : join(home, 'src');
const to = join(home, 'dist');

/** `./x.ts`, `@actorlet/NAME/src/x.ts` and `@actorlet/kubelet/x.ts` as they are called in packages. */
const SPECIFIER = /((?:from|import)\s*\(?\s*['"])((?:\.{1,2}|@actorlet)\/[^'"]+)\.ts(['"])/g;
const packed = (specifier) =>
  specifier.replace(/^(@actorlet\/kubelet)\//, '$1/dist/').replace(/^(@actorlet\/(?!kubelet\/)[^/]+)\/src\//, '$1/dist/');

/** Names of programs and threads that a source starts, as it has them beside other sources. */
const PROGRAM = /"((?:packages\/(\w+)\/)?(?:src\/)?)((?:\w+\/)*(?:main|worker|hostMain))\.ts"/g;
const started = (code) =>
  code
    .replace(PROGRAM, (_, before, of, path) => `"${before === '' ? '' : `${of ?? 'kubelet'}/dist/`}${path}.js"`)
    .replace(/"packages", "(\w+)", "src"/g, '"..", "$1", "dist"')
    .replaceAll('.endsWith(".ts")', '.endsWith(".js")');

rmSync(to, { recursive: true, force: true });
const files = globSync('**/*.ts', {
  cwd: from,
  exclude: [...(home.endsWith('/inspect') ? ['page/**'] : []), 'dist/**', '**/*.d.ts', 'node_modules/**'],
});
for (const file of files) {
  const { code } = await transform(readFileSync(join(from, file), 'utf8'), { loader: 'ts', format: 'esm', target: 'node22' });
  const path = join(to, file.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    started(code).replace(SPECIFIER, (_, before, specifier, after) => `${before}${packed(specifier)}.js${after}`),
  );
}
// What speaks gRPC looks for the folder above itself.
if (kubelet || home.endsWith('/runtimes')) cpSync(join(import.meta.dirname, '../../proto'), join(to, 'proto'), { recursive: true });
const page = join(import.meta.dirname, '../../dist/inspect');
if (home.endsWith('/inspect') && existsSync(page)) cpSync(page, join(to, 'inspect'), { recursive: true });
console.log(`${home}: ${files.length} files in dist`);
