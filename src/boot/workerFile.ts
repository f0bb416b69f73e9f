/** Where the program of a worker thread is. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * A package has it as `NAME.mjs` beside its programs or one folder above their chunks; a checkout as `worker.ts` beside the
 * source that starts it, whose `import.meta.url` is `of`. @throws naming where it was looked for.
 */
export function workerFile(name: string, of: string): string {
  const here = dirname(fileURLToPath(of));
  const candidates = [join(here, `${name}.mjs`), join(here, '..', `${name}.mjs`), join(here, 'worker.ts')];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) throw new Error(`the program of the ${name} thread is not there: ${candidates.join(', ')}`);
  return found;
}
