/** Time while inputs are recorded: clock and turns of the tree, and the times between inputs. */
import type { Clock, Ports, Yield } from '@actorlet/kubelet/ports/ports.ts';
import { timerMs } from './border.ts';
import type { Inbox } from './inbox.ts';
import type { Lines } from './lines.ts';

/** Wall and monotonic time are read one after the other and rounded: less than that is no jump. */
const WALL_JUMP_MS = 2;

export class RecordedTime {
  readonly clock: Clock;
  readonly yield: Yield;
  readonly #outside: Pick<Ports, 'clock' | 'yield'>;
  readonly #lines: Lines;
  readonly #inbox: Inbox;
  readonly #o: { begins(): void; does(): void };
  readonly #live = new Map<number, unknown>();
  #timers = 0;
  #turns = 0;
  #looks = 0;
  #isUnseen = false;
  #nowMs: number;
  #wallOffsetMs: number;

  /** @param o `begins` hears of each input, `does` of each timer before its line. */
  constructor(outside: Pick<Ports, 'clock' | 'yield'>, o: { lines: Lines; inbox: Inbox; begins(): void; does(): void }) {
    this.#o = o;
    this.#outside = outside;
    this.#lines = o.lines;
    this.#inbox = o.inbox;
    this.#nowMs = Math.floor(outside.clock.monoMs());
    this.#wallOffsetMs = Math.floor(outside.clock.wallMs()) - this.#nowMs;
    this.clock = this.#clock();
    this.yield = { defer: (fn) => this.#defer(fn) };
  }

  /** Of the last input. */
  get monoMs(): number {
    return this.#nowMs;
  }
  get wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  /** What an inspector reads of the tree in the middle of an input: a replay has no inspector. */
  unseen<T>(look: () => T): T {
    const outer = this.#isUnseen;
    this.#isUnseen = true;
    try {
      return look();
    } finally {
      this.#isUnseen = outer;
    }
  }

  /** Takes `act` for an input. `head` and `rest` are the texts of its line around the time. */
  deliver(head: string, rest: string | (() => string), act: () => void): void {
    this.#inbox.put(() => {
      if (this.#lines.on) {
        const ms = this.sinceLast();
        this.#lines.orEnd(() => this.#lines.write(`["${head}",${ms},${typeof rest === 'string' ? rest : rest()}]`), undefined);
      }
      act();
    });
  }

  /** Milliseconds since the input before this one, which begins now. */
  sinceLast(): number {
    const { clock } = this.#outside;
    const mono = clock.monoMs();
    const offset = Math.round(clock.wallMs() - mono);
    if (Math.abs(offset - this.#wallOffsetMs) >= WALL_JUMP_MS) {
      this.#wallOffsetMs = offset;
      this.#lines.write(`["wall",${offset}]`);
    }
    const now = Math.floor(mono);
    const ms = now - this.#nowMs;
    this.#nowMs = now;
    this.#looks = 0;
    this.#o.begins();
    return ms;
  }

  #look(): number {
    if (this.#isUnseen) return this.#nowMs;
    const now = Math.floor(this.#outside.clock.monoMs());
    this.#looks += 1;
    if (now === this.#nowMs) return now;
    this.#lines.write(`["clock",${this.#looks},${now - this.#nowMs}]`);
    this.#nowMs = now;
    return now;
  }

  #clock(): Clock {
    const { clock } = this.#outside;
    return {
      monoMs: () => (this.#lines.on ? this.#look() : clock.monoMs()),
      wallMs: () => (this.#lines.on ? this.#look() + this.#wallOffsetMs : clock.wallMs()),
      setTimeout: (fn, ms) => this.#set(fn, ms),
      clearTimeout: (id) => {
        if (typeof id !== 'number' || !this.#live.has(id)) return;
        clock.clearTimeout(this.#live.get(id));
        this.#live.delete(id);
      },
    };
  }

  #set(fn: () => void, ms: number): number {
    const id = this.#timers++;
    this.#o.does();
    this.#lines.write(`["set",${timerMs(ms)}]`);
    const fire = (): void => {
      this.#inbox.put(() => {
        // Cleared by an input that came first.
        if (!this.#live.delete(id)) return;
        if (this.#lines.on) this.#lines.write(`["timer",${this.sinceLast()},${id}]`);
        fn();
      });
    };
    this.#live.set(id, this.#outside.clock.setTimeout(fire, ms));
    return id;
  }

  #defer(fn: () => void): void {
    const id = this.#turns++;
    this.#outside.yield.defer(() => this.deliver('turn', `${id}`, fn));
  }
}
