/**
 * Opens files that others may have replaced. A FIFO without a writer never opens, a device may act when it is opened, and a link
 * of somebody else leads a write out of the folder. So nothing here waits in open, and what is no regular file is refused.
 */
import {
  close,
  closeSync,
  constants,
  fstatSync,
  ftruncate,
  ftruncateSync,
  openSync,
  read,
  readSync,
  rmSync,
  type Stats,
  open as startOpen,
  writeSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';

const { O_NONBLOCK, O_NOCTTY, O_NOFOLLOW, O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL } = constants;
/** Opening returns at once, whatever is there. */
const AT_ONCE = O_NONBLOCK | O_NOCTTY;
const CHUNK_BYTES = 64 * 1024;
/** First read where the size that is known is smaller. */
const FIRST_READ_BYTES_MIN = 512;
const MODE_BITS = 0o7777;

/** `EINVAL`: it is no regular file. */
export class NotRegular extends Error {
  readonly code = 'EINVAL';
  constructor(path: string, what: string) {
    super(`${path} is ${what}, not a regular file`);
    this.name = 'NotRegular';
  }
}

/** `own`: nobody but this program has business there, so that a link is refused too. Others may name `/dev/null`. */
export interface OpenOptions {
  own?: boolean;
}
export interface ReadOptions extends OpenOptions {
  bytesMax: number;
}

function kindOf(s: Stats): string {
  if (s.isFIFO()) return 'a FIFO';
  if (s.isSocket()) return 'a socket';
  if (s.isDirectory()) return 'a folder';
  return s.isCharacterDevice() || s.isBlockDevice() ? 'a device' : 'something else';
}

/** What `open` says of what cannot be opened like a file, in words; null: another error. */
function refusal(path: string, error: unknown): NotRegular | null {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ELOOP') return new NotRegular(path, 'a symbolic link');
  // A FIFO that nobody reads, or a socket; a device that is not there.
  return code === 'ENXIO' || code === 'ENODEV' ? new NotRegular(path, 'a FIFO, a socket or a device') : null;
}

function refuse(path: string, info: Stats, o: OpenOptions): void {
  if (!info.isFile() && (o.own === true || !info.isCharacterDevice())) throw new NotRegular(path, kindOf(info));
}

/** @throws NotRegular; any other error of `open`. */
export function openRegularSync(path: string, flags: number, o: OpenOptions & { mode?: number } = {}): number {
  let fd: number;
  try {
    fd = openSync(path, flags | AT_ONCE | (o.own === true ? O_NOFOLLOW : 0), o.mode);
  } catch (error) {
    throw refusal(path, error) ?? error;
  }
  try {
    refuse(path, fstatSync(fd), o);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** One job of the pool. A descriptor, not a `FileHandle`: that is an object for the collector to watch, and its calls are jobs each. */
export const openFd: (path: string, flags: number, mode?: number) => Promise<number> = promisify(startOpen);
export const closeFd = promisify(close);
const truncateFd = promisify(ftruncate);
/** One job: at most so many bytes; from where the descriptor stands without `offset`. */
export const readFd: (fd: number, bytesMax: number, offset?: number) => Promise<Buffer> = (fd, bytesMax, offset) =>
  new Promise((resolve, reject) => {
    const buffer = Buffer.allocUnsafe(bytesMax);
    read(fd, buffer, 0, bytesMax, offset ?? null, (error, bytesRead) => {
      if (error === null) resolve(buffer.subarray(0, bytesRead));
      else reject(error);
    });
  });

/** A descriptor of this program's own file. To ask the kernel about an inode that it has just opened waits for no disk: no job. */
async function openOwnFd(path: string, flags: number, mode?: number): Promise<{ fd: number; info: Stats }> {
  let fd: number;
  try {
    fd = await openFd(path, flags | AT_ONCE | O_NOFOLLOW, mode);
  } catch (error) {
    throw refusal(path, error) ?? error;
  }
  try {
    const info = fstatSync(fd);
    refuse(path, info, { own: true });
    return { fd, info };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

export async function openRegular(path: string, flags: number, o: OpenOptions & { mode?: number } = {}): Promise<FileHandle> {
  let file: FileHandle;
  try {
    file = await open(path, flags | AT_ONCE | (o.own === true ? O_NOFOLLOW : 0), o.mode);
  } catch (error) {
    throw refusal(path, error) ?? error;
  }
  try {
    refuse(path, await file.stat(), o);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

export function readRegularSync(path: string, o: ReadOptions & { tooLarge?: () => Error }): Buffer {
  const fd = openRegularSync(path, O_RDONLY, o);
  try {
    const chunks: Buffer[] = [];
    let total = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, o.bytesMax + 1 - total));
      const read = readSync(fd, chunk, 0, chunk.length, null);
      if (read === 0) return Buffer.concat(chunks);
      total += read;
      if (total > o.bytesMax) throw o.tooLarge?.() ?? new Error(`${path} is larger than ${o.bytesMax} bytes`);
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    closeSync(fd);
  }
}

/** A file that its owner keeps where they like: links are followed. */
export async function readRegular(path: string, o: ReadOptions): Promise<Buffer> {
  const file = await openRegular(path, O_RDONLY, o);
  try {
    const chunks: Buffer[] = [];
    let total = 0;
    for (;;) {
      const length = Math.min(CHUNK_BYTES, o.bytesMax + 1 - total);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, null);
      if (bytesRead === 0) return Buffer.concat(chunks);
      total += bytesRead;
      if (total > o.bytesMax) throw new Error(`it is larger than ${o.bytesMax} bytes`);
      chunks.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

/**
 * Opens the program's own file for writing, empty. A link, FIFO, socket or device in its place, or a file that has another name
 * too, holds nothing of the program: it is removed, and the file begins anew. A folder is left alone, and an error.
 */
export function openOwnSync(path: string, mode: number): number {
  try {
    const fd = openRegularSync(path, O_RDWR | O_CREAT, { own: true, mode });
    if (fstatSync(fd).nlink === 1) {
      ftruncateSync(fd);
      return fd;
    }
    closeSync(fd);
  } catch (error) {
    if (!(error instanceof NotRegular)) throw error;
  }
  rmSync(path, { force: true });
  return openRegularSync(path, O_RDWR | O_CREAT | O_EXCL, { own: true, mode });
}

/** `cut`: it held something, which is gone. To close it may then wait for the disk, as its file system writes it out. */
export interface OwnFile {
  fd: number;
  mode: number;
  cut: boolean;
}

/** The same for a program that must not block on the disk. */
export async function openOwn(path: string, mode: number, remove: (path: string) => Promise<void>): Promise<OwnFile> {
  try {
    const { fd, info } = await openOwnFd(path, O_WRONLY | O_CREAT, mode);
    if (info.nlink === 1) {
      const cut = info.size > 0;
      if (cut) await truncateFd(fd, 0).catch((error: unknown) => closeFd(fd).then(() => Promise.reject(error)));
      return { fd, mode: info.mode & MODE_BITS, cut };
    }
    closeSync(fd);
  } catch (error) {
    if (!(error instanceof NotRegular)) throw error;
  }
  await remove(path);
  return createOwn(path, mode);
}

/** Fails with `EEXIST` where anything is there. */
export async function createOwn(path: string, mode: number): Promise<OwnFile> {
  const { fd, info } = await openOwnFd(path, O_WRONLY | O_CREAT | O_EXCL, mode);
  return { fd, mode: info.mode & MODE_BITS, cut: false };
}

/** This program's own file, in two jobs where it is small. @throws NotRegular; `tooLarge()`; what `open` says. */
export async function readOwn(path: string, bytesMax: number, tooLarge: () => Error): Promise<Buffer> {
  const { fd, info } = await openOwnFd(path, O_RDONLY);
  try {
    return await readToEnd(fd, { size: info.size, bytesMax, tooLarge });
  } finally {
    closeSync(fd);
  }
}

/**
 * The size is a hint for the first read. It tells the end too where `whole` says that it can be trusted: not below /sys, where it is
 * 4096 for every file.
 */
export async function readToEnd(
  fd: number,
  o: { size: number; bytesMax: number; tooLarge: () => Error; whole?: boolean },
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    // One byte more than allowed, so that a longer file is noticed.
    const wanted = Math.min(total === 0 ? Math.max(o.size + 1, FIRST_READ_BYTES_MIN) : CHUNK_BYTES, o.bytesMax + 1 - total);
    const chunk = await readFd(fd, wanted);
    if (chunk.length > 0) chunks.push(chunk);
    total += chunk.length;
    if (total > o.bytesMax) throw o.tooLarge();
    if (chunk.length === 0 || (o.whole !== false && total === o.size && chunk.length < wanted)) break;
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

export function writeOwnSync(path: string, text: string, mode: number): void {
  const fd = openOwnSync(path, mode);
  try {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
  } finally {
    closeSync(fd);
  }
}
