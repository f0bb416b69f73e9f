/** The host's figures: read in a process of their own, which lives only while somebody looks at them. */

import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import { NODE_FLAGS, startProcess } from '@actorlet/process/src/startProcess.ts';
import type { HostFrame } from '../feed/frames.ts';

/** What the child tells each time. */
export type HostReading = Pick<HostFrame, 'figures' | 'error'>;

/** The child's heap. */
const HEAP_MIB_MAX = 64;

/** Beside this bundle in `dist/`, else the source. */
function entry(from: string = import.meta.url): string {
  const here = dirname(fileURLToPath(from));
  const candidates = [join(here, 'hostfigures.mjs'), join(here, '..', 'hostfigures.mjs'), join(here, 'hostMain.ts')];
  return candidates.find((file) => existsSync(file)) ?? join(here, 'hostfigures.mjs');
}

export function hostFigures(onFrame: (frame: HostFrame) => void, log: Logger): Disposable {
  let ended = false;
  const fail = (error: string): void => {
    if (ended) return;
    log.warn({ err: error }, 'inspection page: the figures of the host are not there');
    onFrame({ t: 'host', atMs: Date.now(), figures: null, error });
  };
  let child: ChildProcess;
  try {
    const flags = [...NODE_FLAGS, `--max-old-space-size=${HEAP_MIB_MAX}`];
    child = startProcess(process.execPath, [...flags, entry(), String(process.pid)], {
      // It runs df, ps and the like, and needs nothing of the daemon's environment.
      env: { PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C' },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
  } catch (error) {
    fail(messageOf(error));
    return { [Symbol.dispose]: () => {} };
  }
  child.on('message', (message) => {
    const { figures, error } = message as HostReading;
    if (figures === null) fail(error);
    else if (!ended) onFrame({ t: 'host', atMs: Date.now(), figures, error });
  });
  child.on('error', (error) => fail(error.message));
  child.on('exit', (code, signal) => fail(`the process that reads them ended (${signal ?? code})`));
  return {
    [Symbol.dispose]: () => {
      ended = true;
      child.kill('SIGKILL');
    },
  };
}
