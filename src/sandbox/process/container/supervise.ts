/**
 * One container's processes: start through the shim, output, the end, stop, kill, and being found again by a runtime
 * that was restarted. The row it is given is the truth that lists show; it is saved at every change.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { exitReason } from '../../shared/model.ts';
import { findCommand, type Isolation } from '../probe.ts';
import { startProcess } from '../startProcess.ts';
import type { Layout, StoredContainer } from '../store.ts';
import { type LogFile, type LogPump, openLogFile, pumpFifo } from './logs.ts';
import { argumentsOf, bootId, firstChild, hasEnv, isAlive, processesOf, readStat, scanProcesses, signal } from './procfs.ts';
import { MARK, shimCommand } from './shim.ts';

/** Namespaces and mounts take milliseconds; longer means that the host is stuck, and the start is given up. */
const READY_WITHIN_MS = 10_000;
/** How often, and for how long at most, a stop looks whether the command of a container just started was executed. */
const EXECUTED_LOOK_MS = 5;
const EXECUTED_WITHIN_MS = 5_000;
/** Between rounds of KILL, while new processes appear as fast as they are killed. */
const KILL_AGAIN_MS = 20;
const KILL_ROUNDS_MAX = 50;
const STRAGGLER_ROUNDS_MAX = 5;
/** From the end of all output to the conclusion that the shim is gone without a word. */
const SILENT_END_MS = 100;

export interface SuperviseDeps {
  layout: Layout;
  isolation: Isolation;
  nowMs(): number;
  /** Throws: for a change without which going on would be wrong. */
  save(row: StoredContainer): void;
  warn(message: string): void;
  /** The row changed from RUNNING to EXITED. */
  onExit(row: StoredContainer): void;
}

export interface Supervised {
  readonly row: StoredContainer;
  /** Rejects with the reason when the command could not be started; the row is then EXITED with 128. */
  start(): Promise<void>;
  /** After a restart of the runtime: attach to live processes, or learn how they ended. */
  adopt(): Promise<void>;
  /** The stop signal, then KILL after the grace; resolves when the container has ended. */
  stop(graceMs: number): Promise<void>;
  /** Host pid of PID 1 in the container's namespaces; null for a plain process group. */
  innerPid(): number | null;
  reopenLog(): Promise<void>;
  /** Everything that could tell us of changes is closed; processes are left alone. */
  close(): Promise<void>;
  /** From the watch on the exits folder. */
  onFile(kind: 'exit' | 'ready'): void;
}

export function supervise(row: StoredContainer, deps: SuperviseDeps): Supervised {
  const { layout, isolation } = deps;
  const { id } = row;
  let child: ChildProcess | undefined;
  let log: LogFile | undefined;
  let pumps: LogPump[] = [];
  let ackFd: number | null = null;
  let starting: Promise<void> | null = null;
  let readyWake: (() => void) | undefined;
  let ending: Promise<void> | null = null;
  let childEnd: { code: number } | null = null;
  let startOutput = '';
  let closed = false;
  const exitWaiters: (() => void)[] = [];

  const mark = `${MARK}=${id}`;
  /** For what has happened already: memory holds it, a disk that cannot is a warning. */
  const note = (): void => {
    try {
      deps.save(row);
    } catch (error) {
      deps.warn(
        `the state of container ${id} cannot be saved: ${(error as Error).message}; a restart of the runtime would see an older one`,
      );
    }
  };
  const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;
  /** The code the shim wrote; undefined while it is not there or not complete. */
  const exitFile = (): { code: number; atMs: number } | undefined => {
    try {
      const text = readFileSync(layout.exit(id), 'latin1');
      return text.endsWith('\n') ? { code: Number.parseInt(text, 10), atMs: statSync(layout.exit(id)).mtimeMs } : undefined;
    } catch {
      return undefined;
    }
  };
  const shimAlive = (): boolean => row.shim !== null && isAlive(row.shim, bootId());

  const attachOutput = (): void => {
    log = openLogFile(row.logPath === '' ? '/dev/null' : row.logPath, deps.warn);
    const file = log;
    const out = pumpFifo(layout.container(id, 'out'), 'stdout', (chunk) => file.write(chunk));
    const err = pumpFifo(layout.container(id, 'err'), 'stderr', (chunk) => {
      if (starting !== null && startOutput.length < 1024) startOutput += chunk.toString('utf8');
      file.write(chunk);
    });
    pumps = [out, err];
    file.onPressure = (pause) => {
      for (const p of pumps) p.pause(pause);
    };
    void Promise.all(pumps.map((p) => p.ended)).then(() => {
      if (closed || row.state === 'CONTAINER_EXITED') return;
      setTimeout(() => {
        if (!closed && !shimAlive()) void end();
      }, SILENT_END_MS);
    });
  };
  const detachOutput = async (): Promise<void> => {
    for (const p of pumps) p.close();
    pumps = [];
    if (ackFd !== null) closeSync(ackFd);
    ackFd = null;
    await log?.close();
    log = undefined;
  };

  const kill = (pid: number): void => {
    try {
      signal(pid, 'SIGKILL');
    } catch (error) {
      deps.warn(`cannot kill process ${pid} of container ${id}: ${(error as Error).message}`);
    }
  };
  /** Kills everything but the shim; again while more appears, as a process may fork while it is looked for. */
  const killStragglers = (): void => {
    for (let round = 0; row.shim !== null && round < STRAGGLER_ROUNDS_MAX; round++) {
      const left = processesOf(row.shim, mark, scanProcesses());
      if (left.length === 0) return;
      for (const p of left) kill(p.pid);
    }
  };

  /** Once: takes the exit code, ends stragglers, finishes the log, lets the shim go, tells everybody. */
  const end = (): Promise<void> => {
    ending ??= finish();
    return ending;
  };
  const finish = async (): Promise<void> => {
    if (starting !== null) await starting.catch(() => undefined);
    if (row.state === 'CONTAINER_EXITED') return;
    const told = exitFile();
    // Without a PID namespace whose end is everybody's, the command's children must be ended here.
    try {
      if (!row.plan.shim.namespaces.pid) killStragglers();
      await Promise.all(pumps.map((p) => p.drained()));
      await log?.flush();
    } catch (error) {
      // No descriptors left, a full disk: the end itself must still be told.
      deps.warn(`the end of container ${id} is not complete: ${(error as Error).message}`);
    }
    row.exitCode = told?.code ?? (row.killed ? 137 : (childEnd?.code ?? 255));
    const unknown = !row.killed && told === undefined && childEnd === null;
    row.reason = unknown ? 'ContainerStatusUnknown' : exitReason(row.exitCode);
    row.message = unknown ? 'the container ended while the embedded runtime was not running, and left no exit code' : '';
    row.finishedAtMs = Math.max(told?.atMs ?? deps.nowMs(), row.startedAtMs);
    row.state = 'CONTAINER_EXITED';
    note();
    release();
    for (const wake of exitWaiters.splice(0)) wake();
    deps.onExit(row);
  };
  /** Lets a shim that waits go; the FIFO end follows and closes the rest. */
  const release = (): void => {
    try {
      // Opened both ways: the word stays in the FIFO even if the shim is not yet there to read it.
      ackFd ??= openSync(layout.container(id, 'ack'), constants.O_RDWR | constants.O_NONBLOCK);
      writeSync(ackFd, '\n');
    } catch (error) {
      deps.warn(`cannot release the shim of container ${id}: ${(error as Error).message}`);
    }
    const done = pumps.length === 0 ? Promise.resolve() : Promise.race([Promise.all(pumps.map((p) => p.ended)), later(2000)]);
    void done.then(() => detachOutput());
  };

  const startFailed = (why: string): never => {
    row.state = 'CONTAINER_EXITED';
    row.exitCode = 128;
    row.reason = 'StartError';
    row.message = why;
    row.finishedAtMs = deps.nowMs();
    row.starting = false;
    note();
    for (const wake of exitWaiters.splice(0)) wake();
    deps.onExit(row);
    throw new Error(why);
  };

  const doStart = async (): Promise<void> => {
    const { shim, env } = row.plan;
    const [name = '', ...rest] = shim.argv;
    const file = findCommand(name, env.PATH ?? '', shim.cwd);
    if (file === '') startFailed(`exec: ${JSON.stringify(name)}: executable file not found in $PATH`);
    if (statSync(shim.cwd, { throwIfNoEntry: false })?.isDirectory() !== true) startFailed(`working directory ${shim.cwd} does not exist`);
    const command = shimCommand(
      { ...shim, argv: [file, ...rest] },
      {
        shim: layout.shim,
        init: layout.init,
        exit: layout.exit(id),
        ready: layout.ready(id),
        ack: layout.container(id, 'ack'),
        pid: layout.container(id, 'pid'),
      },
      isolation,
    );
    row.starting = true;
    deps.save(row);
    // Opened both ways and blocking: never a broken pipe for the container, whatever becomes of this process.
    const out = openSync(layout.container(id, 'out'), constants.O_RDWR);
    const err = openSync(layout.container(id, 'err'), constants.O_RDWR);
    let spawnError: Error | undefined;
    try {
      attachOutput();
      const inner = Object.values(shim.namespaces).some(Boolean);
      child = startProcess(command.file, command.args, { cwd: inner ? '/' : shim.cwd, env, detached: true, stdio: ['ignore', out, err] });
      child.on('error', (error) => {
        spawnError = error;
        readyWake?.();
      });
      child.on('exit', (code, sig) => {
        childEnd = { code: code ?? 128 + (sig === null ? 0 : (osConstants.signals[sig] ?? 0)) };
        readyWake?.();
        if (!closed && starting === null) void end();
      });
      child.unref();
    } finally {
      closeSync(out);
      closeSync(err);
    }
    if (child.pid !== undefined) {
      const stat = readStat(child.pid);
      if (stat !== null) row.shim = { pid: child.pid, startTicks: stat.startTicks, bootId: bootId() };
    }
    const deadlineMs = performance.now() + READY_WITHIN_MS;
    while (!exists(layout.ready(id)) && exitFile() === undefined && childEnd === null && spawnError === undefined) {
      if (performance.now() > deadlineMs) break;
      // Woken by the watch on the exits folder; the timer is for a watch that failed.
      await Promise.race([new Promise<void>((wake) => (readyWake = wake)), later(250)]);
    }
    readyWake = undefined;
    if (!exists(layout.ready(id))) {
      killStragglers();
      if (row.shim !== null && shimAlive()) signal(row.shim.pid, 'SIGKILL');
      if (spawnError === undefined) await Promise.all(pumps.map((p) => p.drained()));
      await detachOutput();
      const told = startOutput
        .split('\n')
        .map((l) => l.replace(/^\S+ stderr [FP] /, ''))
        .filter((l) => l !== '')
        .join('; ');
      startFailed(spawnError?.message ?? (told || `the container was not up within ${READY_WITHIN_MS} ms`));
    }
    row.starting = false;
    row.state = 'CONTAINER_RUNNING';
    row.startedAtMs = deps.nowMs();
    note();
    rmSync(layout.ready(id), { force: true });
  };

  const innerPid = (): number | null => {
    const ns = row.plan.shim.namespaces;
    if (row.shim === null || !(ns.pid || ns.mount || ns.uts || ns.ipc)) return null;
    return shimAlive() ? firstChild(row.shim.pid) : null;
  };

  /**
   * Between its word that all is set up and the execution of the command, a shell of the shim takes a signal for itself
   * and the command never hears of it. Waits that moment out, within bounds: not long, on a machine that is not stuck.
   */
  const commandHears = async (withinMs: number): Promise<void> => {
    const deadlineMs = performance.now() + withinMs;
    while (row.state === 'CONTAINER_RUNNING' && row.shim !== null && shimAlive() && performance.now() < deadlineMs) {
      const parent = Object.values(row.plan.shim.namespaces).some(Boolean) ? firstChild(row.shim.pid) : row.shim.pid;
      const command = parent === null ? null : firstChild(parent);
      if (parent !== null && command !== null && argumentsOf(command) !== argumentsOf(parent)) return;
      await later(EXECUTED_LOOK_MS);
    }
  };

  const killAll = async (): Promise<void> => {
    row.killed = true;
    note();
    for (let round = 0; round < KILL_ROUNDS_MAX && row.state === 'CONTAINER_RUNNING'; round++) {
      // The shim's one child is the command, or PID 1 of the namespaces: with it gone the shim reports, and the end of the
      // container deals with the rest.
      const victim = row.shim !== null && shimAlive() ? firstChild(row.shim.pid) : null;
      if (victim !== null) kill(victim);
      await Promise.race([exited(), later(KILL_AGAIN_MS)]);
      if (exitFile() !== undefined) {
        await end();
        return;
      }
      if (!shimAlive()) break;
    }
    if (row.state === 'CONTAINER_RUNNING' && row.shim !== null && shimAlive()) signal(-row.shim.pid, 'SIGKILL');
    if (row.state === 'CONTAINER_RUNNING' && !shimAlive()) await end();
    await exited();
  };
  const exited = (): Promise<void> =>
    row.state === 'CONTAINER_RUNNING' ? new Promise((wake) => exitWaiters.push(wake)) : Promise.resolve();

  return {
    row,
    async start() {
      starting = doStart().catch(async (error: Error) => {
        // Failed on the way, before it could say so itself: no descriptors left, a full disk.
        if (row.state !== 'CONTAINER_CREATED') throw error;
        await detachOutput();
        startFailed(error.message);
      });
      try {
        await starting;
      } finally {
        starting = null;
      }
      if (childEnd !== null || exitFile() !== undefined) void end();
    },
    async adopt() {
      if (row.starting) {
        const pid = Number(readIfThere(layout.container(id, 'pid')));
        const stat = pid > 0 && hasEnv(pid, mark) ? readStat(pid) : null;
        row.shim = stat === null ? row.shim : { pid, startTicks: stat.startTicks, bootId: bootId() };
        row.starting = false;
        row.startedAtMs = deps.nowMs();
        row.state = 'CONTAINER_RUNNING';
        if (row.shim === null && exitFile() === undefined) {
          try {
            startFailed('the embedded runtime ended while it started this container');
          } catch {
            return;
          }
        }
        note();
      }
      if (row.state !== 'CONTAINER_RUNNING') return;
      if (shimAlive()) attachOutput();
      if (exitFile() !== undefined || !shimAlive()) await end();
    },
    async stop(graceMs) {
      if (starting !== null) await starting.catch(() => undefined);
      if (row.state !== 'CONTAINER_RUNNING' || row.shim === null) return;
      if (graceMs <= 0) return killAll();
      await commandHears(Math.min(graceMs, EXECUTED_WITHIN_MS));
      if (row.state !== 'CONTAINER_RUNNING') return;
      if (!shimAlive() || !signal(-row.shim.pid, row.plan.shim.stopSignal)) return end();
      let timer: NodeJS.Timeout | undefined;
      const over = new Promise<'over'>((resolve) => {
        timer = setTimeout(() => resolve('over'), graceMs);
      });
      const first = await Promise.race([exited(), over]);
      clearTimeout(timer);
      if (first === 'over') await killAll();
    },
    innerPid,
    async reopenLog() {
      await log?.reopen();
    },
    async close() {
      closed = true;
      await detachOutput();
    },
    onFile(kind) {
      if (kind === 'ready') readyWake?.();
      else if (starting !== null) readyWake?.();
      else if (row.state === 'CONTAINER_RUNNING' && exitFile() !== undefined) void end();
    },
  };
}

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim();
  } catch {
    return '';
  }
}
