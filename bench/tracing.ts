/**
 * What tracing costs: 100 hollow pods are started and stopped, in turns without `tracing` and with it, every trace sampled and
 * sent by OTLP over gRPC to a receiver in a process of its own. All turns are of one process. Needs nothing built.
 * Options: --pods=100 --turns=6 --out=FILE
 */

import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SpanQueue } from '@actorlet/inspect/src/tracing/queue.ts';
import { PodTracer } from '@actorlet/inspect/src/tracing/tracer.ts';
import { createOtlpSender } from '../src/boot/tracing/otlp.ts';
import { podsView } from '../src/machines/pods/manager/messages.ts';
import { statusesView } from '../src/machines/pods/status/messages.ts';

import { traceReceiver } from '../test/boot/traceReceiver.ts';
import { dropPods, putPods, quiet, startHollowNode } from './lib/hollowNode.ts';
import { numberOption, report, say, summary, until } from './lib/report.ts';

const RECEIVER = '--receiver';
const PODS = process.argv.includes(RECEIVER) ? 0 : numberOption('pods', 100);
const TURNS = process.argv.includes(RECEIVER) ? 0 : numberOption('turns', 6);
const TIMEOUT_MS = 60_000;
const EVERY_MS = 20;
const END_MS = 5_000;
/** The first turns compile the code of both. */
const WARM_UP = 2;

interface Turn {
  cpuMs: number;
  startMs: number;
  stopMs: number;
}

async function receive(): Promise<void> {
  const receiver = await traceReceiver();
  process.send?.(receiver.endpoint);
  process.on('message', () => process.send?.(receiver.spans.length));
  process.on('disconnect', () => process.exit(0));
}

async function receiverProcess(): Promise<{ child: ChildProcess; endpoint: string }> {
  const child = fork(import.meta.filename, [RECEIVER]);
  const [endpoint] = (await once(child, 'message')) as [string];
  return { child, endpoint };
}

async function measure(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-bench-tracing-'));
  const { child, endpoint } = await receiverProcess();
  const { node, runtime } = await startHollowNode({
    dir,
    name: 'bench',
    maxPods: PODS + 10,
    flags: { inspect: '127.0.0.1:0' },
    watch: true,
  });
  const { inspected } = node;
  if (inspected === null) throw new Error('the node cannot be inspected');
  const clock = inspected.clock;
  const known = () => [...(node.tree.registry.read(podsView)?.value.records.keys() ?? [])];
  const ready = () => {
    const statuses = node.tree.registry.read(statusesView)?.value;
    return known().filter((uid) => statuses?.get(uid)?.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True')).length;
  };

  /** Until the last span is with the receiver. */
  const traced = (): (() => Promise<void>) => {
    const sender = createOtlpSender({ endpoint, resource: { 'service.name': 'bench' }, version: '0', clock });
    const queue = new SpanQueue(sender, { clock, log: quiet });
    const tracer = new PodTracer(inspected, {
      samplingRatePerMillion: 1_000_000,
      sha256Hex: (text) => createHash('sha256').update(text).digest('hex'),
      sink: (spans) => queue.add(spans),
      cluster: false,
    });
    return async () => {
      tracer[Symbol.dispose]();
      await queue.end(END_MS);
      sender[Symbol.dispose]();
    };
  };

  let turnsTaken = 0;
  const turn = async (tracing: boolean): Promise<Turn> => {
    // Other names each time: a pod that comes back waits for its crash back-off.
    turnsTaken += 1;
    const names = Array.from({ length: PODS }, (_, i) => `web-${turnsTaken}-${i}`);
    const before = process.cpuUsage();
    const began = performance.now();
    const end = tracing ? traced() : async () => {};
    putPods(dir, names);
    await until('every pod ready', async () => (ready() === PODS ? true : undefined), { timeoutMs: TIMEOUT_MS, everyMs: EVERY_MS });
    const started = performance.now();
    dropPods(dir, names);
    await until('every pod gone', async () => (known().length === 0 ? true : undefined), { timeoutMs: TIMEOUT_MS, everyMs: EVERY_MS });
    const stopped = performance.now();
    await end();
    const { user, system } = process.cpuUsage(before);
    return { cpuMs: (user + system) / 1000, startMs: started - began, stopMs: stopped - started };
  };

  const turns: { off: Turn; on: Turn }[] = [];
  for (let i = -WARM_UP; i < TURNS; i++) {
    const onFirst = i % 2 === 0;
    const first = await turn(onFirst);
    const second = await turn(!onFirst);
    const pair = onFirst ? { off: second, on: first } : { off: first, on: second };
    if (i >= 0) turns.push(pair);
    say(`turn ${i + 1} of ${TURNS}: ${JSON.stringify(pair)}`);
  }
  child.send('spans');
  const [spans] = (await once(child, 'message')) as [number];
  child.disconnect();
  await node.stop();
  runtime.close();
  rmSync(dir, { recursive: true, force: true });
  const of = (key: keyof Turn) => ({
    off: summary(turns.map((t) => t.off[key])),
    on: summary(turns.map((t) => t.on[key])),
    ratio: summary(turns.map((t) => t.on[key] / t.off[key])),
  });
  const spansPerPod = Math.round((10 * spans) / (PODS * (TURNS + WARM_UP))) / 10;
  await report('tracing', { pods: PODS, turns: TURNS, spansPerPod, cpuMs: of('cpuMs'), startMs: of('startMs'), stopMs: of('stopMs') });
}

await (process.argv.includes(RECEIVER) ? receive() : measure());
