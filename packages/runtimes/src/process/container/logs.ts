/**
 * Container output: each stream is a FIFO that the container's processes hold open both ways, so that output waits
 * (64 KiB per stream) instead of being lost while no runtime reads it. The runtime reads, stamps and writes CRI lines:
 * `<RFC3339Nano> stdout F line`; a line that is longer than 16 KiB, or stays unfinished, goes out in pieces tagged P.
 */
import { constants, close as fsClose, write as fsWrite, mkdirSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { openRegularSync } from '@actorlet/process/src/regularFile.ts';

const closeAsync = promisify(fsClose);

/** As containerd cuts lines by default. */
const LINE_BYTES_MAX = 16 * 1024;
/** An unfinished line is written after this time without more of it. */
const PARTIAL_AFTER_MS = 200;
/** More than this waiting for the disk: reading pauses, and the container's writes block in time. */
const PENDING_BYTES_MAX = 1024 * 1024;

/** Now, RFC 3339 with nine digits, UTC. */
function stamp(): string {
  const ms = performance.timeOrigin + performance.now();
  const whole = Math.floor(ms);
  const fraction = Math.floor((ms - whole) * 1000);
  return `${new Date(whole).toISOString().slice(0, -1)}${String(fraction).padStart(3, '0')}000Z`;
}

export interface LogFile {
  write(chunk: Buffer): void;
  /** Resolves when everything written so far reached the file (or was given up, with a warning). */
  flush(): Promise<void>;
  /** Closes and opens by name again: after rotation. */
  reopen(): Promise<void>;
  close(): Promise<void>;
  /** Called with true when writers should pause, with false when they may go on. */
  onPressure: (pause: boolean) => void;
}

/** An append-only file that never fails its writers: an error is reported once, its bytes are dropped, the next write tries again. */
export function openLogFile(path: string, warn: (message: string) => void): LogFile {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let paused = false;
  let fd: number | null = null;
  let work: Promise<void> | null = null;
  let warned = false;

  const open = async (): Promise<number> => {
    if (fd === null) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
      fd = openRegularSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, { own: true, mode: 0o640 });
    }
    return fd;
  };
  const writeAll = (to: number, data: Buffer): Promise<void> =>
    new Promise((resolve, reject) => {
      const step = (offset: number): void => {
        fsWrite(to, data, offset, data.length - offset, null, (error, count) => {
          if (error) reject(error);
          else if (offset + count < data.length) step(offset + count);
          else resolve();
        });
      };
      step(0);
    });
  const drain = async (): Promise<void> => {
    while (pending.length > 0) {
      const data = Buffer.concat(pending);
      pending = [];
      try {
        await writeAll(await open(), data);
        warned = false;
      } catch (error) {
        if (!warned) warn(`cannot write container log ${path}: ${(error as Error).message}; its output is dropped until that is mended`);
        warned = true;
      }
      pendingBytes -= data.length;
      if (paused && pendingBytes < PENDING_BYTES_MAX) {
        paused = false;
        self.onPressure(false);
      }
    }
  };
  const self: LogFile = {
    onPressure: () => undefined,
    write(chunk) {
      pending.push(chunk);
      pendingBytes += chunk.length;
      if (!paused && pendingBytes >= PENDING_BYTES_MAX) {
        paused = true;
        self.onPressure(true);
      }
      work ??= drain().finally(() => {
        work = null;
      });
    },
    async flush() {
      while (work !== null) await work;
    },
    async reopen() {
      await self.close();
      await open();
    },
    async close() {
      await self.flush();
      const was = fd;
      fd = null;
      if (was !== null) await closeAsync(was);
    },
  };
  // The file is there from the start: readers follow it before the first line.
  open().catch((error: Error) => warn(`cannot open container log ${path}: ${error.message}`));
  return self;
}

/** Turns bytes into CRI lines of one stream. */
function createLineCutter(stream: 'stdout' | 'stderr', emit: (chunk: Buffer) => void) {
  let rest: Buffer = Buffer.alloc(0);
  let timer: NodeJS.Timeout | undefined;
  const line = (tag: 'F' | 'P', content: Buffer): Buffer[] => [Buffer.from(`${stamp()} ${stream} ${tag} `), content, NEWLINE];
  const flushPartial = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (rest.length === 0) return;
    emit(Buffer.concat(line('P', rest)));
    rest = Buffer.alloc(0);
  };
  return {
    push(chunk: Buffer): void {
      clearTimeout(timer);
      timer = undefined;
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const parts: Buffer[] = [];
      let from = 0;
      for (;;) {
        const at = data.indexOf(10, from);
        const end = at < 0 ? data.length : at;
        while (end - from > LINE_BYTES_MAX) {
          parts.push(...line('P', data.subarray(from, from + LINE_BYTES_MAX)));
          from += LINE_BYTES_MAX;
        }
        if (at < 0) break;
        parts.push(...line('F', data.subarray(from, at)));
        from = at + 1;
      }
      // A copy: the rest must not keep the whole chunk alive.
      rest = Buffer.from(data.subarray(from));
      if (parts.length > 0) emit(Buffer.concat(parts));
      if (rest.length > 0) timer = setTimeout(flushPartial, PARTIAL_AFTER_MS);
    },
    flushPartial,
  };
}
const NEWLINE = Buffer.from('\n');

export interface LogPump {
  /** Settles when no process holds the FIFO any more, or after `close`. */
  readonly ended: Promise<void>;
  pause(paused: boolean): void;
  /** Everything that is in the FIFO now has been read. */
  drained(): Promise<void>;
  close(): void;
}

/** Reads one FIFO, which some process must hold open for writing, until it ends. `raw` is given what it read, `emit` the lines of it. */
export function pumpFifo(path: string, o: { stream: 'stdout' | 'stderr'; raw(chunk: Buffer): void; emit(chunk: Buffer): void }): LogPump {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const socket = new Socket({ fd, readable: true, writable: false });
  const cutter = createLineCutter(o.stream, o.emit);
  let lastReadMs = 0;
  let open = true;
  const ended = new Promise<void>((resolve) => {
    socket.on('close', () => {
      open = false;
      cutter.flushPartial();
      resolve();
    });
  });
  socket.on('data', (chunk: Buffer) => {
    lastReadMs = performance.now();
    cutter.push(chunk);
    o.raw(chunk);
  });
  // An error is the end of the stream: 'close' follows.
  socket.on('error', () => undefined);
  return {
    ended,
    pause: (paused) => void (paused ? socket.pause() : socket.resume()),
    async drained() {
      // The poll phase reads until the pipe is empty; a turn of the loop without data means that it is.
      for (let quiet = 0; open && quiet < 2; ) {
        const before = performance.now();
        await new Promise((resolve) => setImmediate(resolve));
        await new Promise((resolve) => setTimeout(resolve, 1));
        quiet = lastReadMs < before && !socket.isPaused() ? quiet + 1 : 0;
      }
      cutter.flushPartial();
    },
    close: () => void socket.destroy(),
  };
}
