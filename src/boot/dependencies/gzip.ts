/** The real {@link Gzip} port: streams through zlib, whose work is done by threads beside the main one. */
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Gzip } from '../../ports/gzip.ts';

/** As logs are made by runtimes. */
const MODE = 0o640;

export function createGzipPort(): Gzip {
  return {
    compress: (from, to, { signal }) =>
      pipeline(createReadStream(from), createGzip(), createWriteStream(to, { flags: 'wx', mode: MODE }), { signal }),
  };
}
