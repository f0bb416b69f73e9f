/** The real {@link Gzip} port: streams through zlib, whose work is done by threads beside the main one. */
import { constants, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Gzip } from '../../ports/gzip.ts';
import { openRegular } from '../../process/regularFile.ts';

export function createGzipPort(): Gzip {
  return {
    async compress(from, to, { signal }) {
      const log = await openRegular(from, constants.O_RDONLY, { own: true });
      // Whoever may read the log may read this, and nobody else.
      const { mode } = await log.stat();
      await pipeline(log.createReadStream(), createGzip(), createWriteStream(to, { flags: 'wx', mode }), { signal });
    },
  };
}
