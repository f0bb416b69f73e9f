/** Many manifests at once, some of which take the decoding thread long. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DOCUMENT_BYTES_AT_ONCE, listManifests, type ReaderOptions } from '../../../src/actors/pods/sources/fileReader.ts';
import { createEntropy, createYield } from '../../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { emptyFileStore } from '../../../src/machines/pods/sources/fileStore.ts';
import { tempDir } from './harness.ts';

let t: Awaited<ReturnType<typeof tempDir>>;
beforeEach(async () => {
  t = await tempDir();
});
afterEach(() => t.remove());

const MIB = 1024 * 1024;

function reader(path: string, decode: (name: string, bytes: number) => Promise<void>): ReaderOptions {
  return {
    path,
    nodeName: 'n',
    preventApiReferences: true,
    ports: {
      fs: createHostFs(),
      entropy: createEntropy(),
      yield: createYield(),
      documents: {
        decode: async (bytes, { where }) => {
          await decode(where, bytes.byteLength);
          return { ok: false, errors: ['no pod'] };
        },
      },
    },
  };
}

describe('a listing of manifests', () => {
  it('reads cheap manifests while dozens of slow ones wait for the thread that decodes', async () => {
    const dir = join(t.dir, 'many');
    await mkdir(dir);
    for (let i = 0; i < 60; i++) await writeFile(join(dir, `a-slow-${i}`), `slow ${i}`);
    for (let i = 0; i < 100; i++) await writeFile(join(dir, `b-cheap-${i}`), `cheap ${i}`);
    const cheap = Promise.withResolvers<void>();
    let read = 0;
    const listing = listManifests(
      reader(dir, async (where) => {
        // A slow one ends when all cheap ones have.
        if (where.includes('slow')) return cheap.promise;
        read += 1;
        if (read === 100) cheap.resolve();
      }),
      emptyFileStore,
    );
    await cheap.promise;
    const result = await listing;
    expect(result.kind === 'listed' && result.readings.length).toBe(160);
  });

  it('holds a bounded sum of bytes, however large the files are', async () => {
    const dir = join(t.dir, 'large');
    await mkdir(dir);
    for (let i = 0; i < 12; i++) await writeFile(join(dir, `large-${i}`), Buffer.alloc(3 * MIB, `${i}`));
    let held = 0;
    let most = 0;
    const result = await listManifests(
      reader(dir, async (_, bytes) => {
        held += bytes;
        most = Math.max(most, held);
        await new Promise((resolve) => setImmediate(resolve));
        held -= bytes;
      }),
      emptyFileStore,
    );
    expect(result.kind === 'listed' && result.readings.length).toBe(12);
    expect(most).toBeLessThanOrEqual(DOCUMENT_BYTES_AT_ONCE);
  });
});
