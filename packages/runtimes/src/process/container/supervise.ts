/**
 * One container's processes: start through the shim, output, the end, stop, kill, and being found again by a runtime
 * that was restarted. The row it is given is the truth that lists show; it is saved at every change.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, constants, openSync, statSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import type { OciPlan } from '../../oci/rows.ts';
import { exitReason } from '../../shared/model.ts';
import { findCommand, type Isolation } from '../probe.ts';
import type { Layout, StoredContainer } from '../store/store.ts';
import { Output, type Tap } from './output.ts';
import { later, Processes } from './processes.ts';
import { shimCommand } from './shim.ts';
import { ShimFiles } from './shimFiles.ts';

/** Namespaces and mounts take milliseconds; longer means that the host is stuck, and the start is given up. */
const READY_WITHIN_MS = 10_000;
/** For how long at most a stop waits until the command of a container just started was executed. */
const EXECUTED_WITHIN_MS = 5_000;
/** Between rounds of KILL, while new processes appear as fast as they are killed. */
const KILL_AGAIN_MS = 20;
const KILL_ROUNDS_MAX = 50;
/** From the end of all output to the conclusion that the shim is gone without a word. */
const SILENT_END_MS = 100;
/** How long the FIFOs may stay open after the shim was released; then they are closed here. */
const OUTPUT_END_MS = 2000;

export interface SuperviseDeps {
  layout: Layout;
  isolation: Isolation;
  nowMs(): number;
  /** Throws: for a change without which going on would be wrong. */
  save(row: StoredContainer): void;
  warn(message: string): void;
  /** Called for an OCI container that has ended. */
  ended(plan: OciPlan): { oomKilled: boolean };
  /** The row changed from RUNNING to EXITED. */
  onExit(row: StoredContainer): void;
}

export class Supervised {
  readonly row: StoredContainer;
  readonly #deps: SuperviseDeps;
  readonly #files: ShimFiles;
  readonly #processes: Processes;
  readonly #output: Output;
  #starting: Promise<void> | null = null;
  #spawnError: Error | undefined;
  #childEnd: { code: number } | null = null;
  /** Wakes the start, which waits for a report of the shim. */
  #wake: (() => void) | undefined;
  #ending: Promise<void> | null = null;
  #closed = false;
  readonly #exitWaiters: (() => void)[] = [];

  constructor(row: StoredContainer, deps: SuperviseDeps) {
    this.row = row;
    this.#deps = deps;
    this.#files = new ShimFiles(deps.layout, row.id);
    this.#processes = new Processes(row, deps.warn);
    this.#output = new Output(row, deps);
  }

  /** Rejects with the reason when the command could not be started; the row is then EXITED with 128. */
  async start(): Promise<void> {
    this.#starting = this.#start().catch(async (error: Error) => {
      if (this.row.state === 'CONTAINER_CREATED') {
        await this.#detach();
        this.#startFailed(error.message);
      }
      throw error;
    });
    try {
      await this.#starting;
    } finally {
      this.#starting = null;
    }
    if (this.#childEnd !== null || this.#files.exit() !== undefined) void this.#end();
  }

  async #start(): Promise<void> {
    const { row } = this;
    const command = this.#command();
    row.starting = true;
    this.#deps.save(row);
    const { pid } = this.#spawn(command);
    if (pid !== undefined) this.#processes.setShim(pid);
    await this.#reported();
    if (!this.#files.isReady()) throw await this.#notReady();
    row.starting = false;
    row.state = 'CONTAINER_RUNNING';
    row.startedAtMs = this.#deps.nowMs();
    this.#note();
    this.#files.dropReady();
  }

  /** Throws where the command or its working directory is missing. */
  #command(): { file: string; args: string[] } {
    const { shim, env } = this.row.plan;
    const [name = '', ...rest] = shim.argv;
    const file = findCommand(name, env.PATH ?? '', shim.cwd);
    if (file === '') throw new Error(`exec: ${JSON.stringify(name)}: executable file not found in $PATH`);
    if (statSync(shim.cwd, { throwIfNoEntry: false })?.isDirectory() !== true) {
      throw new Error(`working directory ${shim.cwd} does not exist`);
    }
    return shimCommand({ ...shim, argv: [file, ...rest] }, this.#files.paths, this.#deps.isolation);
  }

  #spawn(command: { file: string; args: string[] }): ChildProcess {
    const { layout } = this.#deps;
    const { shim, env } = this.row.plan;
    // Opened both ways and blocking: never a broken pipe for the container, whatever becomes of this process.
    const out = openSync(layout.container(this.row.id, 'out'), constants.O_RDWR);
    const err = openSync(layout.container(this.row.id, 'err'), constants.O_RDWR);
    try {
      this.#attach();
      const cwd = Object.values(shim.namespaces).some(Boolean) ? '/' : shim.cwd;
      const child = startProcess(command.file, command.args, { cwd, env, detached: true, stdio: ['ignore', out, err] });
      child.on('error', (error) => {
        this.#spawnError = error;
        this.#wake?.();
      });
      child.on('exit', (code, sig) => {
        this.#childEnd = { code: code ?? 128 + (sig === null ? 0 : (osConstants.signals[sig] ?? 0)) };
        this.#wake?.();
        if (!this.#closed && this.#starting === null) void this.#end();
      });
      child.unref();
      return child;
    } finally {
      closeSync(out);
      closeSync(err);
    }
  }

  /** Until the shim reports that all is set up, ends, or takes too long. */
  async #reported(): Promise<void> {
    const deadlineMs = performance.now() + READY_WITHIN_MS;
    const silent = (): boolean => !this.#files.isReady() && this.#files.exit() === undefined;
    while (silent() && this.#childEnd === null && this.#spawnError === undefined) {
      if (performance.now() > deadlineMs) break;
      // Woken by the watch on the exits folder; the timer is for a watch that failed.
      await Promise.race([new Promise<void>((wake) => (this.#wake = wake)), later(250)]);
    }
    this.#wake = undefined;
  }

  /** Kills what was started; returns the reason why it is not up. */
  async #notReady(): Promise<Error> {
    this.#processes.killStragglers();
    this.#processes.killShim();
    if (this.#spawnError === undefined) await this.#output.drained();
    await this.#detach();
    const late = `the container was not up within ${READY_WITHIN_MS} ms`;
    return new Error(this.#spawnError?.message ?? (this.#output.startErrors() || late));
  }

  #startFailed(why: string): void {
    const { row } = this;
    row.state = 'CONTAINER_EXITED';
    row.exitCode = 128;
    row.reason = 'StartError';
    row.message = why;
    row.finishedAtMs = this.#deps.nowMs();
    row.starting = false;
    this.#note();
    this.#exited();
  }

  /** After a restart of the runtime: attach to live processes, or learn how they ended. */
  async adopt(): Promise<void> {
    const { row } = this;
    if (row.starting) {
      this.#processes.findShim();
      row.starting = false;
      row.startedAtMs = this.#deps.nowMs();
      row.state = 'CONTAINER_RUNNING';
      if (row.shim === null && this.#files.exit() === undefined) {
        this.#startFailed('the embedded runtime ended while it started this container');
        return;
      }
      this.#note();
    }
    if (row.state !== 'CONTAINER_RUNNING') return this.#detach();
    if (this.#alive()) this.#attach();
    if (this.#files.exit() !== undefined || !this.#alive()) await this.#end();
  }

  /** The stop signal, then KILL after the grace; resolves when the container has ended. */
  async stop(graceMs: number): Promise<void> {
    const { row } = this;
    if (this.#starting !== null) await this.#starting.catch(() => undefined);
    if (row.state !== 'CONTAINER_RUNNING' || row.shim === null) return;
    if (graceMs <= 0) return this.#killAll();
    await this.#processes.executed(Math.min(graceMs, EXECUTED_WITHIN_MS));
    if (!this.#isRunning()) return;
    if (!this.#processes.signalGroup(row.plan.shim.stopSignal)) return this.#end();
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<'over'>((resolve) => {
      timer = setTimeout(() => resolve('over'), graceMs);
    });
    const first = await Promise.race([this.#exit(), over]);
    clearTimeout(timer);
    if (first === 'over') await this.#killAll();
  }

  async #killAll(): Promise<void> {
    this.row.killed = true;
    this.#note();
    for (let round = 0; round < KILL_ROUNDS_MAX && this.#isRunning(); round++) {
      // With its one child gone the shim reports, and the end of the container deals with the rest.
      const victim = this.#processes.victim();
      if (victim !== null) this.#processes.kill(victim);
      await Promise.race([this.#exit(), later(KILL_AGAIN_MS)]);
      if (this.#files.exit() !== undefined) {
        await this.#end();
        return;
      }
      if (!this.#alive()) break;
    }
    if (this.#isRunning()) this.#processes.signalGroup('SIGKILL');
    if (this.#isRunning() && !this.#alive()) await this.#end();
    await this.#exit();
  }

  /** Once: takes the exit code, ends stragglers, finishes the log, lets the shim go, tells everybody. */
  #end(): Promise<void> {
    this.#ending ??= this.#finish();
    return this.#ending;
  }

  async #finish(): Promise<void> {
    const { row } = this;
    if (this.#starting !== null) await this.#starting.catch(() => undefined);
    if (row.state === 'CONTAINER_EXITED') return;
    const told = this.#files.exit();
    // Without a PID namespace whose end is everybody's, the command's children must be ended here.
    try {
      if (!row.plan.shim.namespaces.pid) this.#processes.killStragglers();
      await this.#output.drained();
      await this.#output.flush();
    } catch (error) {
      // No descriptors left, a full disk: the end itself must still be told.
      this.#deps.warn(`the end of container ${row.id} is not complete: ${(error as Error).message}`);
    }
    row.exitCode = told?.code ?? (row.killed ? 137 : (this.#childEnd?.code ?? 255));
    const unknown = !row.killed && told === undefined && this.#childEnd === null;
    const oom = row.plan.oci !== undefined && this.#deps.ended(row.plan.oci).oomKilled;
    row.reason = unknown ? 'ContainerStatusUnknown' : oom ? 'OOMKilled' : exitReason(row.exitCode);
    row.message = unknown ? 'the container ended while the embedded runtime was not running, and left no exit code' : '';
    row.finishedAtMs = Math.max(told?.atMs ?? this.#deps.nowMs(), row.startedAtMs);
    row.state = 'CONTAINER_EXITED';
    this.#note();
    this.#release();
    this.#exited();
  }

  /** Lets a shim that waits go; the FIFO end follows and closes the rest. */
  #release(): void {
    try {
      this.#files.acknowledge();
    } catch (error) {
      this.#deps.warn(`cannot release the shim of container ${this.row.id}: ${(error as Error).message}`);
    }
    void Promise.race([this.#output.ended(), later(OUTPUT_END_MS)]).then(() => this.#detach());
  }

  #exited(): void {
    for (const wake of this.#exitWaiters.splice(0)) wake();
    this.#deps.onExit(this.row);
  }

  /** For what has happened already: memory holds it, a disk that cannot is a warning. */
  #note(): void {
    try {
      this.#deps.save(this.row);
    } catch (error) {
      const why = (error as Error).message;
      this.#deps.warn(`the state of container ${this.row.id} cannot be saved: ${why}; a restart of the runtime would see an older one`);
    }
  }

  #exit(): Promise<void> {
    return this.#isRunning() ? new Promise((wake) => this.#exitWaiters.push(wake)) : Promise.resolve();
  }

  #isRunning(): boolean {
    return this.row.state === 'CONTAINER_RUNNING';
  }

  #alive(): boolean {
    return this.#processes.shim() !== null;
  }

  /** Host pid of PID 1 in the container's namespaces; null for a plain process group. */
  innerPid(): number | null {
    return this.#processes.innerPid();
  }

  #attach(): void {
    this.#output.attach(() => this.#starting !== null);
    void this.#output.ended().then(() => {
      if (this.#closed || this.row.state === 'CONTAINER_EXITED') return;
      setTimeout(() => {
        if (!this.#closed && !this.#alive()) void this.#end();
      }, SILENT_END_MS);
    });
  }

  /** A shim that was not released in time, and that nobody would release any more, ends here: it would wait for ever. */
  async #detach(): Promise<void> {
    if (this.row.state === 'CONTAINER_EXITED') this.#processes.killShim();
    this.#files.close();
    await this.#output.detach();
  }

  reopenLog(): Promise<void> {
    return this.#output.reopen();
  }

  /** Its output from now on, as it comes. Gives what undoes it. */
  tap(tap: Tap): () => void {
    return this.#output.tap(tap);
  }

  /** Resolves when it has ended and all its output was read. */
  ended(): Promise<void> {
    return this.#exit();
  }

  /** Everything that could tell us of changes is closed; a container that runs is left alone. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#detach();
  }

  /** From the watch on the exits folder. */
  onFile(kind: 'exit' | 'ready'): void {
    if (kind === 'ready' || this.#starting !== null) this.#wake?.();
    else if (this.#isRunning() && this.#files.exit() !== undefined) void this.#end();
  }
}
