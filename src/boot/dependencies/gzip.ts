/** The real {@link Gzip} port: streams through zlib, whose work is done by threads beside the main one. */
import { constants, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { openRegular } from '@actorlet/process/src/regularFile.ts';
import type { Gzip } from '../../ports/machine/gzip.ts';

export function createGzipPort(): Gzip {
  return {
    async compress(from, to, { signal }) {
      const log = await openRegular(from, constants.O_RDONLY, { own: true });
      // Read by the same users as the log.
      const { mode } = await log.stat();
      await pipeline(log.createReadStream(), createGzip(), createWriteStream(to, { flags: 'wx', mode }), { signal });
    },
  };
}
