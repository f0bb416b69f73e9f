/** A client of the streams of the embedded runtimes, for tests: SPDY/3.1 as Kubernetes uses it. */
import { type RequestOptions, request } from 'node:http';
import { request as secureRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { data, HeaderWriter, spdyReader, synStream } from '@actorlet/process/src/spdy.ts';

export interface Streams {
  /** What came so far on streams of that name. */
  text(name: string): string;
  write(name: string, text: string | Buffer): void;
  /** No more of that stream comes. */
  end(name: string): void;
  /** Opens another stream; later writes under that name go to it. */
  open(name: string, headers?: Readonly<Record<string, string>>): void;
  close(): void;
  readonly ended: boolean;
  /** Resolves when the runtime has closed the connection. */
  closed: Promise<void>;
}

/** `http+unix://<socket path>/<path>`, as options of a request. */
function at(url: string): RequestOptions {
  const m = /^http\+unix:\/\/([^/]+)(\/.*)$/.exec(url);
  if (m === null) throw new Error(`no URL of an embedded runtime: ${url}`);
  return { socketPath: decodeURIComponent(m[1] ?? ''), path: m[2] ?? '' };
}

export function openStreams(
  to: string | RequestOptions,
  o: { names: readonly string[]; protocol?: string; secure?: boolean },
): Promise<Streams> {
  const options: RequestOptions = {
    ...(typeof to === 'string' ? at(to) : to),
    method: 'POST',
    agent: false,
  };
  const protocol = o.protocol ?? 'v4.channel.k8s.io';
  const headers = { ...options.headers, connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': protocol };
  return new Promise((resolve, reject) => {
    const req = (o.secure === true ? secureRequest : request)({ ...options, headers });
    req.once('error', reject);
    req.once('response', (res) => {
      let body = '';
      res.on('data', (d: Buffer) => (body += d.toString()));
      res.once('end', () => reject(new Error(`HTTP ${res.statusCode}: ${body.trim()}`)));
    });
    req.once('upgrade', (_res, socket, head) => resolve(streamsOf(socket, head, o.names)));
    req.end();
  });
}

function streamsOf(socket: Duplex, head: Buffer, names: readonly string[]): Streams {
  const ids = new Map<string, number>();
  const byId = new Map<number, string>();
  const texts = new Map<string, string>();
  const writer = new HeaderWriter();
  let nextId = 1;
  let ended = false;
  const idOf = (name: string): number => ids.get(name) ?? 0;
  const open = (name: string, headers: Readonly<Record<string, string>> = { streamtype: name }) => {
    const id = nextId;
    nextId += 2;
    ids.set(name, id);
    byId.set(id, name);
    socket.write(synStream(id, writer.block(headers)));
  };
  socket.on('error', () => undefined);
  socket.on(
    'data',
    spdyReader({
      data: (id, part) => void texts.set(byId.get(id) ?? '', `${texts.get(byId.get(id) ?? '') ?? ''}${part.toString()}`),
      end: () => undefined,
      control: () => undefined,
    }),
  );
  const closed = new Promise<void>((resolve) =>
    socket.once('close', () => {
      ended = true;
      resolve();
    }),
  );
  if (head.length > 0) socket.unshift(head);
  for (const name of names) open(name);
  return {
    text: (name) => texts.get(name) ?? '',
    write: (name, text) => void socket.write(data(idOf(name), Buffer.from(text))),
    end: (name) => void socket.write(data(idOf(name), Buffer.alloc(0), true)),
    open,
    close: () => void socket.destroy(),
    closed,
    get ended() {
      return ended;
    },
  };
}

export interface Ran {
  stdout: string;
  stderr: string;
  /** Of the status that ends it; null where the runtime said none. */
  exitCode: number | null;
  /** Of a command that could not be run. */
  error: string;
}
export function resultOf(s: Streams): Ran {
  const text = s.text('error');
  const status = (text === '' ? {} : JSON.parse(text)) as {
    status?: string;
    reason?: string;
    message?: string;
    details?: { causes?: { message: string }[] };
  };
  const code = status.status === 'Success' ? 0 : status.reason === 'NonZeroExitCode' ? Number(status.details?.causes?.[0]?.message) : null;
  const error = code === null ? (status.message ?? '') : '';
  return { stdout: s.text('stdout'), stderr: s.text('stderr'), exitCode: code, error };
}

/** A command to its end, with all of its input at once. */
export async function runStreams(url: string, stdin = ''): Promise<Ran> {
  const s = await openStreams(url, { names: ['error', 'stdin', 'stdout', 'stderr'] });
  if (stdin !== '') s.write('stdin', stdin);
  s.end('stdin');
  await s.closed;
  return resultOf(s);
}
