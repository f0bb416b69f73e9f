/**
 * One runtime per root directory: an flock held by a small helper process (`sh` that became `cat`) for as long as the
 * pipe to it is open. The kernel lets go when either ends, so there is never a stale lock.
 */
import { startProcess } from '@actorlet/process/src/startProcess.ts';

export interface HeldLock {
  release(): void;
}

/** Null when another process holds it. Throws when locking does not work here. */
export function acquireLock(path: string, onLost: () => void): Promise<HeldLock | null> {
  return new Promise((resolve, reject) => {
    // Opened both ways: a FIFO there would hold a shell that only writes.
    const script = 'exec 9<>"$1" || exit 74; flock -n 9 || exit $?; echo held; exec cat >/dev/null';
    const helper = startProcess('sh', ['-c', script, 'actorlet-lock', path], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    let held = false;
    let released = false;
    let words = '';
    helper.stderr.on('data', (chunk: Buffer) => {
      words += chunk.toString('utf8');
    });
    helper.stdin.on('error', () => undefined);
    helper.stdout.once('data', () => {
      held = true;
      resolve({
        release() {
          released = true;
          helper.stdin.end();
        },
      });
    });
    helper.on('error', reject);
    helper.on('exit', (code) => {
      if (held && !released) onLost();
      else if (!held && code === 1) resolve(null);
      else if (!held) reject(new Error(`cannot lock ${path}: ${words.trim() || `flock ended with ${code}`}; flock is part of util-linux`));
    });
  });
}
