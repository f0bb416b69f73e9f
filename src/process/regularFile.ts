/**
 * Opens files that others may have replaced. A FIFO without a writer never opens, a device may act when it is opened, and a link
 * of somebody else leads a write out of the folder. So nothing here waits in open, and what is no regular file is refused.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, rmSync, type Stats, writeSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

const { O_NONBLOCK, O_NOCTTY, O_NOFOLLOW, O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL } = constants;
/** Opening returns at once, whatever is there. */
const AT_ONCE = O_NONBLOCK | O_NOCTTY;
const CHUNK_BYTES = 64 * 1024;

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

export function readRegularSync(path: string, o: ReadOptions): Buffer {
  const fd = openRegularSync(path, O_RDONLY, o);
  try {
    const chunks: Buffer[] = [];
    let total = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, o.bytesMax + 1 - total));
      const read = readSync(fd, chunk, 0, chunk.length, null);
      if (read === 0) return Buffer.concat(chunks);
      total += read;
      if (total > o.bytesMax) throw new Error(`${path} is larger than ${o.bytesMax} bytes`);
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

/** The same for a program that must not block on the disk. */
export async function openOwn(path: string, mode: number, remove: (path: string) => Promise<void>): Promise<FileHandle> {
  try {
    const file = await openRegular(path, O_WRONLY | O_CREAT, { own: true, mode });
    if ((await file.stat()).nlink === 1) {
      await file.truncate();
      return file;
    }
    await file.close();
  } catch (error) {
    if (!(error instanceof NotRegular)) throw error;
  }
  await remove(path);
  return await openRegular(path, O_WRONLY | O_CREAT | O_EXCL, { own: true, mode });
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
