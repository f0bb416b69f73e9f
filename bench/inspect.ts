/**
 * What looking at a node costs at rest: one node with 100 hollow pods, its processor time in windows of ten seconds that
 * alternate between nobody attached, a page attached, and a recording to a real file, and the time within what is attached. All windows are of one process, so
 * that heap, compiled code and work of the node are the same in each. Needs nothing built.
 * Options: --pods=100 --cycles=12 --seconds=10 --out=FILE
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RecordingFile } from '../src/boot/inspect/recordingFile.ts';
import { Hub } from '../src/inspect/feed/hub.ts';
import { RecordingWriter } from '../src/inspect/recording/writer.ts';
import type { Inspected } from '../src/inspect/source.ts';
import { putPods, quiet, startHollowNode } from './lib/hollowNode.ts';
import { numberOption, report, say, sleep, summary, until } from './lib/report.ts';

const PODS = numberOption('pods', 100);
const CYCLES = numberOption('cycles', 12);
const SECONDS = numberOption('seconds', 10);
const SETTLE_MS = 30_000;
const START_TIMEOUT_MS = 120_000;
const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Per cent that each may cost more. */
const BARS = { page: 10, recording: 3 } as const;

const MODES = ['nobody', 'page', 'recording'] as const;
type Mode = (typeof MODES)[number];

const scratch = mkdtempSync(join(tmpdir(), 'actorlet-bench-inspect-'));
const file = join(scratch, 'node.rec');

/** Time within what is attached alone: steadier than the whole process on a machine that does other things too. */
const ownMs: Record<Mode, number> = { nobody: 0, page: 0, recording: 0 };

/** The node, with the time taken of all that it calls. */
function timed(mode: Mode, node: Inspected): Inspected {
  const spend = (fn: () => void): void => {
    const from = performance.now();
    fn();
    ownMs[mode] += performance.now() - from;
  };
  const { clock, tree } = node;
  return {
    ...node,
    clock: {
      wallMs: () => clock.wallMs(),
      monoMs: () => clock.monoMs(),
      setTimeout: (fn, ms) => clock.setTimeout(() => spend(fn), ms),
      clearTimeout: (timer) => clock.clearTimeout(timer),
    },
    tree: {
      registry: tree.registry,
      state: () => tree.state(),
      stateAt: (path) => tree.stateAt(path),
      observe: (fn) => tree.observe((e) => spend(() => fn(e))),
      actorAt: (path) => tree.actorAt(path),
      inspect: (path, fn) => tree.inspect(path, fn),
    },
  };
}

/** What a mode attaches; called, it lets go. */
async function attach(mode: Mode, inspectedNode: Inspected): Promise<() => Promise<void>> {
  const node = timed(mode, inspectedNode);
  if (mode === 'nobody') return async () => {};
  if (mode === 'page') {
    const hub = new Hub(node, () => ({ [Symbol.dispose]: () => {} }));
    const joined = hub.join({ backlogBytes: () => 0, send: () => {}, close: () => {} });
    return async () => joined?.leave();
  }
  const sink = new RecordingFile({ path: file, bytesMax: FILE_BYTES_MAX, log: quiet });
  await sink.open();
  const writer = new RecordingWriter(node, sink);
  return async () => {
    writer.end();
    await sink.end();
  };
}

/** Of what attaching costs once: a recording first writes every pod. */
const ATTACHED_MS = 8_000;

/** Processor milliseconds per second, of all threads. What attaching costs once is not in it. */
async function windowOf(mode: Mode, node: Inspected): Promise<{ cpuMsPerS: number; ownMsPerS: number }> {
  const detach = await attach(mode, node);
  await sleep(ATTACHED_MS);
  const from = performance.now();
  const before = process.cpuUsage();
  const ownBefore = ownMs[mode];
  await sleep(SECONDS * 1000);
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - from) / 1000;
  const ownMsPerS = (ownMs[mode] - ownBefore) / seconds;
  await detach();
  return { cpuMsPerS: (user + system) / 1000 / seconds, ownMsPerS };
}

putPods(
  scratch,
  Array.from({ length: PODS }, (_, i) => `web-${i}`),
);
const { node, runtime } = await startHollowNode({ dir: scratch, name: 'bench', maxPods: PODS + 10, flags: { inspect: '127.0.0.1:0' } });
const { inspected } = node;
if (inspected === null) throw new Error('the node cannot be inspected');
const running = () => runtime.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING').length;
await until('all pods running', async () => (running() === PODS ? true : undefined), { timeoutMs: START_TIMEOUT_MS, everyMs: 200 });
await sleep(SETTLE_MS);
const cycles: Record<Mode, Awaited<ReturnType<typeof windowOf>>>[] = [];
for (let i = 0; i < CYCLES; i++) {
  const measured: Partial<(typeof cycles)[number]> = {};
  // Turned from cycle to cycle, so that none always comes first.
  for (const [k] of MODES.entries()) {
    const mode = MODES[(i + k) % MODES.length] ?? 'nobody';
    measured[mode] = await windowOf(mode, inspected);
  }
  cycles.push(measured as (typeof cycles)[number]);
  say(`cycle ${i + 1} of ${CYCLES}: ${JSON.stringify(measured)}`);
}
const recordedBytes = statSync(file).size;
await node.stop();
runtime.close();
rmSync(scratch, { recursive: true, force: true });
await report('inspect', {
  pods: PODS,
  secondsPerWindow: SECONDS,
  cpuMsPerS: Object.fromEntries(MODES.map((mode) => [mode, summary(cycles.map((c) => c[mode].cpuMsPerS))])),
  ownMsPerS: Object.fromEntries(MODES.map((mode) => [mode, summary(cycles.map((c) => c[mode].ownMsPerS))])),
  barsPercent: BARS,
  recordedBytes,
  cycles,
});
