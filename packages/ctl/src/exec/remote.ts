/**
 * A command through the streaming server of a CRI runtime, by the remote command protocol of Kubernetes (v4) over SPDY/3.1.
 * The address is good for one use; the daemon gave it out on its admin socket, which only its user may use.
 */

import { type RequestOptions, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { COMMAND_HEADERS, RemoteCommand } from '@actorlet/process/src/remoteCommand.ts';
import type { ExecFlags, ExecIo } from './types.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const REFUSAL_CHARS_MAX = 500;

export async function runSpdy(url: string, io: ExecIo, flags: ExecFlags): Promise<number> {
  const socket = await upgrade(url, io.signal);
  return runOn(socket, io, flags);
}

async function upgrade(url: string, signal: AbortSignal): Promise<Duplex> {
  const to = target(url);
  const ask = to.secure ? (await import('node:https')).request : request;
  const options: RequestOptions = {
    ...{ ...to.options, method: 'POST', agent: false, signal },
    headers: { ...COMMAND_HEADERS, 'content-length': 0 },
  };
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new CtlError(EXIT.failed, `exec: ${why}`));
    const req = ask(options);
    req.setTimeout(CONNECT_TIMEOUT_MS, () => req.destroy(new Error(`no answer within ${CONNECT_TIMEOUT_MS / 1000} s`)));
    req.on('error', (error) => {
      if (signal.aborted) reject(new CtlError(EXIT.interrupted, 'interrupted.'));
      else fail(`the runtime's streaming server at ${to.name} did not answer: ${error.message}`);
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

/** The embedded runtimes serve on a unix socket: `http+unix://<its path, percent-encoded>/exec/<token>`. */
function target(url: string): { options: RequestOptions; secure: boolean; name: string } {
  const unix = /^http\+unix:\/\/([^/]+)(\/.*)$/.exec(url);
  if (unix !== null) {
    const socketPath = decodeURIComponent(unix[1] ?? '');
    return { options: { socketPath, path: unix[2] ?? '/' }, secure: false, name: socketPath };
  }
  const to = URL.parse(url);
  if (to === null || (to.protocol !== 'http:' && to.protocol !== 'https:'))
    throw new CtlError(EXIT.failed, 'exec: the runtime gave an address that is no URL');
  const host = to.hostname.replace(/^\[|\]$/g, '');
  return { options: { host, port: to.port, path: `${to.pathname}${to.search}` }, secure: to.protocol === 'https:', name: to.host };
}

function runOn(socket: Duplex, io: ExecIo, flags: ExecFlags): Promise<number> {
  const { signal, outBytes, errBytes } = io;
  return new Promise((resolve, reject) => {
    const undo: (() => void)[] = [];
    const settle = (how: () => void) => {
      for (const fn of undo.splice(0).reverse()) fn();
      how();
    };
    const broken = (why: string) => settle(() => reject(new CtlError(EXIT.failed, `exec: ${why}`)));
    // Ctrl-C may have come while the connection was made.
    if (signal.aborted) {
      socket.destroy();
      return resolve(EXIT.interrupted);
    }
    const { stdin, tty } = flags;
    const command = new RemoteCommand(
      socket,
      { stdin, stdout: true, stderr: !tty, tty },
      {
        output: (name, part) => (name === 'stdout' ? outBytes(part) : errBytes(part)),
        ended: (status) => {
          const end = exitOf(status);
          if (typeof end === 'number') settle(() => resolve(end));
          else broken(end);
        },
        broken,
      },
    );
    const onAbort = () => {
      command.drop();
      settle(() => resolve(EXIT.interrupted));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    undo.push(() => signal.removeEventListener('abort', onAbort));
    if (tty) undo.push(...sizes(command, io));
    if (stdin) undo.push(...input(command, { socket, io, tty }));
  });
}

/** Gives what undoes it. */
function input(command: RemoteCommand, { socket, io, tty }: { socket: Duplex; io: ExecIo; tty: boolean }): (() => void)[] {
  const { stdin, terminal } = io;
  // Keys go to the command as they are typed.
  const raw = tty ? terminal?.raw() : undefined;
  const onData = (chunk: Buffer | string) => {
    if (command.write('stdin', Buffer.from(chunk))) return;
    stdin.pause();
    socket.once('drain', () => stdin.resume());
  };
  const onEnd = () => command.finish('stdin');
  stdin.on('data', onData);
  stdin.on('end', onEnd);
  return [
    () => {
      stdin.off('data', onData);
      stdin.off('end', onEnd);
      stdin.pause();
      raw?.[Symbol.dispose]();
    },
  ];
}

/** The command's terminal is as large as this one, from the start and after each change. */
function sizes(command: RemoteCommand, { terminal }: ExecIo): (() => void)[] {
  if (terminal === undefined) return [];
  const tell = () => {
    const size = terminal.size();
    if (size !== null) command.write('resize', Buffer.from(`${JSON.stringify({ Width: size.columns, Height: size.rows })}\n`));
  };
  tell();
  const watch = terminal.onResize(tell);
  return [() => watch[Symbol.dispose]()];
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
