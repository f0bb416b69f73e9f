/** The remote command protocols of Kubernetes, over SPDY/3.1 and WebSocket: the streams of one command or attachment. */
import { EventEmitter, once } from 'node:events';
import type { Duplex, Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as after } from 'node:timers/promises';
import { SpdyConnection, type SpdyStream } from '@actorlet/process/src/spdyConnection.ts';
import type { Agreed, Channels } from './channels.ts';

interface SpdyProtocol {
  /** A terminal has a stream for its size. */
  resizes: boolean;
  /** How it ended is told as a Status in JSON. Otherwise a failure in words. */
  status: boolean;
}
const OLDEST: SpdyProtocol = { resizes: false, status: false };
/** Versions of the protocol over SPDY/3.1. A client that names none speaks the oldest. */
export const SPDY_PROTOCOLS: Readonly<Record<string, SpdyProtocol>> = {
  'v4.channel.k8s.io': { resizes: true, status: true },
  'v3.channel.k8s.io': { resizes: true, status: false },
  'v2.channel.k8s.io': OLDEST,
  'channel.k8s.io': OLDEST,
};
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

interface Parts extends Pick<RemoteStreams, 'stdin' | 'stdout' | 'stderr' | 'cut' | 'closed'> {
  resize: Readable | null;
  /** Ends the outputs and the connection, too. */
  end(how: End): void;
}
function assembled({ resize, end, ...parts }: Parts): RemoteStreams {
  let ended = false;
  let last: Size | null = null;
  const resized = new EventEmitter();
  const onSize = (size: Size): void => {
    last = size;
    resized.emit('size');
  };
  resize?.on('data', sizes(onSize));
  return {
    ...parts,
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
    finish(how) {
      if (ended) return;
      ended = true;
      end(how);
    },
  };
}

/**
 * Null where the client did not open the streams that it asked for. They are counted, as in the reference: kubectl without a
 * terminal opens `stderr` for a container that has one, and no `resize`.
 */
export async function remoteStreams(socket: Duplex, asked: Asked, protocol: string): Promise<RemoteStreams | null> {
  const { resizes, status } = SPDY_PROTOCOLS[protocol] ?? OLDEST;
  const outputs = (['stdin', 'stdout', 'stderr'] as const).filter((n) => asked[n]);
  const names = ['error', ...outputs, ...(asked.tty && resizes ? ['resize'] : [])];
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
  const of = (name: string): SpdyStream | null => streams.get(name) ?? null;
  return assembled({
    ...{ stdin: of('stdin'), stdout: of('stdout'), stderr: of('stderr'), resize: of('resize'), closed: connection.closed },
    end(how) {
      const word = lastWord(how, status);
      if (word !== '') of('error')?.write(word);
      const last = [...streams.values()].map((stream) => finished(stream.end(), { readable: false }));
      void Promise.allSettled(last).then(() => connection.close());
    },
    cut: () => void socket.destroy(),
  });
}

const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
export const COMMAND_CHANNELS = 5;

/** The same by numbered channels. The end of standard input is that of the connection. */
export function channelStreams(channels: Channels, asked: Asked, { status }: Pick<Agreed, 'status'>): RemoteStreams {
  const output = (name: 'stdout' | 'stderr') => (asked[name] ? channels.writable(CHANNEL[name]) : null);
  const [stdout, stderr] = [output('stdout'), output('stderr')];
  // An empty message tells the client that the connection stands.
  channels.tell(asked.stdout ? CHANNEL.stdout : asked.stderr ? CHANNEL.stderr : CHANNEL.error, Buffer.alloc(0));
  return assembled({
    ...{ stdin: asked.stdin ? channels.readable(CHANNEL.stdin) : null, stdout, stderr, closed: channels.closed },
    resize: channels.readable(CHANNEL.resize),
    end(how) {
      const outputs = [stdout, stderr].flatMap((stream) => (stream === null ? [] : finished(stream.end(), { readable: false })));
      void Promise.allSettled(outputs).then(() => {
        const word = lastWord(how, status);
        if (word !== '') channels.tell(CHANNEL.error, Buffer.from(word));
        channels.close();
      });
    },
    cut: () => channels.cut(),
  });
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

/** '' for nothing: of success the older protocols say no word. */
function lastWord(end: End, status: boolean): string {
  const { message = '', ...told } = statusOf(end);
  return status ? JSON.stringify({ ...told, ...(message === '' ? {} : { message }) }) : message;
}

function statusOf(end: End): { message?: string } & Record<string, unknown> {
  if ('error' in end) {
    const message = `Internal error occurred: error executing command in container: ${end.error}`;
    return { metadata: {}, status: 'Failure', message, reason: 'InternalError', code: 500 };
  }
  if (end.exitCode === 0) return { metadata: {}, status: 'Success' };
  return {
    ...{ metadata: {}, status: 'Failure', message: `command terminated with non-zero exit code: ${end.exitCode}` },
    ...{ reason: 'NonZeroExitCode', details: { causes: [{ reason: 'ExitCode', message: String(end.exitCode) }] } },
  };
}
