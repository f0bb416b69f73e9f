/**
 * Commands beside a container's own: ExecSync, and streaming exec over an upgraded connection on a unix socket
 * (protocol `actorlet-exec.v1`, described in docs/embedded-runtime.md).
 */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { startProcess } from '../../process/startProcess.ts';
import { CHANNEL, EXEC_PROTOCOL, FRAME_BYTES_MAX, frame, frameReader } from '../shared/execProtocol.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';
import { familyOf, scanProcesses, signal } from './container/procfs.ts';
import { execCommand } from './container/shim.ts';
import type { Supervised } from './container/supervise.ts';
import { findCommand, type Isolation } from './probe.ts';
import { afterOpening } from './terminalInput.ts';
import type { ExecAsk, Oci, StreamingServer, Tunnel } from './types.ts';

/** Per stream, as CRI runtimes cap it. What goes beyond is dropped. */
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/** An Exec URL not used within this time is void. */
const TOKEN_MS = 60_000;
/** Output still being written by a grandchild after the command's own end is waited for so long. */
const OUTPUT_LINGER_MS = 250;

export { CHANNEL, EXEC_PROTOCOL, frame, frameReader };

interface Spawned {
  child: ChildProcess;
  opens: string;
  /** At its end: why the command could not be run, '' when it ran. */
  ended(): string;
}
interface How {
  isolation: Isolation;
  oci?: Oci | undefined;
}

function spawnBeside(c: Supervised, cmd: readonly string[], o: How & { stdin: boolean; tty: boolean }): Spawned {
  const { shim, env } = c.row.plan;
  const stdio: StdioOptions = [o.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'];
  if (c.row.plan.oci !== undefined && o.oci !== undefined) {
    const { file, args, opens, ended } = o.oci.beside(c.row, cmd, o.tty);
    return { child: startProcess(file, args, { cwd: '/', detached: true, stdio }), opens, ended };
  }
  const [name = '', ...rest] = cmd;
  const file = findCommand(name, env.PATH ?? '', shim.cwd);
  if (file === '') throw new RuntimeRefusal(CODE.unknown, `exec: ${JSON.stringify(name)}: executable file not found in $PATH`);
  const inner = c.innerPid();
  const wantsInner = Object.values(shim.namespaces).some(Boolean);
  if (wantsInner && inner === null) throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.row.id} is ending`);
  const command = execCommand(shim, [file, ...rest], inner, o.isolation);
  const child = startProcess(command.file, command.args, { cwd: inner === null ? shim.cwd : '/', env, detached: true, stdio });
  return { child, opens: '', ended: () => '' };
}

function exitCodeOf(code: number | null, sig: NodeJS.Signals | null): number {
  return code ?? 128 + (sig === null ? 0 : constants.signals[sig]);
}
function killGroup(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  try {
    // What crun started in a container is in another session.
    const family = familyOf(pid, scanProcesses());
    signal(-pid, 'SIGKILL');
    for (const p of family) signal(p.pid, 'SIGKILL');
  } catch {
    // Not ours any more: it changed its user. Its container's end reaches it.
  }
}

/** Resolves at the command's end; a command that outlives `timeoutMs` (0 = none) is killed: DeadlineExceeded. */
export function execSync(
  c: Supervised,
  cmd: readonly string[],
  o: How & { timeoutMs: number; signal: AbortSignal },
): Promise<{ stdout: Buffer; stderr: Buffer; exitCode: number }> {
  const { child, ended } = spawnBeside(c, cmd, { ...o, stdin: false, tty: false });
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
      ended();
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
        const why = ended();
        if (why !== '' && code !== 0) reject(new RuntimeRefusal(CODE.unknown, `exec: ${why}`));
        else resolve({ stdout: stdout(), stderr: stderr(), exitCode: exitCodeOf(code, sig) });
      };
      const linger = afterLinger(finish);
      child.on('close', finish);
    });
  });
}

/** What lies in the pipes is read first: on a busy machine the time may be over before anybody looked. */
function afterLinger(finish: () => void): NodeJS.Timeout {
  return setTimeout(() => setImmediate(() => setImmediate(finish)), OUTPUT_LINGER_MS);
}

function serveExec(ask: ExecAsk, socket: Duplex, how: How): void {
  const status = (value: { exitCode: number } | { error: string }): void => {
    socket.end(frame(CHANNEL.status, Buffer.from(JSON.stringify(value))));
  };
  let spawned: Spawned;
  try {
    spawned = spawnBeside(ask.container, ask.cmd, { ...how, stdin: ask.stdin, tty: ask.tty });
  } catch (error) {
    status({ error: (error as Error).message });
    return;
  }
  const { child, ended } = spawned;
  const { output, input } = afterOpening(child, spawned.opens);
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
  let outputOver = false;
  output?.once('end', () => {
    outputOver = true;
  });
  forward(output, CHANNEL.stdout, ask.stdout);
  forward(child.stderr, CHANNEL.stderr, ask.stderr);
  // The command may end before its input does.
  child.stdin?.on('error', () => undefined);
  const read = frameReader((channel, payload) => {
    if (channel === CHANNEL.stdin) input(payload);
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
      const why = ended();
      if (!socket.writableEnded) status(why !== '' && code !== 0 ? { error: why } : { exitCode: exitCodeOf(code, sig) });
    };
    const linger = afterLinger(finish);
    // What reads the output after the child's own stream ends later than that.
    child.on('close', () => (output === null || outputOver ? finish() : output.once('end', finish)));
  });
}

/** `actorctl image load`: not by CRI, whose image names are the pods' to choose. */
async function serveLoad(oci: Oci | undefined, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const query = new URLSearchParams(req.url?.split('?')[1]);
  const abort = new AbortController();
  res.on('close', () => abort.abort());
  const answer = (status: number, value: object): void =>
    void res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  if (oci === undefined) return answer(409, { error: 'this runtime runs the built-in images alone: use embedded://oci' });
  try {
    answer(200, { loaded: await oci.load(query.get('path') ?? '', query.get('name') ?? '', abort.signal) });
  } catch (error) {
    answer(400, { error: (error as Error).message });
  }
}

async function serveTunnel(open: Tunnel, { to, socket, head }: { to: string; socket: Duplex; head: Buffer }): Promise<void> {
  socket.on('error', () => undefined);
  const at = /^([\d.]+):(\d{1,5})$/.exec(to);
  try {
    const inside = await open(at?.[1] ?? '', Number(at?.[2] ?? 0));
    if (inside === null) {
      socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
      return;
    }
    inside.on('error', () => socket.destroy());
    socket.on('close', () => inside.destroy());
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (head.length > 0) inside.write(head);
    inside.pipe(socket).pipe(inside);
  } catch (error) {
    socket.end(`HTTP/1.1 502 ${(error as Error).message.replace(/[^ -~]/g, ' ')}\r\n\r\n`);
  }
}

export async function createStreamingServer(o: How & { socketPath: string }): Promise<StreamingServer> {
  const offers = new Map<string, { ask: ExecAsk; timer: NodeJS.Timeout }>();
  const server: Server = createServer((req, res) => {
    if (req.method === 'POST' && req.url?.startsWith('/load?') === true) return void serveLoad(o.oci, req, res);
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
    serveExec(offer.ask, socket, o);
  });
  let tunnel: Tunnel = () => Promise.resolve(null);
  server.on('connect', (req, socket, head) => void serveTunnel(tunnel, { to: req.url ?? '', socket, head }));
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
    tunnels(open) {
      tunnel = open;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
