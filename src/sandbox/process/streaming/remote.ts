/** The remote command protocol of Kubernetes (v4) over SPDY/3.1: the streams of one command or attachment. */
import { EventEmitter, once } from 'node:events';
import type { Duplex, Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as after } from 'node:timers/promises';
import { SpdyConnection, type SpdyStream } from '../../../process/spdyConnection.ts';

export const REMOTE_PROTOCOL = 'v4.channel.k8s.io';
/** The client opens its streams right after the switch. */
const STREAMS_WITHIN_MS = 30_000;
/** `{"Width":80,"Height":24}` and a line feed. */
const SIZE_BYTES_MAX = 1024;

const NAMES: ReadonlySet<string> = new Set(['error', 'stdin', 'stdout', 'stderr', 'resize']);

export interface Asked {
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  tty: boolean;
}
export interface Size {
  columns: number;
  rows: number;
}
/** How it ended: with an exit code, or why it could not be run. */
type End = { exitCode: number } | { error: string };

export interface RemoteStreams {
  stdin: Readable | null;
  stdout: Writable | null;
  stderr: Writable | null;
  /** The client's terminal; null where it says nothing within that time. */
  size(withinMs: number): Promise<Size | null>;
  /** Called with the size, and with the newest one after changes: one call at a time. */
  onResize(fn: (size: Size) => Promise<void>): void;
  /** Also ends the outputs and the connection. */
  finish(end: End): void;
  /** Without a word. */
  cut(): void;
  /** Resolves when the client has gone, or all was said. */
  closed: Promise<void>;
}

/**
 * Null where the client did not open the streams that it asked for. They are counted, as in the reference: kubectl without a
 * terminal opens `stderr` for a container that has one, and no `resize`.
 */
export async function remoteStreams(socket: Duplex, asked: Asked): Promise<RemoteStreams | null> {
  const names = ['error', ...(['stdin', 'stdout', 'stderr'] as const).filter((n) => asked[n]), ...(asked.tty ? ['resize'] : [])];
  const streams = new Map<string, SpdyStream>();
  let complete = (): void => undefined;
  const all = new Promise<void>((resolve) => (complete = resolve));
  const connection = new SpdyConnection(socket, (stream) => {
    const name = stream.headers.get('streamtype') ?? '';
    if (!NAMES.has(name) || streams.has(name)) return void stream.destroy();
    streams.set(name, stream);
    // Of the outputs only the client's end is read.
    if (name !== 'stdin' && name !== 'resize') stream.resume();
    if (streams.size === names.length) complete();
  });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, STREAMS_WITHIN_MS)));
  await Promise.race([all, late, connection.closed]);
  clearTimeout(timer);
  if (streams.size < names.length) {
    connection.close();
    return null;
  }
  let ended = false;
  let last: Size | null = null;
  const resized = new EventEmitter();
  const onSize = (size: Size): void => {
    last = size;
    resized.emit('size');
  };
  streams.get('resize')?.on('data', sizes(onSize));
  const [stdout, stderr] = [streams.get('stdout') ?? null, streams.get('stderr') ?? null];
  return {
    ...{ stdin: streams.get('stdin') ?? null, stdout, stderr, closed: connection.closed },
    size: (withinMs) =>
      last === null ? Promise.race([once(resized, 'size').then(() => last), after(withinMs, null)]) : Promise.resolve(last),
    onResize(fn) {
      let told: Size | null = null;
      let busy = false;
      const tell = async (): Promise<void> => {
        if (busy) return;
        busy = true;
        for (; last !== null && told !== last; await fn(told)) told = last;
        busy = false;
      };
      resized.on('size', () => void tell());
      void tell();
    },
    finish(end) {
      if (ended) return;
      ended = true;
      streams.get('error')?.write(JSON.stringify(statusOf(end)));
      const last = [...streams.values()].map((stream) => finished(stream.end(), { readable: false }));
      void Promise.allSettled(last).then(() => connection.close());
    },
    cut: () => void socket.destroy(),
  };
}

function sizes(fn: (size: Size) => void): (chunk: Buffer) => void {
  let rest = '';
  return (chunk) => {
    const lines = `${rest}${chunk.toString('utf8')}`.split('\n');
    rest = (lines.pop() ?? '').slice(0, SIZE_BYTES_MAX);
    for (const line of lines) {
      try {
        const { Width: columns, Height: rows } = JSON.parse(line) as { Width?: unknown; Height?: unknown };
        if (isSide(columns) && isSide(rows)) fn({ columns, rows });
      } catch {
        // No size.
      }
    }
  };
}

/** The kernel keeps 16 bits of each. */
const isSide = (n: unknown): n is number => Number.isInteger(n) && Number(n) >= 0 && Number(n) <= 0xffff;

function statusOf(end: End): object {
  if ('error' in end) return { metadata: {}, status: 'Failure', message: end.error, reason: 'InternalError', code: 500 };
  if (end.exitCode === 0) return { metadata: {}, status: 'Success' };
  return {
    ...{ metadata: {}, status: 'Failure', message: `command terminated with non-zero exit code: ${end.exitCode}` },
    ...{ reason: 'NonZeroExitCode', code: 500, details: { causes: [{ reason: 'ExitCode', message: String(end.exitCode) }] } },
  };
}
