/** Typed addresses, questions and views of one tree. Actors get a {@link ScopedRegistry}, which knows when they are stale. */

import type { Address, Answer, Message, ReplyTo, ViewKey } from '../../machines/supervision/address.ts';
import type { MailboxTap } from '../../machines/supervision/mailboxTap.ts';
import type { Ports } from '../../ports/ports.ts';
import { type PendingAsk, Question } from './mailbox/ask.ts';
import type { DeadLetters } from './mailbox/deadLetters.ts';
import type { Mailbox } from './mailbox/mailbox.ts';
import { type Parcel, type Sink, TapGate } from './mailbox/tap.ts';
import type { Observers } from './observers.ts';
import type { DeadLetter, Registry, SendResult } from './types.ts';

interface AskOpts {
  timeoutMs: number;
  signal?: AbortSignal;
}
/** How a message is sent: as a question or not, and by which actor. Absent sender: from outside the tree. */
interface Posting {
  ask?: PendingAsk;
  from?: string | undefined;
}
interface View {
  version: number;
  value: unknown;
  watchers: Set<(value: never, version: number) => void>;
}

export class RegistryCore implements Registry {
  // biome-ignore lint/suspicious/noExplicitAny: mailboxes of every event type; `Address<E>` ties a path to its type.
  readonly #boxes = new Map<string, Mailbox<any>>();
  readonly #dynamic = new Set<string>();
  readonly #views = new Map<string, View>();
  readonly #ports: Ports;
  readonly #observers: Observers;
  readonly #deadLetters: DeadLetters;
  #gate: TapGate | null = null;

  constructor(env: { ports: Ports; observers: Observers; deadLetters: DeadLetters }) {
    this.#ports = env.ports;
    this.#observers = env.observers;
    this.#deadLetters = env.deadLetters;
  }

  /** `dynamic`: addresses below this path are its children's, reached through this mailbox. */
  add<E extends Message>(box: Mailbox<E>, opts: { dynamic: boolean }): void {
    this.#boxes.set(box.path, box);
    if (opts.dynamic) this.#dynamic.add(box.path);
  }

  send<E extends Message>(to: Address<E>, event: E): SendResult {
    return this.post(to.path, event);
  }

  ask<E extends Message, R>(to: Address<E>, event: (replyTo: ReplyTo<R>) => E, opts: AskOpts): Promise<Answer<R>> {
    return this.askAs(to, event, { ...opts, asker: undefined });
  }

  askAs<E extends Message, R>(
    to: Address<E>,
    event: (replyTo: ReplyTo<R>) => E,
    opts: AskOpts & { asker: { readonly path: string; readonly signal: AbortSignal } | undefined },
  ): Promise<Answer<R>> {
    const question = new Question<R>(this.#ports.clock, { timeoutMs: opts.timeoutMs, signals: [opts.signal, opts.asker?.signal] });
    if (!question.settled) this.post(to.path, event(question.replyTo), { ask: question, from: opts.asker?.path });
    return question.answer;
  }

  /** From now on every message passes `tap`; a later one replaces it. Disposed, it hands over what it held. */
  tap(tap: MailboxTap): Disposable {
    this.untap();
    const gate = new TapGate(tap, { clock: this.#ports.clock, observers: this.#observers });
    this.#gate = gate;
    return {
      [Symbol.dispose]: () => {
        if (this.#gate === gate) this.untap();
      },
    };
  }

  untap(): void {
    const gate = this.#gate;
    this.#gate = null;
    gate?.release();
  }

  post<E extends Message>(path: string, event: E, { ask, from }: Posting = {}): SendResult {
    let box = this.#boxes.get(path);
    let route: string | undefined;
    if (box === undefined) {
      const parent = this.#dynamicAbove(path);
      if (parent === null) {
        this.#deadLetters.add({ to: path, type: event.type, reason: 'unknown-address' });
        ask?.refuse(`there is no address ${path}`);
        return 'dead';
      }
      box = this.#boxes.get(parent);
      route = path.slice(parent.length + 1);
    }
    if (box === undefined) return 'dead';
    const parcel = { to: path, event, ask, route, from };
    const gate = this.#gate;
    return gate === null ? this.#deliver(box, parcel) : gate.send(this.#sink(box), parcel);
  }

  // biome-ignore lint/suspicious/noExplicitAny: see #boxes.
  #deliver(box: Mailbox<any>, parcel: Parcel): SendResult {
    const result = box.send(parcel.event, parcel);
    if (result !== 'dead' && this.#observers.any) this.#report(parcel, box);
    return result;
  }

  // biome-ignore lint/suspicious/noExplicitAny: see #boxes.
  #sink(box: Mailbox<any>): Sink {
    return {
      path: box.path,
      laneOf: (event) => box.laneOf(event),
      send: (parcel) => this.#deliver(box, parcel),
      drop: ({ event, ask }) => box.lose(event, ask),
    };
  }

  #report({ to, event, from }: Parcel, box: { keyOf(e: Message): string | undefined }): void {
    const key = box.keyOf(event);
    const report = { kind: 'message' as const, atMs: this.#ports.clock.wallMs(), to, type: event.type, causes: event.causes ?? [] };
    this.#observers.emit({ ...report, ...(key === undefined ? {} : { key }), ...(from === undefined ? {} : { from }) });
  }

  #dynamicAbove(path: string): string | null {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const parent = path.slice(0, at);
      if (this.#dynamic.has(parent)) return parent;
    }
    return null;
  }

  publish<T>(key: ViewKey<T>, value: T): void {
    const view = this.#view(key.view);
    view.version += 1;
    view.value = value;
    const { version } = view;
    for (const fn of view.watchers) this.#observers.guard(() => fn(value as never, version), `view ${key.view}`);
  }

  read<T>(key: ViewKey<T>): { version: number; value: T } | undefined {
    const view = this.#views.get(key.view);
    return view === undefined || view.version === 0 ? undefined : { version: view.version, value: view.value as T };
  }

  watch<T>(key: ViewKey<T>, fn: (value: T, version: number) => void): Disposable {
    const { watchers } = this.#view(key.view);
    const own = (value: T, version: number) => fn(value, version);
    watchers.add(own);
    return { [Symbol.dispose]: () => void watchers.delete(own) };
  }

  #view(name: string): View {
    let view = this.#views.get(name);
    if (view === undefined) {
      view = { version: 0, value: undefined, watchers: new Set() };
      this.#views.set(name, view);
    }
    return view;
  }

  deadLetters(): { total: number; byReason: Record<string, number>; recent: readonly DeadLetter[] } {
    return this.#deadLetters.read();
  }

  staleSender(path: string, event: Message): void {
    this.#deadLetters.add({ to: path, type: event.type, reason: 'stale-sender' });
  }
}

interface Owner {
  readonly path: string;
  readonly stale: boolean;
  readonly signal: AbortSignal;
}

/** What one incarnation sees: its sends end with it. */
export class ScopedRegistry implements Registry {
  readonly #core: RegistryCore;
  readonly #owner: Owner;

  constructor(core: RegistryCore, owner: Owner) {
    this.#core = core;
    this.#owner = owner;
  }

  send<E extends Message>(to: Address<E>, event: E): SendResult {
    if (!this.#owner.stale) return this.#core.post(to.path, event, { from: this.#owner.path });
    this.#core.staleSender(to.path, event);
    return 'dead';
  }

  ask<E extends Message, R>(to: Address<E>, event: (replyTo: ReplyTo<R>) => E, opts: AskOpts): Promise<Answer<R>> {
    // A stale owner's signal is aborted, so its question is lost before it is sent.
    return this.#core.askAs(to, event, { ...opts, asker: this.#owner });
  }

  read<T>(key: ViewKey<T>): { version: number; value: T } | undefined {
    return this.#core.read(key);
  }
  watch<T>(key: ViewKey<T>, fn: (value: T, version: number) => void): Disposable {
    return this.#core.watch(key, fn);
  }
  deadLetters(): { total: number; byReason: Record<string, number>; recent: readonly DeadLetter[] } {
    return this.#core.deadLetters();
  }
}
