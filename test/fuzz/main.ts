/**
 * The fuzzer: `npm run fuzz -- [--seed S] [--cases N] [--target NAME] [--show CASE]`. The cases of a seed are always the same. A worker
 * thread runs them and this thread watches it: a case that takes too long is reported with what repeats it.
 */
import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import fc from 'fast-check';
import { answerTargets } from './answers.ts';
import { fileTargets } from './files.ts';
import { nodeTargets } from './nodes.ts';
import { podTargets } from './pods.ts';
import { requestTargets } from './requests.ts';
import { must, type Target } from './target.ts';

/** No document here is larger than some 100 kB: what takes longer than this grows faster than its input. */
const CASE_CPU_MS = 2_000;
/** A case that has not ended by then never ends. Wide: the machine may be busy. */
const CASE_STUCK_MS = 60_000;
const LOOK_MS = 1_000;
const STACK_LINES = 6;
const CASE_CHARS = 4_000;

const TARGETS: readonly Target[] = [...podTargets, ...answerTargets, ...fileTargets, ...requestTargets, ...nodeTargets];

interface Options {
  seed: number;
  cases: number;
  target: string | null;
  /** The number of a case that is printed before it runs; 0 none. */
  show: number;
}
interface Report {
  target: string;
  cases: number;
  cpuMs: number;
  failure: string | null;
}

const out = (text: string): void => void writeSync(1, `${text}\n`);
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** Every case in its time; a promise counts from start to end. */
function timed(property: Target['property'], tick: (value: unknown) => void): Target['property'] {
  const run = property.run.bind(property);
  property.run = (value, ...rest) => {
    tick(value);
    const began = cpuMs();
    const check = (result: Awaited<ReturnType<typeof run>>): typeof result => {
      const took = cpuMs() - began;
      if (result !== null || took <= CASE_CPU_MS) return result;
      return { error: new Error(`took ${took.toFixed(0)} ms of processor time`) };
    };
    const result = run(value, ...rest);
    return result instanceof Promise ? result.then(check) : check(result);
  };
  return property;
}

async function runTarget(target: Target, o: Options, tick: (value: unknown) => void): Promise<Report> {
  const shared = TARGETS.reduce((sum, t) => sum + t.share, 0);
  const wanted = o.target === null ? Math.ceil((o.cases * target.share) / shared) : o.cases;
  const perRun = target.casesPerRun ?? 1;
  const numRuns = Math.max(1, Math.ceil(wanted / perRun));
  const began = cpuMs();
  await target.open?.();
  const details = await fc.check(timed(target.property, tick), { seed: o.seed, numRuns, endOnFailure: target.casesPerRun !== undefined });
  let failure = details.failed ? failureText(details) : null;
  await target.close?.().catch((error: unknown) => {
    failure ??= String(error);
  });
  return { target: target.name, cases: details.numRuns * perRun, cpuMs: cpuMs() - began, failure };
}

async function work(): Promise<void> {
  const { options, heart } = workerData as { options: Options; heart: SharedArrayBuffer };
  const beat = new Int32Array(heart);
  for (const [index, target] of TARGETS.entries()) {
    if (options.target !== null && options.target !== target.name) continue;
    Atomics.store(beat, 0, index);
    Atomics.store(beat, 1, 0);
    const report = await runTarget(target, options, (value) => {
      if (Atomics.add(beat, 1, 1) + 1 === options.show) out(`case ${options.show} of ${target.name}: ${fc.stringify(value)}`);
    });
    parentPort?.postMessage(report);
  }
}

function failureText(details: fc.RunDetails<unknown>): string {
  const { errorInstance: error, counterexample } = details;
  const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `${why.split('\n').slice(0, STACK_LINES).join('\n')}\nwith ${fc.stringify(counterexample).slice(0, CASE_CHARS)}`;
}
function repeat(o: Options, target: string, cases: number): string {
  return `npm run fuzz -- --seed ${o.seed} --target '${target}' --cases ${cases}`;
}

async function watch(options: Options): Promise<number> {
  const heart = new SharedArrayBuffer(8);
  const beat = new Int32Array(heart);
  const worker = new Worker(new URL(import.meta.url), { workerData: { options, heart } });
  const reports: Report[] = [];
  let stuck: string | null = null;
  let last = '';
  let sinceMs = performance.now();
  const timer = setInterval(() => {
    const now = `${Atomics.load(beat, 0)} ${Atomics.load(beat, 1)}`;
    if (now !== last) sinceMs = performance.now();
    last = now;
    if (performance.now() - sinceMs < CASE_STUCK_MS) return;
    const target = TARGETS[Atomics.load(beat, 0)];
    const perRun = target?.casesPerRun ?? 1;
    stuck = `${target?.name}: case ${Atomics.load(beat, 1)} does not end; repeat: ${repeat(options, target?.name ?? '', Atomics.load(beat, 1) * perRun)} --show ${Atomics.load(beat, 1)}`;
    void worker.terminate();
  }, LOOK_MS);
  worker.on('message', (report: Report) => {
    reports.push(report);
    out(`${report.failure === null ? 'ok  ' : 'FAIL'} ${report.target}: ${report.cases} cases, ${(report.cpuMs / 1000).toFixed(1)} s`);
    if (report.failure !== null) out(`${report.failure}\nrepeat: ${repeat(options, report.target, report.cases)}`);
  });
  const crashed = await new Promise<string | null>((resolve) => {
    worker.on('error', (error: Error) => resolve(`${TARGETS[Atomics.load(beat, 0)]?.name}: uncaught ${error.stack ?? error.message}`));
    worker.on('exit', () => resolve(null));
  });
  clearInterval(timer);
  const failed = reports.filter((r) => r.failure !== null).length + ((stuck ?? crashed) ? 1 : 0);
  for (const line of [stuck, crashed]) if (line !== null) out(`FAIL ${line}`);
  const cases = reports.reduce((sum, r) => sum + r.cases, 0);
  const seconds = reports.reduce((sum, r) => sum + r.cpuMs, 0) / 1000;
  out(`fuzz: seed ${options.seed}, ${cases} cases, ${seconds.toFixed(1)} s of processor time, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

if (isMainThread) {
  const { values } = parseArgs({
    options: { seed: { type: 'string' }, cases: { type: 'string' }, target: { type: 'string' }, show: { type: 'string' } },
  });
  const options: Options = {
    seed: Number(values.seed ?? Math.floor(Date.now() / 1_000)),
    cases: Number(values.cases ?? 20_000),
    target: values.target ?? null,
    show: Number(values.show ?? 0),
  };
  must(
    options.target === null || TARGETS.some((t) => t.name === options.target),
    `--target is one of ${TARGETS.map((t) => t.name).join(', ')}`,
  );
  process.exitCode = await watch(options);
} else {
  await work();
}
