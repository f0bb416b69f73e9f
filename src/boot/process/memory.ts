/**
 * Gives back what only the start, or a burst of work, needed. Most pages of Node's own program are touched once and then stay
 * counted as resident (about 50 of 110 MiB): unchanged pages of a file, which come back from the page cache one by one if they
 * are ever used again. And what the C library keeps of freed memory for later.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import koffi from 'koffi';

/** `MADV_DONTNEED` of Linux: for an unchanged private file mapping it only drops the page table entries. */
const MADV_DONTNEED = 4;
const PAGE_BYTES = 4096n;
/** One entry of /proc/self/pagemap, and its bits 63 (present), 62 (swapped) and 61 (a page of the file, not a copy of it). */
const ENTRY_BYTES = 8n;
const PRESENT = 1n << 63n;
const SWAPPED = 1n << 62n;
const OF_FILE = 1n << 61n;

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
export function unchangedRanges(range: PageRange, pagemap: BigUint64Array): PageRange[] {
  const out: PageRange[] = [];
  let open: PageRange | undefined;
  pagemap.forEach((entry, i) => {
    if ((entry & SWAPPED) !== 0n || (entry & (PRESENT | OF_FILE)) === PRESENT) open = undefined;
    else if (open !== undefined) open.bytes += PAGE_BYTES;
    else {
      open = { start: range.start + BigInt(i) * PAGE_BYTES, bytes: PAGE_BYTES };
      out.push(open);
    }
  });
  return out;
}

function pagemapOf(fd: number, { start, bytes }: PageRange): BigUint64Array {
  const entries = new BigUint64Array(Number(bytes / PAGE_BYTES));
  const read = readSync(fd, new Uint8Array(entries.buffer), 0, entries.byteLength, (start / PAGE_BYTES) * ENTRY_BYTES);
  return entries.subarray(0, Math.floor(read / Number(ENTRY_BYTES)));
}

/** True when memory was given back; false where the system has no such thing. Never throws: it only saves memory. */
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
