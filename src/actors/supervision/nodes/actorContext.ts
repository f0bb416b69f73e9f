/** What one incarnation of an actor is given: its own while it lives, stale afterwards. */
import type { Address, Message, ViewKey } from '../../../machines/supervision/address.ts';
import type { Logger, Ports } from '../../../ports/ports.ts';
import { ScopedRegistry } from '../registry.ts';
import type { TreeServices } from '../services.ts';
import type { ActorCtx, Registry } from '../types.ts';

/** Its cell. */
interface Contextual {
  readonly identity: { readonly path: string; readonly id: string; readonly incarnation: number };
  readonly path: string;
  readonly stale: boolean;
  readonly signal: AbortSignal;
  readonly isReady: boolean;
  note: string;
  checkReady(): void;
}

export class ActorContext<E extends Message> implements ActorCtx<E> {
  readonly #cell: Contextual;
  readonly #services: TreeServices;
  #registry: Registry | null = null;
  #log: Logger | null = null;

  constructor(cell: Contextual, services: TreeServices) {
    this.#cell = cell;
    this.#services = services;
  }
  get path(): string {
    return this.#cell.identity.path;
  }
  get id(): string {
    return this.#cell.identity.id;
  }
  get incarnation(): number {
    return this.#cell.identity.incarnation;
  }
  get self(): Address<E> {
    return { path: this.path };
  }
  get ports(): Ports {
    return this.#services.ports;
  }
  get registry(): Registry {
    this.#registry ??= new ScopedRegistry(this.#services.registry, this.#cell);
    return this.#registry;
  }
  get log(): Logger {
    this.#log ??= this.#services.ports.log.child({ actor: this.path });
    return this.#log;
  }
  get signal(): AbortSignal {
    return this.#cell.signal;
  }
  publish<T>(key: ViewKey<T>, value: T): void {
    if (this.#cell.stale) return;
    this.#services.registry.publish(key, value);
    this.#recheck();
  }
  note(reason: string): void {
    if (this.#cell.stale) return;
    this.#cell.note = reason;
    this.#services.observers.touch(this.path);
    this.#recheck();
  }
  /** Actors without snapshots of their own (callbacks) show by a note or a view that they are ready. */
  #recheck(): void {
    if (this.#cell.isReady) return;
    this.#services.scheduler.post(this.path, () => this.#cell.checkReady());
  }
}
