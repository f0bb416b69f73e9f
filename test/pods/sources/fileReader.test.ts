/** Many manifests at once, some of which take the decoding thread long. */
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DOCUMENT_BYTES_AT_ONCE, listManifests, type ReaderOptions } from '../../../src/actors/pods/sources/fileReader.ts';
import { createClock, createEntropy, createYield } from '../../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { applyReadings, emptyFileStore } from '../../../src/machines/pods/sources/fileStore.ts';
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
    settled: new Map(),
    ports: {
      fs: createHostFs(),
      entropy: createEntropy(),
      clock: createClock(),
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

  describe('of the same files again', () => {
    const again = async (ageMs: number) => {
      const dir = join(t.dir, 'same');
      await mkdir(dir);
      for (const name of ['a', 'b']) await writeFile(join(dir, name), `text of ${name}`);
      const o = reader(dir, async () => {});
      const { clock, fs } = o.ports;
      const read: string[] = [];
      o.ports = {
        ...o.ports,
        clock: { ...clock, wallMs: () => Date.now() + ageMs },
        fs: {
          ...fs,
          readFile: (path, opts) => {
            read.push(path);
            return fs.readFile(path, opts);
          },
        },
      };
      let store = emptyFileStore;
      const list = async () => {
        read.length = 0;
        const result = await listManifests(o, store);
        const readings = result.kind === 'listed' ? result.readings : [];
        store = applyReadings(store, readings).store;
        return {
          read: read.map((path) => path.slice(dir.length + 1)).sort(),
          kinds: Object.fromEntries(readings.map((r) => [r.path.slice(dir.length + 1), r.kind])),
        };
      };
      return { dir, list };
    };

    it('opens none that has not changed since it was read', async () => {
      const { list } = await again(5_000);
      expect(await list()).toEqual({ read: ['a', 'b'], kinds: { a: 'bad', b: 'bad' } });
      expect(await list()).toEqual({ read: [], kinds: { a: 'same', b: 'same' } });
    });

    it('reads one whose text changed, though size and modification time are those of before', async () => {
      const { dir, list } = await again(5_000);
      const long = new Date(Date.now() - 60_000);
      await utimes(join(dir, 'b'), long, long);
      await list();
      await writeFile(join(dir, 'b'), 'text of c');
      await utimes(join(dir, 'b'), long, long);
      expect(await list()).toEqual({ read: ['b'], kinds: { a: 'same', b: 'bad' } });
    });

    it('reads one again that changed only just before it was read', async () => {
      const { list } = await again(0);
      await list();
      expect(await list()).toEqual({ read: ['a', 'b'], kinds: { a: 'same', b: 'same' } });
    });
  });
});
