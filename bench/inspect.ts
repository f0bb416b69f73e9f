/**
 * What looking at a node costs at rest: daemons with 100 hollow pods each, one that nobody can look at, one with the page
 * served and nobody there, one with the page open, one that records. All four run at the same time, so that each meets the
 * same machine, in an order that is turned from round to round; the processor time of each process over the same minute,
 * of all its threads. Needs dist/ (scripts/bench.sh builds it).
 * Options: --pods=100 --rounds=5 --seconds=60 --out=FILE
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { adminClient } from '../src/ctl/client.ts';
import { startNode, type TestNode } from '../src/harness/index.ts';
import { numberOption, report, say, sleep, summary, until } from './lib/report.ts';

const PODS = numberOption('pods', 100);
const ROUNDS = numberOption('rounds', 5);
const SECONDS = numberOption('seconds', 60);
/** After the last pod is ready: the heap settles, start pages are given back. */
const SETTLE_S = 45;
const START_TIMEOUT_MS = 180_000;
/** What a recording may cost more, and an attached page. */
const BARS = { recording: 3, page: 10 } as const;

const MODES = ['off', 'nobody', 'page', 'recording'] as const;
type Mode = (typeof MODES)[number];

interface Subject {
  mode: Mode;
  node: TestNode;
  viewer: WebSocket | null;
  file: string;
}
const scratch = mkdtempSync(join(tmpdir(), 'actorlet-bench-inspect-'));

async function start(mode: Mode): Promise<Subject> {
  const file = join(scratch, `${mode}.rec`);
  const flags = {
    off: [],
    nobody: ['--actorlet-inspect=127.0.0.1:0'],
    page: ['--actorlet-inspect=127.0.0.1:0'],
    recording: [`--actorlet-record=${file}`],
  };
  const node = await startNode({
    runtime: 'hollow',
    name: mode,
    flags: flags[mode],
    timeoutMs: START_TIMEOUT_MS,
    startTimeoutMs: START_TIMEOUT_MS,
  });
  for (let i = 0; i < PODS; i++) {
    await node.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `web-${i}`, annotations: { 'actorlet.dev/hollow': 'run=forever' } },
      spec: { containers: [{ name: 'app', image: 'example.test/app:1' }] },
    });
  }
  await until('all pods ready', async () => ((await readyPods(node)) === PODS ? true : undefined), {
    timeoutMs: START_TIMEOUT_MS,
    everyMs: 500,
  });
  return { mode, node, viewer: mode === 'page' ? await attach(node) : null, file };
}
async function readyPods(node: TestNode): Promise<number> {
  const { pods } = (await adminClient(node.adminSocket, AbortSignal.timeout(10_000)).json('/pods')) as {
    pods: { ready: number; containers: number }[];
  };
  return pods.filter((p) => p.ready === p.containers).length;
}
async function attach(node: TestNode): Promise<WebSocket> {
  const { url } = (await adminClient(node.adminSocket, AbortSignal.timeout(10_000)).json('/page')) as { url: string };
  const ws = new WebSocket(`${url.replace('http', 'ws')}feed`);
  await new Promise((resolve, reject) => ws.once('message', resolve).once('error', reject));
  return ws;
}

/** Nanoseconds on a processor of every thread. */
function processorNs(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce((ns, task) => {
    const text = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8');
    return ns + Number(text.split(' ', 1)[0]);
  }, 0);
}
function rssMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

async function round(turn: number): Promise<Record<Mode, { cpuMsPerS: number; rssMiB: number; writtenBytesPerS: number }>> {
  const order = MODES.map((_, i) => MODES[(i + turn) % MODES.length] ?? 'off');
  const subjects: Subject[] = [];
  try {
    for (const mode of order) subjects.push(await start(mode));
    await sleep(SETTLE_S * 1000);
    const pidOf = ({ node }: Subject): number => node.pid ?? 0;
    const sizeOf = ({ mode, file }: Subject): number => (mode === 'recording' ? statSync(file).size : 0);
    const before = subjects.map((s) => ({ ns: processorNs(pidOf(s)), size: sizeOf(s) }));
    const from = performance.now();
    await sleep(SECONDS * 1000);
    const seconds = (performance.now() - from) / 1000;
    const measured = subjects.map((s, i) => {
      const { ns = 0, size = 0 } = before[i] ?? {};
      const cpuMsPerS = (processorNs(pidOf(s)) - ns) / 1e6 / seconds;
      return [s.mode, { cpuMsPerS, rssMiB: rssMiB(pidOf(s)), writtenBytesPerS: (sizeOf(s) - size) / seconds }] as const;
    });
    return Object.fromEntries(measured) as Awaited<ReturnType<typeof round>>;
  } finally {
    for (const { viewer, node } of subjects) {
      viewer?.terminate();
      await node.dispose();
    }
  }
}

const rounds: Awaited<ReturnType<typeof round>>[] = [];
for (let i = 0; i < ROUNDS; i++) {
  rounds.push(await round(i));
  say(`round ${i + 1} of ${ROUNDS}: ${JSON.stringify(rounds.at(-1))}`);
}
rmSync(scratch, { recursive: true, force: true });
/** Per cent more processor time than `base`, in the same minute. */
const more = (mode: Mode, base: Mode) => summary(rounds.map((r) => (r[mode].cpuMsPerS / r[base].cpuMsPerS - 1) * 100));
await report('inspect', {
  pods: PODS,
  secondsMeasured: SECONDS,
  cpuMsPerS: Object.fromEntries(MODES.map((mode) => [mode, summary(rounds.map((r) => r[mode].cpuMsPerS))])),
  percentMore: { nobodyThanOff: more('nobody', 'off'), pageThanNobody: more('page', 'nobody'), recordingThanOff: more('recording', 'off') },
  bars: { pageThanNobody: BARS.page, recordingThanOff: BARS.recording },
  recordingBytesPerS: summary(rounds.map((r) => r.recording.writtenBytesPerS)),
  rounds,
});
