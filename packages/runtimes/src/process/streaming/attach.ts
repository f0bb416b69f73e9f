/** Attach: what a container writes from now on, and its standard input. */
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { AttachAsk } from '../types.ts';
import type { RemoteStreams } from './remote.ts';

/** A client that is so far behind is cut off: it may not hold up the container. */
const BEHIND_BYTES_MAX = 8 * 1024 * 1024;

export async function serveAttach(ask: AttachAsk, s: RemoteStreams): Promise<void> {
  const { container, input } = ask;
  const write = (to: Writable | null, chunk: Buffer): void => {
    if (to === null || to.writableEnded) return;
    to.write(chunk);
    if (to.writableLength > BEHIND_BYTES_MAX) s.cut();
  };
  const untap = container.tap((stream, chunk) => write(stream === 'stdout' ? s.stdout : s.stderr, chunk));
  if (input !== null) s.onResize(input.resize);
  const typed = s.stdin === null || input === null ? null : openInput(input.file);
  if (s.stdin !== null && typed !== null) {
    s.stdin.pipe(typed);
    // As the reference: without a terminal, input that is read once ends here; else the client's end is that of the attachment.
    s.stdin.once('end', () => (input?.once === true && !input.tty ? input.end() : s.finish({ exitCode: 0 })));
  } else s.stdin?.resume();
  await Promise.race([container.ended().then(() => s.finish({ exitCode: 0 })), s.closed]);
  await s.closed;
  untap();
  typed?.destroy();
  if (typed !== null && input?.once === true) input.end();
}

/** Null where the container has closed its input. */
function openInput(file: string): Socket | null {
  let fd: number;
  try {
    fd = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    const socket = new Socket({ fd, readable: false, writable: true });
    socket.on('error', () => undefined);
    return socket;
  } catch {
    closeSync(fd);
    return null;
  }
}
