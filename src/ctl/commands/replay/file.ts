/** Reads a recording of inputs from its file. */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createZstdDecompress } from 'node:zlib';
import { CtlError, EXIT } from '../../../admin/client.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { entryOf, headerProblem } from '../../../replay/check.ts';
import type { Entry, Header } from '../../../replay/entries.ts';

/** Of the lines together. A recording that says more is no recording. */
const BYTES_MAX = 1024 * 1024 * 1024;
export const SUFFIX = '.inputs.zst';
const NEWLINE = 10;

export interface OpenedInputs {
  header: Header;
  /** Null at the end. Throws {@link CtlError} at a line that is damaged. */
  next(): Entry | null;
  /** The file ends in the middle: its daemon was killed, or it was cut. */
  cut: boolean;
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
  const { bytes, cut } = await inflated(path);
  let at = 0;
  let number = 0;
  const line = (): string | null => {
    const end = bytes.indexOf(NEWLINE, at);
    // Without its end a line is not whole.
    if (end < 0) return null;
    const text = bytes.toString('utf8', at, end);
    at = end + 1;
    number += 1;
    return text;
  };
  const parsed = (text: string): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      throw new CtlError(EXIT.no, `${path}: line ${number} is damaged.`);
    }
  };
  const first = line();
  const header = first === null ? null : parsed(first);
  const problem = headerProblem(header);
  if (problem !== null) throw new CtlError(EXIT.no, `${path}: ${problem}.`);
  return {
    header: header as Header,
    cut,
    next() {
      const text = line();
      if (text === null) return null;
      const entry = entryOf(parsed(text));
      if (entry === null) throw new CtlError(EXIT.no, `${path}: line ${number} is no line of a recording.`);
      return entry;
    },
  };
}

async function inflated(path: string): Promise<{ bytes: Buffer; cut: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  const unzip = createZstdDecompress();
  const file = createReadStream(path);
  file.on('error', (error) => unzip.destroy(error));
  try {
    for await (const chunk of file.pipe(unzip) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > BYTES_MAX) throw new CtlError(EXIT.no, `${path}: more than ${BYTES_MAX / 2 ** 30} GiB of lines: this is no recording.`);
      chunks.push(chunk);
    }
    return { bytes: Buffer.concat(chunks), cut: false };
  } catch (error) {
    if (error instanceof CtlError) throw error;
    // What was flushed before the end is whole.
    if (chunks.length > 0) return { bytes: Buffer.concat(chunks), cut: true };
    throw new CtlError(EXIT.no, `${path}: it is no recording of inputs (${messageOf(error)}).`);
  } finally {
    file.destroy();
    unzip.destroy();
  }
}
