/** The file source's I/O: listing a manifest path and reading single manifests through the HostFs port. */

import { ANY_POD } from '../../../machines/pods/podConfig/kept.ts';
import type { ListResult } from '../../../machines/pods/sources/fileMachine.ts';
import type { FileReading, FileStore } from '../../../machines/pods/sources/fileStore.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { handlingDocument } from '../../../ports/handling.ts';
import type { FileInfo, Ports } from '../../../ports/ports.ts';
import { MANIFEST_BYTES_MAX } from './manifest.ts';

/**
 * Files under way, read or decoded. The pool of threads that reads has four, but each step of a file takes a turn of the main
 * loop too, tens of milliseconds under a flood: thousands of files in a row would take minutes.
 */
const FILES_AT_ONCE = 256;
/** Bytes of the documents under way. */
export const DOCUMENT_BYTES_AT_ONCE = 16 * 1024 * 1024;

/** Room for so much at a time; who does not find room waits in line. */
class Room {
  #free: number;
  readonly #size: number;
  readonly #waiting: { amount: number; enter: () => void }[] = [];

  constructor(size: number) {
    this.#size = size;
    this.#free = size;
  }

  async within<T>(amount: number, work: () => Promise<T>): Promise<T> {
    // What is larger than the room has it alone.
    const taken = Math.min(amount, this.#size);
    if (this.#waiting.length > 0 || taken > this.#free) {
      await new Promise<void>((enter) => this.#waiting.push({ amount: taken, enter }));
    } else this.#free -= taken;
    try {
      return await work();
    } finally {
      this.#free += taken;
      for (let next = this.#waiting[0]; next !== undefined && next.amount <= this.#free; next = this.#waiting[0]) {
        this.#waiting.shift();
        this.#free -= next.amount;
        next.enter();
      }
    }
  }
}

/**
 * A file that changed so shortly before it was read may change again within the same tick of its clock, and look the same. Coarse
 * clocks of file systems tick every 2 s (FAT).
 */
const SETTLED_MS = 2_000;

export interface ReaderOptions {
  path: string;
  nodeName: string;
  preventApiReferences: boolean;
  ports: Pick<Ports, 'fs' | 'documents' | 'entropy' | 'yield' | 'handling' | 'clock'>;
  /** By path, what the file system said of a file that had settled when it was read, and the digest of what was read. */
  settled: Map<string, { stamp: string; digest: string }>;
}

function sameFile(a: FileInfo, b: FileInfo): boolean {
  return a.dev === b.dev && a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs;
}

/** Reads one manifest. Never rejects: whatever goes wrong is a reading too. */
async function readManifest(o: ReaderOptions, path: string, { store, bytes }: { store: FileStore; bytes: Room }): Promise<FileReading> {
  const { fs } = o.ports;
  try {
    const before = await fs.stat(path);
    if (before.kind === 'dir') return { path, kind: 'skipped', message: 'a directory is not entered' };
    if (before.kind !== 'file') return { path, kind: 'skipped', message: 'not a regular file (FIFO, socket or device): not read' };
    const settled = o.settled.get(path);
    if (settled?.stamp === stampOf(before) && store.entries.get(path)?.digest === settled.digest)
      return { path, kind: 'same', digest: settled.digest };
    o.settled.delete(path);
    return await bytes.within(before.size, () => readFile(o, path, { before, store }));
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EFBIG')
      return { path, kind: 'bad', message: `larger than the limit of ${MANIFEST_BYTES_MAX} bytes (10 MiB)`, digest: '', holds: ANY_POD };
    if (code === 'ENOENT') return isDangling(o, path);
    return { path, kind: 'bad', message: messageOf(error), digest: '', holds: ANY_POD };
  }
}

function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: FileInfo): string {
  return `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`;
}

async function readFile(o: ReaderOptions, path: string, k: { before: FileInfo; store: FileStore }): Promise<FileReading> {
  const { fs, entropy, clock } = o.ports;
  const bytes = await fs.readFile(path, { bytesMax: MANIFEST_BYTES_MAX });
  const after = await fs.stat(path);
  if (!sameFile(k.before, after) || bytes.byteLength !== after.size) return { path, kind: 'changing' };
  const digest = entropy.md5Hex(bytes);
  if (clock.wallMs() - k.before.ctimeMs >= SETTLED_MS) o.settled.set(path, { stamp: stampOf(k.before), digest });
  if (k.store.entries.get(path)?.digest === digest) return { path, kind: 'same', digest };
  return handlingDocument<Promise<FileReading>>(o.ports, `file ${path} ${digest}`, {
    aside: async (why) => ({ path, kind: 'bad', message: `set aside: ${why}`, digest, holds: ANY_POD }),
    decode: () => decoded(o, path, { bytes, digest }),
  });
}

async function decoded(o: ReaderOptions, path: string, { bytes, digest }: { bytes: Uint8Array; digest: string }): Promise<FileReading> {
  const { nodeName, preventApiReferences } = o;
  const result = await o.ports.documents.decode(bytes, { source: 'file', where: path, nodeName, preventApiReferences });
  const pod = result.ok ? result.pods[0] : undefined;
  if (!result.ok)
    return { path, kind: 'bad', message: result.errors.join('; '), digest, ...(result.holds === undefined ? {} : { holds: result.holds }) };
  if (pod === undefined) return { path, kind: 'bad', message: 'no pod in it', digest };
  return { path, kind: 'pod', pod, digest, ...(result.ok ? { notes: result.notes } : {}) };
}

/** A name without a target behind it is an error worth telling; no name at all is a file that is gone. */
async function isDangling(o: ReaderOptions, path: string): Promise<FileReading> {
  try {
    const link = await o.ports.fs.lstat(path);
    if (link.kind === 'symlink') return { path, kind: 'bad', message: 'a symbolic link to nothing', digest: '' };
    return { path, kind: 'changing' };
  } catch {
    return { path, kind: 'gone' };
  }
}

/** Reads several; yields between parses, so that a burst of manifests does not hold the main thread. */
export async function readManifests(o: ReaderOptions, paths: readonly string[], store: FileStore): Promise<FileReading[]> {
  const readings: FileReading[] = new Array(paths.length);
  const bytes = new Room(DOCUMENT_BYTES_AT_ONCE);
  let next = 0;
  const worker = async () => {
    for (;;) {
      const index = next++;
      const path = paths[index];
      if (path === undefined) return;
      readings[index] = await readManifest(o, path, { store, bytes });
      await new Promise<void>((resolve) => o.ports.yield.defer(resolve));
    }
  };
  await Promise.all(Array.from({ length: Math.min(FILES_AT_ONCE, paths.length) }, worker));
  return readings;
}

/** Lists the path: every manifest of a directory, or the one file it names. */
export async function listManifests(o: ReaderOptions, store: FileStore): Promise<ListResult> {
  const { fs } = o.ports;
  try {
    const root = await fs.stat(o.path);
    if (root.kind === 'file') {
      const readings = await readManifests(o, [o.path], store);
      return { kind: 'listed', readings, identity: 'file', single: true };
    }
    if (root.kind !== 'dir') return { kind: 'failed', message: 'the path is neither a directory nor a regular file' };
    const names = (await fs.readdir(o.path)).filter((n) => !n.startsWith('.'));
    const paths = names.map((n) => `${o.path === '/' ? '' : o.path}/${n}`);
    const listed = new Set(paths);
    for (const path of o.settled.keys()) if (!listed.has(path)) o.settled.delete(path);
    const readings = await readManifests(o, paths, store);
    return { kind: 'listed', readings: readings.filter((r) => r.kind !== 'gone'), identity: `${root.dev}:${root.ino}`, single: false };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { kind: 'missing' };
    return { kind: 'failed', message: `cannot be listed: ${messageOf(error)}` };
  }
}
