/**
 * The file of a recording of inputs: lines, compressed as one stream that is flushed so often that a kill of the daemon loses
 * little. A disk that is full or slow ends the recording, and nothing else: what has a hole cannot be replayed.
 */
import { createWriteStream, type WriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { constants, createZstdCompress, type ZstdCompress } from 'node:zlib';
import { messageOf } from '../../machines/text/errors.ts';

/** A `kill -9` loses at most what came in so much time before it. */
const FLUSH_EVERY_MS = 200;
/** What waits for a slow disk; the daemon keeps no more for it. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
/** The window is smaller than the level's own: equal bodies are written once, and a daemon has better use for the memory. */
const PARAMS = { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_windowLog]: 19, [constants.ZSTD_c_checksumFlag]: 1 };
/** Why a recording ended whose disk does not keep up. */
const SLOW = 'the disk does not keep up';
const SUFFIX = '.inputs.zst';

/** Files of recordings in a folder, oldest first. */
export async function recordingsIn(dir: string): Promise<string[]> {
  return (await readdir(dir))
    .filter((name) => name.endsWith(SUFFIX))
    .sort()
    .map((name) => join(dir, name));
}

export class InputFile {
  readonly path: string;
  readonly #o: { dir: string; bytesMax: number; onBroken(why: string): void };
  readonly #zip: ZstdCompress;
  readonly #file: WriteStream;
  readonly #timer: NodeJS.Timeout;
  #lines: string[] = [];
  #broken = false;
  #ended = false;

  private constructor(o: { dir: string; bytesMax: number; name: string; onBroken(why: string): void }) {
    this.#o = o;
    this.path = join(o.dir, `${o.name}${SUFFIX}`);
    this.#file = createWriteStream(this.path, { flags: 'wx', mode: 0o600 });
    // Each write is flushed by itself: `flush()` would be a second task of the thread pool.
    this.#zip = createZstdCompress({ params: PARAMS, flush: constants.ZSTD_e_flush });
    this.#zip.pipe(this.#file);
    for (const stream of [this.#file, this.#zip]) stream.on('error', (error: Error) => this.#break(messageOf(error)));
    this.#timer = setInterval(() => this.#flush(), FLUSH_EVERY_MS).unref();
  }

  /** It may take half of the folder: older ones go until they have the other half. Rejects where the folder cannot be made. */
  static async open(o: { dir: string; bytesMax: number; name: string; onBroken(why: string): void }): Promise<InputFile> {
    await mkdir(o.dir, { recursive: true, mode: 0o700 });
    let left = o.bytesMax;
    for (const file of (await recordingsIn(o.dir)).reverse()) {
      left -= (await stat(file)).size;
      if (left < o.bytesMax / 2) await rm(file, { force: true });
    }
    return new InputFile({ ...o, bytesMax: o.bytesMax / 2 });
  }

  /** False: there is no room. */
  write(line: string): boolean {
    if (this.#broken) return true;
    if (this.#ended || this.#file.bytesWritten >= this.#o.bytesMax) return false;
    if (this.#zip.writableLength > WAITING_BYTES_MAX) this.#break(SLOW);
    else this.#lines.push(line);
    return true;
  }

  /** Compressed, on the disk. */
  get bytes(): number {
    return this.#file.bytesWritten;
  }

  /** Nothing is taken any more after `last`, for which there is always room. May be repeated. */
  async end(last?: string): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#timer);
    if (last !== undefined) this.#lines.push(last);
    this.#flush();
    if (this.#broken) return;
    await new Promise<void>((resolve) => {
      this.#file.once('close', resolve);
      this.#zip.end();
    });
  }

  #flush(): void {
    if (this.#lines.length === 0 || this.#broken) return;
    const text = `${this.#lines.join('\n')}\n`;
    this.#lines = [];
    this.#zip.write(text);
  }

  #break(why: string): void {
    if (this.#broken) return;
    this.#broken = true;
    clearInterval(this.#timer);
    this.#lines = [];
    // What was compressed already still goes out, as fast as the disk takes it.
    if (why === SLOW) this.#zip.end();
    else this.#zip.destroy();
    this.#o.onBroken(why);
  }
}
