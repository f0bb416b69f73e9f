/** Reads one log file for a client: from its tail on, and, where asked, on and on while it grows and is rotated. */

import { concat, type LogOptions, type LogWriter, logWriter } from '../../../../machines/edge/https/logs/logLines.ts';
import type { Ports, ReadHandle } from '../../../../ports/ports.ts';

const BLOCK_BYTES = 64 * 1024;
/** Runtimes cut lines at 16 KiB where they are not told otherwise; a longer one than this is given in pieces. */
const LINE_BYTES_MAX = 1024 * 1024;
/** Looked at again at least this often, whatever the watch says. */
const RECHECK_MS = 1_000;
const NEWLINE = 0x0a;
const NO_BYTES = new Uint8Array(0);

export interface LogSource {
  path: string;
  /** The file that is opened must lie below one of these. */
  within: readonly string[];
  /** False once nothing more will be written. */
  running(): boolean;
}

/** Opens at once, so that a missing file is an error before anything was answered; then gives what the client gets. */
export async function openLog(
  ports: Pick<Ports, 'fs' | 'sys' | 'clock'>,
  source: LogSource,
  o: { options: LogOptions; signal: AbortSignal; onUnreadable(lines: number): void },
): Promise<AsyncIterable<Uint8Array>> {
  const file = await ports.fs.openRead(source.path, { within: source.within });
  // Also where nobody ever reads what is given: a client that left meanwhile, or one that wanted the head only.
  o.signal.addEventListener('abort', () => void file.close(), { once: true });
  return read(ports, { source, file, ...o });
}

interface Reading {
  source: LogSource;
  file: ReadHandle;
  options: LogOptions;
  signal: AbortSignal;
  onUnreadable(lines: number): void;
}

async function* read(ports: Pick<Ports, 'fs' | 'sys' | 'clock'>, r: Reading): AsyncGenerator<Uint8Array> {
  const writer = logWriter(r.options);
  using wake = r.options.follow ? watchFile(ports, r.source.path, r.signal) : NO_WATCH;
  let { file } = r;
  /** The file that took this one's name: read next, once this one has given all it has. */
  let next: ReadHandle | null = null;
  try {
    let offset = await tailOffset(file, r.options.tailLines);
    let rest: Uint8Array = NO_BYTES;
    /** What was written before the container ended may show up after its end was seen. */
    let last = false;
    while (!r.signal.aborted) {
      const block = await file.read(offset, BLOCK_BYTES);
      if (block.length > 0) {
        offset += block.length;
        const cut = splitLines(rest.length === 0 ? block : concat([rest, block]));
        const out = cut.lines.flatMap((line) => writer.line(line) ?? []);
        const isLong = cut.rest.length > LINE_BYTES_MAX;
        const piece = isLong ? writer.line(cut.rest, false) : undefined;
        if (piece !== undefined) out.push(piece);
        rest = isLong ? NO_BYTES : cut.rest;
        if (out.length > 0) yield out.length === 1 && out[0] !== undefined ? out[0] : concat(out);
        if (writer.full) return;
        continue;
      }
      if (next !== null) {
        yield* incomplete(writer, rest);
        await file.close();
        [file, next] = [next, null];
        offset = 0;
        rest = NO_BYTES;
        continue;
      }
      if (!r.options.follow || last) {
        yield* incomplete(writer, rest);
        return;
      }
      if ((await file.stat()).size < offset) {
        // Cut off in place: what is there now is new.
        yield* incomplete(writer, rest);
        offset = 0;
        rest = NO_BYTES;
        continue;
      }
      next = await replacement(ports, r.source, file);
      // Something may have been written between the read and the rotation: read on before changing over.
      if (next !== null) continue;
      if (r.source.running()) await wake.next();
      else last = true;
    }
  } finally {
    await file.close();
    await next?.close();
    if (writer.unreadable > 0) r.onUnreadable(writer.unreadable);
  }
}

/** What there is of the last line, which ends here. */
function* incomplete(writer: LogWriter, rest: Uint8Array): Generator<Uint8Array> {
  const out = writer.line(rest);
  if (out !== undefined && out.length > 0) yield out;
}

/** Another file under the same name (rotation), opened; null while it is the same one, or there is none yet. */
async function replacement(ports: Pick<Ports, 'fs'>, source: LogSource, file: ReadHandle): Promise<ReadHandle | null> {
  const mine = await file.stat();
  const now = await ports.fs.stat(source.path).catch(() => null);
  if (now === null || (now.ino === mine.ino && now.dev === mine.dev)) return null;
  const opened = await ports.fs.openRead(source.path, { within: source.within }).catch(() => null);
  if (opened === null) return null;
  const other = await opened.stat();
  if (other.ino !== mine.ino || other.dev !== mine.dev) return opened;
  await opened.close();
  return null;
}

/** Where the last `lines` lines begin. A last line without its end counts as none. */
async function tailOffset(file: ReadHandle, lines: number | null): Promise<number> {
  if (lines === null) return 0;
  let end = (await file.stat()).size;
  // The newline before the first wanted line is the one searched for.
  let wanted = lines + 1;
  while (end > 0) {
    const start = Math.max(0, end - BLOCK_BYTES);
    const block = await file.read(start, end - start);
    for (let at = block.length - 1; at >= 0; at--) {
      if (block[at] === NEWLINE && --wanted === 0) return start + at + 1;
    }
    end = start;
  }
  return 0;
}

function splitLines(bytes: Uint8Array): { lines: Uint8Array[]; rest: Uint8Array } {
  const lines: Uint8Array[] = [];
  let at = 0;
  for (let end = bytes.indexOf(NEWLINE, at); end >= 0; end = bytes.indexOf(NEWLINE, at)) {
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return { lines, rest: bytes.slice(at) };
}

interface Wake extends Disposable {
  /** Resolves at the next change, when the time is up, or when the client has gone. */
  next(): Promise<void>;
}
const NO_WATCH: Wake = { next: async () => undefined, [Symbol.dispose]: () => undefined };

function watchFile(ports: Pick<Ports, 'sys' | 'clock'>, path: string, signal: AbortSignal): Wake {
  let changed = false;
  let wake: (() => void) | null = null;
  const touch = () => {
    changed = true;
    wake?.();
  };
  const dir = path.slice(0, Math.max(1, path.lastIndexOf('/')));
  let watch: Disposable | null = null;
  try {
    // Without a watch (too many of them on this machine) the recheck alone follows the file.
    watch = ports.sys.watchDir(dir, touch, () => undefined);
  } catch {
    watch = null;
  }
  signal.addEventListener('abort', touch, { once: true });
  return {
    next: () =>
      new Promise((resolve) => {
        const done = () => {
          ports.clock.clearTimeout(timer);
          wake = null;
          changed = false;
          resolve();
        };
        const timer = ports.clock.setTimeout(done, RECHECK_MS);
        wake = done;
        if (changed || signal.aborted) done();
      }),
    [Symbol.dispose]: () => {
      signal.removeEventListener('abort', touch);
      watch?.[Symbol.dispose]();
    },
  };
}
