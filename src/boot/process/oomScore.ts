/** How readily the kernel kills this process when memory runs out (boot-and-node 10.3). */
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../errors.ts';

const ATTEMPTS_MAX = 2;
const RETRY_MS = 100;

/** Writes the value for this process; tries twice, except where the file does not exist. Rejects with the last error. */
export async function setOomScore(value: number, path = '/proc/self/oom_score_adj'): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      // Not created: on a host without /proc a stray file would hide the failure.
      await writeFile(path, `${value}`, { flag: 'r+' });
      return;
    } catch (error) {
      if (attempt >= ATTEMPTS_MAX || codeOf(error) === 'ENOENT') throw error;
      await sleep(RETRY_MS);
    }
  }
}
