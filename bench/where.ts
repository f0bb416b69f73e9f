/**
 * Where a pod's milliseconds and kilobytes go: a daemon on a hollow runtime behind the CRI and on an API server of Kubernetes starts and
 * ends so many pods (processor profile, time of its threads), starts anew, starts them again and settles (what it allocated since and
 * still holds). Writes the two pictures of docs/architecture/memory-and-cpu.md.
 * Options: --pods=100 --out=FILE
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildDaemon } from '../test/e2e/daemon.ts';
import { startBeside } from './lib/beside.ts';
import { bytesByPart, type CpuProfile, type HeapNode, timeByPart } from './lib/modules.ts';
import { threadsOf } from './lib/procs.ts';
import { numberOption, report, say, sleep } from './lib/report.ts';

const podCount = numberOption('pods', 100);
const PAGE = join(import.meta.dirname, '..', 'docs/architecture/memory-and-cpu.md');
/** By then a daemon has started, and what it allocates is of its pods. */
const STARTED_MS = 8_000;
const SETTLED_MS = 30_000;
const AFTER_MS = 3_000;
const OTHER_THREADS: Readonly<Record<string, string>> = { V8Worker: "V8's second thread", 'libuv-worker': 'threads for files' };
/** Less is no slice. */
const LEAST_SHARE = 0.01;

await buildDaemon();
const dir = mkdtempSync(join(tmpdir(), 'actorlet-where-'));
const [cpuFile, heapFile, node] = ['cpu', 'heap', 'node'].map((name) => join(dir, name)) as [string, string, string];
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
// Only the daemon is profiled, not the questions that its launcher asks Node.
writeFileSync(
  node,
  `#!/bin/sh
case "$*" in
  *dist/actorlet.mjs*) exec ${quoted(process.execPath)} --import ${quoted(join(import.meta.dirname, 'lib/profiled.ts'))} "$@" ;;
  *) exec ${quoted(process.execPath)} "$@" ;;
esac
`,
  { mode: 0o755 },
);
const beside = await startBeside([{ name: 'where', node }], { podCount });

/** Of the threads, milliseconds of a pod's start and end. */
async function life(): Promise<Map<string, number>> {
  const [agent] = beside.all;
  if (agent === undefined) throw new Error('no daemon');
  process.env.ACTORLET_PROFILE = cpuFile;
  await beside.start(agent);
  await sleep(STARTED_MS);
  const before = threadsOf(agent.daemon.pid ?? 0);
  await beside.remove(await beside.make('a', podCount));
  await sleep(AFTER_MS);
  const after = threadsOf(agent.daemon.pid ?? 0);
  await agent.daemon.end('SIGTERM');
  delete process.env.ACTORLET_PROFILE;
  return new Map([...after].map(([name, ms]) => [name, (ms - (before.get(name) ?? 0)) / podCount]));
}
async function settled(): Promise<void> {
  const [agent] = beside.all;
  if (agent === undefined) throw new Error('no daemon');
  process.env.ACTORLET_HEAP_PROFILE = heapFile;
  await beside.start(agent);
  await sleep(STARTED_MS);
  await beside.make('b', podCount);
  await sleep(SETTLED_MS);
  await agent.daemon.end('SIGTERM');
}

function picture(title: string, slices: ReadonlyMap<string, number>): string[] {
  const all = [...slices.values()].reduce((sum, n) => sum + n, 0);
  const large = [...slices].filter(([, n]) => n / all >= LEAST_SHARE).sort((a, b) => b[1] - a[1]);
  return ['```mermaid', 'pie showData', `  title ${title}`, ...large.map(([name, n]) => `  "${name}" : ${n.toFixed(1)}`), '```'];
}
const sum = (of: ReadonlyMap<string, number>): number => [...of.values()].reduce((all, n) => all + n, 0);
const rounded = (of: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries([...of].sort((a, b) => b[1] - a[1]).map(([name, n]) => [name, Math.round(n * 10) / 10]));

try {
  say(`${podCount} pods start and end`);
  const threads = await life();
  say('they start anew and settle');
  await settled();
  const mainMs = threads.get('MainThread') ?? 0;
  const milliseconds = timeByPart(JSON.parse(readFileSync(cpuFile, 'utf8')) as CpuProfile);
  for (const [part, share] of milliseconds) milliseconds.set(part, share * mainMs);
  for (const [thread, name] of Object.entries(OTHER_THREADS)) milliseconds.set(name, threads.get(thread) ?? 0);
  const { head } = JSON.parse(readFileSync(heapFile, 'utf8')) as { head: HeapNode };
  const kilobytes = new Map([...bytesByPart(head)].map(([part, bytes]) => [part, bytes / podCount / 1000]));
  const made = [
    ...picture(`Milliseconds of a pod's start and end: ${sum(milliseconds).toFixed(0)}`, milliseconds),
    '',
    ...picture(`Kilobytes of heap of a settled pod, by what allocated them: ${sum(kilobytes).toFixed(0)}`, kilobytes),
  ].join('\n');
  const page = readFileSync(PAGE, 'utf8');
  const between = /(<!-- where: [^\n]*-->\n\n)[\s\S]*?(\n\n<!-- end of where -->)/;
  if (!between.test(page)) throw new Error(`${PAGE} has no place for the pictures`);
  writeFileSync(
    PAGE,
    page.replace(between, (_, from: string, to: string) => `${from}${made}${to}`),
  );
  await report('where', { pods: podCount, milliseconds: rounded(milliseconds), kilobytes: rounded(kilobytes) });
} finally {
  await beside.end();
  rmSync(dir, { recursive: true, force: true });
}
