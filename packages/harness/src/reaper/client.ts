/** The runner's end of a reaper: starts it, tells it what to do, and cleans up itself should the reaper be killed. */
import type { ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_FLAGS, startProcess } from '@actorlet/process/src/startProcess.ts';
import type { Charge, FromReaper, ToReaper } from './charge.ts';
import { cleanUp } from './cleanup.ts';

/** Generous: what is left after a failed start of Node on a loaded machine is an error, not a wait. */
const READY_TIMEOUT_MS = 60_000;
/** Stopping pods, the runtime and all; beyond it the machine is stuck. */
const END_TIMEOUT_MS = 120_000;

export interface DaemonEnd {
  code: number | null;
  signal: string | null;
}

export class Reaper {
  readonly #charge: Charge;
  readonly #child: ChildProcess;
  readonly #told = new EventEmitter();
  #holds = 0;
  #daemonPid = 0;
  /** Start time of the daemon's process, which tells it from a later one with the same id. */
  #daemonBorn = '';
  #ended: Promise<string[]> | undefined;

  private constructor(charge: Charge, child: ChildProcess) {
    this.#charge = charge;
    this.#child = child;
    this.#told.setMaxListeners(0);
    child.on('message', (m) => this.#hear(m as FromReaper));
    child.once('exit', () => this.#told.emit('gone'));
    // A runner that forgets to end its node may still end: the reaper sees the channel close.
    child.unref();
    child.channel?.unref();
  }

  /** @throws when the runtime is not to be had, with the reason. Nothing is left then. */
  static async start(entry: string, charge: Charge): Promise<Reaper> {
    const log = openSync(join(charge.dir, 'reaper.log'), 'a', 0o600);
    // Detached: a session of its own, which a Ctrl-C at the runner's terminal does not reach.
    const child = startProcess(process.execPath, [...NODE_FLAGS, entry, JSON.stringify(charge)], {
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
      env: cleanEnv(process.env),
    });
    closeSync(log);
    const reaper = new Reaper(charge, child);
    try {
      await reaper.#answer('ready', READY_TIMEOUT_MS);
    } catch (error) {
      await reaper.end();
      throw error;
    }
    return reaper;
  }

  /** The daemon's process id, once there is one. */
  async startDaemon(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
    const started = this.#answer('started', READY_TIMEOUT_MS);
    this.#tell({ type: 'start', args: [...NODE_FLAGS, ...args], env: cleanEnv(env) });
    await started;
    return this.#daemonPid;
  }

  /** What follows is an end of the daemon, or nothing. */
  signal(signal: NodeJS.Signals): void {
    this.#tell({ type: 'signal', signal });
  }

  /** Keeps the runner alive until `work` is settled, which the channel alone does not. */
  async hold<T>(work: Promise<T>): Promise<T> {
    const { channel } = this.#child;
    this.#holds += 1;
    channel?.ref();
    try {
      return await work;
    } finally {
      this.#holds -= 1;
      if (this.#holds === 0) channel?.unref();
    }
  }

  onDaemonEnd(fn: (end: DaemonEnd) => void): void {
    this.#told.on('exited', ({ code, signal }: DaemonEnd) => fn({ code, signal }));
    this.#told.once('gone', () => fn({ code: null, signal: null }));
  }

  /** Ends the daemon, removes everything, ends the reaper. Resolves with what is left. May be called again. */
  end(): Promise<string[]> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<string[]> {
    if (this.#alive()) {
      const exited = this.#exited();
      const ended = this.#answer('ended', END_TIMEOUT_MS).catch((error: Error) => error);
      this.#tell({ type: 'end' });
      const last = await ended;
      if (!(last instanceof Error) && last.type === 'ended') {
        if (this.#alive()) await exited;
        return last.left;
      }
      if (this.#alive()) return [`the reaper (process ${this.#child.pid}) did not finish: ${last instanceof Error ? last.message : ''}`];
    }
    this.#killOrphan();
    return cleanUp(this.#charge);
  }

  /** The reaper was killed: its daemon lives on, unless it is another process by now. */
  #killOrphan(): void {
    if (this.#daemonPid === 0 || this.#daemonBorn === '' || bornAt(this.#daemonPid) !== this.#daemonBorn) return;
    try {
      process.kill(this.#daemonPid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  /** Keeps the runner alive until the reaper has ended. */
  async #exited(): Promise<void> {
    this.#child.ref();
    await once(this.#child, 'exit');
  }

  #alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined;
  }

  #hear(m: FromReaper): void {
    if (m.type === 'started') {
      this.#daemonPid = m.pid;
      this.#daemonBorn = bornAt(m.pid);
    }
    this.#told.emit(m.type, m);
  }

  #tell(m: ToReaper): void {
    if (!this.#child.connected) throw new Error('the reaper of this node is gone; the node has ended with it');
    // The callback takes the error of a reaper that died just now; its end is seen elsewhere.
    this.#child.send(m, () => undefined);
  }

  /** The next message of that type. Keeps the runner alive meanwhile. */
  async #answer(type: FromReaper['type'], timeoutMs: number): Promise<FromReaper> {
    const seen = new AbortController();
    const { signal } = seen;
    const late = setTimeout(() => this.#told.emit('late'), timeoutMs);
    try {
      const [m] = (await Promise.race([
        once(this.#told, type, { signal }),
        once(this.#told, 'refused', { signal }),
        once(this.#told, 'gone', { signal }).then(() => {
          throw new Error(`the reaper of the node ended (${this.#child.exitCode ?? this.#child.signalCode ?? 'could not be started'})`);
        }),
        once(this.#told, 'late', { signal }).then(() => {
          throw new Error(`no word from the reaper of the node within ${timeoutMs / 1_000} s`);
        }),
      ])) as [FromReaper];
      if (m.type === 'refused') throw new Error(m.why);
      return m;
    } finally {
      clearTimeout(late);
      seen.abort();
    }
  }
}

/** `''` when there is no such process. */
function bornAt(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Field 22, counted from behind the command's name, which may hold anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/** Variables of the runner that would make another process behave as a part of it. */
const NOT_PASSED_ON = [
  'NODE_OPTIONS',
  'NODE_V8_COVERAGE',
  'NODE_TEST_CONTEXT',
  'NODE_CHANNEL_FD',
  'NOTIFY_SOCKET',
  'WATCHDOG_USEC',
  'WATCHDOG_PID',
];

export function cleanEnv(env: NodeJS.ProcessEnv): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined && !NOT_PASSED_ON.includes(name)) out[name] = value;
  return out;
}
