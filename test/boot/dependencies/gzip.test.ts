/** The real port that compresses: on a real disk. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { createGzipPort } from '../../../src/boot/dependencies/gzip.ts';
import { eachFolder } from '../../eachFolder.ts';

/** Many times what a stream takes in at once. */
const LINES = Array.from({ length: 60_000 }, (_, i) => `2024-01-01T00:00:00Z stdout F line ${i}\n`).join('');
const { compress } = createGzipPort();
const running = () => ({ signal: new AbortController().signal });
let dir: string;
let from: string;
let to: string;
eachFolder((made) => {
  dir = made;
  from = join(dir, '0.log.20240101-000000');
  to = `${from}.tmp`;
  writeFileSync(from, LINES);
});

it('writes the whole file, smaller, for nobody but who may read the first one, which stays as it is', async () => {
  chmodSync(from, 0o600);
  await compress(from, to, running());
  expect(gunzipSync(readFileSync(to)).toString()).toBe(LINES);
  expect(statSync(to).size).toBeLessThan(LINES.length / 2);
  expect(statSync(to).mode & 0o777).toBe(0o600);
  expect(readFileSync(from, 'utf8')).toBe(LINES);
});
it('compresses an empty file', async () => {
  writeFileSync(from, '');
  await compress(from, to, running());
  expect(gunzipSync(readFileSync(to))).toHaveLength(0);
});
it('overwrites nothing', async () => {
  writeFileSync(to, 'of somebody else');
  await expect(compress(from, to, running())).rejects.toMatchObject({ code: 'EEXIST' });
  expect(readFileSync(to, 'utf8')).toBe('of somebody else');
});
it('fails with the code of what is in the way', async () => {
  await expect(compress(`${from}.gone`, to, running())).rejects.toMatchObject({ code: 'ENOENT' });
  await expect(compress(from, join(dir, 'gone', 'to'), running())).rejects.toMatchObject({ code: 'ENOENT' });
});
it('ends when it is aborted, and leaves the first file as it is', async () => {
  const abort = new AbortController();
  const compressed = compress(from, to, { signal: abort.signal });
  abort.abort();
  await expect(compressed).rejects.toMatchObject({ name: 'AbortError' });
  expect(readFileSync(from, 'utf8')).toBe(LINES);
  const before = join(dir, 'before');
  await expect(compress(from, before, { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
  expect(existsSync(before) && readFileSync(before).length > 0).toBe(false);
});
