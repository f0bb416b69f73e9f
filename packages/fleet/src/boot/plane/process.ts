/** One program of a control plane as processes of this machine, one after the other, with one log and one file with its process id. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { lastWords } from '../../plane/lastWords.ts';
import type { EndSignal } from '../../plane/messages.ts';
import type { ProgramNote } from '../../plane/programMachine.ts';
import type { Program } from '../../plane/programs.ts';
import { WARDEN } from './warden.ts';

/** A machine that is busy with other things is slow to start them. */
const READY_TIMEOUT_MS = 90_000;
const LOOK_EVERY_MS = 50;
/** A program that was told to end, and has not, is killed. */
const END_TIMEOUT_MS = 10_000;
const LOG_BYTES_MAX = 16 * 1024 * 1024;
/** Of its log, where it is looked through for what went wrong. */
const TAIL_BYTES = 64 * 1024;
/** Writes the process id before it becomes the program: whoever finds the process finds it by that file. */
const BECOME = 'echo $$ >"$0" && exec "$@"';

export interface LocalProgramOptions {
  name: string;
  /** The folder of the control plane. */
  dir: string;
  /** The executable and its flags. */
  command: readonly [string, ...string[]];
  /** Whether it answers. Absent: it is ready when it runs. */
  ready?: () => Promise<boolean>;
  /** It is ready, or ended by itself. */
  onChange(change: ProgramChange): void;
}
export type ProgramChange = { kind: 'ready'; again: boolean } | { kind: 'ended'; why: string };

/** How a process ended by itself. */
export class Ended extends Error {
  /** It ended by an exit code of its own, and not by a signal. */
  readonly byItself: boolean;

  constructor(message: string, byItself: boolean) {
    super(message);
    this.byItself = byItself;
  }
}

export class LocalProgram implements Program {
  readonly name: string;
  readonly logFile: string;
  /** Why it ended by itself, the last time; null: it did not, since it was ready. */
  failure: Error | null = null;
  readonly #o: LocalProgramOptions;
  readonly #pidFile: string;
  #on = false;
  #child: ChildProcess | undefined;
  #ended: Promise<Ended> | undefined;
  #wasReady = false;

  constructor(o: LocalProgramOptions) {
    this.#o = o;
    this.name = o.name;
    this.logFile = join(o.dir, 'logs', `${o.name}.log`);
    this.#pidFile = join(o.dir, 'run', `${o.name}.pid`);
  }

  get on(): boolean {
    return this.#on;
  }

  /** Of the process that runs. */
  get pid(): number | undefined {
    return this.alive ? this.#child?.pid : undefined;
  }

  get alive(): boolean {
    const child = this.#child;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  note({ on = this.#on, failure }: ProgramNote): void {
    this.#on = on;
    if (typeof failure === 'string') this.#o.onChange({ kind: 'ended', why: failure });
  }

  async start(signal: AbortSignal): Promise<void> {
    try {
      await this.end('SIGKILL');
      if (signal.aborted) return;
      this.#spawn();
      await this.#ready(signal);
    } catch (error) {
      this.failure = error instanceof Error ? error : new Error(messageOf(error));
      throw error;
    }
    if (signal.aborted) return;
    this.failure = null;
    this.#o.onChange({ kind: 'ready', again: this.#wasReady });
    this.#wasReady = true;
  }

  async fails(): Promise<never> {
    this.failure = (await this.#ended) ?? new Error(`${this.name} does not run`);
    throw this.failure;
  }

  async end(by: EndSignal): Promise<void> {
    const child = this.#child;
    if (child !== undefined && this.alive) {
      // A frozen process does not see a signal to end.
      child.kill('SIGCONT');
      child.kill(by);
      const late = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
      await this.#ended;
      clearTimeout(late);
    }
    rmSync(this.#pidFile, { force: true });
  }

  signal(signal: NodeJS.Signals): void {
    if (this.alive) this.#child?.kill(signal);
  }

  /** The end of its log. */
  async tail(): Promise<string> {
    const text = await readFile(this.logFile, 'utf8').catch(() => '');
    return text.slice(-TAIL_BYTES);
  }

  #spawn(): void {
    const { dir, command } = this.#o;
    for (const name of ['logs', 'run']) mkdirSync(join(dir, name), { recursive: true, mode: 0o700 });
    if ((statSync(this.logFile, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX) renameSync(this.logFile, `${this.logFile}.1`);
    const log = openSync(this.logFile, 'a', 0o600);
    try {
      const child = startProcess('/bin/sh', ['-c', BECOME, this.#pidFile, ...command], {
        // The other end of the warden's input closes when this process ends, in whatever way.
        stdio: [this.name === WARDEN ? 'pipe' : 'ignore', log, log],
        // A session of its own: a Ctrl-C at the terminal reaches this process alone, which ends them in order.
        detached: true,
        cwd: dir,
        // Neither a kubeconfig nor library paths of the person who starts it.
        env: { PATH: process.env.PATH ?? '', HOME: dir },
      });
      this.#child = child;
      this.#ended = this.#endOf(child);
    } finally {
      closeSync(log);
    }
  }

  /** Never rejects. */
  async #endOf(child: ChildProcess): Promise<Ended> {
    try {
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
      if (signal !== null) return new Ended(`${this.name} was killed by ${signal}`, false);
      const words = lastWords(await this.tail());
      return new Ended(`${this.name} ended with exit code ${code}${words === '' ? '' : `: ${words}`}`, true);
    } catch (error) {
      return new Ended(`${this.name} could not be started: ${messageOf(error)}`, true);
    }
  }

  async #ready(signal: AbortSignal): Promise<void> {
    const { ready } = this.#o;
    if (ready === undefined) return;
    const deadline = performance.now() + READY_TIMEOUT_MS;
    let ended: Ended | undefined;
    void this.#ended?.then((it) => {
      ended = it;
    });
    while (!signal.aborted) {
      if (await ready().catch(() => false)) return;
      if (ended !== undefined) throw ended;
      if (performance.now() > deadline) {
        const words = lastWords(await this.tail());
        throw new Ended(`${this.name} was not ready after ${READY_TIMEOUT_MS / 1_000} s${words === '' ? '' : `: ${words}`}`, true);
      }
      await wait(LOOK_EVERY_MS);
    }
  }
}
