/** `actorctl try`: a throw-away node for some manifests, faults if wanted, expectations checked, a timeline as it happens. */

import { existsSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { decodeScenario, scenarioErrorText } from '@actorlet/faults/src/read/decode.ts';
import { type Expectation, parseExpectation, parseTime } from '@actorlet/harness/src/expectation.ts';
import { startNode, type TestNode, type TimelineEntry, type Timings } from '@actorlet/harness/src/index.ts';
import type { PodHandle } from '@actorlet/harness/src/pod.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';
import type { CtlIo } from '../io.ts';
import { type Checked, type JunitRun, junitXml } from './junit.ts';

export interface TryArgs {
  file: readonly string[];
  inject: string | undefined;
  expect: readonly string[];
  runtime: string;
  endpoint: string | undefined;
  settle: string;
  keep: boolean;
  /** File for the outcome as JUnit XML. */
  junit: string | undefined;
  json: boolean;
}
/** The run itself failed or was wrong: nothing was learnt about the pods. */
const NOT_TRIED = EXIT.usage;

export async function runTry(io: CtlIo, args: TryArgs): Promise<number> {
  const wanted = checked(args);
  const settleMs = parseTime(args.settle);
  if (settleMs === undefined) throw new CtlError(EXIT.usage, `--settle: ${JSON.stringify(args.settle)} is no time such as 30s.`);
  const began = io.nowMs();
  const print = args.json ? () => undefined : (e: TimelineEntry) => io.out(lineOf(e, began));
  let node: TestNode | undefined;
  try {
    node = await startNode({
      runtime: runtimeOf(args.runtime),
      ...(args.endpoint === undefined ? {} : { endpoint: args.endpoint }),
      ...(args.inject === undefined ? { faultInjection: false } : {}),
      keep: args.keep,
    });
    for (const e of node.timeline) print(e);
    using _ = node.onTimeline(print);
    const running = work(node, { ...args, settleMs, wanted });
    const done = await Promise.race([running, interrupted(io)]);
    if (done === 'interrupted') {
      // What still waits is rejected when the node goes.
      running.catch(() => undefined);
      throw new CtlError(EXIT.interrupted, 'interrupted; the node and its pods are removed.');
    }
    writeJunit(args, { beganMs: began, outcomes: done.outcomes, trouble: '' });
    if (args.json) io.out(`${JSON.stringify({ ...done, timeline: node.timeline }, null, 2)}\n`);
    else report(io, done);
    if (args.keep) io.err(`The node's files are in ${node.dir}.\n`);
    return done.ok ? EXIT.ok : EXIT.no;
  } catch (error) {
    if (error instanceof CtlError && error.exitCode === EXIT.interrupted) throw error;
    writeJunit(args, { beganMs: began, outcomes: [], trouble: messageOf(error) });
    throw new CtlError(NOT_TRIED, messageOf(error));
  } finally {
    await node?.dispose();
  }
}

/** @throws CtlError */
function writeJunit({ junit }: TryArgs, run: JunitRun): void {
  if (junit === undefined) return;
  try {
    writeFileSync(junit, junitXml(run));
  } catch (error) {
    throw new CtlError(NOT_TRIED, `--junit ${junit} cannot be written: ${messageOf(error)}`);
  }
}

function checked(args: TryArgs): Expectation[] {
  if (args.file.length === 0) throw new CtlError(EXIT.usage, 'try: say which manifests with -f.');
  for (const file of [...args.file, ...(args.inject === undefined ? [] : [args.inject])])
    if (!existsSync(file)) throw new CtlError(EXIT.usage, `try: ${file} does not exist.`);
  if (args.junit !== undefined && !existsSync(dirname(args.junit)))
    throw new CtlError(EXIT.usage, `try: the folder of --junit ${args.junit} does not exist.`);
  if (args.inject !== undefined) {
    const decoded = decodeScenario(readGivenSync(args.inject), 'live');
    const { inject } = args;
    if (!decoded.ok) throw new CtlError(EXIT.usage, decoded.errors.map((e) => scenarioErrorText(inject, e)).join('\n'));
  }
  try {
    return args.expect.map(parseExpectation);
  } catch (error) {
    throw new CtlError(EXIT.usage, `try: ${messageOf(error)}`);
  }
}

function runtimeOf(name: string): 'process' | 'oci' | 'hollow' | 'containerd' {
  if (name === 'process' || name === 'oci' || name === 'hollow' || name === 'containerd') return name;
  throw new CtlError(EXIT.usage, `try: --runtime is process, oci, hollow or containerd, not ${name}.`);
}

function interrupted(io: CtlIo): Promise<'interrupted'> {
  return new Promise((resolve) => {
    if (io.signal.aborted) resolve('interrupted');
    io.signal.addEventListener('abort', () => resolve('interrupted'), { once: true });
  });
}

interface Done {
  ok: boolean;
  outcomes: Checked[];
  times: { pod: string; timings: Timings }[];
}

async function work(node: TestNode, o: TryArgs & { settleMs: number; wanted: readonly Expectation[] }): Promise<Done> {
  const pods = (await Promise.all(o.file.map((file) => node.applyAll(file)))).flat();
  if (o.inject !== undefined) {
    if (o.settleMs > 0) await Promise.all(pods.map((p) => up(p, o.settleMs)));
    const { warnings } = await node.inject(o.inject);
    for (const text of warnings) node.note('fault', '', `warning: ${text}`);
  }
  const began = performance.now();
  const jobs =
    o.wanted.length === 0
      ? pods.map((pod) => ({ text: 'ready or Succeeded', pod, check: (p: PodHandle) => up(p, UP_MS) }))
      : o.wanted.flatMap((e) => targets(e, { pods, node }).map((pod) => ({ text: e.text, pod, check: e.check })));
  const outcomes = await Promise.all(
    jobs.map(async ({ text, pod, check }): Promise<Checked> => {
      const outcome = { expectation: text, pod: pod.name };
      try {
        await check(pod, { fresh: o.inject === undefined });
        const afterMs = performance.now() - began;
        node.note('expectation', pod.name, `held: ${text}`);
        return { ...outcome, held: true, afterMs, why: '' };
      } catch (error) {
        const afterMs = performance.now() - began;
        node.note('expectation', pod.name, `NOT held: ${text}`);
        return { ...outcome, held: false, afterMs, why: messageOf(error) };
      }
    }),
  );
  const times = await Promise.all(
    pods.map(async (p) => ((await p.get()) === undefined ? [] : [{ pod: p.name, timings: await p.timings() }])),
  );
  return { ok: outcomes.every((x) => x.held), outcomes, times: times.flat() };
}
const UP_MS = 30_000;
/** What crashes at once is ready for a moment, too. */
const STEADY_MS = 2_000;

/** Ready, and so for a while, or ended well. */
async function up(pod: PodHandle, timeoutMs: number): Promise<void> {
  let sinceMs: number | null = null;
  await pod.where(
    `be ready for ${STEADY_MS / 1_000} s, or Succeeded`,
    (p) => {
      const ready = p.pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
      sinceMs = ready ? (sinceMs ?? performance.now()) : null;
      return p.phase === 'Succeeded' || (sinceMs !== null && performance.now() - sinceMs >= STEADY_MS);
    },
    { timeoutMs, giveUpWhenOver: true },
  );
}

function targets(e: Expectation, o: { pods: readonly PodHandle[]; node: TestNode }): readonly PodHandle[] {
  if (e.pod === '') return o.pods;
  const found = o.pods.filter((p) => p.name === e.pod || `${p.namespace}/${p.name}` === e.pod);
  if (found.length === 0)
    throw new Error(
      `expectation ${JSON.stringify(e.text)}: no manifest holds a pod ${e.pod}; there are ${o.pods.map((p) => p.name).join(', ')}`,
    );
  return found;
}

function lineOf(e: TimelineEntry, began: number): string {
  const at = `+${(Math.max(0, e.atMs - began) / 1_000).toFixed(3)}s`.padStart(10);
  return `${at}  ${e.kind.padEnd(11)}  ${e.pod === '' ? '' : `${e.pod}: `}${printable(e.what)}\n`;
}

function report(io: CtlIo, done: Done): void {
  const seconds = (ms: number | null): string => (ms === null ? '-' : `${(ms / 1_000).toFixed(2)}s`);
  io.out('\n');
  for (const { pod, timings: t } of done.times) {
    const gaps = t.restarts.map((r) => `${r.container} ${r.exitCode ?? '?'} +${seconds(r.gapMs)}`).join(', ');
    io.out(
      `${pod}: taken on after ${seconds(t.scheduledMs)}, started ${seconds(t.startedMs)}, ready ${seconds(t.readyMs)}${gaps === '' ? '' : `; restarts (exit code, gap): ${gaps}`}\n`,
    );
  }
  for (const x of done.outcomes) {
    io.out(`${x.held ? 'held    ' : 'NOT HELD'}  ${x.pod}  ${x.expectation}  (${seconds(x.afterMs)})\n`);
    if (!x.held) io.out(`${x.why.replace(/^/gm, '    ')}\n`);
  }
}
