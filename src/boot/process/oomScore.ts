/** How readily the kernel kills this process when memory runs out (boot-and-node 10.3). */

import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../machines/text/errors.ts';

const ATTEMPTS_MAX = 2;
const RETRY_MS = 100;

/** A second try cannot help: there is no such file, or this user may not. */
const FINAL: readonly string[] = ['ENOENT', 'EACCES', 'EPERM'];

/** Writes the value for this process; tries twice, except where that cannot help: the start waits for it. Rejects with the last error. */
export async function setOomScore(
  value: number,
  path = '/proc/self/oom_score_adj',
  write: (path: string, text: string, o: { flag: string }) => Promise<void> = writeFile,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      // Not created: on a host without /proc a stray file would hide the failure.
      await write(path, `${value}`, { flag: 'r+' });
      return;
    } catch (error) {
      if (attempt >= ATTEMPTS_MAX || FINAL.includes(codeOf(error) ?? '')) throw error;
      await sleep(RETRY_MS);
    }
  }
}
