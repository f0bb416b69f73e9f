/** The lock file (boot-and-node 10.1): one node per file, waited for; anybody who opens it later may end this one. */

import { closeSync, constants, ftruncateSync, writeSync } from 'node:fs';
import { openRegularSync, readRegularSync } from '@actorlet/process/src/regularFile.ts';
import { codeOf, messageOf } from '../../machines/text/errors.ts';
import { IN_DELETE_SELF, IN_OPEN, type Libc, LOCK_EX, LOCK_NB } from './libc.ts';

/** Time between two attempts, and between two looks for contention. */
const POLL_MS = 100;
const EVENT_BYTES_MAX = 4096;
const PID_BYTES_MAX = 64;
const APPEND = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;

export interface FileLock extends Disposable {
  /** Calls back once, with a reason, when somebody opens or deletes the file or the watch itself breaks. */
  watchContention(onContention: (reason: string) => void): Disposable;
}

export interface LockOptions {
  libc: Libc;
  /** Ends the wait: rejects with its reason. */
  signal: AbortSignal;
  /** Called once when somebody else holds the lock. */
  onWait(): void;
}

/** Resolves when the exclusive lock is held; held until disposed or the process ends. Rejects when the file cannot be opened. */
export async function acquireLock(path: string, o: LockOptions): Promise<FileLock> {
  const fd = openRegularSync(path, APPEND, { mode: 0o600 });
  try {
    for (let first = true; !tryLock(o.libc, fd); first = false) {
      if (first) o.onWait();
      await pause(POLL_MS, o.signal);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return {
    watchContention: (onContention) => watch(o.libc, path, onContention),
    [Symbol.dispose]: () => closeSync(fd),
  };
}

/**
 * For as long as this process lives, or the lock is not disposed; its id is in the file. A number: another process has the lock,
 * and that is its id, zero where the file does not say. @throws where the file cannot be opened or locked.
 */
export function lockAtOnce(path: string, { libc, pid }: { libc: Libc; pid: number }): Disposable | number {
  const fd = openRegularSync(path, APPEND, { own: true, mode: 0o600 });
  try {
    if (!tryLock(libc, fd)) {
      closeSync(fd);
      const text = readRegularSync(path, { own: true, bytesMax: PID_BYTES_MAX }).toString('utf8').trim();
      return Number(/^\d+$/.exec(text)?.[0] ?? 0);
    }
    ftruncateSync(fd);
    writeSync(fd, `${pid}\n`);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return { [Symbol.dispose]: () => closeSync(fd) };
}

function tryLock(libc: Libc, fd: number): boolean {
  try {
    libc.flock(fd, LOCK_EX | LOCK_NB);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EAGAIN' || codeOf(error) === 'EWOULDBLOCK' || codeOf(error) === 'EINTR') return false;
    throw error;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

function watch(libc: Libc, path: string, onContention: (reason: string) => void): Disposable {
  const fd = libc.inotify(path, IN_OPEN | IN_DELETE_SELF);
  const buffer = new Uint8Array(EVENT_BYTES_MAX);
  let open = true;
  const stop = (): void => {
    if (!open) return;
    open = false;
    clearInterval(timer);
    libc.close(fd);
  };
  const look = (): void => {
    let reason: string | undefined;
    try {
      if (libc.readNonblocking(fd, buffer) > 0) reason = `somebody opened or deleted ${path}`;
    } catch (error) {
      reason = `${path} can no longer be watched: ${messageOf(error)}`;
    }
    if (reason === undefined) return;
    stop();
    onContention(reason);
  };
  const timer = setInterval(look, POLL_MS);
  timer.unref();
  return { [Symbol.dispose]: stop };
}
