/** The real {@link Gzip} port: streams through zlib, whose work is done by threads beside the main one. */
import { constants, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Gzip } from '../../ports/gzip.ts';
import { openRegular } from '../../process/regularFile.ts';

/** As logs are made by runtimes. */
const MODE = 0o640;

export function createGzipPort(): Gzip {
  return {
    async compress(from, to, { signal }) {
      const log = await openRegular(from, constants.O_RDONLY, { own: true });
      await pipeline(log.createReadStream(), createGzip(), createWriteStream(to, { flags: 'wx', mode: MODE }), { signal });
    },
  };
}
