/** `actorctl logs`: reads a container's CRI log file where the daemon says it is, from its tail, and follows its runs. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogFile } from '@actorlet/kubelet/machines/edge/podLogs.ts';
import { CtlError, EXIT } from './client.ts';

export interface LogsOptions {
  /** Only the last so many lines; undefined = all. */
  tail: number | undefined;
  follow: boolean;
  timestamps: boolean;
  /** Wall milliseconds: older lines are left out. Default: all. */
  fromMs?: number;
  /** Before each line. Default nothing. */
  prefix?: string;
  signal: AbortSignal;
}
/** Asks the daemon where the log is. A follower asks again, by the pod's UID: a restart of the container begins a new file. */
export type Locate = (uid?: string) => Promise<Located>;
type Located = Extract<LogFile, { ok: true }>;

/** A FIFO in the place of a log holds nobody. */
const LOG_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;
const POLL_MS = 200;
/** Polls between two questions to the daemon. */
const POLLS_PER_ASK = 5;
const BLOCK_BYTES = 64 * 1024;
/** Answers of the daemon: there is no such pod; its container has no log yet. */
const GONE = 404;
const NOT_YET = 400;

export async function printLogs(locate: Locate, write: (text: string) => void, o: LogsOptions): Promise<void> {
  let file = await locate();
  let reader = await openLog(file.path);
  const printer = new LinePrinter(write, o);
  try {
    let offset = o.tail === undefined ? 0 : await tailOffset(reader, o.tail);
    offset = await drain(reader, offset, printer);
    while (o.follow && !o.signal.aborted) {
      let polls = 0;
      while (polls++ < POLLS_PER_ASK && !o.signal.aborted) {
        await sleep(POLL_MS, undefined, { signal: o.signal }).catch(() => undefined);
        // A rotated file is a new one under the same name; what is left of the old one was read just now.
        offset = await drain(reader, offset, printer);
      }
      if (o.signal.aborted) break;
      const now = await locateAgain(locate, file, o.signal);
      if (o.signal.aborted) break;
      const moved = now.path !== file.path || !(await sameFile(reader, now.path));
      if (moved) {
        const next = await openLog(now.path).catch(() => null);
        if (next !== null) {
          offset = await drain(reader, offset, printer);
          await reader.close();
          reader = next;
          offset = await drain(reader, 0, printer);
        }
      } else if (now.over && !now.running) {
        await drain(reader, offset, printer);
        break;
      }
      file = now;
    }
  } finally {
    printer.end();
    await reader.close();
  }
}

/**
 * The log ends with its pod. While the daemon is away, or a container has not started yet, nothing is known to have ended:
 * containers go on writing while the daemon restarts.
 */
async function locateAgain(locate: Locate, last: Located, signal: AbortSignal): Promise<Located> {
  try {
    return await locate(last.uid);
  } catch (error) {
    if (signal.aborted) return last;
    if (!(error instanceof CtlError)) throw error;
    if (error.status === GONE) return { ...last, running: false, over: true };
    if (error.status === NOT_YET || error.exitCode === EXIT.noDaemon || error.exitCode === EXIT.failed) return { ...last, over: false };
    throw error;
  }
}

async function openLog(path: string): Promise<FileHandle> {
  try {
    return await open(path, LOG_FLAGS);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT')
      throw new CtlError(
        EXIT.no,
        `there is no log at ${path}: the container has written none, it was cleaned up, or this is a node of a fleet, whose logs kubectl shows.`,
      );
    if (code === 'EACCES') throw new CtlError(EXIT.noPermission, `no permission to read ${path}.`);
    throw new CtlError(EXIT.failed, `cannot read ${path}: ${(error as Error).message}`);
  }
}

async function sameFile(reader: FileHandle, path: string): Promise<boolean> {
  const other = await open(path, LOG_FLAGS).catch(() => null);
  if (other === null) return true;
  try {
    const [a, b] = await Promise.all([reader.stat(), other.stat()]);
    return a.ino === b.ino && a.dev === b.dev;
  } finally {
    await other.close();
  }
}

/** Where the last `lines` lines begin; an unfinished last line does not count as one. */
async function tailOffset(reader: FileHandle, lines: number): Promise<number> {
  const { size } = await reader.stat();
  let end = size;
  let seen = 0;
  while (end > 0) {
    const start = Math.max(0, end - BLOCK_BYTES);
    const { buffer, bytesRead } = await reader.read({ buffer: Buffer.alloc(end - start), position: start });
    for (let i = bytesRead - 1; i >= 0; i--) {
      if (buffer[i] !== 0x0a) continue;
      // The newline that ends line n from the end is where the n lines after it begin.
      if (seen++ === lines) return start + i + 1;
    }
    end = start;
  }
  return 0;
}

async function drain(reader: FileHandle, from: number, printer: LinePrinter): Promise<number> {
  const { size } = await reader.stat();
  // Shorter than what was read: cut in place, so what it holds now is new.
  let at = size < from ? 0 : from;
  for (;;) {
    const { buffer, bytesRead } = await reader.read({ buffer: Buffer.alloc(BLOCK_BYTES), position: at });
    if (bytesRead === 0) return at;
    printer.push(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}

/** Turns CRI log lines (`<time> <stream> <P|F> <content>`) into what the container wrote. */
class LinePrinter {
  #rest = Buffer.alloc(0);
  #midLine = false;
  readonly #write: (text: string) => void;
  readonly #timestamps: boolean;
  readonly #fromMs: number;
  readonly #prefix: string;

  constructor(write: (text: string) => void, o: Pick<LogsOptions, 'timestamps' | 'fromMs' | 'prefix'>) {
    this.#write = write;
    this.#timestamps = o.timestamps;
    this.#fromMs = o.fromMs ?? Number.NEGATIVE_INFINITY;
    this.#prefix = o.prefix ?? '';
  }
  push(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    let from = 0;
    let out = '';
    for (let nl = this.#rest.indexOf(0x0a, from); nl >= 0; nl = this.#rest.indexOf(0x0a, from)) {
      out += this.#line(this.#rest.toString('utf8', from, nl));
      from = nl + 1;
    }
    this.#rest = this.#rest.subarray(from);
    if (out !== '') this.#write(out);
  }
  end(): void {
    if (this.#rest.length > 0) this.#write(this.#line(this.#rest.toString('utf8')));
    if (this.#midLine) this.#write('\n');
    this.#rest = Buffer.alloc(0);
    this.#midLine = false;
  }
  #line(line: string): string {
    const m = /^(\S+) (stdout|stderr) ([PF])(?::\S*)? ?([\s\S]*)$/.exec(line);
    // Not a CRI line: shown as it is rather than hidden.
    if (m === null) return `${this.#prefix}${line}\n`;
    const [, time = '', , tag = 'F', content = ''] = m;
    if (Date.parse(time) < this.#fromMs) return '';
    const lead = this.#midLine ? '' : `${this.#prefix}${this.#timestamps ? `${time} ` : ''}`;
    this.#midLine = tag === 'P';
    return `${lead}${content}${tag === 'P' ? '' : '\n'}`;
  }
}
