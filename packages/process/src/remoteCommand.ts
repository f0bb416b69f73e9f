/** A command in a container by the remote command protocol of Kubernetes (v4) over SPDY/3.1, from the client's side. */

import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { DATA_BYTES_MAX, data, FRAME, HeaderWriter, pong, spdyReader, synStream } from './spdy.ts';

/** What the request for the connection says. */
export const COMMAND_HEADERS: IncomingHttpHeaders & Record<string, string> = {
  connection: 'Upgrade',
  upgrade: 'SPDY/3.1',
  'x-stream-protocol-version': 'v4.channel.k8s.io',
};
/** Most characters of the status that ends a command. */
const STATUS_CHARS_MAX = 64 * 1024;
/** After the status the runtime closes the connection; a silence of it is not waited for longer. */
const LINGER_MS = 1_000;

export interface CommandStreams {
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  /** One output, and a size. */
  tty: boolean;
}
type Output = 'stdout' | 'stderr';
type Input = 'stdin' | 'resize';
type StreamName = 'error' | Output | Input;

export interface CommandEvents {
  /** A promise: nothing more is read before it resolves. */
  output(name: Output, part: Buffer): Promise<void> | undefined;
  /** Once. The status as the runtime wrote it: JSON, or words. */
  ended(status: string): void;
  /** Instead: what broke. */
  broken(why: string): void;
}

export class RemoteCommand {
  readonly #socket: Duplex;
  readonly #on: CommandEvents;
  readonly #ids = new Map<StreamName, number>();
  /** The runtime may still write to them. */
  readonly #open = new Set<StreamName>();
  #status = '';
  #linger: NodeJS.Timeout | undefined;
  #over = false;

  /** `socket`: the connection after the switch of protocols. */
  constructor(socket: Duplex, streams: CommandStreams, on: CommandEvents) {
    this.#socket = socket;
    this.#on = on;
    const read = spdyReader({
      data: (streamId, part) => this.#heard(streamId, part),
      end: (streamId) => this.#closed(streamId),
      control: (type, payload) => {
        if (type === FRAME.ping) socket.write(pong(payload));
        // Runtimes reset a stream where they need it no longer.
        else if (type === FRAME.rstStream && payload.length >= 4) this.#closed(payload.readUInt32BE(0));
      },
    });
    socket.on('data', (chunk: Buffer) => {
      try {
        read(chunk);
      } catch (error) {
        this.#broken(`the runtime: ${messageOf(error)}`);
      }
    });
    socket.on('error', (error) => this.#broken(`the connection broke: ${error.message}`));
    socket.on('close', () => (this.#status === '' ? this.#broken('the connection ended before the command did') : this.#ended()));
    this.#begin(streams);
  }

  #begin({ stdin, stdout, stderr, tty }: CommandStreams): void {
    const headers = new HeaderWriter();
    const wanted: Readonly<Record<StreamName, boolean>> = { error: true, stdin, stdout, stderr: stderr && !tty, resize: tty };
    const names = (['error', 'stdin', 'stdout', 'stderr', 'resize'] as const).filter((name) => wanted[name]);
    names.forEach((name, i) => {
      const id = 2 * i + 1;
      this.#ids.set(name, id);
      this.#socket.write(synStream(id, headers.block({ streamtype: name })));
      if (name !== 'stdin' && name !== 'resize') this.#open.add(name);
    });
  }

  /** False: wait for `drain` of the socket. What the command does not take is dropped. */
  write(name: Input, bytes: Buffer): boolean {
    const id = this.#ids.get(name);
    if (id === undefined || this.#over) return true;
    let room = true;
    for (let at = 0; at < bytes.length; at += DATA_BYTES_MAX) room = this.#socket.write(data(id, bytes.subarray(at, at + DATA_BYTES_MAX)));
    return room;
  }

  /** The command reads the end of its input. */
  finish(name: Input): void {
    const id = this.#ids.get(name);
    if (id !== undefined && !this.#over) this.#socket.write(data(id, Buffer.alloc(0), true));
  }

  /** Nothing more is told. */
  drop(): void {
    this.#settle(() => {});
  }

  #heard(streamId: number, part: Buffer): void {
    if (this.#over) return;
    if (streamId === this.#ids.get('error')) {
      this.#status = (this.#status + part.toString('utf8')).slice(0, STATUS_CHARS_MAX);
      return;
    }
    this.#linger?.refresh();
    const name = (['stdout', 'stderr'] as const).find((output) => this.#ids.get(output) === streamId);
    const full = name === undefined ? undefined : this.#on.output(name, part);
    if (full === undefined) return;
    this.#socket.pause();
    void full.then(() => this.#socket.resume());
  }

  #closed(streamId: number): void {
    for (const [name, id] of this.#ids) if (id === streamId) this.#open.delete(name);
    if (this.#open.has('error')) return;
    // What the outputs still hold is on its way.
    if (this.#open.size === 0) this.#ended();
    else this.#linger ??= setTimeout(() => this.#ended(), LINGER_MS);
  }

  #ended(): void {
    this.#settle(() => this.#on.ended(this.#status));
  }

  #broken(why: string): void {
    this.#settle(() => this.#on.broken(why));
  }

  #settle(tell: () => void): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#linger);
    this.#socket.destroy();
    tell();
  }
}
