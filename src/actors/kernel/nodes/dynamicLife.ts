/** One incarnation of a dynamic supervisor, as the callbacks of its specification see it. */
import type { Address, Message, ViewKey } from '../../../machines/address.ts';
import type { Kernel } from '../kernel.ts';
import { ScopedRegistry } from '../registry.ts';
import type { ActorCtx } from '../types.ts';

export class Life<E extends Message> implements ActorCtx<E> {
  readonly path: string;
  readonly id: string;
  readonly incarnation: number;
  readonly self: Address<E>;
  readonly ports;
  readonly registry;
  readonly log;
  stale = false;
  noted = '';
  readonly #abort = new AbortController();
  readonly #core;

  constructor(kernel: Kernel, identity: { path: string; id: string; incarnation: number }) {
    this.path = identity.path;
    this.id = identity.id;
    this.incarnation = identity.incarnation;
    this.self = { path: identity.path };
    this.ports = kernel.ports;
    this.#core = kernel.registry;
    this.registry = new ScopedRegistry(kernel.registry, this);
    this.log = kernel.ports.log.child({ actor: identity.path });
  }
  get signal(): AbortSignal {
    return this.#abort.signal;
  }
  publish<T>(key: ViewKey<T>, value: T): void {
    if (!this.stale) this.#core.publish(key, value);
  }
  done(_key: string): void {
    // Keys belong to the children: each has its own context.
  }
  note(reason: string): void {
    this.noted = reason;
  }
  end(): void {
    this.stale = true;
    this.#abort.abort(new Error(`${this.path} incarnation ${this.incarnation} ended`));
  }
}
