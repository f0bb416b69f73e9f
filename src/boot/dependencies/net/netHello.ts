/**
 * The beginning of TLS connections: OpenSSL hears of one once its client has said hello, and of few in a turn of the event loop.
 * So a connection that never gets that far costs a socket, not the 50 KiB of a handshake, and many at once do not hold the loop.
 */
import type { Socket } from 'node:net';

/** Handshakes that begin in one turn of the event loop: each takes 1 to 2 ms. */
export const HANDSHAKES_PER_TURN = 16;

/** A record of TLS: its type, two bytes of version, two of length. */
const HEAD_BYTES = 5;
const HANDSHAKE_RECORD = 0x16;
/** Most bytes of a first record that is waited for: a hello has some 500, or 2 KiB with keys of a post-quantum exchange. */
export const HELLO_BYTES_MAX = 4096;

/** There is nothing to wait for any more: these bytes are a whole record, a long one, or none at all. OpenSSL tells which. */
export function isHello(said: Buffer): boolean {
  if (said.length > 0 && said[0] !== HANDSHAKE_RECORD) return true;
  if (said.length < HEAD_BYTES) return false;
  const bytes = said.readUInt16BE(HEAD_BYTES - 2);
  return bytes > HELLO_BYTES_MAX || said.length >= HEAD_BYTES + bytes;
}

/** Calls `then` once the client has said hello; `socket` gives these bytes again to its next reader. */
export function afterHello(socket: Socket, then: () => void): void {
  let said = Buffer.alloc(0);
  const look = (): void => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) said = Buffer.concat([said, chunk]);
    if (!isHello(said)) return;
    socket.off('readable', look);
    socket.unshift(said);
    then();
  };
  socket.on('readable', look);
  socket.on('error', () => socket.destroy());
}

/** Runs each piece of work that it is given, in order, at most `perTurn` of them in one turn of the event loop. */
export function paced(perTurn: number): (work: () => void) => void {
  const waiting: (() => void)[] = [];
  let begun = 0;
  let armed = false;
  const run = (): void => {
    while (begun < perTurn) {
      const work = waiting.shift();
      if (work === undefined) break;
      begun += 1;
      work();
    }
    if (armed) return;
    armed = true;
    setImmediate(() => {
      armed = false;
      begun = 0;
      if (waiting.length > 0) run();
    });
  };
  return (work) => {
    waiting.push(work);
    run();
  };
}
