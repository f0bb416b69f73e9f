/** Cuts a recording down while it still shows the same: a divergence, or how a pod ends. */
import type { Node } from '../../actors/node.ts';
import type { SupervisionEvent } from '../../actors/supervision/types.ts';
import type { Ports } from '../../ports/ports.ts';
import { entryOfLine, lineOf } from '../check.ts';
import { type Entry, type Header, isInput } from '../entries.ts';
import { defaultAnswers } from '../loose/defaults.ts';
import { Edit } from '../loose/edit.ts';
import { fullNameOf, howIs, type KnownPod, KnownPods, uidOf } from '../loose/pods.ts';
import { runLoosely, type Surroundings } from '../loose/run.ts';
import { Learner, type Script } from '../loose/script.ts';
import type { Divergence, Parted } from '../player/divergence.ts';
import { type Replayed, replay } from '../replay.ts';
import { ENDED, Meeting } from './meeting.ts';
import { standIns } from './names.ts';
import { Digests, renamedLines } from './renamed.ts';
import { fewest } from './subsets.ts';

export interface MinimizeInput {
  readonly header: Header;
  /** From the start each time. */
  entries(): () => Entry | null;
  readonly own: Pick<Ports, 'log' | 'metrics'>;
  readonly around: Surroundings;
  /** `NAMESPACE/NAME`: stays, and where nothing diverges its end is what is kept. */
  readonly pod?: string | undefined;
  /** Runs of the node at most. */
  readonly runsMax: number;
  /** Hears of each run. */
  on?(o: { runs: number; lines: number; pods: number }): void;
}

export interface Minimized {
  readonly lines: readonly string[];
  /** What stays. Null: the end of the pod is what was kept. */
  readonly divergence: Divergence | null;
  /** How the pod ends, where that is kept. */
  readonly end: string | null;
  readonly runs: number;
  readonly pods: { readonly before: number; readonly after: number };
  readonly inputs: { readonly before: number; readonly after: number };
  /** What was not possible, in words. */
  readonly remarks: readonly string[];
}

const CONTAINERS_STAY = 'names of containers are in it: with others it does not come again';
const NAMES_STAY = 'names, addresses and images are in it: with others it does not come again';
/** Time after the last step that matters. */
const AFTER_MS = 1_000;

/** What is kept. */
type Goal = { kind: 'divergence'; divergence: Divergence; parted: Parted } | { kind: 'end'; pod: KnownPod; end: string };
/** Steps of the workers of pods, by UID. */
type Lives = ReadonlyMap<string, readonly string[]>;
interface Try {
  readonly lines: readonly string[];
  readonly inputs: number;
}

/** Rejects with an Error that says why there is nothing to keep. */
export async function minimize(o: MinimizeInput): Promise<Minimized> {
  const learner = new Learner();
  const known = new KnownPods();
  const lives = new Map<string, string[]>();
  let ends = '';
  let lastStepMs = o.header.monoMs;
  const first = await strictly(o, {
    watch: learner,
    step(e, node) {
      known.see(e.path, node);
      lived(lives, e);
      if (known.named(o.pod)?.uid === uidOf(e.path)) lastStepMs = learner.nowMs;
    },
    leaves: (node) => {
      ends = howIs(node, known.named(o.pod)?.uid ?? '');
    },
  });
  if (first.failure !== null) throw new Error(`the node cannot be made: ${first.failure}`);
  const pod = known.named(o.pod);
  if (o.pod !== undefined && pod === null) throw new Error(`no pod ${o.pod} is in it; there are ${known.all.map(fullNameOf).join(', ')}`);
  const script = learner.script();
  const { divergence, parted } = first;
  let goal: Goal;
  if (divergence !== null && parted !== null) goal = { kind: 'divergence', divergence, parted };
  else if (divergence !== null) throw new Error('the tree no longer waits for what came in: what was recorded cannot be cut down to that');
  else if (pod !== null) goal = { kind: 'end', pod, end: ends };
  else throw new Error('nothing diverges: say with --pod NAMESPACE/NAME which pod matters');
  return await new Minimizer(o, { script, known: known.all, lives, goal, before: first.inputs, lastStepMs }).run();
}

/** The recording before anything is cut. */
interface Whole {
  readonly script: Script;
  readonly known: readonly KnownPod[];
  readonly lives: Lives;
  readonly goal: Goal;
  /** Inputs. */
  readonly before: number;
  readonly lastStepMs: number;
}

class Minimizer {
  readonly #o: MinimizeInput;
  readonly #script: Script;
  readonly #known: readonly KnownPod[];
  /** Those of pods that stay, which must be what they were: else what was done then need not be right. */
  readonly #lives: Lives;
  readonly #goal: Goal;
  readonly #before: number;
  readonly #endMs: number;
  readonly #remarks: string[] = [];
  #runs = 0;

  constructor(o: MinimizeInput, was: Whole) {
    this.#o = o;
    this.#script = was.script;
    this.#known = was.known;
    this.#goal = was.goal;
    this.#lives = new Map([...was.lives].filter(([uid]) => was.known.some((pod) => pod.uid === uid && this.#stays(pod))));
    this.#before = was.before;
    const lastMs = was.goal.kind === 'divergence' ? was.goal.divergence.monoMs : was.lastStepMs;
    this.#endMs = Math.min(was.script.endMs, lastMs + AFTER_MS);
  }

  async run(): Promise<Minimized> {
    const others = this.#known.filter((one) => !this.#stays(one));
    // Where much happens at once, the fewest pods live most like then.
    const alone = await this.#try(new Edit({ pods: uidsWithout(others, []) }));
    const whole = alone ?? (await this.#try(new Edit({})));
    if (whole === null) return await this.#asItIs();
    let best = whole;
    const better = async (edit: Edit): Promise<boolean> => {
      const found = await this.#try(edit);
      if (found !== null && found.inputs <= best.inputs) best = found;
      return found !== null;
    };
    const kept = alone !== null ? [] : await fewest(others, (some) => better(new Edit({ pods: uidsWithout(others, some) })));
    const pods = uidsWithout(others, kept);
    const events = this.#lives.size === 0 ? [] : eventsOf(this.#script);
    const left = new Set(await fewest(events, (some) => better(new Edit({ pods, inputs: without(events, some) }))));
    const inputs = without(events, [...left]);
    best = (await this.#renamed(pods, inputs)) ?? best;
    return this.#minimized(best, this.#known.length - pods.length);
  }

  #minimized({ lines, inputs }: Try, after: number): Minimized {
    const goal = this.#goal;
    return {
      ...{ lines, runs: this.#runs, remarks: this.#remarks },
      divergence: goal.kind === 'divergence' ? goal.divergence : null,
      end: goal.kind === 'end' ? goal.end : null,
      pods: { before: this.#known.length, after },
      inputs: { before: this.#before, after: inputs },
    };
  }

  /** Only what comes after the divergence, or after the last step of the pod, goes. */
  async #asItIs(): Promise<Minimized> {
    const goal = this.#goal;
    this.#remarks.push(
      `only the time after ${goal.kind === 'end' ? 'the last step of the pod' : 'the divergence'} was cut off: without the order of the recording it does not come again`,
    );
    if (goal.kind === 'divergence') {
      const cut = cutAt(this.#o, goal);
      return this.#minimized({ lines: await this.#renamedAsItIs(cut), inputs: goal.divergence.input + 1 }, this.#known.length);
    }
    const lines = cutAfter(this.#o, this.#endMs);
    let end = '';
    const header = this.#o.header;
    const { inputs } = await strictly(
      { ...this.#o, header, entries: () => entriesOf(lines) },
      {
        leaves(node) {
          end = howIs(node, goal.pod.uid);
        },
      },
    );
    if (end !== goal.end) throw new Error('the pod is still on its way when the recording ends, so its end cannot be kept');
    return this.#minimized({ lines: await this.#renamedAsItIs(lines), inputs }, this.#known.length);
  }

  /** In the order of the recording, under other names where they do not matter. */
  async #renamedAsItIs(lines: readonly string[]): Promise<readonly string[]> {
    const { around, header } = this.#o;
    const lived = (some: readonly string[], watch?: Learner): Promise<Replayed> =>
      strictly(
        { ...this.#o, header: JSON.parse(some[0] ?? '') as Header, entries: () => entriesOf(some) },
        watch === undefined ? {} : { watch },
      );
    for (const containers of [true, false]) {
      const names = standIns({ pods: this.#known, node: namesOfNode(header), texts: textsOf(header, this.#script), containers });
      const edit = new Edit({ names });
      const digests = new Digests(edit, around.hashes);
      await lived(lines, Object.assign(new Learner(), { digested: digests.digested.bind(digests) }));
      const renamed = renamedLines(lines, edit, digests);
      const again = await lived(renamed);
      if (again.failure !== null || !this.#isGoal(again, edit)) continue;
      if (!containers) this.#remarks.push(CONTAINERS_STAY);
      return renamed;
    }
    this.#remarks.push(NAMES_STAY);
    return lines;
  }

  /** A pod that was asked for, or in which it shows. */
  #stays({ uid, namespace, name }: KnownPod): boolean {
    if (this.#o.pod === `${namespace}/${name}`) return true;
    if (this.#goal.kind === 'end') return false;
    return JSON.stringify(this.#goal.parted).includes(uid);
  }

  /** Null: the names matter. */
  async #renamed(pods: readonly string[], inputs: ReadonlySet<number>): Promise<Try | null> {
    const node = namesOfNode(this.#o.header);
    for (const containers of [true, false]) {
      const names = standIns({ pods: this.#known, node, texts: textsOf(this.#o.header, this.#script), containers });
      const found = await this.#try(new Edit({ pods, inputs, names }), true);
      if (found === null) continue;
      if (!containers) this.#remarks.push(CONTAINERS_STAY);
      return found;
    }
    this.#remarks.push(NAMES_STAY);
    return null;
  }

  /** A recording with this left out; null where it no longer shows the same. */
  async #try(edit: Edit, last = false): Promise<Try | null> {
    const { header, own, around, runsMax, on } = this.#o;
    if (this.#runs >= runsMax && !last) return null;
    this.#runs += 1;
    const goal = this.#goal;
    const lines: string[] = [];
    const meeting = goal.kind === 'divergence' ? new Meeting({ parted: goal.parted, monoMs: goal.divergence.monoMs, edit }) : null;
    const lives = new Map<string, string[]>();
    const run = await runLoosely({
      ...{ header, script: this.#script, edit, own, hashes: around.hashes, around, endMs: this.#endMs },
      otherwise: defaultAnswers,
      line: (line, nowMs) => (meeting === null ? void lines.push(line) : meeting.see(line, nowMs)),
      ended: () => meeting?.met === true,
      step: (e) => lived(lives, e),
    }).catch(() => null);
    if (run === null) return null;
    meeting?.end();
    const same = meeting === null ? goal.kind === 'end' && run.node !== null && howIs(run.node, goal.pod.uid) === goal.end : meeting.met;
    if (!same || [...this.#lives].some(([uid, steps]) => lives.get(uid)?.join() !== steps.join())) return null;
    const made = meeting?.lines ?? [...lines, ENDED];
    const again = await strictly({ ...this.#o, header: JSON.parse(made[0] ?? '') as Header, entries: () => entriesOf(made) });
    if (again.failure !== null || !this.#isGoal(again, edit)) return null;
    on?.({ runs: this.#runs, lines: made.length, pods: this.#known.length });
    return { lines: made, inputs: again.inputs };
  }

  /** A replay of what was cut down shows what is kept. */
  #isGoal({ divergence, parted }: Replayed, edit: Edit): boolean {
    const goal = this.#goal;
    if (goal.kind === 'end') return divergence === null;
    if (divergence === null || parted === null) return false;
    if (divergence.stack !== goal.divergence.stack) return false;
    const plain = (text: string) => (edit.back(text) as string).replace(/\d+(?:\.\d+)? ms$/, 'ms');
    return plain(divergence.was) === plain(goal.divergence.was) && plain(divergence.now) === plain(goal.divergence.now);
  }
}

interface Heard {
  watch?: Learner;
  step?(e: Extract<SupervisionEvent, { kind: 'transition' }>, node: Node): void;
  leaves?(node: Node): void;
}

function strictly(
  { header, entries, own, around }: Pick<MinimizeInput, 'header' | 'entries' | 'own' | 'around'>,
  o: Heard = {},
): Promise<Replayed> {
  const { watch, step, leaves } = o;
  return replay({
    ...{ header, next: entries(), own, entropy: around.hashes, drain: () => around.drain() },
    ...(watch === undefined ? {} : { watch }),
    stopAt: (e, node) => {
      step?.(e, node);
      return false;
    },
    ...(leaves === undefined ? {} : { leaves }),
  });
}

function entriesOf(lines: readonly string[]): () => Entry | null {
  let at = 1;
  return () => (at < lines.length ? entryOfLine(lines[at++] ?? '') : null);
}

function cutAt({ header, entries }: MinimizeInput, { divergence, parted }: Extract<Goal, { kind: 'divergence' }>): string[] {
  const lines = [JSON.stringify(header)];
  const next = entries();
  let inputs = -1;
  let done = 0;
  for (let entry = next(); entry !== null; entry = next()) {
    if (isInput(entry)) inputs += 1;
    if (inputs > divergence.input) break;
    const outcome = ['ask', 'inside', 'answer', 'set', 'step'].includes(entry[0]);
    if (inputs === divergence.input && outcome && done++ > parted.done.length) continue;
    lines.push(lineOf(entry));
  }
  return [...lines, parted.was === null ? ENDED : '["open"]'];
}

function cutAfter({ header, entries }: MinimizeInput, endMs: number): string[] {
  const lines = [JSON.stringify(header)];
  const next = entries();
  let atMs = header.monoMs;
  for (let entry = next(); entry !== null; entry = next()) {
    if (isInput(entry)) atMs += entry[1];
    else if (entry[0] === 'clock') atMs += entry[2];
    if (isInput(entry) && atMs > endMs) break;
    lines.push(lineOf(entry));
  }
  return [...lines, ENDED];
}

function lived(lives: Map<string, string[]>, e: SupervisionEvent): void {
  const uid = e.kind === 'transition' ? uidOf(e.path) : '';
  if (e.kind !== 'transition' || uid === '') return;
  const steps = lives.get(uid) ?? [];
  steps.push(`${e.from} -> ${e.to} on ${e.event}`);
  lives.set(uid, steps);
}

function uidsWithout(all: readonly KnownPod[], kept: readonly KnownPod[]): string[] {
  return all.filter((pod) => !kept.includes(pod)).map((pod) => pod.uid);
}

function without(all: readonly number[], kept: readonly number[]): ReadonlySet<number> {
  const stay = new Set(kept);
  return new Set(all.filter((one) => !stay.has(one)));
}

/** What came in without being asked for. */
function eventsOf({ called, settled, asked, done }: Script): number[] {
  const calls = [...called.values()].flat().map((call) => call.order);
  const told = asked.filter((ask) => ask.name.endsWith('.next')).flatMap((ask) => settled.get(ask.call ?? -1)?.order ?? []);
  const kills = done.filter((one) => one.input[0] !== 'told').map((one) => one.order);
  return [...calls, ...told, ...kills].sort((a, b) => a - b);
}

function namesOfNode({ config, ports }: Header): string[] {
  const text = JSON.stringify([config, ports]);
  const named = ['hostnameOverride', 'nodeName'].flatMap((key) => new RegExp(`"${key}":"([^"]+)"`).exec(text)?.[1] ?? []);
  const servers = [...text.matchAll(/"server":"https?:\/\/([^":/]+)/g)].flatMap((found) => found[1] ?? []);
  return [...new Set([...named, ...servers])].filter((name) => !/^[\d.:]+$|^localhost$/.test(name));
}

function* textsOf(header: Header, { asked, settled, called }: Script): Generator<string> {
  yield JSON.stringify(header);
  for (const ask of asked) yield JSON.stringify([ask.args, ask.now]);
  for (const { value } of settled.values()) yield JSON.stringify(value);
  for (const calls of called.values()) for (const { args } of calls) yield JSON.stringify(args);
}
