/**
 * `actorctl replay FILE --set --fault --drop`: the recorded node with something changed. Its runtime, its disk, its API server and the
 * answers to probes are played, from what the recording tells of them. It is run without the change, too, and each way with several seeds: what
 * differs among the unchanged runs comes of chance.
 */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { InjectAnswer, InjectorEvent } from '@actorlet/faults/src/live.ts';
import { injectorAddr } from '@actorlet/faults/src/messages.ts';
import { decodeScenario, scenarioErrorText } from '@actorlet/faults/src/read/decode.ts';
import type { Scenario } from '@actorlet/faults/src/types.ts';
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';
import { seeded } from '@actorlet/replay/src/border.ts';
import type { Header } from '@actorlet/replay/src/entries.ts';
import { defaultAnswers } from '@actorlet/replay/src/lenient/defaults.ts';
import { Edit } from '@actorlet/replay/src/lenient/edit.ts';
import { runLeniently, type Surroundings } from '@actorlet/replay/src/lenient/run.ts';
import type { Script } from '@actorlet/replay/src/lenient/script.ts';
import { isStop, learn } from '@actorlet/replay/src/player/learn.ts';
import { fullNameOf, type KnownPod, KnownPods } from '@actorlet/replay/src/player/pods.ts';
import { silentLogger, silentMetrics } from '@actorlet/replay/src/player/silent.ts';
import type { CtlIo } from '../../../io.ts';
import { inputFiles, type OpenedInputs, openInputs } from '../file.ts';
import { surroundings } from '../surroundings.ts';
import { PlayedApi } from './api/api.ts';
import { type KnownApi, knownApi } from './api/known.ts';
import { wordsOf } from './api/words.ts';
import { configWith, type Dropped, droppedBy } from './changes.ts';
import { knownDisk, playedDisk } from './disk.ts';
import { knownRuntime, tookOf } from './lives.ts';
import { knownProbes, playedProber } from './prober.ts';
import { type PlayedRuntime, playedRuntime } from './runtime.ts';
import { silenced } from './silent.ts';

export interface WhatIfOptions {
  path: string;
  json: boolean;
  set: readonly string[];
  drop: readonly string[];
  /** File of a scenario. */
  fault: string | undefined;
}

/** Time after the end of the recording. */
const MORE_MS = 60_000;
const BEAT_MS = 1_000;
const ASK_TIMEOUT_MS = 5_000;
/** Runs each way. The first takes what was drawn by chance then. */
const SEEDS = [0, 1, 2];

interface Recorded {
  /** What a person has to know of it; null: nothing. */
  readonly remark: string | null;
  readonly header: Header;
  readonly script: Script;
  readonly pods: KnownPods;
  /** Null: it was in no cluster. */
  readonly api: KnownApi | null;
  /** How each pod was at the end, by UID. */
  readonly ends: ReadonlyMap<string, string>;
}
interface Step {
  readonly atMs: number;
  readonly path: string;
  readonly what: string;
}
interface Lived {
  readonly steps: readonly Step[];
  /** How each pod is when the recording ends, and later, by UID. */
  readonly atEnd: ReadonlyMap<string, string>;
  readonly ends: ReadonlyMap<string, string>;
  readonly broken: PlayedRuntime['checks']['broken'];
  /** What the node asked of the API server, and the recording does not tell of. */
  readonly untold: readonly string[];
  readonly failure: string | null;
}

export async function runWhatIf(io: CtlIo, o: WhatIfOptions): Promise<number> {
  const files = await inputFiles(o.path);
  const [file] = files;
  if (file === undefined || files.length > 1) throw new CtlError(EXIT.usage, `${o.path}: ${files.length} recordings; name one of them.`);
  const scenario = o.fault === undefined ? null : await readScenario(o.fault);
  const around = surroundings(io);
  const opened = await openInputs(file);
  // What cannot be set is refused before the recording is run.
  const changed = withFaults(configWith(opened.header.config, o.set), scenario);
  const recorded = await learned(file, opened, around);
  const { header, script, pods } = recorded;
  const dropped = droppedBy(o.drop, {
    script,
    pods: pods.all.map(fullNameOf),
    uidsOf: (pod) => pods.all.filter((one) => fullNameOf(one) === pod).map((one) => one.uid),
  });
  // The node lives on after the end of its recording.
  const stops = script.done.filter(({ input }) => isStop(input)).map((one) => one.order);
  const unchanged: Lived[] = [];
  const changes: Lived[] = [];
  for (const seed of SEEDS) {
    unchanged.push(
      await lived(recorded, {
        config: withFaults(configWith(header.config, []), scenario),
        edit: new Edit({ inputs: new Set(stops) }),
        scenario: null,
        dropped: { pods: [], inputs: new Set(), ports: new Set() },
        ...{ around, seed },
      }),
    );
    const edit = new Edit({ pods: dropped.pods, inputs: new Set([...stops, ...dropped.inputs]) });
    changes.push(await lived(recorded, { config: changed, edit, scenario, dropped, around, seed }));
  }
  const difference = firstDifference(unchanged[0]?.steps ?? [], changes[0]?.steps ?? []);
  const rows = pods.all.map((pod) => rowOf(pod, { recorded: recorded.ends, unchanged, changes }));
  const brokenBefore = new Set(unchanged.flatMap((run) => [...run.broken.keys()]));
  const brokenNow = new Map(changes.flatMap((run) => [...run.broken]));
  const broken = [...brokenNow.values()].filter(({ invariant }) => !brokenBefore.has(invariant));
  const failure = [...changes, ...unchanged].find((run) => run.failure !== null)?.failure ?? null;
  const untold = [...new Set([...changes, ...unchanged].flatMap((run) => run.untold))].sort();
  if (o.json) io.out(`${JSON.stringify({ file, remark: recorded.remark, difference, pods: rows, untold, broken, failure }, null, 2)}\n`);
  else io.out(shown(header, { file, remark: recorded.remark, difference, rows, untold, broken, failure }));
  return failure === null && broken.length === 0 ? EXIT.ok : EXIT.no;
}

/**
 * `change`: with the changes it is as in no run without them. `chance`: the runs without them differ as well, or it is so in some
 * runs with them only. `unlike`: the runs without them are not what was recorded, so they tell nothing of this pod.
 */
type Verdict = 'same' | 'change' | 'chance' | 'unlike';
interface Row {
  readonly pod: string;
  readonly verdict: Verdict;
  /** When the recording ends, as all that follow but `later`. */
  readonly recorded: string;
  readonly unchanged: string;
  readonly changed: string;
  /** One minute later. */
  readonly later: { readonly unchanged: string; readonly changed: string };
}

function rowOf(
  { uid, namespace, name }: KnownPod,
  o: { recorded: ReadonlyMap<string, string>; unchanged: readonly Lived[]; changes: readonly Lived[] },
): Row {
  const atEnd = (run: Lived | undefined): string => run?.atEnd.get(uid) ?? 'gone';
  const later = (run: Lived | undefined): string => run?.ends.get(uid) ?? 'gone';
  const both = (run: Lived): string => `${atEnd(run)}; ${later(run)}`;
  const recorded = o.recorded.get(uid) ?? 'gone';
  const [before, now] = [o.unchanged.map(both), o.changes.map(both)];
  const isSame = [...before, ...now].every((end) => end === before[0]);
  let verdict: Verdict = isSame ? 'same' : now.some((end) => before.includes(end)) ? 'chance' : 'change';
  if (!o.unchanged.some((run) => atEnd(run) === recorded)) verdict = 'unlike';
  const [unchanged, changed] = [o.unchanged[0], o.changes[0]];
  return {
    ...{ pod: `${namespace}/${name}`, verdict, recorded, unchanged: atEnd(unchanged), changed: atEnd(changed) },
    later: { unchanged: later(unchanged), changed: later(changed) },
  };
}

function withFaults(config: NodeConfig, scenario: Scenario | null): NodeConfig {
  return scenario === null ? config : { ...config, flags: { ...config.flags, faultInjection: true } };
}

async function readScenario(file: string): Promise<Scenario> {
  let text: string;
  try {
    text = readGivenSync(file);
  } catch (error) {
    throw new CtlError(EXIT.usage, `the scenario ${file} cannot be read: ${messageOf(error)}`);
  }
  const decoded = decodeScenario(text, 'live');
  if (decoded.ok) return decoded.scenario;
  throw new CtlError(EXIT.usage, decoded.errors.map((e) => scenarioErrorText(file, e)).join('\n'));
}

async function learned(file: string, { header, next, more }: OpenedInputs, around: Surroundings): Promise<Recorded> {
  const { script, pods, ends, replayed } = await learn({
    ...{ header, next, more, own: OWN, entropy: around.hashes, drain: () => around.drain(), extensions: around.extensions },
  });
  const { failure, divergence } = replayed;
  if (failure !== null) throw new CtlError(EXIT.no, `${file}: the node cannot be made: ${failure}.`);
  const remark =
    divergence === null
      ? null
      : `this checkout does something else from ${new Date(divergence.wallMs).toISOString()} on: the world is known up to there`;
  const wallMs = (monoMs: number): number =>
    monoMs + (script.wall.findLast((wall) => wall.atMs <= monoMs)?.offsetMs ?? header.wallMs - header.monoMs);
  const api = script.asked.some(({ name }) => name === 'kube.request') ? knownApi(script, wallMs) : null;
  const said = (pod: KnownPod): string => {
    const how = ends.get(pod.uid)?.end ?? 'gone';
    return api?.ends(pod, how) ?? how;
  };
  return { remark, header, script, pods, api, ends: new Map(pods.all.map((pod) => [pod.uid, said(pod)])) };
}

const OWN = { log: silentLogger, metrics: silentMetrics };

/** @param pods Those of the recording; `seen`: those of this run. */
function endsOf(node: Node, o: { pods: KnownPods; seen: KnownPods; api: PlayedApi | null }, ends: Map<string, string>): void {
  for (const pod of o.pods.all) {
    const how = o.seen.howIs(node, pod.uid);
    ends.set(pod.uid, o.api === null ? how : wordsOf(o.api.store, pod, how));
  }
}

/** When the daemon was told to stop, or the recording ends. */
function endMsOf({ done, endMs }: Script): number {
  return done.find(({ input }) => isStop(input))?.atMs ?? endMs;
}

async function lived(
  { header, script, pods, api: known }: Recorded,
  o: { config: NodeConfig; edit: Edit; scenario: Scenario | null; dropped: Dropped; around: Surroundings; seed: number },
): Promise<Lived> {
  const steps: Step[] = [];
  const [atEnd, ends] = [new Map<string, string>(), new Map<string, string>()];
  const seen = new KnownPods();
  const chance = seeded(header.seed + 3 + o.seed * 1_000);
  const took = tookOf(script, o.seed === 0 ? null : chance);
  let runtime: PlayedRuntime | null = null;
  let api: PlayedApi | null = null;
  let live: Node | null = null;
  let failure: string | null = null;
  const { player } = await runLeniently({
    ...{ header, script, edit: o.edit, own: OWN, hashes: o.around.hashes, around: o.around, config: o.config },
    ...(o.seed === 0 ? {} : { chance: seeded(header.seed + 4 + o.seed * 1_000) }),
    endMs: script.endMs + MORE_MS,
    otherwise: defaultAnswers,
    played(clock) {
      const disk = playedDisk(knownDisk(script, o.config.config.podLogsDir), { clock, took });
      runtime = playedRuntime(knownRuntime(script), { clock, chance, took, touch: disk.touch });
      const { checks, answers } = runtime;
      const beat = (): void => {
        checks.beat();
        clock.setTimeout(beat, BEAT_MS);
      };
      clock.setTimeout(beat, BEAT_MS);
      clock.setTimeout(() => (live === null ? undefined : endsOf(live, { pods, seen, api }, atEnd)), endMsOf(script) - clock.monoMs());
      const prober = playedProber(knownProbes(script), { clock, hollow: runtime.hollow });
      if (known !== null)
        api = new PlayedApi(known, { clock, took, seed: o.seed, without: o.dropped.pods, isSilent: o.dropped.ports.has('kube') });
      const server = api?.answers ?? (() => undefined);
      const silent = silenced(o.dropped.ports);
      return (name, args) =>
        silent(name, args) ?? prober(name, args) ?? answers(name, args) ?? server(name, args) ?? disk.answers(name, args);
    },
    made(made) {
      live = made;
      runtime?.checks.watch(made);
      if (o.scenario !== null) inject(made, o.scenario).catch((error: unknown) => (failure = messageOf(error)));
    },
    step(e, made, nowMs) {
      seen.see(e, made);
      if (e.kind === 'transition') steps.push({ atMs: nowMs, path: e.path, what: `${e.from} -> ${e.to} on ${e.event}` });
    },
  });
  // Set in a callback, which the compiler does not see.
  const [played, server] = [runtime as PlayedRuntime | null, api as PlayedApi | null];
  if (player.node !== null) endsOf(player.node, { pods, seen, api: server }, ends);
  const untold = [...(server?.untold ?? [])];
  return { steps, atEnd, ends, untold, broken: played?.checks.broken ?? new Map(), failure: failure ?? player.failure };
}

/** As soon as the injector of the node runs. */
async function inject(node: Node, scenario: Scenario): Promise<void> {
  await new Promise<void>((begun) => {
    const watch = node.tree.observe((e) => {
      if (e.kind !== 'child.started' || e.path !== injectorAddr.path) return;
      watch[Symbol.dispose]();
      begun();
    });
  });
  const answer = await node.tree.registry.ask<InjectorEvent, InjectAnswer>(
    injectorAddr,
    (replyTo) => ({ type: 'faults.inject', scenario, replyTo }),
    { timeoutMs: ASK_TIMEOUT_MS },
  );
  if (answer.kind !== 'reply') throw new Error(`the fault injector did not answer: ${answer.reason}`);
  if (!answer.value.ok) throw new Error(answer.value.message);
}

interface Difference {
  readonly path: string;
  /** Null: it made no further step. */
  readonly unchanged: Step | null;
  readonly changed: Step | null;
}

/** The earliest step of an actor that is another one, or comes at another time; null: there is none. */
function firstDifference(unchanged: readonly Step[], changed: readonly Step[]): Difference | null {
  const then = Map.groupBy(unchanged, (step) => step.path);
  const now = Map.groupBy(changed, (step) => step.path);
  let first: Difference | null = null;
  for (const path of new Set([...then.keys(), ...now.keys()])) {
    const [a = [], b = []] = [then.get(path), now.get(path)];
    const at = (a.length > b.length ? a : b).findIndex((_, i) => a[i]?.what !== b[i]?.what || a[i]?.atMs !== b[i]?.atMs);
    if (at < 0) continue;
    const found = { path, unchanged: a[at] ?? null, changed: b[at] ?? null };
    if (first === null || beganMs(found) < beganMs(first)) first = found;
  }
  return first;
}

function beganMs({ unchanged, changed }: Difference): number {
  return Math.min(unchanged?.atMs ?? Number.POSITIVE_INFINITY, changed?.atMs ?? Number.POSITIVE_INFINITY);
}

interface Shown {
  file: string;
  remark: string | null;
  difference: Difference | null;
  rows: readonly Row[];
  untold: readonly string[];
  broken: readonly { invariant: string; what: string; atMs: number }[];
  failure: string | null;
}

function shown(header: Header, { file, remark, difference, rows, untold, broken, failure }: Shown): string {
  const time = (atMs: number) => new Date(atMs - header.monoMs + header.wallMs).toISOString();
  const lines = [
    `${file}: run ${SEEDS.length} times with the changes and ${SEEDS.length} times without them, each time with another seed, and one minute longer`,
  ];
  if (remark !== null) lines.push(`  ${remark}`);
  if (failure !== null) lines.push(`  The run failed: ${failure}`);
  if (difference === null) lines.push('  No difference: the changes change nothing here.');
  else
    lines.push(
      `  FIRST DIFFERENCE: ${difference.path}`,
      `    unchanged: ${stepWords(difference.unchanged, time)}`,
      `    changed:   ${stepWords(difference.changed, time)}`,
    );
  for (const row of [...rows].sort((a, b) => Number(a.verdict === 'same') - Number(b.verdict === 'same'))) lines.push(...rowLines(row));
  for (const path of untold) lines.push(`  NOT IN THE RECORDING: ${path}. The API server answered that it is not there.`);
  for (const one of broken) lines.push(`  BROKEN ${one.invariant} at ${time(one.atMs)}: ${one.what}`);
  if (broken.length === 0) lines.push('  Every invariant held.');
  return `${lines.map(printable).join('\n')}\n`;
}

const VERDICTS: Readonly<Record<Verdict, string>> = {
  same: 'as without the changes',
  change: 'DIFFERS with the changes, whatever chance does',
  chance: 'differs by chance: runs without the changes differ as well',
  unlike: 'cannot be told: without the changes it is not what was recorded',
};

function rowLines({ pod, verdict, recorded, unchanged, changed, later }: Row): string[] {
  const then = (now: string, after: string): string => (now === after ? now : `${now}; one minute later ${after}`);
  const lines = [`  ${pod}: ${VERDICTS[verdict]}`, `    recorded:  ${recorded}`];
  const [before, now] = [then(unchanged, later.unchanged), then(changed, later.changed)];
  if (verdict === 'same') return before === recorded ? lines : [...lines, `    in both:   ${before}`];
  return [...lines, `    unchanged: ${before}`, `    changed:   ${now}`];
}

function stepWords(step: Step | null, time: (atMs: number) => string): string {
  return step === null ? 'no further step' : `${step.what}, at ${time(step.atMs)}`;
}
