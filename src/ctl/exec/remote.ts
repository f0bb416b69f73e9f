/**
 * A command through the streaming server of a CRI runtime, by the remote command protocol of Kubernetes (v4) over SPDY/3.1.
 * The address is good for one use; the daemon gave it out on its admin socket, which only its user may use.
 */

import { type RequestOptions, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { CtlError, EXIT } from '../../admin/client.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { DATA_BYTES_MAX, data, FRAME, HeaderWriter, pong, spdyReader, synStream } from './spdy.ts';
import type { ExecFlags, ExecIo } from './types.ts';

const PROTOCOL = 'v4.channel.k8s.io';
const CONNECT_TIMEOUT_MS = 10_000;
/** Most bytes of the status that ends a command. */
const STATUS_BYTES_MAX = 64 * 1024;
/** After the status the runtime closes the connection; it is not waited for longer. */
const LINGER_MS = 1_000;
const REFUSAL_CHARS_MAX = 500;

export async function runSpdy(url: string, io: ExecIo, flags: ExecFlags): Promise<number> {
  const socket = await upgrade(url, io.signal);
  return new Session(socket, io, flags).run();
}

async function upgrade(url: string, signal: AbortSignal): Promise<Duplex> {
  const to = URL.parse(url);
  if (to === null || (to.protocol !== 'http:' && to.protocol !== 'https:')) {
    throw new CtlError(EXIT.failed, 'exec: the runtime gave an address that is no URL');
  }
  const ask = to.protocol === 'https:' ? (await import('node:https')).request : request;
  const options: RequestOptions = {
    ...{
      host: to.hostname.replace(/^\[|\]$/g, ''),
      port: to.port,
      path: `${to.pathname}${to.search}`,
      method: 'POST',
      agent: false,
      signal,
    },
    headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': PROTOCOL, 'content-length': 0 },
  };
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new CtlError(EXIT.failed, `exec: ${why}`));
    const req = ask(options);
    req.setTimeout(CONNECT_TIMEOUT_MS, () => req.destroy(new Error(`no answer within ${CONNECT_TIMEOUT_MS / 1000} s`)));
    req.on('error', (error) => {
      if (signal.aborted) reject(new CtlError(EXIT.interrupted, 'interrupted.'));
      else fail(`the runtime's streaming server at ${to.host} did not answer: ${error.message}`);
    });
    req.on('response', (res) => {
      let words = '';
      res.setEncoding('utf8');
      res.on('data', (text: string) => {
        words = (words + text).slice(0, REFUSAL_CHARS_MAX);
      });
      res.on('close', () => fail(`the runtime refused with status ${res.statusCode}: ${words.trim()}`));
    });
    req.on('upgrade', (_res, socket, head) => {
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    req.end();
  });
}

type StreamName = 'error' | 'stdin' | 'stdout' | 'stderr' | 'resize';

class Session {
  readonly #socket: Duplex;
  readonly #io: ExecIo;
  readonly #flags: ExecFlags;
  readonly #ids = new Map<StreamName, number>();
  #status = '';
  /** Outputs that the command may still write to. */
  readonly #open = new Set<StreamName>();

  constructor(socket: Duplex, io: ExecIo, flags: ExecFlags) {
    this.#socket = socket;
    this.#io = io;
    this.#flags = flags;
  }

  run(): Promise<number> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#io;
      const undo: (() => void)[] = [];
      let linger: NodeJS.Timeout | undefined;
      const finish = (settle: () => void) => {
        for (const fn of undo.splice(0).reverse()) fn();
        clearTimeout(linger);
        this.#socket.destroy();
        settle();
      };
      const broken = (why: string) => finish(() => reject(new CtlError(EXIT.failed, `exec: ${why}`)));
      const ended = () => {
        const end = exitOf(this.#status);
        if (typeof end === 'number') finish(() => resolve(end));
        else broken(end);
      };
      const end = (streamId: number) => {
        for (const [name, id] of this.#ids) if (id === streamId) this.#open.delete(name);
        if (this.#open.has('error')) return;
        // What the outputs still hold is on its way.
        if (this.#open.size === 0) ended();
        else linger ??= setTimeout(ended, LINGER_MS);
      };
      const read = spdyReader({
        data: (streamId, part) => this.#output(streamId, part),
        end,
        control: (type, payload) => {
          if (type === FRAME.ping) this.#socket.write(pong(payload));
          // Runtimes reset a stream where they need it no longer.
          else if (type === FRAME.rstStream && payload.length >= 4) end(payload.readUInt32BE(0));
        },
      });
      this.#socket.on('data', (chunk: Buffer) => {
        try {
          read(chunk);
        } catch (error) {
          broken(`the runtime: ${messageOf(error)}`);
        }
      });
      this.#socket.on('error', (error) => broken(`the connection broke: ${error.message}`));
      this.#socket.on('close', () => (this.#status === '' ? broken('the connection ended before the command did') : ended()));
      const onAbort = () => finish(() => resolve(EXIT.interrupted));
      signal.addEventListener('abort', onAbort, { once: true });
      undo.push(() => signal.removeEventListener('abort', onAbort));
      // Ctrl-C may have come while the connection was made.
      if (signal.aborted) return onAbort();
      this.#begin();
      undo.push(...this.#input());
    });
  }

  #begin(): void {
    const { stdin, tty } = this.#flags;
    const headers = new HeaderWriter();
    const names: StreamName[] = ['error', ...(stdin ? (['stdin'] as const) : []), 'stdout', tty ? 'resize' : 'stderr'];
    names.forEach((name, i) => {
      const id = 2 * i + 1;
      this.#ids.set(name, id);
      this.#socket.write(synStream(id, headers.block({ streamtype: name })));
      if (name !== 'stdin' && name !== 'resize') this.#open.add(name);
    });
  }

  #output(streamId: number, part: Buffer): void {
    const { outBytes, errBytes } = this.#io;
    if (streamId === this.#ids.get('error')) {
      this.#status = (this.#status + part.toString('utf8')).slice(0, STATUS_BYTES_MAX);
      return;
    }
    const full = streamId === this.#ids.get('stdout') ? outBytes(part) : streamId === this.#ids.get('stderr') ? errBytes(part) : undefined;
    if (full === undefined) return;
    this.#socket.pause();
    void full.then(() => this.#socket.resume());
  }

  /** Gives what undoes it. */
  #input(): (() => void)[] {
    const { stdin } = this.#io;
    const undo: (() => void)[] = [];
    const id = this.#ids.get('stdin');
    if (this.#flags.tty) undo.push(...this.#sizes());
    if (id === undefined) return undo;
    // Keys go to the command as they are typed.
    const raw = this.#flags.tty ? this.#io.terminal?.raw() : undefined;
    const onData = (chunk: Buffer | string) => {
      const bytes = Buffer.from(chunk);
      for (let at = 0; at < bytes.length; at += DATA_BYTES_MAX) {
        if (this.#socket.write(data(id, bytes.subarray(at, at + DATA_BYTES_MAX)))) continue;
        stdin.pause();
        this.#socket.once('drain', () => stdin.resume());
      }
    };
    const onEnd = () => void this.#socket.write(data(id, Buffer.alloc(0), true));
    stdin.on('data', onData);
    stdin.on('end', onEnd);
    undo.push(() => {
      stdin.off('data', onData);
      stdin.off('end', onEnd);
      stdin.pause();
      raw?.[Symbol.dispose]();
    });
    return undo;
  }

  /** The command's terminal is as large as this one, from the start and after each change. */
  #sizes(): (() => void)[] {
    const { terminal } = this.#io;
    const id = this.#ids.get('resize');
    if (terminal === undefined || id === undefined) return [];
    const tell = () => {
      const size = terminal.size();
      if (size === null) return;
      this.#socket.write(data(id, Buffer.from(`${JSON.stringify({ Width: size.columns, Height: size.rows })}\n`)));
    };
    tell();
    const watch = terminal.onResize(tell);
    return [() => watch[Symbol.dispose]()];
  }
}

/** The exit code in the status that ends a command, or what went wrong. */
function exitOf(text: string): number | string {
  let v: { status?: unknown; reason?: unknown; message?: unknown; details?: { causes?: { reason?: unknown; message?: unknown }[] } | null };
  try {
    v = JSON.parse(text) as typeof v;
  } catch {
    return text === '' ? 'the runtime gave no status of the command' : text.trim().slice(0, REFUSAL_CHARS_MAX);
  }
  if (v.status === 'Success') return EXIT.ok;
  const code = v.reason === 'NonZeroExitCode' ? v.details?.causes?.find((c) => c.reason === 'ExitCode')?.message : undefined;
  if (typeof code === 'string' && /^\d{1,3}$/.test(code)) return Number(code);
  return typeof v.message === 'string' ? v.message : 'the runtime gave no exit code';
}
