/**
 * One per tree: runs supervision work first, then lets mailboxes take turns, and yields to I/O after about 4 ms, or after as long as I/O
 * took. Nothing here runs inside the caller's stack, so no exit, restart or message can recurse.
 */

import type { Ports } from '../../ports/ports.ts';
import { toError } from './errors.ts';
import { Heartbeat } from './watchdog.ts';

/** Time after which a turn of the loop ends and I/O gets its chance. */
const TURN_MS = 4;
/**
 * A turn with more to do lasts as long as everything else took since the turn before, at most this long: under a flood of
 * connections, of which each turn of the loop takes dozens, actors would otherwise get a tenth of the thread.
 */
const TURN_MS_MAX = 32;

/** Something that takes turns: a mailbox. */
export interface Runnable {
  readonly path: string;
  /** Owned by the scheduler. */
  scheduled: boolean;
  /** One slice; true when there is more to do. */
  runSlice(): boolean;
}

/** An actor, and the type of the event that it took last. */
export interface Who {
  readonly path: string;
  event: string;
}
/** Runs the step of an actor, in a context in which everybody can ask for `who`. */
export type Acting = (who: Who, step: () => void) => void;

interface Task {
  path: string;
  fn: () => void;
}

export class Scheduler {
  readonly heartbeat: Heartbeat;
  readonly #ports: Ports;
  #tasks: Task[] = [];
  #ready: Runnable[] = [];
  #armed = false;
  readonly #acting: Acting | undefined;
  /** The actor whose step runs, where somebody asks for it. */
  #who: Who = { path: '', event: '' };
  /** Monotonic; when a turn ended that left more to do. */
  #leftMs: number | null = null;

  constructor(
    ports: Ports,
    { heartbeat = new Heartbeat(), acting }: { heartbeat?: Heartbeat | undefined; acting?: Acting | undefined } = {},
  ) {
    this.#ports = ports;
    this.heartbeat = heartbeat;
    this.#acting = acting;
  }

  /** The actor whose step runs now takes an event of this type. */
  took(event: string): void {
    this.#who.event = event;
  }

  /** Supervision work: runs soon, in order, before any mailbox. `path` is who it is done for. */
  post(path: string, fn: () => void): void {
    this.#tasks.push({ path, fn });
    this.#arm();
  }

  /** A mailbox has something to deliver. */
  wake(runnable: Runnable): void {
    if (runnable.scheduled) return;
    runnable.scheduled = true;
    this.#ready.push(runnable);
    this.#arm();
  }

  /** Runs `fn` at once under the heartbeat: for timers, which do not wait for a turn, and inside the slice of another. Lets errors through. */
  stamped(path: string, fn: () => void): void {
    const { clock } = this.#ports;
    const outer = this.heartbeat.running;
    this.heartbeat.begin(path, clock.monoMs());
    try {
      this.#as(path, fn);
    } finally {
      if (outer === null) this.heartbeat.end(clock.monoMs());
      else this.heartbeat.begin(outer, clock.monoMs());
    }
  }

  /** Also what the step begins to wait for is of this actor. */
  #as(path: string, step: () => void): void {
    if (this.#acting === undefined) {
      step();
      return;
    }
    const outer = this.#who;
    const who: Who = { path, event: '' };
    this.#who = who;
    try {
      this.#acting(who, step);
    } finally {
      this.#who = outer;
    }
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#ports.yield.defer(() => this.#turn());
  }

  #turn(): void {
    const clock = this.#ports.clock;
    const began = clock.monoMs();
    const turnMs = Math.max(TURN_MS, Math.min(this.#ports.yield.turnMsMax ?? TURN_MS_MAX, began - (this.#leftMs ?? began)));
    this.#runTasks();
    // Mailboxes that are ready now get one slice each; one that wakes meanwhile waits for the next turn, unless this one is a long one.
    let left = this.#ready.length;
    let taken = 0;
    while (taken < left) {
      const runnable = this.#ready[taken];
      taken += 1;
      if (runnable === undefined) break;
      runnable.scheduled = false;
      this.#run(runnable);
      this.#runTasks();
      if (clock.monoMs() - began >= turnMs) left = taken;
      else if (taken === left && turnMs > TURN_MS) left = this.#ready.length;
    }
    this.#ready.splice(0, taken);
    this.#armed = false;
    const more = this.#tasks.length > 0 || this.#ready.length > 0;
    this.#leftMs = more ? clock.monoMs() : null;
    if (more) this.#arm();
  }

  #run(runnable: Runnable): void {
    const clock = this.#ports.clock;
    this.heartbeat.begin(runnable.path, clock.monoMs());
    let more = false;
    try {
      this.#as(runnable.path, () => {
        more = runnable.runSlice();
      });
    } catch (thrown) {
      this.#fault(runnable.path, thrown);
    }
    this.heartbeat.end(clock.monoMs());
    if (more) this.wake(runnable);
  }

  /** The tasks posted so far; what they post runs in the next round, so that mailboxes are not starved. */
  #runTasks(): void {
    if (this.#tasks.length === 0) return;
    const tasks = this.#tasks;
    this.#tasks = [];
    for (const task of tasks) {
      try {
        this.stamped(task.path, task.fn);
      } catch (thrown) {
        this.#fault(task.path, thrown);
      }
    }
  }

  #fault(path: string, thrown: unknown): void {
    this.#ports.log.error({ actor: path, err: toError(thrown) }, 'fault in the supervision itself; the tree goes on');
  }
}
