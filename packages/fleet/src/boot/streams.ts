/**
 * Streams of `kubectl exec` and `attach` into hollow containers: a unix socket that speaks the SPDY side of the kubelet's remote
 * command protocol (v4.channel.k8s.io), as a CRI runtime's streaming server does.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { DATA_BYTES_MAX, data, FRAME, HeaderWriter, pong, spdyReader, synReply } from '@actorlet/process/src/spdy.ts';
import type { ScriptedContainer, StreamAsk } from '@actorlet/runtimes/src/hollow/index.ts';
import { answerOrHint } from '../answers.ts';
import { CLAIM } from './plane/claim.ts';
import { removeLeft } from './plane/left.ts';

/** Of the folders of a fleet. */
export const TEMPORARY = 'actorlet-fleet-';
const PROTOCOL = 'v4.channel.k8s.io';
/** An address that was not used within this time is void. */
const OFFER_MS = 60_000;

interface Offer {
  container: ScriptedContainer;
  ask: StreamAsk;
}

export interface Streams {
  /** The address at which this is answered, once. */
  offer(container: ScriptedContainer, ask: StreamAsk): string;
  close(): void;
}

export async function createStreams(): Promise<Streams> {
  const dir = mkdtempSync(join(tmpdir(), TEMPORARY));
  await removeLeft(TEMPORARY);
  // While it listens, the folder is in use.
  const socketPath = join(dir, `${CLAIM}streams`);
  const offers = new Map<string, Offer & { timer: NodeJS.Timeout }>();
  const server = createServer((_, res) => void res.writeHead(426, { connection: 'close' }).end('this address speaks SPDY/3.1 only\n'));
  server.on('upgrade', (req, socket, head) => {
    const token = req.url?.slice(1) ?? '';
    const offer = offers.get(token);
    socket.on('error', () => socket.destroy());
    if (offer === undefined || req.headers.upgrade?.toUpperCase() !== 'SPDY/3.1') {
      socket.end(
        `HTTP/1.1 ${offer === undefined ? '404 Not Found' : '426 Upgrade Required'}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      return;
    }
    offers.delete(token);
    clearTimeout(offer.timer);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${PROTOCOL}\r\n\r\n`,
    );
    if (head.length > 0) socket.unshift(head);
    serve(offer, socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, resolve);
  });
  return {
    offer(container, ask) {
      const token = randomBytes(16).toString('hex');
      const timer = setTimeout(() => offers.delete(token), OFFER_MS).unref();
      offers.set(token, { container, ask, timer });
      return `http+unix://${encodeURIComponent(socketPath)}/${token}`;
    },
    close() {
      server.close();
      server.closeAllConnections();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** In this order Kubernetes' clients open their streams, so what their headers say need not be read. */
function kindsOf({ stdin, stdout, stderr, tty }: StreamAsk): string[] {
  const wanted = { error: true, stdin, stdout, stderr: stderr && !tty, resize: tty };
  return Object.entries(wanted).flatMap(([kind, is]) => (is ? [kind] : []));
}

function serve({ container, ask }: Offer, socket: Duplex): void {
  const kinds = kindsOf(ask);
  const streams = new Map<string, number>();
  const writer = new HeaderWriter();
  const answer = (): void => {
    // To attach is to wait for what a process says, which is nothing here.
    if (ask.cmd === null) return;
    const { stdout, stderr, exitCode } = answerOrHint(container, ask.cmd);
    const say = (kind: string, text: string): void => {
      const id = streams.get(kind);
      const bytes = Buffer.from(text);
      if (id === undefined) return;
      for (let at = 0; at < bytes.length; at += DATA_BYTES_MAX) socket.write(data(id, bytes.subarray(at, at + DATA_BYTES_MAX)));
      socket.write(data(id, Buffer.alloc(0), true));
    };
    say('stdout', ask.tty ? (stdout + stderr).replaceAll('\n', '\r\n') : stdout);
    say('stderr', stderr);
    say('error', JSON.stringify(statusOf(exitCode)));
    socket.end();
  };
  const read = spdyReader({
    data: () => {},
    end: () => {},
    control(type, payload) {
      if (type === FRAME.ping) socket.write(pong(payload));
      if (type !== FRAME.synStream) return;
      const id = payload.readUInt32BE(0) & 0x7fff_ffff;
      socket.write(synReply(id, writer.block({})));
      const kind = kinds[streams.size];
      if (kind !== undefined) streams.set(kind, id);
      if (streams.size === kinds.length) answer();
    },
  });
  socket.on('data', (chunk: Buffer) => {
    try {
      read(chunk);
    } catch {
      socket.destroy();
    }
  });
}

/** How a command ended, as the kubelet tells it. */
function statusOf(exitCode: number): object {
  if (exitCode === 0) return { metadata: {}, status: 'Success' };
  return {
    metadata: {},
    status: 'Failure',
    reason: 'NonZeroExitCode',
    message: `command terminated with exit code ${exitCode}`,
    details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
  };
}
