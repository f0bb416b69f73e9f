/**
 * The server's side of a SPDY/3.1 connection, as Kubernetes' clients use it: streams that the client opens, whose headers
 * say what they carry. Windows are not kept: no implementation of Kubernetes keeps them.
 */
import { Duplex } from 'node:stream';
import { data, FIN, FRAME, goAway, HeaderWriter, ping, pong, RESET, rstStream, spdyReader, synReply } from './spdy.ts';
import { HeaderReader } from './spdyHeaders.ts';

/** Two for each connection that a port-forward carries. */
const STREAMS_MAX = 1024;
/** What waits in a stream before the whole connection waits for its reader. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Once this side has ended, the client has this long to read and end too. */
const LINGER_MS = 5000;
/** A client that has gone while its stream waits for a reader is noticed by writing to it. */
const PING_MS = 2000;

type Send = (frame: Buffer, done?: (error?: Error | null) => void) => void;

export class SpdyStream extends Duplex {
  readonly id: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly #send: Send;
  #room: (() => void) | null = null;

  constructor(id: number, o: { headers: ReadonlyMap<string, string>; send: Send }) {
    super({ readableHighWaterMark: WAITING_BYTES_MAX });
    this.id = id;
    this.headers = o.headers;
    this.#send = o.send;
    // Its user may listen, or not.
    this.on('error', () => undefined);
  }

  override _read(): void {
    this.#room?.();
    this.#room = null;
  }
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(data(this.id, chunk), done);
  }
  override _final(done: (error?: Error | null) => void): void {
    this.#send(data(this.id, Buffer.alloc(0), true), done);
  }
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#room?.();
    if (!this.writableFinished) this.#send(rstStream(this.id, RESET.cancel));
    done(error);
  }

  /** What the client sent; null is its end. Resolves once there is room for more. */
  async receive(part: Buffer | null): Promise<void> {
    if (this.destroyed || this.readableEnded) return;
    if (!this.push(part) && part !== null && !this.destroyed) await new Promise<void>((room) => (this.#room = room));
  }
}

type Frame =
  | { kind: 'data'; id: number; part: Buffer }
  | { kind: 'end'; id: number }
  | { kind: 'control'; type: number; payload: Buffer; flags: number };

export class SpdyConnection {
  /** Resolves when the connection is over. */
  readonly closed: Promise<void>;
  readonly #socket: Duplex;
  readonly #onStream: (stream: SpdyStream) => void;
  readonly #streams = new Map<number, SpdyStream>();
  readonly #headers = { read: new HeaderReader(), write: new HeaderWriter() };
  #lastId = 0;
  #pings = 0;

  /** `onStream` is called once for each stream that the client opens. */
  constructor(socket: Duplex, onStream: (stream: SpdyStream) => void) {
    this.#socket = socket;
    this.#onStream = onStream;
    socket.on('error', () => undefined);
    this.closed = this.#run();
  }

  /** What was written before is sent. */
  close(): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) return;
    this.#socket.end(goAway(this.#lastId));
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  async #run(): Promise<void> {
    const frames: Frame[] = [];
    const read = spdyReader({
      data: (id, part) => void frames.push({ kind: 'data', id, part }),
      end: (id) => void frames.push({ kind: 'end', id }),
      control: (type, payload, flags) => void frames.push({ kind: 'control', type, payload, flags }),
    });
    // Also while a frame waits for the reader of its stream.
    this.#socket.once('close', () => this.#drop());
    const beat = setInterval(() => {
      this.#pings += 2;
      this.#send(ping(this.#pings));
    }, PING_MS);
    try {
      for await (const chunk of this.#socket) {
        read(chunk as Buffer);
        for (const frame of frames.splice(0)) await this.#take(frame);
      }
    } catch {
      // Broken off, or no SPDY: either way it is over.
    } finally {
      clearInterval(beat);
      this.#socket.destroy();
      this.#headers.read.close();
      this.#drop();
    }
  }

  #drop(): void {
    for (const stream of this.#streams.values()) stream.destroy();
  }

  async #take(frame: Frame): Promise<void> {
    if (frame.kind === 'data') await this.#streams.get(frame.id)?.receive(frame.part);
    else if (frame.kind === 'end') await this.#streams.get(frame.id)?.receive(null);
    else if (frame.type === FRAME.ping) this.#send(pong(frame.payload));
    else if (frame.type === FRAME.synStream) await this.#open(frame);
    else if (frame.type === FRAME.rstStream && frame.payload.length >= 4) this.#streams.get(frame.payload.readUInt32BE(0))?.destroy();
  }

  async #open({ payload, flags }: { payload: Buffer; flags: number }): Promise<void> {
    const id = payload.readUInt32BE(0);
    // Also of a stream that is refused: the blocks of a connection are one text.
    const headers = await this.#headers.read.read(payload.subarray(10));
    if (this.#streams.size >= STREAMS_MAX || this.#streams.has(id)) return this.#send(rstStream(id, RESET.refused));
    this.#lastId = id;
    const stream = new SpdyStream(id, { headers, send: this.#send });
    this.#streams.set(id, stream);
    stream.once('close', () => this.#streams.delete(id));
    this.#send(synReply(id, this.#headers.write.block({})));
    this.#onStream(stream);
    if ((flags & FIN) !== 0) await stream.receive(null);
  }

  #send: Send = (frame, done) => {
    if (this.#socket.writable) this.#socket.write(frame, done);
    else done?.(new Error('the connection is over'));
  };
}
