/**
 * The real kernel log: `/dev/kmsg`, read without waiting once a second. Node can wait for no device without giving it one
 * of its few threads for good, and an empty look costs some ten microseconds.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { KernelLog, KernelLogPart } from '../../../ports/machine/kernelLog.ts';

const EVERY_MS = 1_000;
/** The kernel gives one record a read, and refuses a read that it does not fit into; its own bound is 8 KiB. */
const READ_BYTES = 16_384;
/** Records between two turns for everybody else. */
const PART_MAX = 512;
/** A line that has come to this and has no end is no record. */
const LINE_CHARS_MAX = 65_536;
/** Major 1, minor 11, as Linux numbers devices. */
const KMSG_DEVICE = 0x10b;

export interface KernelLogOptions {
  /** Default /dev/kmsg. */
  path?: string;
  /** Between two looks, ms; default 1 s. */
  everyMs?: number;
}

export function createKernelLog(o: KernelLogOptions = {}): KernelLog {
  const path = o.path ?? '/dev/kmsg';
  const everyMs = o.everyMs ?? EVERY_MS;
  return {
    async *follow(after, signal): AsyncGenerator<KernelLogPart> {
      using source = openSource(path);
      let seq = after ?? -1;
      let told = false;
      while (!signal.aborted) {
        const { records, newest, more } = source.read();
        // A reader from now on is not given earlier records, and is told once where those end.
        const news = after === null ? (told ? records : []) : records.filter((r) => numberOf(r) > after);
        if (newest !== null) seq = newest;
        if (more) {
          if (news.length > 0) yield { records: news, seq };
          await setImmediate();
          continue;
        }
        if (news.length > 0 || !told) yield { records: news, seq };
        told = true;
        await setTimeout(everyMs, undefined, { signal, ref: false }).catch(() => {});
      }
    },
  };
}

interface Source extends Disposable {
  /** What there is now, at most {@link PART_MAX} reads of it; `more`: there may be more at once. */
  read(): { records: string[]; newest: number | null; more: boolean };
}

function openSource(path: string): Source {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const { rdev, ...info } = fstatSync(fd);
    // In some containers it is a link to a terminal, or to nothing.
    if ((info.mode & constants.S_IFMT) === constants.S_IFCHR && rdev !== KMSG_DEVICE)
      throw new Error(`${path} is a device, but not the kernel's log`);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  let rest = '';
  const read: Source['read'] = () => {
    const records: string[] = [];
    let more = true;
    for (let i = 0; i < PART_MAX && more; i++) {
      const bytes = readSome(fd, buffer);
      if (bytes === 'overwritten') continue;
      more = bytes > 0;
      const lines = `${rest}${buffer.toString('utf8', 0, bytes)}`.split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > LINE_CHARS_MAX) rest = '';
      // What belongs to a record, and not to its text, follows on lines that begin with a blank.
      records.push(...lines.filter((line) => /^\d/.test(line)));
    }
    const last = records.at(-1);
    return { records, newest: last === undefined ? null : numberOf(last), more };
  };
  return { read, [Symbol.dispose]: () => closeSync(fd) };
}

/** Bytes read, 0 when there is nothing now. `overwritten`: the kernel gave up records that were not read in time; the next read goes on behind them. */
function readSome(fd: number, buffer: Buffer): number | 'overwritten' {
  try {
    return readSync(fd, buffer, 0, buffer.length, null);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EAGAIN') return 0;
    if (code === 'EPIPE') return 'overwritten';
    throw error;
  }
}

function numberOf(record: string): number {
  return Number(record.split(',', 2)[1]);
}
