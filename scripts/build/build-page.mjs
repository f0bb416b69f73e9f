/**
 * Builds the inspection page (packages/inspect/src/page) with Vite into `outDir`. Takes some seconds, so it has a stamp of its own:
 * a change elsewhere does not build it again.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const INPUTS = ['packages/inspect/src/page', 'src/machines/chart', 'package-lock.json', 'scripts/build/build-page.mjs'];

/** `files`: every file below a path. Answers whether it built. */
export async function buildPage({ root, dist, outDir, force, files }) {
  const hash = createHash('sha256');
  for (const file of INPUTS.flatMap((input) => files(join(root, input)))) {
    hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  }
  const stamp = hash.digest('hex');
  const stampFile = join(dist, '.stamp-page');
  const built = existsSync(join(dist, 'inspect', 'index.html')) && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp;
  if (built && !force) return null;
  const [{ build }, { default: react }] = await Promise.all([import('vite'), import('@vitejs/plugin-react')]);
  await build({
    configFile: false,
    root: join(root, 'packages/inspect/src/page'),
    base: './',
    plugins: [react()],
    logLevel: 'warn',
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      // The content security policy allows files of the server only.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      chunkSizeWarningLimit: 4000,
    },
  });
  return () => writeFileSync(stampFile, stamp);
}
