/** One incarnation of a dynamic supervisor, as the callbacks of its specification see it. */
import type { Address, Message, ViewKey } from '../../../machines/supervision/address.ts';
import { ScopedRegistry } from '../registry.ts';
import type { TreeServices } from '../services.ts';
import type { ActorCtx } from '../types.ts';

export class DynamicIncarnation<E extends Message> implements ActorCtx<E> {
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
  readonly #observers;

  constructor(services: TreeServices, identity: { path: string; id: string; incarnation: number }) {
    this.path = identity.path;
    this.id = identity.id;
    this.incarnation = identity.incarnation;
    this.self = { path: identity.path };
    this.ports = services.ports;
    this.#core = services.registry;
    this.#observers = services.observers;
    this.registry = new ScopedRegistry(services.registry, this);
    this.log = services.ports.log.child({ actor: identity.path });
  }
  get signal(): AbortSignal {
    return this.#abort.signal;
  }
  publish<T>(key: ViewKey<T>, value: T): void {
    if (!this.stale) this.#core.publish(key, value);
  }
  note(reason: string): void {
    this.noted = reason;
    this.#observers.touch(this.path);
  }
  end(): void {
    this.stale = true;
    this.#abort.abort(new Error(`${this.path} incarnation ${this.incarnation} ended`));
  }
}
