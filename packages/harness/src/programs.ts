/** Where this package's programs are: beside the bundle, or as sources in a checkout. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Programs {
  daemon: string;
  reaper: string;
  sandbox: string;
}
const BUILT: Programs = { daemon: 'dist/actorlet.mjs', reaper: 'dist/lib/reaper.mjs', sandbox: 'dist/sandboxd.mjs' };
const SOURCES: Programs = {
  daemon: 'src/boot/main.ts',
  reaper: 'packages/harness/src/reaper/main.ts',
  sandbox: 'packages/runtimes/src/process/main.ts',
};

/**
 * Sources start sources, bundles start bundles: never one with the other's idea of the protocol. Tests of a checkout, which builds before
 * them, start bundles from sources.
 */
export function programs(from: string = import.meta.url): Programs {
  const here = fileURLToPath(from);
  const names = here.endsWith('.ts') && process.env.ACTORLET_PROGRAMS !== 'built' ? SOURCES : BUILT;
  for (let dir = dirname(here); ; dir = dirname(dir)) {
    if (existsSync(join(dir, names.daemon))) {
      const found = { daemon: join(dir, names.daemon), reaper: join(dir, names.reaper), sandbox: join(dir, names.sandbox) };
      for (const file of Object.values(found))
        if (!existsSync(file)) throw new Error(`${file} is not there: the installation is incomplete`);
      return found;
    }
    if (dirname(dir) === dir)
      throw new Error(`${names.daemon} is in no folder above ${here}: the installation is incomplete, or was not built`);
  }
}

/** As in `engines` of package.json. @throws Error for an older one. */
export function checkNode(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < 22 || (major === 22 && minor < 19)) throw new Error(`actorlet/harness needs Node 22.19 or newer; this is ${version}`);
}
