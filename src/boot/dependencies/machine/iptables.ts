/** The real {@link Iptables} port: the programs of the host, one at a time, no longer than a limit. */

import { startProcess } from '@actorlet/process/src/startProcess.ts';
import type { IpFamily } from '../../../machines/services/iptables/families.ts';
import { KILLED } from '../../../machines/services/iptables/rules.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Iptables, IptablesResult } from '../../../ports/machine/iptables.ts';

const PROGRAMS: Readonly<Record<IpFamily, string>> = { 4: 'iptables', 6: 'ip6tables' };
/** The program itself waits 5 s for the lock of the tables. */
const WITHIN_MS = 10_000;
const WORDS_MAX = 300;

export interface IptablesOptions {
  /** Before the program, for tests: `ip netns exec NAME`. */
  prefix?: readonly string[];
  withinMs?: number;
}

export function createIptables({ prefix = [], withinMs = WITHIN_MS }: IptablesOptions = {}): Iptables {
  return {
    run: (family, args, signal) => runOne([...prefix, PROGRAMS[family], ...args], { withinMs, signal }),
  };
}

function runOne(line: readonly string[], { withinMs, signal }: { withinMs: number; signal: AbortSignal }): Promise<IptablesResult> {
  const [command = '', ...args] = line;
  const env = { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin`, LC_ALL: 'C' };
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new Error(`${command} was not started: the node ends`));
    const child = startProcess(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    let words = '';
    child.stderr.on('data', (chunk: Buffer) => {
      words = `${words}${chunk.toString('latin1')}`.slice(-WORDS_MAX);
    });
    const stop = (): void => void child.kill('SIGKILL');
    const late = setTimeout(stop, withinMs);
    signal.addEventListener('abort', stop, { once: true });
    const over = (): void => {
      clearTimeout(late);
      signal.removeEventListener('abort', stop);
    };
    child.once('error', (error) => {
      over();
      reject(new Error(`${command} cannot be run: ${messageOf(error)}`));
    });
    child.once('close', (code) => {
      over();
      if (code === null) resolve({ code: KILLED, words: `did not end within ${withinMs / 1000} s and was killed` });
      else resolve({ code, words: words.replace(/[^\x20-\x7e]+/g, ' ').trim() });
    });
  });
}
