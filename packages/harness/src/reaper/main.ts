/**
 * The reaper of one test node: a process between the runner of the tests and the daemon. It is the daemon's parent, so it
 * knows its end without looking for process ids, and it outlives the runner by as long as it takes to remove everything,
 * however the runner ended. Its one argument is the charge as JSON; the rest comes over the IPC channel.
 */

import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, realpathSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { CRI_LABELS } from '@actorlet/kubelet/machines/wire/cri.ts';
import { outliveSignals } from '@actorlet/process/src/signals.ts';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import type { Charge, FromReaper, ToReaper } from './charge.ts';
import { cleanUp } from './cleanup.ts';

/** An orderly end of the daemon is not waited for longer: its pods are removed next. */
const DAEMON_END_MS = 3_000;
/** Names shown when a runtime is not empty. */
const NAMES_MAX = 5;

const charge = JSON.parse(process.argv[2] ?? '') as Charge;
let daemon: ChildProcess | undefined;
let ending = false;

function say(message: FromReaper): Promise<void> {
  return new Promise((done) => {
    if (!process.connected || process.send === undefined) done();
    // A runner that has gone does not want to know.
    else process.send(message, () => done());
  });
}

/** Nobody may lose pods to a test: a node winds down every pod of its runtime that it does not know. */
async function takeOn(): Promise<Server | undefined> {
  if (charge.runtime !== 'containerd') return undefined;
  const lock = await lockOn(charge.socket);
  const { connectTo } = await import('@actorlet/runtimes/src/process/admin.ts');
  const cri = connectTo(charge.socket);
  try {
    const { items } = await cri.call('ListPodSandbox', {});
    if (items.length === 0) return lock;
    const names = items.slice(0, NAMES_MAX).map((s) => s.labels[CRI_LABELS.podName] ?? s.id);
    throw new Error(
      `the runtime at ${charge.socket} holds ${items.length} pods (${names.join(', ')}${items.length > NAMES_MAX ? ', ...' : ''}), and a node removes pods it does not know: give the tests a containerd of their own`,
    );
  } finally {
    cri.close();
  }
}

/** An abstract socket, which the kernel frees with the process: two test nodes on one runtime would remove each other's pods. */
function lockOn(socket: string): Promise<Server> {
  const name = `\0actorlet-harness-${createHash('sha256').update(realpathSync(socket)).digest('hex').slice(0, 32)}`;
  return new Promise((resolve, reject) => {
    const server = createServer((c) => c.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new Error(`another test node uses the runtime at ${socket}`) : error),
    );
    server.listen(name, () => resolve(server));
  });
}

function start(m: Extract<ToReaper, { type: 'start' }>): void {
  const log = openSync(join(charge.dir, 'daemon.log'), 'a', 0o600);
  let child: ChildProcess;
  try {
    child = startProcess(process.execPath, m.args, { stdio: ['ignore', log, log], env: m.env, cwd: charge.dir });
  } catch (error) {
    void say({ type: 'refused', why: `the daemon cannot be started: ${(error as Error).message}` });
    return;
  } finally {
    closeSync(log);
  }
  daemon = child;
  child.once('exit', (code, signal) => {
    daemon = undefined;
    void say({ type: 'exited', code, signal });
  });
  child.once('error', (error) => {
    if (child.pid === undefined) void say({ type: 'refused', why: `the daemon cannot be started: ${error.message}` });
  });
  if (child.pid !== undefined) void say({ type: 'started', pid: child.pid });
}

async function endDaemon(): Promise<void> {
  const child = daemon;
  if (child === undefined) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), DAEMON_END_MS);
  await ended;
  clearTimeout(late);
}

async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  await endDaemon();
  const left = await cleanUp(charge);
  for (const line of left) process.stderr.write(`${line}\n`);
  await say({ type: 'ended', left });
  process.exit(left.length === 0 ? 0 : 1);
}

outliveSignals();
// Its own session: Ctrl-C at the runner's terminal reaches the runner alone, and what it leaves is removed here.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => void end());
process.on('disconnect', () => void end());
process.on('message', (message) => {
  const m = message as ToReaper;
  if (ending) return;
  if (m.type === 'start') start(m);
  else if (m.type === 'signal') daemon?.kill(m.signal);
  else void end();
});

try {
  await takeOn();
  await say({ type: 'ready' });
} catch (error) {
  await say({ type: 'refused', why: messageOf(error) });
}
