/**
 * `actorctl replay FILE --set --fault --drop`: the recorded node with something changed. Its runtime is played by the one of the
 * simulation, from what the recording tells of containers. It is run without the change, too: what differs comes of the change.
 */

import type { Node } from '../../../../actors/node.ts';
import { CtlError, EXIT } from '../../../../admin/client.ts';
import type { NodeConfig } from '../../../../machines/config/config.ts';
import type { InjectAnswer, InjectorEvent } from '../../../../machines/faults/live.ts';
import { injectorAddr } from '../../../../machines/faults/messages.ts';
import { decodeScenario, scenarioErrorText } from '../../../../machines/faults/read/decode.ts';
import type { Scenario } from '../../../../machines/faults/types.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { printable } from '../../../../machines/text/table.ts';
import { readGivenSync } from '../../../../process/givenFile.ts';
import { seeded } from '../../../../replay/border.ts';
import type { Header, Input } from '../../../../replay/entries.ts';
import { defaultAnswers } from '../../../../replay/loose/defaults.ts';
import { Edit } from '../../../../replay/loose/edit.ts';
import { fullNameOf, KnownPods } from '../../../../replay/loose/pods.ts';
import { runLoosely, type Surroundings } from '../../../../replay/loose/run.ts';
import { Learner, type Script } from '../../../../replay/loose/script.ts';
import { silentLogger, silentMetrics } from '../../../../replay/player/silent.ts';
import { replay } from '../../../../replay/replay.ts';
import type { CtlIo } from '../../../io.ts';
import { inputFiles, openInputs } from '../file.ts';
import { surroundings } from '../surroundings.ts';
import { configWith, droppedBy } from './changes.ts';
import { knownRuntime } from './lives.ts';
import { type PlayedRuntime, playedRuntime } from './runtime.ts';

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

interface Recorded {
  /** What a person has to know of it; null: nothing. */
  readonly remark: string | null;
  readonly header: Header;
  readonly script: Script;
  readonly pods: KnownPods;
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
  readonly ends: ReadonlyMap<string, string>;
  readonly broken: PlayedRuntime['checks']['broken'];
  readonly failure: string | null;
}

export async function runWhatIf(io: CtlIo, o: WhatIfOptions): Promise<number> {
  const files = await inputFiles(o.path);
  const [file] = files;
  if (file === undefined || files.length > 1) throw new CtlError(EXIT.usage, `${o.path}: ${files.length} recordings; name one of them.`);
  const scenario = o.fault === undefined ? null : await readScenario(o.fault);
  const around = surroundings(io);
  const recorded = await learned(file, around);
  const { header, script, pods } = recorded;
  const dropped = droppedBy(o.drop, {
    script,
    pods: pods.all.map(fullNameOf),
    uidsOf: (pod) => pods.all.filter((one) => fullNameOf(one) === pod).map((one) => one.uid),
  });
  const changed = withFaults(configWith(header.config, o.set), scenario);
  // The node lives on after the end of its recording.
  const stops = script.done.filter(({ input }) => isStop(input)).map((one) => one.order);
  const without = await lived(recorded, {
    config: withFaults(configWith(header.config, []), scenario),
    edit: new Edit({ inputs: new Set(stops) }),
    scenario: null,
    around,
  });
  const now = await lived(recorded, {
    config: changed,
    edit: new Edit({ pods: dropped.pods, inputs: new Set([...stops, ...dropped.inputs]) }),
    scenario,
    around,
  });
  const difference = firstDifference(without.steps, now.steps);
  const rows = pods.all.map((pod) => ({
    pod: fullNameOf(pod),
    recorded: recorded.ends.get(pod.uid) ?? 'gone',
    unchanged: without.ends.get(pod.uid) ?? 'gone',
    changed: now.ends.get(pod.uid) ?? 'gone',
  }));
  const broken = [...now.broken.values()].filter(({ invariant }) => !without.broken.has(invariant));
  const failure = now.failure ?? without.failure;
  if (o.json) io.out(`${JSON.stringify({ file, remark: recorded.remark, difference, pods: rows, broken, failure }, null, 2)}\n`);
  else io.out(shown(header, { file, remark: recorded.remark, difference, rows, broken, failure }));
  return failure === null && broken.length === 0 ? EXIT.ok : EXIT.no;
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

async function learned(file: string, around: Surroundings): Promise<Recorded> {
  const { header, next, more } = await openInputs(file);
  let live: Node | null = null;
  // How pods were before the daemon was told to stop.
  const learner = new StopLearner(() => {
    if (live !== null) endsOf(live, pods, ends);
  });
  const pods = new KnownPods();
  const ends = new Map<string, string>();
  const { failure, divergence } = await replay({
    ...{ header, next, more, own: OWN, entropy: around.hashes, drain: () => around.drain(), watch: learner },
    stopAt(e, node) {
      live = node;
      pods.see(e, node);
      return false;
    },
    leaves: (node) => {
      if (ends.size === 0) endsOf(node, pods, ends);
    },
  });
  if (failure !== null) throw new CtlError(EXIT.no, `${file}: the node cannot be made: ${failure}.`);
  const remark =
    divergence === null
      ? null
      : `this checkout does something else from ${new Date(divergence.wallMs).toISOString()} on: the world is known up to there`;
  return { remark, header, script: learner.script(), pods, ends };
}

class StopLearner extends Learner {
  readonly #stops: () => void;

  constructor(stops: () => void) {
    super();
    this.#stops = stops;
  }

  override input(...of: Parameters<Learner['input']>): void {
    if (isStop(of[0])) this.#stops();
    super.input(...of);
  }
}

function isStop(input: Input): boolean {
  return input[0] === 'told' && input[2] === 'stop';
}

const OWN = { log: silentLogger, metrics: silentMetrics };

function endsOf(node: Node, pods: KnownPods, ends: Map<string, string>): void {
  for (const { uid } of pods.all) ends.set(uid, pods.howIs(node, uid));
}

async function lived(
  { header, script, pods }: Recorded,
  o: { config: NodeConfig; edit: Edit; scenario: Scenario | null; around: Surroundings },
): Promise<Lived> {
  const steps: Step[] = [];
  const known = knownRuntime(script);
  let runtime: PlayedRuntime | null = null;
  let failure: string | null = null;
  const { node, ...run } = await runLoosely({
    ...{ header, script, edit: o.edit, own: OWN, hashes: o.around.hashes, around: o.around, config: o.config },
    endMs: script.endMs + MORE_MS,
    otherwise: defaultAnswers,
    played(clock) {
      runtime = playedRuntime(known, { clock, chance: seeded(header.seed + 3) });
      const { checks, answers } = runtime;
      const beat = (): void => {
        checks.beat();
        clock.setTimeout(beat, BEAT_MS);
      };
      clock.setTimeout(beat, BEAT_MS);
      return answers;
    },
    made(made) {
      runtime?.checks.watch(made);
      if (o.scenario !== null) inject(made, o.scenario).catch((error: unknown) => (failure = messageOf(error)));
    },
    step(e, _, nowMs) {
      if (e.kind === 'transition') steps.push({ atMs: nowMs, path: e.path, what: `${e.from} -> ${e.to} on ${e.event}` });
    },
  });
  const ends = new Map<string, string>();
  if (node !== null) endsOf(node, pods, ends);
  // Set in a callback, which the compiler does not see.
  const played = runtime as PlayedRuntime | null;
  return { steps, ends, broken: played?.checks.broken ?? new Map(), failure: failure ?? run.failure };
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
  rows: readonly Readonly<Record<'pod' | 'recorded' | 'unchanged' | 'changed', string>>[];
  broken: readonly { invariant: string; what: string; atMs: number }[];
  failure: string | null;
}

function shown(header: Header, { file, remark, difference, rows, broken, failure }: Shown): string {
  const time = (atMs: number) => new Date(atMs - header.monoMs + header.wallMs).toISOString();
  const lines = [`${file}: run with the changes and without them, and one minute longer than it was recorded`];
  if (remark !== null) lines.push(`  ${remark}`);
  if (failure !== null) lines.push(`  The run failed: ${failure}`);
  if (difference === null) lines.push('  No difference: the changes change nothing here.');
  else
    lines.push(
      `  FIRST DIFFERENCE: ${difference.path}`,
      `    unchanged: ${stepWords(difference.unchanged, time)}`,
      `    changed:   ${stepWords(difference.changed, time)}`,
    );
  const others = rows.filter((row) => row.unchanged !== row.changed);
  for (const { pod, unchanged, changed } of others) lines.push(`  ${pod}`, `    unchanged: ${unchanged}`, `    changed:   ${changed}`);
  if (others.length < rows.length) lines.push(`  ${rows.length - others.length} pods are the same at the end`);
  for (const one of broken) lines.push(`  BROKEN ${one.invariant} at ${time(one.atMs)}: ${one.what}`);
  if (broken.length === 0) lines.push('  Every invariant held.');
  return `${lines.map(printable).join('\n')}\n`;
}

function stepWords(step: Step | null, time: (atMs: number) => string): string {
  return step === null ? 'no further step' : `${step.what}, at ${time(step.atMs)}`;
}
