/** The real HostFs port: `node:fs/promises`, with bounded reads and writes that are on disk when they say so. */
import { constants } from 'node:fs';
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  stat,
  statfs,
  symlink,
  unlink,
} from 'node:fs/promises';
import type { FileInfo, HostFs, ReadHandle } from '../../ports/ports.ts';
import { openOwn, openRegular } from '../../process/regularFile.ts';
import { O_PATH, openWithin } from './within.ts';

/** Read chunk once the size that stat gave is used up: below /proc, /sys and in cgroups stat says 0 or one page. */
const CHUNK_BYTES = 64 * 1024;
/** First read where stat gives a smaller size. */
const FIRST_READ_BYTES_MIN = 512;

class FsError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(`${code}: ${message}`);
    this.name = 'FsError';
    this.code = code;
  }
}

interface StatLike {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
  size: number;
  blocks: number;
  nlink: number;
  mode: number;
  mtimeMs: number;
  ctimeMs: number;
  dev: number;
  ino: number;
}
/** In which stat(2) counts, whatever the file system's own blocks are. */
const STAT_BLOCK_BYTES = 512;
function info(s: StatLike): FileInfo {
  const kind = s.isFile() ? 'file' : s.isDirectory() ? 'dir' : s.isSymbolicLink() ? 'symlink' : 'other';
  const { size, blocks, nlink, mode, mtimeMs, ctimeMs, dev, ino } = s;
  return { kind, size, diskBytes: blocks * STAT_BLOCK_BYTES, links: nlink, mode: mode & 0o7777, mtimeMs, ctimeMs, dev, ino };
}

async function readFile(path: string, opts: { bytesMax: number; own?: boolean }): Promise<Uint8Array> {
  const file = await openRegular(path, constants.O_RDONLY, opts);
  try {
    const { size } = await file.stat();
    const chunks: Buffer[] = [];
    let total = 0;
    for (;;) {
      // The size is a hint for the first read alone. One byte more than allowed, so that a longer file is noticed.
      const wanted = Math.min(total === 0 ? Math.max(size + 1, FIRST_READ_BYTES_MIN) : CHUNK_BYTES, opts.bytesMax + 1 - total);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, null);
      if (bytesRead === 0) break;
      chunks.push(buffer.subarray(0, bytesRead));
      total += bytesRead;
      if (total > opts.bytesMax) throw new FsError('EFBIG', `${path} is larger than ${opts.bytesMax} bytes`);
    }
    return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
  } finally {
    await file.close();
  }
}

async function readTail(path: string, o: { bytesMax: number; within?: readonly string[] }): Promise<Uint8Array> {
  const file = await openRead(path, o);
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, o.bytesMax));
    let filled = 0;
    while (filled < buffer.length) {
      const part = await file.read(size - buffer.length + filled, buffer.length - filled);
      if (part.length === 0) break;
      buffer.set(part, filled);
      filled += part.length;
    }
    return buffer.subarray(0, filled);
  } finally {
    await file.close();
  }
}

async function openRead(path: string, o: { within?: readonly string[] } = {}): Promise<ReadHandle> {
  // A place, not yet the file there: to open a device can be an act of its own, and links are made by others.
  const place = o.within === undefined ? await open(path, O_PATH) : await openWithin(path, o.within);
  let file: FileHandle;
  try {
    if (!(await place.stat()).isFile()) throw new FsError('EINVAL', `${path} is not a regular file`);
    file = await openRegular(`/proc/self/fd/${place.fd}`, constants.O_RDONLY);
  } finally {
    await place.close();
  }
  return {
    async read(offset, bytesMax) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(bytesMax), 0, bytesMax, offset);
      return buffer.subarray(0, bytesRead);
    },
    stat: async () => info(await file.stat()),
    close: () => file.close(),
  };
}

/** What `act` finds at a place inside these folders. */
async function inside<T>(path: string, o: Within, act: (place: string) => Promise<T>): Promise<T> {
  if (o.within === undefined) return act(path);
  const place = await openWithin(path, o.within);
  try {
    return await act(`/proc/self/fd/${place.fd}`);
  } finally {
    await place.close();
  }
}
interface Within {
  within?: readonly string[];
}

async function list(path: string): Promise<string[]> {
  return (await readdir(path)).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

async function lstatWithin(path: string, within: readonly string[]): Promise<FileInfo> {
  const place = await openWithin(path, within, { nofollow: true });
  try {
    return info(await place.stat());
  } finally {
    await place.close();
  }
}

async function writeFile(
  path: string,
  data: string | Uint8Array,
  opts: { mode?: number; fsync?: boolean; exclusive?: boolean } = {},
): Promise<void> {
  const mode = opts.mode ?? 0o644;
  const file =
    opts.exclusive === true
      ? await openRegular(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, { mode })
      : await openOwn(path, mode, unlink);
  try {
    // The mode given to open passes through the umask; what was asked for is what must stand.
    if (opts.mode !== undefined) await file.chmod(opts.mode);
    await file.writeFile(data);
    if (opts.fsync === true) await file.sync();
  } finally {
    await file.close();
  }
}

async function fsyncDir(path: string): Promise<void> {
  const dir = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await dir.sync();
  } finally {
    await dir.close();
  }
}

export function createHostFs(): HostFs {
  return {
    readFile,
    readTail,
    openRead,
    writeFile,
    rename: (from, to) => rename(from, to),
    fsyncDir,
    mkdirp: async (path, mode) => (await mkdir(path, { recursive: true, mode })) !== undefined,
    readdir: (path, o = {}) => inside(path, o, list),
    stat: async (path) => info(await stat(path)),
    lstat: async (path, o = {}) => (o.within === undefined ? info(await lstat(path)) : lstatWithin(path, o.within)),
    readlink: (path) => readlink(path),
    symlink: (target, path) => symlink(target, path),
    chmod: (path, mode) => chmod(path, mode),
    unlink: (path) => unlink(path),
    rmdir: (path) => rmdir(path),
    statfs: async (path) => {
      const s = await statfs(path);
      return {
        bytesTotal: s.blocks * s.bsize,
        bytesAvailable: s.bavail * s.bsize,
        bytesFree: s.bfree * s.bsize,
        inodesTotal: s.files,
        inodesFree: s.ffree,
      };
    },
  };
}
