/** The rows of the process runtime, in memory and on disk, and the events that tell of their changes. */
import { CODE, RuntimeRefusal } from '../../shared/model.ts';
import { Supervised } from '../container/supervise.ts';
import type { RuntimeDeps, RuntimeEvent } from '../types.ts';
import type { Store, StoredContainer, StoredSandbox } from './store.ts';

export class State {
  readonly store: Store;
  readonly sandboxes: Map<string, StoredSandbox>;
  readonly containers = new Map<string, Supervised>();
  /** Names of sandboxes that are being made. */
  readonly starting = new Set<string>();
  readonly listeners = new Set<(e: RuntimeEvent) => void>();
  readonly #deps: RuntimeDeps;
  readonly #queues = new Map<string, Promise<unknown>>();
  #lastMs: number;

  constructor(deps: RuntimeDeps, store: Store, loaded: ReturnType<Store['load']>) {
    this.#deps = deps;
    this.store = store;
    this.sandboxes = new Map(loaded.sandboxes.map((s) => [s.id, s]));
    this.#lastMs = Math.max(0, ...[...loaded.sandboxes, ...loaded.containers].map((row) => row.createdAtMs));
  }

  nowMs(): number {
    return performance.timeOrigin + performance.now();
  }

  /** Now, but never the same twice. */
  stampMs(): number {
    this.#lastMs = Math.max(this.nowMs(), this.#lastMs + 0.001);
    return this.#lastMs;
  }

  addContainer(row: StoredContainer): void {
    const { layout, isolation, log, oci } = this.#deps;
    const supervised = new Supervised(row, {
      layout,
      isolation,
      nowMs: () => this.nowMs(),
      save: (changed) => this.store.saveContainer(changed),
      warn: (message) => log('warn', message),
      ended: (plan) => oci?.ended(plan) ?? { oomKilled: false },
      onExit: ({ id, sandboxId }) => this.emit('stopped', id, sandboxId),
    });
    this.containers.set(row.id, supervised);
  }

  async forgetContainer(c: Supervised): Promise<void> {
    await c.stop(0);
    await c.close();
    this.containers.delete(c.row.id);
    this.store.dropContainer(c.row.id);
    if (c.row.plan.oci !== undefined) this.#deps.oci?.drop(c.row.plan.oci);
    this.emit('deleted', c.row.id, c.row.sandboxId);
  }

  emit(kind: RuntimeEvent['kind'], id: string, sandboxId: string, sandbox = this.sandboxes.get(sandboxId)): void {
    if (this.listeners.size === 0) return;
    const e = { kind, id, sandbox, containers: this.containersOf(sandboxId).map((c) => c.row) };
    for (const fn of [...this.listeners]) fn(e);
  }

  /** Creating, starting and removing in one sandbox run one after another; stopping a container does not wait for them. */
  queued<T>(sandboxId: string, work: () => Promise<T>): Promise<T> {
    const next = (this.#queues.get(sandboxId) ?? Promise.resolve()).then(work, work);
    const settled = next.catch(() => undefined);
    this.#queues.set(sandboxId, settled);
    void settled.then(() => {
      if (this.#queues.get(sandboxId) === settled) this.#queues.delete(sandboxId);
    });
    return next;
  }

  containersOf(sandboxId: string): Supervised[] {
    return [...this.containers.values()].filter((c) => c.row.sandboxId === sandboxId);
  }

  sandbox(id: string): StoredSandbox {
    const s = this.sandboxes.get(id);
    if (s === undefined) throw new RuntimeRefusal(CODE.notFound, `sandbox ${id} not found`);
    return s;
  }

  container(id: string): Supervised {
    const c = this.containers.get(id);
    if (c === undefined) throw new RuntimeRefusal(CODE.notFound, `container ${id} not found`);
    return c;
  }

  running(id: string): Supervised {
    const c = this.container(id);
    if (c.row.state !== 'CONTAINER_RUNNING') throw new RuntimeRefusal(CODE.failedPrecondition, `container ${id} is not running`);
    return c;
  }
}
