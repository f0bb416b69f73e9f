/**
 * Above the tree: which actor is running, since when, and whether the main thread still finishes its slices. The stamp
 * lives in shared memory, so that a watching thread can read it while the main thread hangs.
 */

const PATH_BYTES_MAX = 256;
const SEQ = 0;
const BUSY = 1;
const PATH_BYTES = 2;
const INTS = 4;
const BEGAN_OFFSET = INTS * 4;
const PATH_OFFSET = BEGAN_OFFSET + 8;

export interface HeartbeatReading {
  /** Grows with every beginning and every end of a slice, and with every pulse. */
  seq: number;
  /** Path of the actor whose slice has begun and not ended; null between slices. */
  path: string | null;
  /** Monotonic ms (the node's clock) at which that slice, or the pause since the last one, began. */
  beganMonoMs: number;
}

/** Written by the scheduler. Give `shared` to the watching thread, which calls {@link readHeartbeat}. */
export class Heartbeat {
  #path: string | null = null;
  #beganMonoMs = 0;
  /** Of a thousand nodes in one process nobody watches each: nothing is written before somebody asks for the memory. */
  #stamp: Stamp | null = null;

  get shared(): SharedArrayBuffer {
    if (this.#stamp === null) {
      this.#stamp = new Stamp();
      this.#write();
    }
    return this.#stamp.memory;
  }

  /** Path of the actor whose slice runs; null between slices. */
  get running(): string | null {
    return this.#path;
  }

  /** A slice of `path` begins. */
  begin(path: string, monoMs: number): void {
    this.#path = path;
    this.#beganMonoMs = monoMs;
    this.#write();
  }

  end(monoMs: number): void {
    this.#path = null;
    this.#beganMonoMs = monoMs;
    this.#write();
  }

  /** For a periodic timer of the main thread: shows that it turns although no actor has work. */
  pulse(monoMs: number): void {
    if (this.#path === null) this.end(monoMs);
  }

  read(): HeartbeatReading {
    return readHeartbeat(this.shared);
  }

  #write(): void {
    this.#stamp?.write(this.#path, this.#beganMonoMs);
  }
}

class Stamp {
  readonly memory = new SharedArrayBuffer(PATH_OFFSET + PATH_BYTES_MAX);
  readonly #ints = new Int32Array(this.memory, 0, INTS);
  readonly #began = new Float64Array(this.memory, BEGAN_OFFSET, 1);
  readonly #bytes = new Uint8Array(this.memory, PATH_OFFSET, PATH_BYTES_MAX);
  readonly #encoder = new TextEncoder();
  #path = '';

  write(path: string | null, beganMonoMs: number): void {
    if (path !== null && path !== this.#path) {
      // TextEncoder does not write into shared memory.
      const bytes = this.#encoder.encode(path).subarray(0, PATH_BYTES_MAX);
      this.#bytes.set(bytes);
      this.#ints[PATH_BYTES] = bytes.length;
      this.#path = path;
    }
    this.#began[0] = beganMonoMs;
    this.#ints[BUSY] = path === null ? 0 : 1;
    Atomics.add(this.#ints, SEQ, 1);
  }
}

/** From a thread that knows why the main one stands: it counts as turning. */
export function beatFor(shared: SharedArrayBuffer): void {
  Atomics.add(new Int32Array(shared, 0, INTS), SEQ, 1);
}

export function readHeartbeat(shared: SharedArrayBuffer): HeartbeatReading {
  const ints = new Int32Array(shared, 0, INTS);
  const busy = ints[BUSY] === 1;
  const length = ints[PATH_BYTES] ?? 0;
  // A copy: TextDecoder does not read shared memory.
  const path = busy ? new TextDecoder().decode(new Uint8Array(shared, PATH_OFFSET, length).slice()) : null;
  return { seq: Atomics.load(ints, SEQ), path, beganMonoMs: new Float64Array(shared, BEGAN_OFFSET, 1)[0] ?? 0 };
}

export interface Stall {
  /** Path of the actor that holds the main thread; `outside any actor` when it hangs between slices. */
  path: string;
  forMs: number;
}

/**
 * Judges readings taken now and then, by the watcher's own monotonic clock. Needs {@link Heartbeat.pulse} a few times per limit,
 * or an idle tree looks stalled.
 */
export class StallDetector {
  readonly #everyMs: number;
  #seq = -1;
  #sinceMs = 0;
  #lookedMs = Number.POSITIVE_INFINITY;

  /** @param o.everyMs The watcher looks at least so often. */
  constructor(o: { everyMs: number }) {
    this.#everyMs = o.everyMs;
  }

  /** Which actor holds the main thread, and how long ago a slice was last seen to begin or end. */
  look(reading: HeartbeatReading, nowMs: number): Stall {
    // The watcher was held up too: the whole process was stopped, or the machine was, which says nothing of the main thread.
    if (nowMs - this.#lookedMs > 3 * this.#everyMs) this.#sinceMs += nowMs - this.#lookedMs;
    this.#lookedMs = nowMs;
    if (reading.seq !== this.#seq) {
      this.#seq = reading.seq;
      this.#sinceMs = nowMs;
    }
    return { path: reading.path ?? 'outside any actor', forMs: nowMs - this.#sinceMs };
  }
}
