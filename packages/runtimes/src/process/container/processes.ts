/** The processes of one container: the shim, which its row names, and everything below it. */
import type { StoredContainer } from '../store/store.ts';
import {
  argumentsOf,
  bootId,
  catches,
  firstChild,
  hasEnv,
  isAlive,
  type ProcId,
  processesOf,
  readStat,
  scanProcesses,
  signal,
} from './procfs.ts';
import { MARK } from './shim.ts';

/** How often a stop looks whether the command of a container just started was executed. */
const EXECUTED_LOOK_MS = 5;
/** For how long after its start a stop waits for a handler of the stop signal. */
const HANDLER_WITHIN_MS = 500;
const STRAGGLER_ROUNDS_MAX = 5;

export const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export class Processes {
  readonly #row: StoredContainer;
  readonly #mark: string;
  readonly #warn: (message: string) => void;

  constructor(row: StoredContainer, warn: (message: string) => void) {
    this.#row = row;
    this.#mark = `${MARK}=${row.id}`;
    this.#warn = warn;
  }

  /** From now on this process is the shim. */
  setShim(pid: number): void {
    const stat = readStat(pid);
    if (stat !== null) this.#row.shim = { pid, startTicks: stat.startTicks, bootId: bootId() };
  }

  /** After a restart of the runtime: the first session of processes with the container's mark is the shim's. */
  findShim(): void {
    const leaders = scanProcesses().filter((p) => p.session === p.pid && p.state !== 'Z' && hasEnv(p.pid, this.#mark));
    const [shim] = leaders.sort((a, b) => a.startTicks - b.startTicks);
    if (shim !== undefined) this.setShim(shim.pid);
  }

  /** Null when it has ended. */
  shim(): ProcId | null {
    const { shim } = this.#row;
    return shim !== null && isAlive(shim, bootId()) ? shim : null;
  }

  /** The shim's one child: the command, or PID 1 of the namespaces. */
  child(): number | null {
    const shim = this.shim();
    return shim === null ? null : firstChild(shim.pid);
  }

  innerPid(): number | null {
    const { oci } = this.#row.plan;
    let pid = oci !== undefined || this.#hasNamespaces() ? this.child() : null;
    // For an OCI image the child is crun, or `script` with crun below it; the child of crun is the first process of the container.
    for (let below = oci === undefined ? 0 : oci.input?.tty === true ? 2 : 1; pid !== null && below > 0; below--) pid = firstChild(pid);
    return pid;
  }

  #isOci(): boolean {
    return this.#row.plan.oci !== undefined;
  }

  #hasNamespaces(): boolean {
    return Object.values(this.#row.plan.shim.namespaces).some(Boolean);
  }

  /** What a kill is for: crun itself would leave the container running. */
  victim(): number | null {
    return this.#isOci() ? (this.innerPid() ?? this.child()) : this.child();
  }

  /** As the first process of its PID namespace, a command hears of a signal only once it has a handler. Some never have one. */
  async #handlerSet(deadlineMs: number): Promise<void> {
    const { startedAtMs, plan } = this.#row;
    const youngMs = startedAtMs + HANDLER_WITHIN_MS - (performance.timeOrigin + performance.now());
    const untilMs = Math.min(deadlineMs, performance.now() + youngMs);
    while (this.#row.state === 'CONTAINER_RUNNING' && performance.now() < untilMs) {
      const inner = this.innerPid();
      if (inner === null || catches(inner, plan.shim.stopSignal)) return;
      await later(EXECUTED_LOOK_MS);
    }
  }

  /** To the shim and its process group, or to the first process of an OCI container; false when it has ended. */
  signalGroup(signo: number | NodeJS.Signals): boolean {
    const shim = this.shim();
    const inner = this.#isOci() ? this.innerPid() : null;
    if (inner !== null) return signal(inner, signo);
    return shim !== null && signal(-shim.pid, signo);
  }

  kill(pid: number): void {
    try {
      signal(pid, 'SIGKILL');
    } catch (error) {
      this.#warn(`cannot kill process ${pid} of container ${this.#row.id}: ${(error as Error).message}`);
    }
  }

  killShim(): void {
    const shim = this.shim();
    if (shim !== null) signal(shim.pid, 'SIGKILL');
  }

  /** Kills everything but the shim; again while more appears, as a process may fork while it is looked for. */
  killStragglers(): void {
    const { shim } = this.#row;
    for (let round = 0; shim !== null && round < STRAGGLER_ROUNDS_MAX; round++) {
      const left = processesOf(shim, this.#mark, scanProcesses());
      if (left.length === 0) return;
      for (const p of left) this.kill(p.pid);
    }
  }

  /**
   * Between its word that all is set up and the execution of the command, a shell of the shim takes a signal for itself
   * and the command never hears of it. Waits that moment out, within bounds: not long, on a machine that is not stuck.
   */
  async executed(withinMs: number): Promise<void> {
    const deadlineMs = performance.now() + withinMs;
    if (this.#isOci()) return this.#handlerSet(deadlineMs);
    while (this.#row.state === 'CONTAINER_RUNNING' && performance.now() < deadlineMs) {
      const shim = this.shim();
      if (shim === null) return;
      const parent = this.#hasNamespaces() ? firstChild(shim.pid) : shim.pid;
      const command = parent === null ? null : firstChild(parent);
      if (parent !== null && command !== null && argumentsOf(command) !== argumentsOf(parent)) return;
      await later(EXECUTED_LOOK_MS);
    }
  }
}
