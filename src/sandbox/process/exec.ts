/**
 * Commands beside a container's own: ExecSync, and streaming exec over an upgraded connection on a unix socket
 * (protocol `actorlet-exec.v1`, described in docs/embedded-runtime.md).
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { startProcess } from '../../process/startProcess.ts';
import { CHANNEL, EXEC_PROTOCOL, FRAME_BYTES_MAX, frame, frameReader } from '../shared/execProtocol.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';
import { signal } from './container/procfs.ts';
import { execCommand } from './container/shim.ts';
import type { Supervised } from './container/supervise.ts';
import { findCommand, type Isolation } from './probe.ts';

/** Per stream, as CRI runtimes cap it. What goes beyond is dropped. */
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/** An Exec URL not used within this time is void. */
const TOKEN_MS = 60_000;
/** Output still being written by a grandchild after the command's own end is waited for so long. */
const OUTPUT_LINGER_MS = 250;

export { CHANNEL, EXEC_PROTOCOL, frame, frameReader };

function spawnBeside(c: Supervised, cmd: readonly string[], o: { isolation: Isolation; stdin: boolean }): ChildProcess {
  const { shim, env } = c.row.plan;
  const [name = '', ...rest] = cmd;
  const file = findCommand(name, env.PATH ?? '', shim.cwd);
  if (file === '') throw new RuntimeRefusal(CODE.unknown, `exec: ${JSON.stringify(name)}: executable file not found in $PATH`);
  const inner = c.innerPid();
  const wantsInner = Object.values(shim.namespaces).some(Boolean);
  if (wantsInner && inner === null) throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.row.id} is ending`);
  const command = execCommand(shim, [file, ...rest], inner, o.isolation);
  return startProcess(command.file, command.args, {
    cwd: inner === null ? shim.cwd : '/',
    env,
    detached: true,
    stdio: [o.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
  });
}

function exitCodeOf(code: number | null, sig: NodeJS.Signals | null): number {
  return code ?? 128 + (sig === null ? 0 : constants.signals[sig]);
}
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    signal(-child.pid, 'SIGKILL');
  } catch {
    // Not ours any more: it changed its user. Its container's end reaches it.
  }
}

/** Resolves at the command's end; a command that outlives `timeoutMs` (0 = none) is killed: DeadlineExceeded. */
export function execSync(
  c: Supervised,
  cmd: readonly string[],
  o: { isolation: Isolation; timeoutMs: number; signal: AbortSignal },
): Promise<{ stdout: Buffer; stderr: Buffer; exitCode: number }> {
  const child = spawnBeside(c, cmd, { isolation: o.isolation, stdin: false });
  const collect = (from: NodeJS.ReadableStream | null) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    from?.on('data', (chunk: Buffer) => {
      const room = OUTPUT_BYTES_MAX - bytes;
      if (room > 0) chunks.push(chunk.subarray(0, room));
      bytes += Math.min(room, chunk.length);
    });
    return () => Buffer.concat(chunks);
  };
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const stop = (error: RuntimeRefusal): void => {
      done();
      killGroup(child);
      child.stdout?.destroy();
      child.stderr?.destroy();
      reject(error);
    };
    const onAbort = (): void => stop(new RuntimeRefusal(CODE.cancelled, 'the call was cancelled; the command was killed'));
    const done = (): void => {
      clearTimeout(timer);
      o.signal.removeEventListener('abort', onAbort);
    };
    o.signal.addEventListener('abort', onAbort, { once: true });
    if (o.timeoutMs > 0) {
      timer = setTimeout(
        () => stop(new RuntimeRefusal(CODE.deadlineExceeded, `command timed out after ${o.timeoutMs} ms and was killed`)),
        o.timeoutMs,
      );
    }
    child.on('error', (error) => stop(new RuntimeRefusal(CODE.unknown, `exec failed: ${error.message}`)));
    child.on('exit', (code, sig) => {
      const finish = (): void => {
        clearTimeout(linger);
        done();
        resolve({ stdout: stdout(), stderr: stderr(), exitCode: exitCodeOf(code, sig) });
      };
      const linger = setTimeout(finish, OUTPUT_LINGER_MS);
      child.on('close', finish);
    });
  });
}

export interface ExecAsk {
  container: Supervised;
  cmd: readonly string[];
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
}
export interface StreamingServer {
  /** A URL good for one use within a minute: `http+unix://<socket path, percent-encoded>/exec/<token>`. */
  offer(ask: ExecAsk): string;
  close(): void;
}

function serveExec(ask: ExecAsk, socket: Duplex, isolation: Isolation): void {
  const status = (value: { exitCode: number } | { error: string }): void => {
    socket.end(frame(CHANNEL.status, Buffer.from(JSON.stringify(value))));
  };
  let child: ChildProcess;
  try {
    child = spawnBeside(ask.container, ask.cmd, { isolation, stdin: ask.stdin });
  } catch (error) {
    status({ error: (error as Error).message });
    return;
  }
  const forward = (from: NodeJS.ReadableStream | null, channel: number, wanted: boolean): void => {
    from?.on('data', (chunk: Buffer) => {
      if (!wanted || socket.destroyed) return;
      for (let at = 0; at < chunk.length; at += FRAME_BYTES_MAX) {
        if (!socket.write(frame(channel, chunk.subarray(at, at + FRAME_BYTES_MAX)))) {
          from.pause();
          socket.once('drain', () => from.resume());
        }
      }
    });
  };
  forward(child.stdout, CHANNEL.stdout, ask.stdout);
  forward(child.stderr, CHANNEL.stderr, ask.stderr);
  // The command may end before its input does.
  child.stdin?.on('error', () => undefined);
  const read = frameReader((channel, payload) => {
    if (channel !== CHANNEL.stdin) return;
    if (payload.length === 0) child.stdin?.end();
    else child.stdin?.write(payload);
  });
  socket.on('data', (chunk: Buffer) => {
    try {
      read(chunk);
    } catch (error) {
      killGroup(child);
      status({ error: (error as Error).message });
    }
  });
  socket.on('error', () => undefined);
  socket.on('close', () => killGroup(child));
  child.on('error', (error) => status({ error: error.message }));
  child.on('exit', (code, sig) => {
    const finish = (): void => {
      clearTimeout(linger);
      if (!socket.writableEnded) status({ exitCode: exitCodeOf(code, sig) });
    };
    const linger = setTimeout(finish, OUTPUT_LINGER_MS);
    child.on('close', finish);
  });
}

export async function createStreamingServer(o: { socketPath: string; isolation: Isolation }): Promise<StreamingServer> {
  const offers = new Map<string, { ask: ExecAsk; timer: NodeJS.Timeout }>();
  const server: Server = createServer((_req, res) => {
    res.writeHead(426, { connection: 'close', upgrade: EXEC_PROTOCOL, 'content-type': 'text/plain' });
    res.end(`this address speaks ${EXEC_PROTOCOL} only\n`);
  });
  server.on('upgrade', (req, socket, head) => {
    const token = /^\/exec\/([0-9a-f]+)$/.exec(req.url ?? '')?.[1] ?? '';
    const offer = offers.get(token);
    if (offer === undefined || req.headers.upgrade !== EXEC_PROTOCOL) {
      socket.end(
        `HTTP/1.1 ${offer === undefined ? '404 Not Found' : '426 Upgrade Required'}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      return;
    }
    offers.delete(token);
    clearTimeout(offer.timer);
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${EXEC_PROTOCOL}\r\n\r\n`);
    if (head.length > 0) socket.unshift(head);
    serveExec(offer.ask, socket, o.isolation);
  });
  rmSync(o.socketPath, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(o.socketPath, () => {
      server.on('error', () => {});
      resolve();
    });
  });
  chmodSync(o.socketPath, 0o600);
  return {
    offer(ask) {
      const token = randomBytes(16).toString('hex');
      const timer = setTimeout(() => offers.delete(token), TOKEN_MS);
      timer.unref();
      offers.set(token, { ask, timer });
      return `http+unix://${encodeURIComponent(o.socketPath)}/exec/${token}`;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
