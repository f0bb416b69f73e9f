/**
 * The part of SPDY/3.1 that commands in containers need, for both sides: streams, data both ways, pings. CRI runtimes
 * take SPDY in every version; over WebSocket, containerd before 2.0 cannot be told that the input has ended.
 *
 * Header blocks are written as stored blocks of zlib, which needs no dictionary.
 */

const VERSION = 0x8003;
export const FRAME = { synStream: 1, synReply: 2, rstStream: 3, settings: 4, ping: 6, goAway: 7, headers: 8, windowUpdate: 9 } as const;
/** Why a stream is reset. */
export const RESET = { refused: 3, cancel: 5 } as const;
export const FIN = 1;
const HEAD_BYTES = 8;
/** Control frames are small; only data may be long, and data is passed on as it comes. */
const CONTROL_BYTES_MAX = 64 * 1024;
/** Longest data frame that is written. */
export const DATA_BYTES_MAX = 64 * 1024;

function control(type: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt16BE(VERSION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(payload.length, 4);
  return Buffer.concat([head, payload]);
}

/** Names and values of headers on their way out; one for each connection, since its blocks are one zlib stream. */
export class HeaderWriter {
  #begun = false;

  block(headers: Readonly<Record<string, string>>): Buffer {
    const parts: Buffer[] = [uint32(Object.keys(headers).length)];
    for (const text of Object.entries(headers).flat()) parts.push(uint32(Buffer.byteLength(text)), Buffer.from(text));
    const plain = Buffer.concat(parts);
    // A stored block: its length, and that inverted.
    const stored = Buffer.alloc(5);
    stored.writeUInt16LE(plain.length, 1);
    stored.writeUInt16LE(plain.length ^ 0xffff, 3);
    // The empty block behind it is what ends a flush.
    const flush = Buffer.from([0, 0, 0, 0xff, 0xff]);
    const zlibHead = this.#begun ? [] : [Buffer.from([0x78, 0x01])];
    this.#begun = true;
    return Buffer.concat([...zlibHead, stored, plain, flush]);
  }
}
function uint32(n: number): Buffer {
  const b = Buffer.alloc(4);
  b.writeUInt32BE(n, 0);
  return b;
}

export function synStream(streamId: number, headerBlock: Buffer): Buffer {
  // No stream that it belongs to, highest priority, no slot.
  return control(FRAME.synStream, Buffer.concat([uint32(streamId), uint32(0), Buffer.alloc(2), headerBlock]));
}
export function synReply(streamId: number, headerBlock: Buffer): Buffer {
  return control(FRAME.synReply, Buffer.concat([uint32(streamId), headerBlock]));
}
export function data(streamId: number, payload: Uint8Array, fin = false): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(streamId, 0);
  head.writeUInt32BE(payload.length, 4);
  head.writeUInt8(fin ? FIN : 0, 4);
  return Buffer.concat([head, payload]);
}
export const pong = (id: Buffer): Buffer => control(FRAME.ping, id);
/** Ids of a server are even. */
export const ping = (id: number): Buffer => control(FRAME.ping, uint32(id));
export const rstStream = (streamId: number, why: number): Buffer =>
  control(FRAME.rstStream, Buffer.concat([uint32(streamId), uint32(why)]));
/** Nothing went wrong. */
export const goAway = (lastStreamId: number): Buffer => control(FRAME.goAway, Buffer.concat([uint32(lastStreamId), uint32(0)]));

export interface SpdyEvents {
  /** A part of a data frame, as it came. */
  data(streamId: number, part: Buffer): void;
  /** The other side has ended this stream. */
  end(streamId: number): void;
  control(type: number, payload: Buffer, flags: number): void;
}

/** Calls back for what is in the chunks; throws on what is no SPDY/3. */
export function spdyReader(on: SpdyEvents): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let body: { streamId: number; left: number; fin: boolean } | null = null;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      if (body !== null) {
        const part = rest.subarray(0, body.left);
        rest = rest.subarray(part.length);
        body.left -= part.length;
        if (part.length > 0) on.data(body.streamId, part);
        if (body.left > 0) return;
        if (body.fin) on.end(body.streamId);
        body = null;
      }
      if (rest.length < HEAD_BYTES) return;
      const length = rest.readUIntBE(5, 3);
      const flags = rest.readUInt8(4);
      if ((rest.readUInt8(0) & 0x80) === 0) {
        body = { streamId: rest.readUInt32BE(0), left: length, fin: (flags & FIN) !== 0 };
        rest = rest.subarray(HEAD_BYTES);
        continue;
      }
      if (rest.readUInt16BE(0) !== VERSION) throw new Error('it does not speak SPDY/3');
      if (length > CONTROL_BYTES_MAX) throw new Error(`it sent a control frame of ${length} bytes`);
      if (rest.length < HEAD_BYTES + length) return;
      const payload = rest.subarray(HEAD_BYTES, HEAD_BYTES + length);
      const type = rest.readUInt16BE(2);
      rest = rest.subarray(HEAD_BYTES + length);
      on.control(type, payload, flags);
      if ((flags & FIN) !== 0 && (type === FRAME.synReply || type === FRAME.headers) && payload.length >= 4)
        on.end(payload.readUInt32BE(0));
    }
  };
}
