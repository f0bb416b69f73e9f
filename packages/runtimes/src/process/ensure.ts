/** Starts the process runtime of a root directory, or attaches to the one that is there. Used by the daemon; light on purpose. */
import { closeSync, constants, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { resolve } from 'node:path';
import { openRegularSync, readRegularSync } from '@actorlet/process/src/regularFile.ts';
import { NODE_FLAGS, startProcess } from '@actorlet/process/src/startProcess.ts';
import { type Layout, layout, prepareFolders, readPidFile } from './store/store.ts';

/** The runtime's exit code when another one serves the same root directory. */
export const EXIT_LOCKED = 75;
/** A small, mostly idle process: less young generation and fewer helper threads than a server wants. */
const SMALL = ['--max-semi-space-size=1', '--v8-pool-size=1'];
const START_WITHIN_MS = 15_000;
const LOOK_EVERY_MS = 20;
const LOG_BYTES_MAX = 64 * 1024 * 1024;

/** What a runtime runs: commands of this host, or OCI images too. */
export type Kind = 'process' | 'oci';
export const isKind = (text: string): text is Kind => text === 'process' || text === 'oci';

export interface EnsureOptions {
  /** The node's root directory; the runtime lives in `sandbox/` below it. */
  rootDir: string;
  log: { info(fields: object, msg: string): void };
  /** The node binary. */
  execPath: string;
  /** `dist/sandboxd.mjs`, or `packages/runtimes/src/process/main.ts`. */
  entry: string;
  /** By default that of the runtime that was here last. */
  kind?: Kind | undefined;
  /** Further arguments, e.g. `['--isolation', 'plain']`. */
  args?: readonly string[];
}

/** Whether somebody listens. */
export function answers(socketPath: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
    socket.once('error', () => done(false));
  });
}

/**
 * Resolves with the CRI endpoint once a runtime answers on it. Any number of callers may race: the lock lets one
 * runtime live, the others' end with {@link EXIT_LOCKED} and their callers wait for the winner's socket.
 * @throws when the folders cannot be used, or no runtime answers within 15 s; the message names the log to read.
 */
export async function ensureProcessRuntime(o: EnsureOptions): Promise<{ endpoint: string; started: boolean }> {
  const l = layout(resolve(o.rootDir));
  prepareFolders(l);
  const endpoint = `unix://${l.socket}`;
  const before = lastKind(l);
  const kind = o.kind ?? before;
  if (await answers(l.socket)) {
    if (kind === before) return { endpoint, started: false };
    await endOther(l, { before, kind });
  }
  const started = startDetached(l, { ...o, kind });
  const deadlineMs = performance.now() + START_WITHIN_MS;
  for (;;) {
    if (await answers(l.socket)) break;
    const ended = started.ended();
    if (ended !== undefined && ended !== EXIT_LOCKED) {
      throw new Error(`the embedded runtime did not start: ${lastError(l.log) || `exit code ${ended}`}; its log is ${l.log}`);
    }
    if (performance.now() > deadlineMs)
      throw new Error(`no embedded runtime answered on ${l.socket} within ${START_WITHIN_MS} ms; its log is ${l.log}`);
    await new Promise((wake) => setTimeout(wake, LOOK_EVERY_MS));
  }
  // A loser of the race may not have ended yet; the winner wrote its pid before it listened.
  const mine = started.pid !== undefined && started.pid === readPidFile(l);
  o.log.info({ endpoint, pid: mine ? started.pid : undefined }, mine ? 'embedded runtime started' : 'attached to the embedded runtime');
  return { endpoint, started: mine };
}

/** What it said last before it ended; '' where it said nothing. */
function lastError(log: string): string {
  try {
    const line = readRegularSync(log, { own: true, bytesMax: LOG_BYTES_MAX }).toString('utf8').trimEnd().split('\n').at(-1) ?? '';
    const { level, msg } = JSON.parse(line) as { level?: unknown; msg?: unknown };
    return level === 'error' && typeof msg === 'string' ? msg : '';
  } catch {
    return '';
  }
}

function lastKind(l: Layout): Kind {
  try {
    const text = readRegularSync(l.kind, { own: true, bytesMax: 16 }).toString('latin1');
    return isKind(text) ? text : 'process';
  } catch {
    return 'process';
  }
}

/** Without pods a runtime of the other kind makes room. @throws with what to do, where it has some. */
async function endOther(l: Layout, { before, kind }: { before: Kind; kind: Kind }): Promise<void> {
  if (readdirSync(l.sandboxes).length > 0)
    throw new Error(
      `pods of embedded://${before} run in ${l.base}: stop them first (npm stop, or sandboxd --stop), then start embedded://${kind}`,
    );
  const pid = readPidFile(l);
  if (pid > 0) process.kill(pid, 'SIGTERM');
  const deadlineMs = performance.now() + START_WITHIN_MS;
  while ((await answers(l.socket)) && performance.now() < deadlineMs) await new Promise((wake) => setTimeout(wake, LOOK_EVERY_MS));
}

function startDetached(l: Layout, o: EnsureOptions): { pid: number | undefined; ended(): number | undefined } {
  const log = openRegularSync(l.log, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, { own: true, mode: 0o600 });
  let ended: number | undefined;
  try {
    // cwd `/`: the runtime must not keep the daemon's folder busy.
    const child = startProcess(
      o.execPath,
      [...NODE_FLAGS, ...SMALL, resolve(o.entry), '--root-dir', resolve(o.rootDir), '--kind', o.kind ?? 'process', ...(o.args ?? [])],
      {
        cwd: '/',
        detached: true,
        stdio: ['ignore', log, log],
      },
    );
    child.on('exit', (code, signal) => {
      ended = code ?? (signal === null ? -1 : -2);
    });
    child.on('error', () => {
      ended = -1;
    });
    child.unref();
    return { pid: child.pid, ended: () => ended };
  } finally {
    closeSync(log);
  }
}
