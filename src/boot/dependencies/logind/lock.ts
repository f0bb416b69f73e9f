/**
 * A delay lock of systemd-logind. The lock is a file descriptor that comes over D-Bus, which Node cannot receive, so
 * systemd's own `systemd-inhibit` holds it. It runs `cat` on a pipe of this process: when this process ends, however it
 * ends, the pipe closes, `cat` ends and the lock is dropped.
 */

import type { ChildProcess } from 'node:child_process';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { messageOf } from '../../../machines/text/errors.ts';

export interface LockOptions {
  /** Default: `systemd-inhibit`, as found in PATH. */
  program?: string;
  /** Until the lock is held; the program asks logind once. */
  withinMs?: number;
}

export interface Lock {
  /** Resolves when the lock was lost or dropped, with the reason. Never rejects. */
  readonly ended: Promise<Error>;
  drop(): void;
}

const WITHIN_MS = 10_000;
const ERROR_CHARACTERS_MAX = 500;
const ARGS = ['--what=shutdown', '--who=kubelet', '--why=Kubelet needs time to handle node shutdown', '--mode=delay', 'cat'];
/** What `cat` is given and sends back: from then on the lock is held. */
const TOKEN = 'held\n';

export async function takeLock(o: LockOptions = {}): Promise<Lock> {
  const { program = 'systemd-inhibit', withinMs = WITHIN_MS } = o;
  // Not ended with the daemon's group: a terminal's ^C is the daemon's to answer.
  const child = startProcess(program, ARGS, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const ended = endOf(child, program);
  const lock: Lock = {
    ended,
    drop: () => {
      child.stdin.destroy();
      child.kill('SIGTERM');
    },
  };
  const held = Promise.withResolvers<void>();
  child.stdout.on('data', () => held.resolve());
  child.stdin.on('error', () => {});
  child.stdin.write(TOKEN);
  const timer = setTimeout(() => held.reject(new Error(`${program} did not take the lock within ${withinMs / 1000} s`)), withinMs);
  try {
    await Promise.race([held.promise, ended.then((error) => Promise.reject(error))]);
  } catch (error) {
    lock.drop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  // Nothing waits for it when the daemon ends.
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as { unref?: () => void }).unref?.();
  return lock;
}

function endOf(child: ChildProcess, program: string): Promise<Error> {
  let words = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    words = `${words}${chunk.toString('utf8')}`.slice(-ERROR_CHARACTERS_MAX);
  });
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(new Error(`${program} cannot be started: ${messageOf(error)}`)));
    child.once('close', (code, signal) => {
      const how = code === null ? `by signal ${signal ?? ''}` : `with exit code ${code}`;
      const text = words.trim();
      resolve(new Error(`${program} ended ${how}${text === '' ? '' : `: ${text}`}`));
    });
  });
}
