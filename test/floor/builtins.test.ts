/** Bundles take Node's own modules without what these load on first use. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { expect, it } from 'vitest';
import { builtinsWithoutFacade } from '../../scripts/build/build-builtins.mjs';

const SOURCE = `
  import http, { request, STATUS_CODES } from 'node:http';
  import * as path from 'path';
  import { readFile } from 'node:fs/promises';
  const works = http.request === request && STATUS_CODES[404] === 'Not Found' && path.join('a', 'b') === 'a/b' && typeof readFile === 'function';
  process.stdout.write(JSON.stringify({ works, undici: process.moduleLoadList.some((name) => name.includes('undici')) }));
`;

async function bundled(plugins: Plugin[]): Promise<{ works: boolean; undici: boolean }> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-builtins-'));
  try {
    const { outputFiles } = await build({
      stdin: { contents: SOURCE, resolveDir: dir },
      bundle: true,
      format: 'esm',
      platform: 'node',
      write: false,
      plugins,
    });
    const file = join(dir, 'program.mjs');
    writeFileSync(file, outputFiles[0]?.contents ?? '');
    return JSON.parse(execFileSync(process.execPath, [file], { encoding: 'utf8' })) as { works: boolean; undici: boolean };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

it('a bundle that uses node:http does not load undici', async () => {
  expect(await bundled([builtinsWithoutFacade])).toEqual({ works: true, undici: false });
});

it('an ES module import of node:http does: the plugin is still needed', async () => {
  expect(await bundled([])).toEqual({ works: true, undici: true });
});
