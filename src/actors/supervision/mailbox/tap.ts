/**
 * What stands behind a tap on the mailboxes of one tree, for fault injection. The tap (`machines/faults/types.ts`) sees
 * each message when it is sent, before its mailbox takes it, and may drop, delay or reorder it; never inside the
 * receiver. What it lets through behaves as if it had been sent at that moment. A tree without a tap pays one comparison
 * a message.
 *
 * Dropped: a dead letter with reason `injected`; the sender is told `queued`, as of a message that is lost later, and an
 * ask is `lost`. Delayed: it and everything sent to the same lane after it arrive that much later, in order. Reordered:
 * the next message to the same lane goes first.
 */

import type { Message } from '../../../machines/supervision/address.ts';
import type { MailboxTap, MailboxVerdict } from '../../../machines/supervision/mailboxTap.ts';
import type { Clock } from '../../../ports/ports.ts';
import type { Observers } from '../observers.ts';
import type { SendResult } from '../types.ts';
import type { PendingAsk } from './ask.ts';

/** Messages held back at once, in the whole tree; further ones pass. */
export const TAP_HELD_MAX = 4096;
/** A reordered message that nothing follows arrives after this long. */
export const TAP_REORDER_MS = 1_000;

/** One message on its way to a mailbox. */
export interface Parcel {
  readonly to: string;
  readonly event: Message;
  readonly ask: PendingAsk | undefined;
  readonly route: string | undefined;
  /** Path of the sender; undefined: from outside the tree. */
  readonly from?: string | undefined;
}
export interface Sink {
  readonly path: string;
  laneOf(event: Message): Lane;
  send(parcel: Parcel): SendResult;
  drop(parcel: Parcel): void;
}

export type Lane = 'control' | 'data';

interface Line {
  id: string;
  sink: Sink;
  /** In order of sending; due times never fall. */
  waiting: { parcel: Parcel; dueMs: number }[];
  timer: unknown;
  /** Put aside until another message has gone first. */
  aside: { parcel: Parcel; timer: unknown } | null;
}

export class TapGate {
  readonly #tap: MailboxTap;
  readonly #clock: Clock;
  readonly #observers: Observers;
  readonly #lines = new Map<string, Line>();
  #held = 0;

  constructor(tap: MailboxTap, env: { clock: Clock; observers: Observers }) {
    this.#tap = tap;
    this.#clock = env.clock;
    this.#observers = env.observers;
  }

  send(sink: Sink, parcel: Parcel): SendResult {
    const lane = sink.laneOf(parcel.event);
    const id = `${lane} ${sink.path}`;
    const verdict = this.#judge(lane, parcel);
    if (verdict === 'drop') {
      sink.drop(parcel);
      return 'queued';
    }
    if (verdict === 'pass' || this.#held >= TAP_HELD_MAX) return this.#pass(id, sink, parcel);
    const line = this.#line(id, sink);
    if (verdict === 'reorder') {
      if (line.aside !== null) return this.#pass(id, sink, parcel);
      this.#putAside(line, parcel);
      return 'queued';
    }
    this.#append(line, parcel, this.#clock.monoMs() + verdict.delayMs);
    this.#bringBack(line);
    return 'queued';
  }

  /** Hands over everything held, in order; the gate may be dropped afterwards. */
  release(): void {
    for (const line of [...this.#lines.values()]) {
      this.#clock.clearTimeout(line.timer);
      const parcels = line.waiting.map((w) => w.parcel);
      if (line.aside !== null) {
        this.#clock.clearTimeout(line.aside.timer);
        parcels.push(line.aside.parcel);
      }
      for (const parcel of parcels) line.sink.send(parcel);
    }
    this.#lines.clear();
    this.#held = 0;
  }

  #judge(lane: Lane, { to, event }: Parcel): MailboxVerdict {
    let verdict: MailboxVerdict = 'pass';
    this.#observers.guard(() => {
      verdict = this.#tap(to, lane, event);
    }, 'mailbox tap');
    return verdict;
  }

  /** Goes on at once unless earlier ones wait; who was put aside follows it. */
  #pass(id: string, sink: Sink, parcel: Parcel): SendResult {
    const line = this.#lines.get(id);
    if (line === undefined) return sink.send(parcel);
    const last = line.waiting.at(-1);
    let result: SendResult = 'queued';
    if (last === undefined) result = sink.send(parcel);
    else this.#append(line, parcel, last.dueMs);
    this.#bringBack(line);
    return result;
  }

  #line(id: string, sink: Sink): Line {
    let line = this.#lines.get(id);
    if (line === undefined) {
      line = { id, sink, waiting: [], timer: undefined, aside: null };
      this.#lines.set(id, line);
    }
    return line;
  }

  #append(line: Line, parcel: Parcel, dueMs: number): void {
    const last = line.waiting.at(-1);
    line.waiting.push({ parcel, dueMs: Math.max(dueMs, last?.dueMs ?? dueMs) });
    this.#held += 1;
    if (last === undefined) this.#arm(line);
  }

  #arm(line: Line): void {
    const head = line.waiting[0];
    if (head === undefined) return;
    line.timer = this.#clock.setTimeout(() => this.#flush(line), Math.max(0, head.dueMs - this.#clock.monoMs()));
  }

  #flush(line: Line): void {
    const now = this.#clock.monoMs();
    for (let head = line.waiting[0]; head !== undefined && head.dueMs <= now; head = line.waiting[0]) {
      line.waiting.shift();
      this.#held -= 1;
      line.sink.send(head.parcel);
    }
    this.#arm(line);
    this.#forgetEmpty(line);
  }

  #putAside(line: Line, parcel: Parcel): void {
    this.#held += 1;
    line.aside = { parcel, timer: this.#clock.setTimeout(() => this.#bringBack(line), TAP_REORDER_MS) };
  }

  #bringBack(line: Line): void {
    const { aside } = line;
    if (aside !== null) {
      line.aside = null;
      this.#held -= 1;
      this.#clock.clearTimeout(aside.timer);
      const last = line.waiting.at(-1);
      if (last === undefined) line.sink.send(aside.parcel);
      else this.#append(line, aside.parcel, last.dueMs);
    }
    this.#forgetEmpty(line);
  }

  #forgetEmpty(line: Line): void {
    if (line.waiting.length === 0 && line.aside === null) this.#lines.delete(line.id);
  }
}
