/**
 * Reads a file that a person names on a command line. A pipe (`<(helm template ...)`) is read to its end. A FIFO to which nobody
 * writes, and a device, would hang for ever: they are refused.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { codeOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { NotRegular } from './regularFile.ts';

const BYTES_MAX = 64 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
/** A writer of a pipe has begun within this time, and is never silent for longer. */
const WRITER_MS = 10_000;
const POLL_MS = 20;

/** @throws NotRegular; any other error of `open` and `read`. */
export function readGivenSync(path: string, o: { bytesMax?: number; writerMs?: number } = {}): string {
  const { bytesMax = BYTES_MAX, writerMs = WRITER_MS } = o;
  const fd = opened(path);
  try {
    const info = fstatSync(fd);
    const isPipe = info.isFIFO();
    if (!isPipe && !info.isFile() && !info.isDirectory()) throw new NotRegular(path, info.isSocket() ? 'a socket' : 'a device');
    const chunks: Buffer[] = [];
    let total = 0;
    let silentMs = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const read = readSome(fd, chunk);
      // A FIFO that nobody has opened for writing yet reads as empty.
      if (read === 0 && !(isPipe && total === 0)) return Buffer.concat(chunks).toString('utf8');
      if (read === null || read === 0) {
        if (silentMs >= writerMs) throw new NotRegular(path, `a FIFO to which nobody wrote within ${writerMs / 1_000} s`);
        silentMs += POLL_MS;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
        continue;
      }
      silentMs = 0;
      total += read;
      if (total > bytesMax) throw new Error(`${path} is larger than ${bytesMax} bytes`);
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    closeSync(fd);
  }
}

function opened(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    if (codeOf(error) === 'ENXIO') throw new NotRegular(path, 'a socket or a device');
    throw error;
  }
}

/** Null: there is nothing now. */
function readSome(fd: number, into: Buffer): number | null {
  try {
    return readSync(fd, into, 0, into.length, null);
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return null;
    throw error;
  }
}
