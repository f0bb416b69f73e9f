/** Where the .proto files are: the one function that knows, from a checkout and from a bundle in dist/ alike. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MARK = join('proto', 'runtime', 'v1', 'api.proto');

/**
 * Absolute path of the package's `proto/` folder: the nearest one above this module that holds the CRI file. From
 * source that is four levels up, from a bundle in `dist/` one.
 * @throws when no folder above has it, naming where the search began.
 */
export function protoRoot(from: string = import.meta.url): string {
  const start = dirname(fileURLToPath(from));
  for (let dir = start; ; dir = dirname(dir)) {
    if (existsSync(join(dir, MARK))) return join(dir, 'proto');
    if (dirname(dir) === dir) throw new Error(`${MARK} not found in any folder above ${start}: the installation is incomplete`);
  }
}
