/**
 * What looking at a node costs: one node with 100 hollow pods, and its processor time in windows that alternate between nobody
 * attached, a page attached (a WebSocket client in a process of its own), and a recording to a real file. All windows of one
 * load are of one process, so that heap, compiled code and the node's own work are the same in each.
 * `rest`: nothing happens. `work`: each pod has a readiness probe each second, and each second a pod starts and another stops.
 * Needs nothing built, but --expose-gc.
 * Options: --pods=100 --cycles=6 --seconds=8 --load=rest|work --out=FILE
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RecordingFile } from '@actorlet/inspect/src/boot/recordingFile.ts';
import { serveInspector } from '@actorlet/inspect/src/boot/server.ts';
import { RecordingWriter } from '@actorlet/inspect/src/recording/writer.ts';
import type { Node } from '../src/actors/node.ts';
import type { Inspected } from '../src/actors/recorder/source.ts';
import type { SupervisionEvent } from '../src/actors/supervision/types.ts';
import { keptMiB, nsPerEvent } from './lib/alwaysOn.ts';
import { dropPods, putPods, quiet, startHollowNode } from './lib/hollowNode.ts';
import { numberOption, option, report, say, sleep, summary, until } from './lib/report.ts';

const PODS = numberOption('pods', 100);
const CYCLES = numberOption('cycles', 6);
const SECONDS = numberOption('seconds', 8);
const LOADS = ['rest', 'work'] as const;
type Load = (typeof LOADS)[number];
const SETTLE_MS = 20_000;
const START_TIMEOUT_MS = 120_000;
const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Of what attaching costs once: a recording first writes every pod. */
const ATTACHED_MS = 5_000;
/** One pod comes and one goes this often; each lives for so many turns. */
const TURN_MS = 1_000;
const TURNS_LIVED = 4;
/** Per cent that each may cost more, what is always kept, and milliseconds from a change of state to the viewer. */
const BARS = { pagePercent: 10, recordingPercent: 3, alwaysOnPercent: 3, alwaysOnMiB: 16, updateMs: 150 } as const;
/** Events of the node that what is always on is measured with. */
const EVENTS_KEPT = 20_000;
const EVENTS_FEW = 300;

const MODES = ['nobody', 'page', 'recording'] as const;
type Mode = (typeof MODES)[number];
interface Taken {
  cpuMsPerS: number;
  /** Within what is attached alone, on the main thread: steadier than the whole process on a machine that does other things too. */
  ownMsPerS: number;
}
type Cycle = Record<Mode, Taken>;

const scratch = mkdtempSync(join(tmpdir(), 'actorlet-bench-inspect-'));
const file = join(scratch, 'node.rec');
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
      rowAt: (path) => tree.rowAt(path),
      touched: (fn) => tree.touched((path) => spend(() => fn(path))),
      observe: (fn) => tree.observe((e) => spend(() => fn(e))),
      actorAt: (path) => tree.actorAt(path),
      machineAt: (path) => tree.machineAt(path),
      inspect: (path, fn) => tree.inspect(path, fn),
    },
  };
}

/** Reads the feed as a browser does; tells how old the oldest change of state in each delta is when it has it. */
const VIEWER = `
  const ws = new WebSocket(process.argv[1]);
  let begun = false;
  ws.onopen = () => process.send('open');
  ws.onmessage = (e) => {
    const frame = JSON.parse(e.data);
    if (frame.t !== 'delta') return;
    const first = frame.events.find((x) => x.kind === 'transition');
    // Those of the first delta were recorded before anybody was attached.
    if (first !== undefined && begun) process.send(Date.now() - first.atMs);
    begun = true;
  };
  ws.onclose = () => process.exit(0);`;

const updatesMs: number[] = [];
async function viewer(url: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['-e', VIEWER, url], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('exit', () => reject(new Error('the viewer ended')));
  });
  child.on('message', (ms) => updatesMs.push(Number(ms)));
  return child;
}

/** What a mode attaches; called, it lets go. */
async function attach(mode: Mode, inspectedNode: Inspected): Promise<() => Promise<void>> {
  const node = timed(mode, inspectedNode);
  if (mode === 'nobody') return async () => {};
  if (mode === 'page') {
    let address = '';
    const server = await serveInspector(node, { at: '127.0.0.1:0' }, ({ url }) => {
      address = url;
    });
    const child = await viewer(`${address.replace(/^http/, 'ws')}feed`);
    return async () => {
      server[Symbol.dispose]();
      child.kill();
    };
  }
  const sink = new RecordingFile({ path: file, bytesMax: FILE_BYTES_MAX, log: quiet });
  await sink.open();
  const writer = new RecordingWriter(node, sink);
  return async () => {
    writer.end();
    await sink.end();
  };
}

/** Processor milliseconds per second, of all threads. What attaching costs once is not in it. */
async function windowOf(mode: Mode, node: Inspected): Promise<Taken> {
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

async function cyclesOf(inspected: Inspected): Promise<Cycle[]> {
  const cycles: Cycle[] = [];
  for (let i = 0; i < CYCLES; i++) {
    const measured: Partial<Cycle> = {};
    // Turned from cycle to cycle, so that none always comes first.
    for (const [k] of MODES.entries()) {
      const mode = MODES[(i + k) % MODES.length] ?? 'nobody';
      measured[mode] = await windowOf(mode, inspected);
    }
    cycles.push(measured as Cycle);
    say(`cycle ${i + 1} of ${CYCLES}: ${JSON.stringify(measured)}`);
  }
  return cycles;
}

/** Each turn a pod comes, and the one that came some turns ago goes. */
function comingAndGoing(dir: string): Disposable {
  let turn = 0;
  const timer = setInterval(() => {
    turn += 1;
    putPods(dir, [`job-${turn}`]);
    dropPods(dir, [`job-${turn - TURNS_LIVED}`]);
  }, TURN_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Per cent of `nobody` in the same cycle. */
const more = (cycles: readonly Cycle[], of: (cycle: Cycle) => number) => summary(cycles.map((c) => (100 * of(c)) / c.nobody.cpuMsPerS));

async function measure(load: Load): Promise<object> {
  const dir = join(scratch, load);
  const names = Array.from({ length: PODS }, (_, i) => `web-${i}`);
  putPods(dir, names, { probed: load === 'work' });
  const flags = { inspect: '127.0.0.1:0' };
  const { node, runtime } = await startHollowNode({ dir, name: 'bench', maxPods: PODS + 10, flags, watch: load === 'work' });
  const inspected = inspectedOf(node);
  const running = () => runtime.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING').length;
  await until('all pods running', async () => (running() === PODS ? true : undefined), { timeoutMs: START_TIMEOUT_MS, everyMs: 200 });
  using _ = load === 'work' ? comingAndGoing(dir) : null;
  await sleep(SETTLE_MS);
  updatesMs.length = 0;
  const events: SupervisionEvent[] = [];
  const entriesBefore = inspected.recorder.recorded;
  const from = performance.now();
  const cycles = await cyclesOf(inspected);
  const entriesPerS = ((inspected.recorder.recorded - entriesBefore) * 1000) / (performance.now() - from);
  const recordedBytes = statSync(file).size;
  {
    using _tap = inspected.tree.observe((e) => void (events.length < EVENTS_KEPT && events.push(e)));
    await until('some events', async () => (events.length >= EVENTS_FEW ? true : undefined), { timeoutMs: START_TIMEOUT_MS, everyMs: 500 });
  }
  await node.stop();
  runtime.close();
  rmSync(file);
  const ns = nsPerEvent(events);
  const nobody = summary(cycles.map((c) => c.nobody.cpuMsPerS)).p50;
  return {
    cpuMsPerS: Object.fromEntries(MODES.map((mode) => [mode, summary(cycles.map((c) => c[mode].cpuMsPerS))])),
    ownMsPerS: Object.fromEntries(MODES.map((mode) => [mode, summary(cycles.map((c) => c[mode].ownMsPerS))])),
    /** Per cent of what the node takes with nobody attached. `whole`: of the process; `own`: what is attached, on the main thread. */
    morePercent: {
      page: {
        whole: more(cycles, (c) => c.page.cpuMsPerS - c.nobody.cpuMsPerS),
        own: more(cycles, (c) => c.page.ownMsPerS),
      },
      recording: {
        whole: more(cycles, (c) => c.recording.cpuMsPerS - c.nobody.cpuMsPerS),
        own: more(cycles, (c) => c.recording.ownMsPerS),
      },
    },
    /** The flight recorder and the histories of pods. */
    alwaysOn: { entriesPerS, nsPerEntry: ns, percent: (100 * entriesPerS * ns) / 1e6 / nobody, keptMiB: await keptMiB(events) },
    /** From a change of state to a viewer in another process. */
    updateMs: summary(updatesMs),
    recordedBytes,
    cycles,
  };
}

function inspectedOf(node: Node): Inspected {
  if (node.inspected === null) throw new Error('the node cannot be inspected');
  return node.inspected;
}

const only = option('load');
const loads = LOADS.filter((load) => only === undefined || load === only);
const results: Partial<Record<Load, object>> = {};
for (const load of loads) results[load] = await measure(load);
rmSync(scratch, { recursive: true, force: true });
await report('inspect', { pods: PODS, secondsPerWindow: SECONDS, bars: BARS, ...results });
