/** `actorctl exec`: speaks the embedded runtime's `actorlet-exec.v1` (docs/embedded-runtime.md) over its unix socket. */
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { CtlError, EXIT } from '../../admin/client.ts';
import type { ExecFlags, ExecIo } from './types.ts';

const PROTOCOL = 'actorlet-exec.v1';
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3 } as const;
const FRAME_BYTES_MAX = 1024 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;

/** The embedded runtimes have no terminals, and say so before they offer a command. */
export async function runEmbedded(url: string, io: ExecIo, flags: ExecFlags): Promise<number> {
  const target = /^http\+unix:\/\/([^/]+)(\/.*)$/.exec(url);
  const socket = await upgrade(decodeURIComponent(target?.[1] ?? ''), target?.[2] ?? '');
  return converse(socket, io, flags.stdin);
}

function upgrade(socketPath: string, path: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const req = request({ socketPath, path, method: 'POST', headers: { connection: 'Upgrade', upgrade: PROTOCOL, host: 'actorlet' } });
    const fail = (why: string) => reject(new CtlError(EXIT.failed, `exec: ${why}`));
    req.setTimeout(CONNECT_TIMEOUT_MS, () => req.destroy(new Error(`no answer within ${CONNECT_TIMEOUT_MS / 1000} s`)));
    req.on('error', (error) => fail(`the runtime at ${socketPath} did not answer: ${error.message}`));
    req.on('response', (res) => {
      res.resume();
      fail(res.statusCode === 404 ? 'the offer has expired; try again' : `the runtime answered with status ${res.statusCode}`);
    });
    req.on('upgrade', (_res, socket, head) => {
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    req.end();
  });
}

function converse(socket: Duplex, io: ExecIo, stdin: boolean): Promise<number> {
  return new Promise((resolve, reject) => {
    let rest: Buffer = Buffer.alloc(0);
    const onInput = (chunk: Buffer | string) => {
      const bytes = Buffer.from(chunk);
      for (let at = 0; at < bytes.length; at += FRAME_BYTES_MAX) {
        if (!socket.write(frame(CHANNEL.stdin, bytes.subarray(at, at + FRAME_BYTES_MAX)))) {
          io.stdin.pause();
          socket.once('drain', () => io.stdin.resume());
        }
      }
    };
    // An empty frame is the end of input.
    const onInputEnd = () => void socket.write(frame(CHANNEL.stdin, Buffer.alloc(0)));
    const onAbort = () => finish(() => resolve(EXIT.interrupted));
    const finish = (settle: () => void) => {
      io.stdin.off('data', onInput);
      io.stdin.off('end', onInputEnd);
      if (stdin) io.stdin.pause();
      io.signal.removeEventListener('abort', onAbort);
      socket.destroy();
      settle();
    };
    const broken = (why: string) => finish(() => reject(new CtlError(EXIT.failed, `exec: ${why}`)));
    const waitFor = (full: Promise<void> | undefined) => {
      if (full === undefined) return;
      socket.pause();
      void full.then(() => socket.resume());
    };
    const onFrame = (channel: number, payload: Buffer) => {
      if (channel === CHANNEL.stdout) waitFor(io.outBytes(payload));
      else if (channel === CHANNEL.stderr) waitFor(io.errBytes(payload));
      else if (channel === CHANNEL.status) {
        const end = statusOf(payload);
        if (typeof end === 'number') finish(() => resolve(end));
        else broken(end);
      }
    };
    socket.on('data', (chunk: Buffer) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      while (rest.length >= 5) {
        const bytes = rest.readUInt32BE(1);
        if (bytes > FRAME_BYTES_MAX) return broken(`the runtime sent a frame of ${bytes} bytes`);
        if (rest.length < 5 + bytes) return;
        const channel = rest.readUInt8(0);
        const payload = rest.subarray(5, 5 + bytes);
        rest = rest.subarray(5 + bytes);
        onFrame(channel, payload);
      }
    });
    socket.on('error', (error) => broken(`the connection broke: ${error.message}`));
    socket.on('close', () => broken('the connection ended before the command did'));
    io.signal.addEventListener('abort', onAbort, { once: true });
    // Ctrl-C may have come while the connection was made.
    if (io.signal.aborted) return onAbort();
    if (stdin) {
      io.stdin.on('data', onInput);
      io.stdin.on('end', onInputEnd);
    }
  });
}

function frame(channel: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(channel, 0);
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

/** The exit code, or what went wrong. */
function statusOf(payload: Buffer): number | string {
  try {
    const v = JSON.parse(payload.toString('utf8')) as { exitCode?: unknown; error?: unknown };
    if (typeof v.exitCode === 'number') return v.exitCode;
    return typeof v.error === 'string' ? v.error : 'the runtime gave no exit code';
  } catch {
    return 'the runtime ended the command with something that is not JSON';
  }
}
