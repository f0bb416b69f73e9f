/**
 * What clients of the inspection page do to actors: the mailbox benchmark with a process beside it that attaches to nothing,
 * and with one client each in such a process: a page that reads, one that reads slowly, one that never reads, and one that
 * floods the server with frames, pings and requests over a dozen connections. The rounds alternate.
 * Options: --rounds=7 --out=FILE
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { serveInspector } from '@actorlet/inspect/src/boot/server.ts';
import { createHistory } from '../src/actors/recorder/history.ts';
import { createRecorder } from '../src/actors/recorder/recorder.ts';
import type { Inspected } from '../src/actors/recorder/source.ts';
import { MailboxBench, ports, type Sample, toggle } from './lib/mailbox.ts';
import { numberOption, report, say, sleep, summary } from './lib/report.ts';
import { KINDS, type Kind } from './lib/viewerClient.ts';

const ROUNDS = numberOption('rounds', 7);
/** A client has attached, and a hostile one is at its full rate. */
const ATTACHED_MS = 1_500;
/** Of the rate with nobody attached: what one client may take at most. */
const BARS_PERCENT = { page: 10, slow: 10, stuck: 10, hostile: 10 } as const;

const recorder = createRecorder();
const history = createHistory(ports.clock);
const bench = new MailboxBench(
  (count) => ({ logic: toggle.provide({ actions: { count } }) }),
  [(e) => recorder.observe(e), (e) => history.observe(e)],
);
const { tree } = bench;
await tree.start();
const about = { nodeName: 'bench', version: '', startedAtMs: Date.now(), faults: null };
const node: Inspected = { tree, recorder, history, clock: ports.clock, log: ports.log, ...about };
let host = '';
using server = await serveInspector(node, { at: '127.0.0.1:0' }, ({ url }) => {
  host = new URL(url).host;
});

function client(kind: Kind): ChildProcess & Disposable {
  const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'lib/viewerClient.ts'), kind, host];
  const child = spawn(process.execPath, args, { stdio: 'inherit' });
  return Object.assign(child, { [Symbol.dispose]: () => void child.kill('SIGKILL') });
}

const MODES: readonly Kind[] = ['nobody', ...KINDS];
const samples = Object.fromEntries(MODES.map((m) => [m, []])) as unknown as Record<Kind, Sample[]>;
/** Frames turned into text while nobody was attached. */
let serialisedForNobody = 0;

await bench.round();
for (let round = 0; round < ROUNDS; round++) {
  for (const [k] of MODES.entries()) {
    const mode = MODES[(round + k) % MODES.length] ?? 'nobody';
    using _client = client(mode);
    await sleep(ATTACHED_MS);
    const before = server.hub.figures.serialised;
    samples[mode].push(await bench.round());
    if (mode === 'nobody') serialisedForNobody += server.hub.figures.serialised - before;
    say(`round ${round + 1} of ${ROUNDS}, ${mode}: ${JSON.stringify(samples[mode].at(-1))}`);
    _client.kill('SIGKILL');
    while (server.hub.figures.viewers > 0) await sleep(20);
    if (mode === 'hostile') await sleep(6_000);
  }
}
// After a hostile client nobody new is let in for 5 s.
await sleep(6_000);
const figures = (await (await fetch(`http://${host}/api/figures`)).json()) as object;
await tree.stop();

const median = (mode: Kind, of: (s: Sample) => number): number => summary(samples[mode].map(of)).p50;
/** Per cent fewer than with nobody attached. */
const slower = (mode: Kind, of: (s: Sample) => number) => Math.round(1000 * (1 - median(mode, of) / median('nobody', of))) / 10;
await report('viewers', {
  barsPercent: BARS_PERCENT,
  medianPerS: Object.fromEntries(MODES.map((m) => [m, median(m, (s) => s.perS)])),
  slowerPercent: Object.fromEntries(KINDS.map((m) => [m, { wall: slower(m, (s) => s.perS), cpu: slower(m, (s) => s.perCpuS) }])),
  serialisedForNobody,
  figures,
  samples,
});
