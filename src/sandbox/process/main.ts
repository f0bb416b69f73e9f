/**
 * `sandboxd`: the embedded process runtime as a program of its own.
 *   sandboxd --root-dir DIR            serve until TERM; containers outlive it
 *   sandboxd --root-dir DIR --status   what runs there
 *   sandboxd --root-dir DIR --stop     stop and remove every pod of that root, then end the runtime
 * Exit codes: 0 done; 64 bad usage; 70 failure; 75 another runtime serves this root directory.
 */
import { rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeOwnSync } from '../../process/regularFile.ts';
import { outliveSignals } from '../../process/signals.ts';
import { statusOf, stopAll } from './admin.ts';
import { EXIT_LOCKED } from './ensure.ts';
import { createStreamingServer } from './exec.ts';
import { probeIsolation } from './probe.ts';
import { createProcessRuntime } from './runtime.ts';
import { serveCri } from './server.ts';
import { acquireLock } from './store/lock.ts';
import { layout, prepareFolders } from './store/store.ts';

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

function say(level: 'info' | 'warn' | 'error', message: string): void {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, msg: message })}\n`);
}

async function serve(rootDir: string, wanted: 'plain' | undefined): Promise<void> {
  const l = layout(rootDir);
  process.umask(0o022);
  prepareFolders(l);
  const lock = await acquireLock(l.lock, () => {
    say('error', 'the lock on the root directory was lost: ending, containers run on');
    process.exit(70);
  });
  if (lock === null) {
    say('info', `another runtime serves ${rootDir}`);
    process.exit(EXIT_LOCKED);
  }
  const path = process.env.PATH || DEFAULT_PATH;
  const isolation = await probeIsolation({ path, wanted });
  if (isolation.mkfifo === '') throw new Error('mkfifo (coreutils) is not installed');
  const streaming = await createStreamingServer({ socketPath: l.streaming, isolation });
  const runtime = await createProcessRuntime({
    layout: l,
    isolation,
    streaming,
    env: { path, home: homedir() },
    nodePath: process.execPath,
    log: say,
  });
  writeOwnSync(l.pid, `${process.pid}\n`, 0o600);
  const server = await serveCri({ socketPath: l.socket, runtime, warn: (message) => say('warn', message) });
  say('info', `serving CRI on unix://${l.socket}; isolation: ${isolation.kind}, ${isolation.reason}`);

  let ending = false;
  const end = (signal: string): void => {
    if (ending) return;
    ending = true;
    say('info', `${signal}: ending, containers run on`);
    server.close();
    streaming.close();
    void runtime.close().finally(() => {
      rmSync(l.pid, { force: true });
      rmSync(l.socket, { force: true });
      rmSync(l.streaming, { force: true });
      lock.release();
      process.exit(0);
    });
  };
  process.on('SIGTERM', () => end('SIGTERM'));
  process.on('SIGINT', () => end('SIGINT'));
}

const USAGE = 'usage: sandboxd --root-dir DIR [--stop | --status] [--isolation plain]';

async function main(): Promise<void> {
  let values: { 'root-dir'?: string; stop?: boolean; status?: boolean; isolation?: string };
  try {
    ({ values } = parseArgs({
      options: { 'root-dir': { type: 'string' }, stop: { type: 'boolean' }, status: { type: 'boolean' }, isolation: { type: 'string' } },
    }));
    if (!values['root-dir']) throw new Error('--root-dir is missing');
    if (values.isolation !== undefined && values.isolation !== 'plain' && values.isolation !== 'auto')
      throw new Error('--isolation is auto or plain');
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
    process.exit(64);
  }
  const rootDir = resolve(values['root-dir'] ?? '');
  const say1 = (line: string): void => void process.stdout.write(`${line}\n`);
  if (values.stop === true) {
    await stopAll(rootDir, { say: say1, execPath: process.execPath, entry: process.argv[1] ?? '' });
    process.exit(0);
  }
  if (values.status === true) {
    await statusOf(rootDir, say1);
    process.exit(0);
  }
  await serve(rootDir, values.isolation === 'plain' ? 'plain' : undefined);
}

outliveSignals();
process.on('uncaughtException', (error) => {
  say('error', `unexpected: ${error.stack ?? error.message}; ending, containers run on`);
  process.exit(70);
});
process.on('unhandledRejection', (error) => {
  say('error', `unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}; ending, containers run on`);
  process.exit(70);
});
main().catch((error: Error) => {
  say('error', error.message);
  process.exit(70);
});
