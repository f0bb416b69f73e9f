/**
 * The real HostFs port, with bounded reads and writes that are on disk when they say so. Each call that may wait for a disk is a job of
 * the pool, which costs the waking of a thread: a small file is read or written in two. What never waits is asked at once: files of the
 * kernel's own, and descriptors of files that were just opened.
 */
import { isUtf8 } from 'node:buffer';
import { closeSync, constants, fchmod, fstatSync, fsync, writeFile as writeFd } from 'node:fs';
import { chmod, lstat, mkdir, opendir, readdir, readlink, rename, rmdir, stat, statfs, symlink, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import {
  closeFd,
  createOwn,
  openFd,
  openOwn,
  openRegular,
  readFd,
  readOwn,
  readRegularSync,
  readToEnd,
} from '@actorlet/process/src/regularFile.ts';
import type { FileInfo, HostFs, ReadHandle } from '../../ports/ports.ts';
import { O_PATH, openWithin } from './within.ts';

const fsyncFd = promisify(fsync);
const fchmodFd = promisify(fchmod);
const writeWhole: (fd: number, data: string | Uint8Array) => Promise<void> = promisify(writeFd);

/**
 * Files that the kernel makes up as they are read, and which ask no device and no other file system: no link of a process (`root`,
 * `cwd`, `fd`) is on their path.
 */
const OF_THE_KERNEL =
  /^\/(?:proc\/(?:[a-z]+|(?:self|\d+)\/(?:cgroup|comm|limits|mountinfo|stat|statm|status)|(?:pressure|sys\/(?:kernel|net|vm))\/[a-z_/-]+)|sys\/(?:fs\/cgroup|devices\/system)\/[^.][\w./:-]*)$/;

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

async function readFile(path: string, { bytesMax, own = false }: { bytesMax: number; own?: boolean }): Promise<Uint8Array> {
  const tooLarge = (): FsError => new FsError('EFBIG', `${path} is larger than ${bytesMax} bytes`);
  if (own) return readOwn(path, bytesMax, tooLarge);
  if (OF_THE_KERNEL.test(path) && !path.includes('/../')) return readRegularSync(path, { bytesMax, tooLarge });
  const file = await openRegular(path, constants.O_RDONLY);
  try {
    return await readToEnd(file.fd, { size: (await file.stat()).size, bytesMax, tooLarge, whole: !path.startsWith('/sys/') });
  } finally {
    await file.close();
  }
}

async function readTail(path: string, o: { bytesMax: number; within?: readonly string[] }): Promise<Uint8Array> {
  const { fd, close } = await openPlain(path, o);
  try {
    const { size } = fstatSync(fd);
    const buffer = Buffer.alloc(Math.min(size, o.bytesMax));
    let filled = 0;
    while (filled < buffer.length) {
      const part = await readFd(fd, buffer.length - filled, size - buffer.length + filled);
      if (part.length === 0) break;
      buffer.set(part, filled);
      filled += part.length;
    }
    return buffer.subarray(0, filled);
  } finally {
    await close();
  }
}

async function openRead(path: string, o: { within?: readonly string[] } = {}): Promise<ReadHandle> {
  const { fd, close } = await openPlain(path, o);
  return {
    read: (offset, bytesMax) => readFd(fd, bytesMax, offset),
    stat: async () => info(fstatSync(fd)),
    close,
  };
}

/** A regular file that was opened for reading. Closing it twice is no matter: the number may be another file's by then. */
async function openPlain(path: string, o: { within?: readonly string[] }): Promise<{ fd: number; close(): Promise<void> }> {
  // A place, not yet the file there: to open a device can be an act of its own, and links are made by others.
  const place = o.within === undefined ? await openFd(path, O_PATH) : await openWithin(path, o.within);
  try {
    if (!fstatSync(place).isFile()) throw new FsError('EINVAL', `${path} is not a regular file`);
    const fd = await openFd(`/proc/self/fd/${place}`, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    let open = true;
    return {
      fd,
      async close() {
        if (!open) return;
        open = false;
        await closeFd(fd);
      },
    };
  } finally {
    closeSync(place);
  }
}

/** What `act` finds at a place inside these folders. */
async function inside<T>(path: string, o: { within?: readonly string[] }, act: (place: string) => Promise<T>): Promise<T> {
  if (o.within === undefined) return act(path);
  const place = await openWithin(path, o.within);
  try {
    return await act(`/proc/self/fd/${place}`);
  } finally {
    closeSync(place);
  }
}

async function list(path: string, max?: number): Promise<string[]> {
  const names = await namesIn(path, 'utf8', max);
  const all = names.some((name) => name.includes('\ufffd')) ? await namesIn(path, 'latin1', max) : names;
  return all.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}
async function namesIn(path: string, encoding: 'utf8' | 'latin1', max?: number): Promise<string[]> {
  const names: string[] = [];
  if (max === undefined) names.push(...(await readdir(at(path), encoding)));
  else for await (const { name } of await opendir(at(path), { encoding, bufferSize: max })) if (names.push(name) === max) break;
  return encoding === 'utf8' ? names : names.map(fromBytes);
}

/** What a container writes may have any bytes in its name. One that is no text has a lone surrogate for each byte that is not ASCII. */
function fromBytes(latin1: string): string {
  const bytes = Buffer.from(latin1, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : latin1.replace(/[\x80-\xff]/g, (c) => String.fromCharCode(0xdc00 + c.charCodeAt(0)));
}
/** The place by such a name. */
function at(path: string): string | Buffer {
  const parts = path.split(/([\udc80-\udcff])/u);
  if (parts.length === 1) return path;
  return Buffer.concat(parts.map((part, i) => (i % 2 === 0 ? Buffer.from(part) : Buffer.of(part.charCodeAt(0) & 0xff))));
}

async function lstatWithin(path: string, within: readonly string[]): Promise<FileInfo> {
  const place = await openWithin(path, within, { nofollow: true });
  try {
    return info(fstatSync(place));
  } finally {
    closeSync(place);
  }
}

async function writeFile(
  path: string,
  data: string | Uint8Array,
  opts: { mode?: number; fsync?: boolean; exclusive?: boolean } = {},
): Promise<void> {
  const mode = opts.mode ?? 0o644;
  const { fd, cut, mode: actual } = opts.exclusive === true ? await createOwn(path, mode) : await openOwn(path, mode, unlink);
  try {
    // The mode given to open passes through the umask, or the file was there: what was asked for is what must stand.
    if (opts.mode !== undefined && opts.mode !== actual) await fchmodFd(fd, opts.mode);
    await writeWhole(fd, data);
    if (opts.fsync === true) await fsyncFd(fd);
  } finally {
    if (cut && opts.fsync !== true) await closeFd(fd);
    else closeSync(fd);
  }
}

async function fsyncDir(path: string): Promise<void> {
  const dir = await openFd(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await fsyncFd(dir);
  } finally {
    closeSync(dir);
  }
}

export function createHostFs(): HostFs {
  return {
    readFile,
    readTail,
    openRead,
    writeFile,
    rename: (from, to) => rename(at(from), to),
    fsyncDir,
    mkdirp: async (path, mode) => (await mkdir(path, { recursive: true, mode })) !== undefined,
    readdir: (path, o = {}) => inside(path, o, (place) => list(place, o.max)),
    stat: async (path) => info(await stat(path)),
    lstat: async (path, o = {}) => (o.within === undefined ? info(await lstat(at(path))) : lstatWithin(path, o.within)),
    readlink: (path) => readlink(path),
    symlink: (target, path) => symlink(target, path),
    chmod: (path, mode) => chmod(path, mode),
    unlink: (path) => unlink(at(path)),
    rmdir: (path) => rmdir(at(path)),
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
