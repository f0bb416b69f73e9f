/** Reads a recording of inputs from its file, as much at a time as a replay needs. */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createZstdDecompress } from 'node:zlib';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { openRegular } from '@actorlet/process/src/regularFile.ts';
import { entryOfLine, headerProblem } from '@actorlet/replay/src/check.ts';
import { type Entry, type Header, isInput } from '@actorlet/replay/src/entries.ts';

export const SUFFIX = '.inputs.zst';
const NEWLINE = 10;
/** Of a stream in which nothing is: Node may write one at the end. */
const EMPTY_BYTES_MAX = 32;
/** RFC 8878. */
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** Codes of errors of zlib: the stream stops before its end; it is none. */
const UNEXPECTED_END = 'Z_BUF_ERROR';
const NO_ZSTD = 'ZSTD_error_prefix_unknown';
const CHUNK_BYTES = 256 * 1024;
/** What is read ahead; small files are read whole. */
const AHEAD_BYTES = 4 * 1024 * 1024;
/** Lines between two inputs, or a single line. A file that says more is no recording. */
const BETWEEN_BYTES_MAX = 256 * 1024 * 1024;

export interface OpenedInputs {
  header: Header;
  /** Null at the end. Throws {@link CtlError} at a line that is damaged. */
  next(): Entry | null;
  /** Null: the entries of the next two inputs are there, or all there are. Else to be awaited before `next`. */
  more(): Promise<void> | null;
  /** The file ends in the middle: its daemon was killed, or it was cut. Known once `next` gave null. */
  cut(): boolean;
}

/** The recordings that a path names: itself, or what is in the folder, oldest first. */
export async function inputFiles(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => name.endsWith(SUFFIX)).sort();
    if (names.length === 0) throw new CtlError(EXIT.no, `${path}: no recording of inputs (*${SUFFIX}) is in this folder.`);
    return names.map((name) => join(path, name));
  } catch (error) {
    if (error instanceof CtlError) throw error;
    throw new CtlError(EXIT.no, `${path}: ${messageOf(error)}`);
  }
}

/** Rejects with {@link CtlError} where it is no recording. */
export async function openInputs(path: string): Promise<OpenedInputs> {
  const lines = linesOf(path);
  const { value } = await lines.next();
  const [first = '', ...rest] = typeof value === 'string' ? [] : value;
  const header = jsonOf(first);
  const isEmpty = value === 'cut' && (await stat(path)).size === 0;
  const problem = isEmpty ? 'it is empty' : value === 'cut' ? 'it was cut before the end of its first line' : headerOrDamage(header);
  if (problem !== null) {
    await lines.return('whole');
    throw new CtlError(EXIT.no, `${path}: ${problem}.`);
  }
  const ahead = new Ahead(path, lines, rest);
  await ahead.read();
  return { header: header as Header, next: () => ahead.next(), more: () => ahead.more(), cut: () => ahead.cut };
}

function headerOrDamage(header: unknown): string | null {
  return header === undefined ? 'line 1 is damaged' : headerProblem(header);
}

/** Reads to the end. Null: the rest of the file is not damaged; else what is, in words. */
export async function damageOf({ next, more }: OpenedInputs): Promise<string | null> {
  try {
    while (next() !== null) await more();
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** Entries that were read and not taken yet. */
class Ahead {
  readonly #path: string;
  readonly #lines: AsyncGenerator<string[], 'whole' | 'cut'>;
  #waiting: { entry: Entry | CtlError; bytes: number }[] = [];
  #taken = 0;
  #bytes = 0;
  #inputs = 0;
  #line = 1;
  #ended = false;
  cut = false;

  constructor(path: string, lines: AsyncGenerator<string[], 'whole' | 'cut'>, first: readonly string[]) {
    this.#path = path;
    this.#lines = lines;
    this.#addAll(first);
  }

  next(): Entry | null {
    const one = this.#waiting[this.#taken];
    if (one === undefined) {
      if (!this.#ended) throw new Error('entries of a recording were taken before they were read');
      return null;
    }
    if (one.entry instanceof CtlError) throw one.entry;
    this.#taken += 1;
    this.#bytes -= one.bytes;
    if (isInput(one.entry)) this.#inputs -= 1;
    return one.entry;
  }

  more(): Promise<void> | null {
    return this.#ended || this.#inputs > 2 ? null : this.read();
  }

  async read(): Promise<void> {
    this.#waiting = this.#waiting.slice(this.#taken);
    this.#taken = 0;
    while (!this.#ended && (this.#bytes < AHEAD_BYTES || this.#inputs <= 2)) await this.#readMore();
    if (this.#ended) await this.#lines.return('whole');
  }

  async #readMore(): Promise<void> {
    const { value, done } = await this.#lines.next().catch((error: unknown) => ({ value: [error], done: false }));
    if (typeof value !== 'string') this.#addAll(value);
    if (done !== true) return;
    this.#ended = true;
    this.cut = value === 'cut';
  }

  #addAll(lines: readonly unknown[]): void {
    for (const line of lines) if (!this.#ended) this.#add(line);
  }

  #add(line: unknown): void {
    this.#line += 1;
    const entry = this.#entryOf(line);
    const bytes = String(line).length;
    this.#waiting.push({ entry, bytes });
    this.#bytes += bytes;
    // What came before it is still replayed.
    if (entry instanceof CtlError) this.#ended = true;
    else if (isInput(entry)) this.#inputs += 1;
  }

  /** Of a line, or of what reading it failed with. */
  #entryOf(line: unknown): Entry | CtlError {
    if (this.#bytes > BETWEEN_BYTES_MAX) return this.#problem('is one of too many between two inputs');
    if (typeof line !== 'string') return line instanceof CtlError ? line : this.#problem(`cannot be read: ${messageOf(line)}`);
    try {
      const entry = entryOfLine(line);
      if (entry !== null) return entry;
    } catch {
      return this.#problem('is damaged');
    }
    const joined = headerProblem(jsonOf(line)) === null;
    return this.#problem(joined ? 'begins another recording: two were joined. Replay each by itself' : 'is no line of a recording');
  }

  #problem(why: string): CtlError {
    return new CtlError(EXIT.no, `${this.#path}: line ${this.#line} ${why}.`);
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A FIFO or a device would hang for ever. @throws CtlError. */
async function regular(path: string): Promise<FileHandle> {
  try {
    return await openRegular(path, constants.O_RDONLY);
  } catch (error) {
    throw new CtlError(EXIT.no, `${path}: it is no recording of inputs (${messageOf(error)}).`);
  }
}

/** Whole lines, as many at a time as are there; one without its end is not whole. Gives `cut` where the file ends in the middle. Throws {@link CtlError}. */
async function* linesOf(path: string): AsyncGenerator<string[], 'whole' | 'cut'> {
  const unzip = createZstdDecompress({ chunkSize: CHUNK_BYTES });
  const file = (await regular(path)).createReadStream();
  file.on('error', (error) => unzip.destroy(error));
  let parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of file.pipe(unzip) as AsyncIterable<Buffer>) {
      const end = chunk.lastIndexOf(NEWLINE) + 1;
      if (end > 0) {
        const text = Buffer.concat([...parts, chunk.subarray(0, end - 1)]).toString();
        parts = [];
        size = 0;
        yield text.split('\n');
      }
      parts.push(chunk.subarray(end));
      size += chunk.length - end;
      if (size > BETWEEN_BYTES_MAX)
        throw new CtlError(EXIT.no, `${path}: a line of more than ${BETWEEN_BYTES_MAX / 2 ** 20} MiB: this is no recording.`);
    }
  } catch (error) {
    if (error instanceof CtlError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    // What was flushed before the end is whole.
    if (code === UNEXPECTED_END) return 'cut';
    const isDamaged = code.startsWith('ZSTD_error_') && code !== NO_ZSTD;
    throw new CtlError(EXIT.no, `${path}: it is ${isDamaged ? 'damaged' : 'no recording of inputs'} (${messageOf(error)}).`);
  } finally {
    file.destroy();
    unzip.destroy();
  }
  if (await isFollowed(path, unzip.bytesWritten))
    throw new CtlError(EXIT.no, `${path}: another recording was joined to it. Replay each by itself.`);
  return 'whole';
}

/** Whether another compressed stream begins after the one that ended about here. */
async function isFollowed(path: string, bytes: number): Promise<boolean> {
  await using file = await open(path);
  const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, bytes);
  return bytesRead > EMPTY_BYTES_MAX && buffer.subarray(0, bytesRead).includes(ZSTD_MAGIC);
}
