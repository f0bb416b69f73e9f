/** `actorctl sim`: runs seeds of the deterministic simulation, in this process or in several; shows the first failures in full. */

import { createInterface } from 'node:readline';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { describeScenario } from '@actorlet/faults/src/describe.ts';
import { decodeScenario, scenarioErrorText } from '@actorlet/faults/src/read/decode.ts';
import type { Scenario } from '@actorlet/faults/src/types.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';
import { NODE_FLAGS, startProcess } from '@actorlet/process/src/startProcess.ts';
import {
  addTotals,
  emptyTotals,
  failureReport,
  realMs,
  reproduction,
  runSim,
  type SimOptions,
  shrink,
  summary,
  type Totals,
  totalsOf,
} from '@actorlet/sim/src/index.ts';
import type { CtlIo } from '../../io.ts';
import { recordSeed } from './record.ts';

export interface SimArgs {
  seed: number | undefined;
  seeds: number;
  /** Undefined, as for the two below: the scenario's, or as drawn. */
  minutes: number | undefined;
  pods: number | undefined;
  nodes: number | undefined;
  /** File of a scenario. */
  scenario: string | undefined;
  jobs: number;
  /** Runs spent on making a failing schedule small; 0: none. */
  shrink: number;
  tail: number;
  edges: boolean;
  /** Folder for recordings of inputs of what failed. */
  record: string | undefined;
  json: boolean;
  /** For the processes of `--jobs`: one JSON line a seed, no reports. */
  lines: boolean;
}
/** Failures shown in full; more of them say the same. */
const REPORTS_MAX = 3;

interface SeedLine {
  seed: number;
  hash: string;
  invariant: string | null;
  what: string;
  totals: Totals;
  /** Hits of each fault of the scenario. */
  named: Record<string, number>;
}

export async function runSimCommand(io: CtlIo, args: SimArgs): Promise<number> {
  check(args);
  const scenario = args.scenario === undefined ? undefined : await readScenario(args.scenario);
  const options = (seed: number) => optionsOf(args, { seed, scenario, signal: io.signal });
  // A fresh range each time it is not told otherwise; every report names its seed.
  const first = args.seed ?? 1 + (Math.floor(io.nowMs() / 1_000) % 1_000_000_000);
  const total = emptyTotals();
  const failed: SeedLine[] = [];
  const named = new Map<string, number>();
  const began = realMs();
  const progress = meter(io, args.seeds);
  const take = (line: SeedLine): void => {
    addTotals(total, line.totals);
    for (const [name, hits] of Object.entries(line.named)) named.set(name, (named.get(name) ?? 0) + hits);
    if (line.invariant !== null) {
      failed.push(line);
      // Printed at once: the report comes after the last seed, and shrinking takes its time.
      if (!args.lines) io.err(`${io.columns > 0 ? '\r\u001b[K' : ''}seed ${line.seed}: ${line.invariant}: ${line.what}\n`);
    }
    if (args.lines) io.out(`${JSON.stringify(line)}\n`);
    else progress(total.runs, failed.length);
  };
  if (!args.lines && !args.json) {
    io.out(`seeds ${first} to ${first + args.seeds - 1}\n`);
    for (const line of scenario === undefined ? [] : describeScenario(scenario)) io.out(`  ${line}\n`);
  }
  await untilInterrupted(io, async () => {
    if (args.jobs > 1 && args.seeds > 1) await inProcesses(io, { ...args, seed: first }, take);
    else for (let seed = first; seed < first + args.seeds; seed++) take(await oneSeed(options(seed)));
  });
  if (args.lines) return io.signal.aborted ? EXIT.interrupted : EXIT.ok;
  progress(-1, failed.length);
  const wallMs = realMs() - began;
  if (args.json)
    io.out(
      `${JSON.stringify({ first, ...total, ...(scenario === undefined ? {} : { scenario: scenario.name, hits: Object.fromEntries(named) }), wallMs, failures: failed.map(({ seed, invariant, what }) => ({ seed, invariant, what })) })}\n`,
    );
  else {
    await untilInterrupted(io, async () => {
      for (const { seed } of failed.slice(0, REPORTS_MAX)) await report(io, options(seed), args);
      for (const f of failed.slice(REPORTS_MAX)) io.out(`seed ${f.seed}: ${f.invariant}: ${f.what}\n`);
      // One seed is wanted whatever becomes of it.
      const wanted = args.seeds === 1 ? [first] : failed.slice(0, REPORTS_MAX).map((f) => f.seed);
      if (args.record !== undefined) for (const seed of wanted) await recordSeed(io, options(seed), args.record);
    });
    io.out(`${[...hitLines(named), ...summary(total, { wallMs, edges: args.edges })].join('\n')}\n`);
  }
  if (io.signal.aborted) return EXIT.interrupted;
  return failed.length > 0 ? EXIT.no : EXIT.ok;
}

/** Ctrl-C ends the runs of `act`, and no more. */
async function untilInterrupted(io: CtlIo, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!io.signal.aborted) throw error;
  }
}

function check(args: SimArgs): void {
  const whole = (name: 'seeds' | 'pods' | 'nodes' | 'jobs', min: number, max: number): void => {
    const value = args[name];
    if (value === undefined) return;
    if (!Number.isInteger(value) || value < min || value > max) {
      throw new CtlError(EXIT.usage, `--${name} takes a whole number from ${min} to ${max}.`);
    }
  };
  whole('seeds', 1, 1_000_000);
  whole('pods', 0, 100);
  whole('nodes', 1, 8);
  whole('jobs', 1, 256);
  if (args.minutes !== undefined && !(args.minutes > 0 && args.minutes <= 10_000))
    throw new CtlError(EXIT.usage, '--minutes takes a number above 0, at most 10000.');
  if (args.seed !== undefined && !Number.isSafeInteger(args.seed)) throw new CtlError(EXIT.usage, '--seed takes a whole number.');
}

/** Everything wrong with a scenario is said at once, as compilers say it. */
async function readScenario(file: string): Promise<Scenario> {
  let text: string;
  try {
    text = readGivenSync(file);
  } catch (error) {
    throw new CtlError(EXIT.usage, `the scenario ${file} cannot be read: ${messageOf(error)}`);
  }
  const decoded = decodeScenario(text, 'simulation');
  if (decoded.ok) return decoded.scenario;
  const lines = decoded.errors.map((e) => `${scenarioErrorText(file, e)}`);
  throw new CtlError(EXIT.usage, `${lines.length === 1 ? 'an error' : `${lines.length} errors`} in the scenario\n${lines.join('\n')}`);
}

function optionsOf(args: SimArgs, o: { seed: number; scenario: Scenario | undefined; signal: AbortSignal }): SimOptions {
  const { minutes, pods, nodes } = args;
  return {
    seed: o.seed,
    signal: o.signal,
    ...(minutes === undefined ? {} : { minutes }),
    ...(pods === undefined ? {} : { pods }),
    ...(nodes === undefined ? {} : { nodes }),
    ...(o.scenario === undefined ? {} : { scenario: o.scenario }),
    ...(args.edges ? { coverage: true } : {}),
  };
}

/** What became of each fault of a scenario; one that hit nothing is aimed at nothing, and its author should know. */
function hitLines(named: ReadonlyMap<string, number>): string[] {
  if (named.size === 0) return [];
  return ['faults of the scenario:', ...[...named].map(([name, hits]) => `  ${name}: ${hits === 0 ? 'hit nothing' : `${hits} hits`}`), ''];
}

async function oneSeed(o: SimOptions): Promise<SeedLine> {
  const began = realMs();
  const r = await runSim(o);
  return {
    seed: r.options.seed,
    hash: r.hash,
    invariant: r.violation?.invariant ?? null,
    what: r.violation?.what ?? '',
    named: Object.fromEntries(r.byName),
    totals: totalsOf(r, realMs() - began),
  };
}

async function report(io: CtlIo, o: SimOptions, args: SimArgs): Promise<void> {
  const whole = await runSim(o);
  if (whole.violation === null) {
    io.out(
      `seed ${o.seed} failed once and passed when repeated: the run is not deterministic. ${reproduction(whole.options, args.scenario)}\n`,
    );
    return;
  }
  const small =
    args.shrink > 0
      ? await shrink(o, whole, {
          runsMax: args.shrink,
          cancelled: () => io.signal.aborted,
          on: (left, runs) =>
            io.columns > 0 ? io.err(`\rshrinking: ${left} of ${whole.schedule.length} left, ${runs} runs   `) : undefined,
        })
      : { result: whole, runs: 0 };
  if (io.columns > 0) io.err('\r');
  const lines = failureReport(small.result, {
    drawn: whole.schedule.length,
    shrinkRuns: small.runs,
    tailLines: args.tail,
    scenario: args.scenario,
  });
  io.out(`${lines.join('\n')}\n`);
}

/** A bar on a terminal, a line now and then elsewhere. */
function meter(io: CtlIo, seeds: number): (done: number, failed: number) => void {
  const began = realMs();
  let saidAt = began;
  return (done, failed) => {
    const now = realMs();
    if (done < 0) {
      if (io.columns > 0) io.err('\r\u001b[K');
      return;
    }
    if (io.columns > 0) {
      const width = 30;
      const full = Math.round((done / seeds) * width);
      const leftS = Math.round((((now - began) / done) * (seeds - done)) / 1_000);
      io.err(`\r[${'#'.repeat(full)}${'.'.repeat(width - full)}] ${done}/${seeds}, ${failed} failed, ${leftS} s left\u001b[K`);
    } else if (now - saidAt > 30_000) {
      saidAt = now;
      io.err(`${done}/${seeds} runs, ${failed} failed\n`);
    }
  };
}

async function inProcesses(io: CtlIo, args: SimArgs & { seed: number }, take: (line: SeedLine) => void): Promise<void> {
  const share = Math.ceil(args.seeds / args.jobs);
  const parts = Array.from({ length: args.jobs }, (_, i) => ({
    seed: args.seed + i * share,
    seeds: Math.min(share, args.seeds - i * share),
  }));
  await Promise.all(parts.filter((p) => p.seeds > 0).map((part) => oneProcess(io, { ...args, ...part }, take)));
}

function oneProcess(io: CtlIo, args: SimArgs & { seed: number }, take: (line: SeedLine) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const flags = ['seed', 'seeds', 'minutes', 'pods', 'nodes', 'scenario'] as const;
    const given = flags.flatMap((f) => (args[f] === undefined ? [] : [`--${f}=${args[f]}`]));
    const argv = [process.argv[1] ?? '', 'sim', '--lines', ...(args.edges ? ['--edges'] : []), ...given];
    const child = startProcess(process.execPath, [...NODE_FLAGS, ...process.execArgv, ...argv], {
      stdio: ['ignore', 'pipe', 'inherit'],
      signal: io.signal,
    });
    let seen = 0;
    createInterface({ input: child.stdout }).on('line', (text) => {
      seen += 1;
      take(JSON.parse(text) as SeedLine);
    });
    child.on('error', (error) => (io.signal.aborted ? resolve() : reject(error)));
    child.on('close', (code) => {
      if (io.signal.aborted || (code === 0 && seen === args.seeds)) resolve();
      else
        reject(
          new CtlError(EXIT.failed, `the process for seeds from ${args.seed} ended with ${code} after ${seen} of ${args.seeds} seeds.`),
        );
    });
  });
}
