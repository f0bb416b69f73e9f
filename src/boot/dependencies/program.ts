/** Runs a program that gives credentials: no longer than a limit, and with all that it started ended with it. */

import type { ChildProcess } from 'node:child_process';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { withoutSecrets } from '../../machines/pod/peers/withoutSecrets.ts';
import { codeOf, messageOf } from '../../machines/text/errors.ts';
import type { Clock } from '../../ports/ports.ts';

const OUTPUT_BYTES_MAX = 1024 * 1024;
const ERROR_CHARACTERS_MAX = 300;
/** Of what it prints to its error output: secrets are looked for in all of it. */
const WORDS_CHARS_MAX = 32 * 1024;

export interface Program {
  /** A path, or a name that is looked for in PATH. */
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** Over `env`. They are secret, and so are the arguments beside them. */
  settings?: readonly { name: string; value: string }[];
  /** On its standard input; absent: there is none. */
  input?: string;
}

/**
 * What it printed.
 * @throws Error that says what became of it: the end of its error output with everything that looks like a secret blacked
 * out, and nothing of what it printed.
 */
export function runProgram(program: Program, o: { clock: Clock; limitMs: number; signal?: AbortSignal }): Promise<string> {
  return new Promise((resolve, reject) => {
    // A group of its own, so that what it started ends with it.
    let child: ChildProcess;
    try {
      child = startProcess(program.command, [...program.args], {
        env: { ...program.env, ...Object.fromEntries(program.settings?.map(({ name, value }) => [name, value]) ?? []) },
        stdio: [program.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
        detached: true,
      });
    } catch (error) {
      return reject(new Error(startFailure(error, program.command)));
    }
    const { stdout, stderr, stdin } = child;
    const out: Buffer[] = [];
    let size = 0;
    let words = '';
    let why: Error | undefined;
    const stop = (error: Error): void => {
      why ??= error;
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
      stdout?.destroy();
      stderr?.destroy();
    };
    const cancel = (): void => stop(new Error('was killed: nobody waits for it any more'));
    const timer = o.clock.setTimeout(() => stop(new Error(`gave no answer within ${o.limitMs / 1000} s and was killed`)), o.limitMs);
    const over = (): void => {
      o.clock.clearTimeout(timer);
      o.signal?.removeEventListener('abort', cancel);
    };
    if (o.signal?.aborted === true) cancel();
    else o.signal?.addEventListener('abort', cancel, { once: true });
    stdout?.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > OUTPUT_BYTES_MAX) stop(new Error(`printed more than ${OUTPUT_BYTES_MAX} bytes`));
      else out.push(chunk);
    });
    stderr?.on('data', (chunk: Buffer) => {
      words = `${words}${chunk.toString('utf8')}`.slice(-WORDS_CHARS_MAX);
    });
    // A program that does not read its input may still know the answer: its end decides.
    stdin?.on('error', () => {});
    stdin?.end(program.input);
    child.once('error', (error: NodeJS.ErrnoException) => {
      over();
      reject(new Error(startFailure(error, child.spawnfile)));
    });
    child.once('close', (code, signal) => {
      over();
      if (why !== undefined) reject(why);
      else if (code !== 0)
        reject(
          new Error(
            `ended with ${code === null ? `signal ${signal ?? ''}` : `exit code ${code}`}${quoted(withoutSecrets(words, secretsOf(program)))}`,
          ),
        );
      else resolve(Buffer.concat(out).toString('utf8'));
    });
  });
}

/** A name that is looked for in PATH fails with EACCES also when it is nowhere and one folder of PATH is not for this user. */
/** Begins the words about a program that does not exist. */
export const NO_PROGRAM = 'is not there, or not in PATH';

function startFailure(error: unknown, command: string): string {
  const code = codeOf(error);
  if (code === 'ENOENT') return NO_PROGRAM;
  if (code === 'EACCES' && !command.includes('/')) return `${NO_PROGRAM}, as far as this user may look (EACCES)`;
  return `cannot be run: ${code || messageOf(error)}`;
}

/** Of an argument that is a flag, its value. */
function secretsOf({ args, settings }: Program): string[] {
  if (settings === undefined) return [];
  return [...settings.map(({ value }) => value), ...args.map((arg) => arg.replace(/^-[^=]*=?/, ''))];
}

/** For people. Long runs of what keys and tokens are made of are blacked out. */
function quoted(words: string): string {
  const clean = words
    .replace(/[\w+/=.~-]{20,}/g, '***')
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim();
  return clean === '' ? '' : `: ${clean.slice(-ERROR_CHARACTERS_MAX)}`;
}
