/**
 * Vitest's setup file: what each test file costs goes into its `meta`, for `reporter.ts`. Processor time is that of the worker and of
 * the processes it waited for, so a file pays for the programs that it starts. A shim of containerd has no such parent.
 */
import { readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

/** USER_HZ: Linux shows programs this value on every machine. */
const TICKS_PER_SECOND = 100;
/** Fields 16 and 17 of proc(5) stat, counted from the one after the name. */
const [CUTIME, CSTIME] = [13, 14];

interface Mark {
  cpu: number;
  at: number;
}
/** The end of the file before: what a worker does between two files belongs to the later one. */
const marks = globalThis as { actorletCostMark?: Mark };

function mark(): Mark {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? [];
  const children = (Number(fields[CUTIME]) + Number(fields[CSTIME])) / TICKS_PER_SECOND;
  const { user, system } = process.cpuUsage();
  return { cpu: (user + system) / 1e6 + children, at: performance.now() / 1_000 };
}

// It was for this worker (vitest.config.ts).
delete process.env.NODE_COMPILE_CACHE;

const start = marks.actorletCostMark ?? { cpu: 0, at: 0 };
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of fixtures from it
afterAll(({}, suite) => {
  const end = mark();
  marks.actorletCostMark = end;
  Object.assign(suite.file.meta, { cost: { cpu: end.cpu - start.cpu, wall: end.at - start.at } });
});
