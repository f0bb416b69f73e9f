/** The CRI services as @grpc/grpc-js wants them, in the shape that `machines/wire/cri.ts` describes. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadProtoFile } from '@actorlet/process/src/protoFile.ts';
import type { ServiceDefinition } from '@grpc/grpc-js';

const FILE = join('proto', 'runtime', 'v1', 'api.proto');

/** The nearest folder above this module that holds the CRI file: from source and from a bundle in `dist/` alike. */
function protoFile(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let dir = start; ; dir = dirname(dir)) {
    if (existsSync(join(dir, FILE))) return join(dir, FILE);
    if (dirname(dir) === dir) throw new Error(`${FILE} not found in any folder above ${start}: the installation is incomplete`);
  }
}

export function loadServices(): { runtime: ServiceDefinition; image: ServiceDefinition } {
  const cri = loadProtoFile(protoFile());
  return { runtime: cri.service('runtime.v1.RuntimeService'), image: cri.service('runtime.v1.ImageService') };
}
