/**
 * Calls of mount(8) and umount(8), many in one helper process: a fork of this process stops it for milliseconds, and a hundred pods that
 * come or go at once ask for hundreds. What is asked for while a helper is at work goes to the next one. In a helper all run side by side,
 * and each is answered by itself. Calls that may hang share helpers with calls for the same server alone.
 */

import type { ChildProcessByStdio } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { MountCall } from '../../../ports/machine/mounter.ts';
import { AtOnce } from '../../../ports/turns.ts';
import { MountError, mountErrorOf } from './mountError.ts';

const CALLS_MAX = 32;
/** Text of the calls of one helper: Linux takes 128 KiB as one argument (MAX_ARG_STRLEN). A longer call goes, and fails, alone. */
const CALLS_BYTES_MAX = 96 * 1024;
/** Helpers that are waited for before the next begins. */
const HELPERS_MAX = 2;
/** Local mounts take milliseconds. A helper that takes longer has met something that hangs: the next one begins without it. */
const SLOW_MS = 250;
/** Mounts from one server at once. */
const ALONE_MAX = 32;
/** How much is kept of the output of a call that failed. */
const WORDS_BYTES_MAX = 400;

/** One line to each call: its number, its exit code, and what it said if it failed. */
const RUN = [
  'run() { n=$1; shift',
  'if said=$("$@" 2>&1); then echo "$n 0"',
  `else code=$?; echo "$n $code $(printf %s "$said" | tr '\\n' ';' | cut -c1-${WORDS_BYTES_MAX})"; fi; }`,
].join('\n');

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

type Helper = ChildProcessByStdio<null, Readable, null>;

/** One call of a command: it is answered once, by its helper or by its deadline. */
class Call {
  readonly words: readonly string[];
  /** For the shell. */
  readonly text: string;
  readonly answered: Promise<void>;
  /** Its deadline has come. */
  onLate: () => void = () => {};
  readonly #cancelled: AbortSignal;
  readonly #late: NodeJS.Timeout;
  #over = false;
  #resolve: () => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(words: readonly string[], { timeoutMs, signal }: MountCall) {
    this.words = words;
    this.text = words.map(quoted).join(' ');
    this.#cancelled = signal;
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const message = `${words.join(' ')}: no end within ${timeoutMs} ms; what became of it is not known`;
    this.#late = setTimeout(() => {
      this.failed(new MountError('ETIMEDOUT', message));
      this.onLate();
    }, timeoutMs);
  }
  /** Nobody waits for it any more: it need not begin. */
  dropped(): boolean {
    if (this.#over) return true;
    if (this.#cancelled.aborted) this.failed(new MountError('ECANCELED', `${this.words[0] ?? ''}: cancelled`));
    return this.#over;
  }
  done(): void {
    this.#end();
    this.#resolve();
  }
  failed(error: Error): void {
    this.#end();
    this.#reject(error);
  }
  #end(): void {
    this.#over = true;
    clearTimeout(this.#late);
  }
}

/**
 * `may hang`: a helper ends at the first deadline of its calls, with all that it started. What hangs must not come to its end
 * later, over what was done since.
 */
type Kind = 'local' | 'may hang';

/** Calls that share helpers, in the order of the asking. */
class Lane {
  readonly #kind: Kind;
  readonly #waiting: Call[] = [];
  #helpers = 0;
  #due = false;

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  get idle(): boolean {
    return this.#helpers === 0 && this.#waiting.length === 0;
  }

  add(one: Call): void {
    this.#waiting.push(one);
    // Calls of the same turn go together.
    if (!this.#due) setImmediate(() => this.#next());
    this.#due = true;
  }

  #next(): void {
    this.#due = false;
    while (this.#helpers < HELPERS_MAX && this.#waiting.length > 0) {
      const calls = this.#waiting.splice(0, this.#fitting()).filter((one) => !one.dropped());
      if (calls.length > 0) this.#counted(calls);
    }
  }

  /** How many of those that wait go into one helper: one at least. */
  #fitting(): number {
    let bytes = 0;
    const over = this.#waiting.findIndex((one, n) => {
      bytes += Buffer.byteLength(one.text);
      return n === CALLS_MAX || (n > 0 && bytes > CALLS_BYTES_MAX);
    });
    return over < 0 ? this.#waiting.length : over;
  }

  #counted(calls: readonly Call[]): void {
    this.#helpers += 1;
    let counted = true;
    const free = () => {
      clearTimeout(slow);
      if (!counted) return;
      counted = false;
      this.#helpers -= 1;
      this.#next();
    };
    const slow = this.#kind === 'local' ? setTimeout(free, SLOW_MS) : undefined;
    begin(calls, this.#kind, free);
  }
}

export class MountBatches {
  readonly #local = new Lane('local');
  readonly #servers = new Map<string, Lane>();
  readonly #alone = new AtOnce(ALONE_MAX);

  /**
   * Runs a command of words. Rejects unless it ends with 0 in time. The signal cancels what has not begun; what has goes on
   * to its end or its deadline, since nobody could say what became of it, and what comes next must not overtake it.
   */
  run(words: readonly string[], call: MountCall): Promise<void> {
    return added(this.#local, words, call);
  }

  /** The same of an unmount that may wait for a server. Calls for other servers do not wait for it. */
  unmount(words: readonly string[], server: string, call: MountCall): Promise<void> {
    const lane = this.#servers.get(server) ?? new Lane('may hang');
    this.#servers.set(server, lane);
    const over = () => {
      if (lane.idle && this.#servers.get(server) === lane) this.#servers.delete(server);
    };
    return added(lane, words, call).finally(over);
  }

  /** The same of a mount that may wait for a server, in a helper of its own, which ends at the deadline with all that it started. */
  alone(words: readonly string[], server: string, call: MountCall): Promise<void> {
    const one = new Call(words, call);
    void this.#alone.run(server, async () => {
      if (one.dropped()) return;
      begin([one], 'may hang', () => undefined);
      await one.answered.catch(() => undefined);
    });
    return one.answered;
  }
}

function added(lane: Lane, words: readonly string[], call: MountCall): Promise<void> {
  const one = new Call(words, call);
  // Alone: it would end the helper of those it goes with.
  if (one.text.includes('\0')) one.failed(new MountError('EINVAL', `${words[0] ?? ''}: a zero byte in ${JSON.stringify(words)}`));
  lane.add(one);
  return one.answered;
}

/** Starts a helper. `free`: it has ended. */
function begin(calls: readonly Call[], kind: Kind, free: () => void): void {
  const [only] = calls;
  // A call that goes alone takes one process less.
  const lines = calls.length === 1 ? [`run 0 ${only?.text ?? ''}`] : [...calls.map((one, n) => `run ${n} ${one.text} &`), 'wait'];
  const script = [RUN, ...lines].join('\n');
  let why = 'the helper ended before it said what became of it';
  const over = () => {
    free();
    // Calls that were answered stay so.
    for (const one of calls) one.failed(new MountError('EIO', `${one.words.join(' ')}: ${why}`));
  };
  let child: Helper;
  try {
    // A process group of its own: what hangs is ended together with the process that waits for it.
    child = startProcess('/bin/sh', ['-c', script], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' },
      detached: true,
    });
  } catch (error) {
    why = `/bin/sh cannot be run: ${messageOf(error)}`;
    over();
    return;
  }
  // A pipe to a process that cannot be started is closed all the same.
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [n = '', code = '', ...said] = line.split(' ');
    if (code === '0') calls[Number(n)]?.done();
    else calls[Number(n)]?.failed(mountErrorOf(said.join(' ') || `ended with ${code}`));
  });
  child.once('error', (error) => {
    why = `/bin/sh cannot be run: ${error.message}`;
  });
  child.once('close', over);
  if (kind === 'may hang') for (const one of calls) one.onLate = () => end(child);
  void Promise.allSettled(calls.map((one) => one.answered)).then(() => end(child));
}

/** What is left of it hangs, and no signal but this one may end it, if any does. */
function end({ pid, exitCode, signalCode, stdout }: Helper): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
  stdout.destroy();
}
