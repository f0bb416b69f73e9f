/**
 * Releases what only the start, or a burst of work, needed. Most pages of Node's own program are touched once and then stay
 * counted as resident (about 50 of 110 MiB): unchanged pages of a file, which come back from the page cache one by one if they
 * are ever used again. And what the C library keeps of freed memory for later.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import koffi from 'koffi';

/** `MADV_DONTNEED` of Linux: for an unchanged private file mapping it only drops the page table entries. */
const MADV_DONTNEED = 4;
const PAGE_BYTES = 4096n;
/**
 * One entry of /proc/self/pagemap, and of its upper half (the second on every machine that Node runs on) bits 63 (present), 62
 * (swapped) and 61 (a page of the file, not a copy of it). Halves, as a BigInt for each of 30,000 pages takes a third of a second.
 */
const ENTRY_BYTES = 8n;
const PRESENT = 2 ** 31;
const SWAPPED = 2 ** 30;
const OF_FILE = 2 ** 29;

export interface PageRange {
  start: bigint;
  bytes: bigint;
}

/** The parts of a program that nobody writes to, code and constants, among the lines of /proc/self/maps. */
export function constantRanges(maps: string, program: string): PageRange[] {
  return maps.split('\n').flatMap((line) => {
    const match = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ \d+\s+(.*)$/.exec(line);
    if (match === null || match[3] !== program) return [];
    const [start, end] = [BigInt(`0x${match[1]}`), BigInt(`0x${match[2]}`)];
    return [{ start, bytes: end - start }];
  });
}

/** Without the pages that were changed when the program was loaded (relocated, say): those exist nowhere else. */
export function unchangedRanges(range: PageRange, pagemap: Uint32Array): PageRange[] {
  const out: PageRange[] = [];
  const pages = pagemap.length / 2;
  let from = -1;
  const end = (to: number): void => {
    if (from !== -1) out.push({ start: range.start + BigInt(from) * PAGE_BYTES, bytes: BigInt(to - from) * PAGE_BYTES });
    from = -1;
  };
  for (let i = 0; i < pages; i++) {
    const flags = pagemap[2 * i + 1] ?? 0;
    const changed = (flags & SWAPPED) !== 0 || ((flags & PRESENT) !== 0 && (flags & OF_FILE) === 0);
    if (changed) end(i);
    else if (from === -1) from = i;
  }
  end(pages);
  return out;
}

function pagemapOf(fd: number, { start, bytes }: PageRange): Uint32Array {
  const entries = new Uint32Array(2 * Number(bytes / PAGE_BYTES));
  const read = readSync(fd, new Uint8Array(entries.buffer), 0, entries.byteLength, (start / PAGE_BYTES) * ENTRY_BYTES);
  return entries.subarray(0, 2 * Math.floor(read / Number(ENTRY_BYTES)));
}

/** True when memory was released; false where the system has no such thing. Never throws: it only saves memory. */
export function releaseMemory(program: string): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const libc = koffi.load('libc.so.6');
    const madvise = libc.func('int madvise(uintptr_t addr, size_t length, int advice)');
    const fd = openSync('/proc/self/pagemap', 'r');
    try {
      const ranges = constantRanges(readFileSync('/proc/self/maps', 'utf8'), program).flatMap((r) => unchangedRanges(r, pagemapOf(fd, r)));
      const given = ranges.length > 0 && ranges.every((r) => madvise(r.start, r.bytes, MADV_DONTNEED) === 0);
      libc.func('int malloc_trim(size_t pad)')(0);
      return given;
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

/** A process whose own memory has grown by less since it was last collected is left to V8. */
const GROWN_BYTES = 16 << 20;
/** In a burst the heap is collected each time that its objects have grown by this much: half of them are garbage by then. */
const BURST_GROWN_BYTES = 16 << 20;
/**
 * A collection that was asked for stops everything for 1 to 2 ms for each MiB in use. A heap with so much in use is left to V8,
 * which marks in small steps and then stops for 15 to 95 ms. It is told to do so earlier than it would.
 */
const LARGE_BYTES = 64 << 20;
/** By how much a large heap may grow before V8 collects it, percent. V8's own choice is up to 300. */
const LARGE_GROWTH_PERCENT = 30;
/** Of a small one, which is collected here before it has grown so far: V8 does not begin to mark it. As in `scripts/launch.sh`. */
const SMALL_GROWTH_PERCENT = 200;
/** Share of one core, since the look before, below which nothing is going on that a pause would hold up. */
const IDLE_SHARE = 0.1;
/** Least time between two collections, milliseconds: each takes 0.1 to 0.2 s of a core. */
const REST_MS = 60_000;

export interface HeapSource {
  /** Bytes of objects on the heap and of buffers beside it, garbage among them. */
  usedBytes(): number;
  /**
   * Resident bytes that are of no file. V8 keeps pages that a quick collection emptied for later, and its own figures leave them
   * out: measured with V8 13.6, 136 MiB resident for a heap of 15.
   */
  residentBytes(): number;
  /** CPU time of this process so far, milliseconds. */
  cpuMs(): number;
  monoMs(): number;
  /** `everything`: empty pages go back to the system as well, which takes several times as long. */
  collect(how: 'everything' | 'quickly'): void;
  /** By how much the heap may grow before V8 collects it by itself, from the next collection on. */
  limitGrowth(percent: number): void;
}

/**
 * Collects the heap once a burst of work is over, and a small one also in a burst, each time that it has grown by
 * {@link BURST_GROWN_BYTES}. V8 lets the heap grow as far as a burst wants, to three times its size, but with nothing to do it
 * allocates nothing either, and so keeps for hours what a hundred starts needed.
 */
export class HeapCollector {
  readonly #source: HeapSource;
  readonly #grownBytes: number;
  /** Zero: what the start of the process needed is collected too. */
  #settledBytes = 0;
  /** In use at least since the last collection of either kind. */
  #collectedBytes: number;
  #collectedMs = Number.NEGATIVE_INFINITY;
  #large = false;
  #cpuMs: number;
  #lookedMs: number;

  /** `grownBytes`: less growth is left to V8. */
  constructor(source: HeapSource, grownBytes: number = GROWN_BYTES) {
    this.#source = source;
    this.#grownBytes = grownBytes;
    this.#collectedBytes = source.usedBytes();
    this.#cpuMs = source.cpuMs();
    this.#lookedMs = source.monoMs();
  }

  /** To be called every few seconds. True when it collected. */
  look(): boolean {
    const source = this.#source;
    const [cpuMs, nowMs] = [source.cpuMs(), source.monoMs()];
    const idle = cpuMs - this.#cpuMs < IDLE_SHARE * (nowMs - this.#lookedMs);
    this.#cpuMs = cpuMs;
    this.#lookedMs = nowMs;
    if (!idle || nowMs - this.#collectedMs < REST_MS) return false;
    // What the C library freed went back after the collection.
    const resident = source.residentBytes();
    this.#settledBytes = Math.min(this.#settledBytes, resident);
    if (resident - this.#settledBytes < this.#grownBytes) return false;
    source.collect('everything');
    this.#collectedMs = nowMs;
    this.#settledBytes = source.residentBytes();
    this.#collectedBytes = source.usedBytes();
    return true;
  }

  /** To be called several times a second. True when it collected. */
  lookInBurst(): boolean {
    const source = this.#source;
    // V8 may have collected meanwhile.
    this.#collectedBytes = Math.min(this.#collectedBytes, source.usedBytes());
    const large = this.#collectedBytes >= LARGE_BYTES;
    if (large !== this.#large) source.limitGrowth(large ? LARGE_GROWTH_PERCENT : SMALL_GROWTH_PERCENT);
    this.#large = large;
    if (large || source.usedBytes() - this.#collectedBytes < BURST_GROWN_BYTES) return false;
    source.collect('quickly');
    this.#collectedBytes = source.usedBytes();
    return true;
  }
}

/** This process's heap; null where V8 was started without `--expose-gc` and cannot be asked. */
export function ownHeap(monoMs: () => number): HeapSource | null {
  const { gc } = globalThis;
  if (gc === undefined) return null;
  return {
    usedBytes() {
      const { used_heap_size: heap, external_memory: buffers } = getHeapStatistics();
      return heap + buffers;
    },
    residentBytes: () => Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? 0) * 1024,
    cpuMs: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
    monoMs,
    // Last resort is the only flavour after which the young generation is small again.
    collect: (how) => gc({ type: 'major', execution: 'sync', flavor: how === 'everything' ? 'last-resort' : 'regular' }),
    limitGrowth: (percent) => setFlagsFromString(`--heap-growing-percent=${percent}`),
  };
}
