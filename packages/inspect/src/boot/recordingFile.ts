/**
 * The file of a recording: appended to without waiting, and moved to FILE.1 when it is full. Bytes are in the page cache
 * as soon as they are written, so that a kill of the daemon loses none of them.
 */

import { constants } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import { beginsLikeRecording, FRAME_BYTES_MAX } from '../recording/format.ts';
import type { Sink } from '../recording/writer.ts';

const MODE = 0o600;
/** A file that cannot be written is opened again this often. */
const OPEN_AGAIN_MS = 5_000;
/** At the end of the daemon a slow disk is waited for so long. */
const END_WAIT_MS = 2_000;
const MAGIC_BYTES = 4;

type Job = Uint8Array | 'rotate';

export interface RecordingFileOptions {
  path: string;
  /** Size of both segments together. */
  bytesMax: number;
  log: Logger;
}

export class RecordingFile implements Sink {
  readonly #o: RecordingFileOptions;
  #file: FileHandle | null = null;
  #jobs: Job[] = [];
  #pump: Promise<void> | null = null;
  #again: NodeJS.Timeout | null = null;
  #broken = false;
  #ended = false;
  waitingBytes = 0;
  segmentBytes = 0;
  generation = 0;

  constructor(o: RecordingFileOptions) {
    this.#o = o;
  }

  get #segmentMax(): number {
    return Math.floor(this.#o.bytesMax / 2);
  }
  /** What one look can write still fits behind it. */
  get segmentSoftMax(): number {
    return this.#segmentMax - FRAME_BYTES_MAX;
  }

  /** Opens the file, now or once that is possible. */
  async open(): Promise<void> {
    try {
      let { file, bytes } = await openRecording(this.#o.path);
      if (bytes >= this.segmentSoftMax) {
        await file.close();
        await rename(this.#o.path, `${this.#o.path}.1`);
        ({ file, bytes } = await openRecording(this.#o.path));
      }
      if (this.#ended) return file.close();
      this.#file = file;
      this.segmentBytes = bytes;
      this.generation += 1;
      if (this.#broken) this.#o.log.info({ file: this.#o.path }, 'recording: the file can be written again');
      this.#broken = false;
    } catch (error) {
      this.#fail(error);
    }
  }

  write(bytes: Uint8Array): boolean {
    if (this.#file === null || this.segmentBytes + bytes.length > this.#segmentMax) return false;
    this.#jobs.push(bytes);
    this.waitingBytes += bytes.length;
    this.segmentBytes += bytes.length;
    this.#work();
    return true;
  }

  rotate(): void {
    if (this.#file === null) return;
    this.#jobs.push('rotate');
    this.segmentBytes = 0;
    this.#work();
  }

  #work(): void {
    this.#pump ??= this.#drain()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#pump = null;
        if (this.#jobs.length > 0 && this.#file !== null) this.#work();
      });
  }

  async #drain(): Promise<void> {
    for (;;) {
      const file = this.#file;
      const until = this.#jobs.indexOf('rotate');
      const chunks = this.#jobs.splice(0, until < 0 ? this.#jobs.length : until).filter((job) => job !== 'rotate');
      if (file === null || (chunks.length === 0 && until < 0)) return;
      if (chunks.length > 0) {
        const bytes = Buffer.concat(chunks);
        for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
        this.waitingBytes -= bytes.length;
      } else {
        this.#jobs.shift();
        await file.close();
        await rename(this.#o.path, `${this.#o.path}.1`);
        this.#file = (await openRecording(this.#o.path)).file;
      }
    }
  }

  #fail(error: unknown): void {
    const file = this.#file;
    this.#file = null;
    this.#jobs = [];
    this.waitingBytes = 0;
    this.segmentBytes = 0;
    file?.close().catch(() => undefined);
    if (!this.#broken) {
      this.#o.log.error(
        { flag: '--actorlet-record', file: this.#o.path, err: messageOf(error) },
        'recording: the file cannot be written; it is tried again until it works',
      );
    }
    this.#broken = true;
    if (!this.#ended) this.#again = setTimeout(() => void this.open(), OPEN_AGAIN_MS).unref();
  }

  /** What waits is written, for a while. */
  async end(): Promise<void> {
    this.#ended = true;
    if (this.#again !== null) clearTimeout(this.#again);
    let late: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      late = setTimeout(resolve, END_WAIT_MS).unref();
    });
    await Promise.race([limit, this.#written()]);
    clearTimeout(late);
  }
  async #written(): Promise<void> {
    while (this.#pump !== null) await this.#pump;
    await this.#file?.close();
    this.#file = null;
  }
}

/** @throws for anything but a recording of our own, which is never appended to nor moved. */
async function openRecording(path: string): Promise<{ file: FileHandle; bytes: number }> {
  // Not through a link, and not waiting for the reader of a named pipe.
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags, MODE);
  try {
    const info = await file.stat();
    if (!info.isFile()) throw new Error(`${path} is no regular file`);
    if (info.uid !== process.getuid?.()) throw new Error(`${path} belongs to another user`);
    if (info.nlink !== 1) throw new Error(`${path} has ${info.nlink} names (hard links)`);
    const begin = Buffer.alloc(MAGIC_BYTES);
    const { bytesRead } = await file.read(begin, 0, MAGIC_BYTES, 0);
    if (!beginsLikeRecording(begin.subarray(0, bytesRead))) throw new Error(`${path} is there and is no recording; name another file`);
    await file.chmod(MODE);
    return { file, bytes: info.size };
  } catch (error) {
    await file.close();
    throw error;
  }
}
