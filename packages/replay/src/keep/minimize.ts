/** Cuts a recording down while it still shows the same: a divergence, or how a pod ends. */
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { entryOfLine, lineOf } from '../check.ts';
import { type Entry, type Header, isInput, isOutcome, type Json } from '../entries.ts';
import { defaultAnswers } from '../lenient/defaults.ts';
import { Edit, type Renaming } from '../lenient/edit.ts';
import { runLeniently, type Surroundings } from '../lenient/run.ts';
import { Learner, type Script, type When } from '../lenient/script.ts';
import { type Learned, Lives, learn } from '../player/learn.ts';
import { fullNameOf, type KnownPod, KnownPods, knownOf, knowsSame } from '../player/pods.ts';
import { type Replayed, replay } from '../player/replay.ts';
import type { PlayerWatch } from '../player/watch.ts';
import type { Divergence, Doer, Parted } from '../told/divergence.ts';
import { Causes } from './causes.ts';
import { manifestsOf } from './manifests.ts';
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

/** Its own timers wake a worker a little earlier or later than it was woken then. */
const LATER_MS = 1_000;

/** What is kept. `at`: the input after which it shows. */
type Goal = { at: When } & ({ kind: 'divergence'; divergence: Divergence; parted: Parted } | { kind: 'end'; pod: KnownPod; end: string });
interface Try {
  readonly lines: readonly string[];
  readonly inputs: number;
  /** Numbers of the inputs of the whole recording that came. */
  readonly came: ReadonlySet<number>;
}

/** Rejects with an Error that says why there is nothing to keep. */
export async function minimize(o: MinimizeInput): Promise<Minimized> {
  const { header, own, around } = o;
  const was = await learn({
    pod: o.pod,
    header,
    next: o.entries(),
    own,
    entropy: around.hashes,
    drain: () => around.drain(),
    extensions: around.extensions,
    who: around.who(),
  });
  const { divergence, parted, failure } = was.replayed;
  if (failure !== null) throw new Error(`the node cannot be made: ${failure}`);
  const pod = was.pods.named(o.pod);
  if (o.pod !== undefined && pod === null)
    throw new Error(`no pod ${o.pod} is in it; there are ${was.pods.all.map(fullNameOf).join(', ')}`);
  if (divergence !== null && parted !== null)
    return await new Minimizer(o, was, {
      ...{ kind: 'divergence', divergence, parted },
      at: { order: divergence.input, atMs: divergence.monoMs },
    }).run();
  if (divergence !== null) throw new Error('the tree no longer waits for what came in: what was recorded cannot be cut down to that');
  if (pod === null) throw new Error('nothing diverges: say with --pod NAMESPACE/NAME which pod matters');
  const { end, since } = was.ends.get(pod.uid) ?? { end: '', since: { order: 0, atMs: 0 } };
  return await new Minimizer(o, was, { kind: 'end', pod, end, at: since }).run();
}

class Minimizer {
  readonly #o: MinimizeInput;
  readonly #script: Script;
  readonly #known: readonly KnownPod[];
  readonly #lives: Lives;
  readonly #knownThen: ReadonlyMap<string, Json>;
  readonly #goal: Goal;
  readonly #before: number;
  readonly #causes: Causes;
  /** Names of manifest files, by what they hold: UIDs of pods. */
  readonly #manifests: ReadonlyMap<string, readonly string[]>;
  readonly #remarks: string[] = [];
  #hidesFiles: boolean;
  #firesCleared = false;
  #runs = 0;

  constructor(o: MinimizeInput, was: Learned, goal: Goal) {
    this.#o = o;
    this.#script = was.script;
    this.#known = was.pods.all;
    this.#goal = goal;
    this.#causes = new Causes(was.script);
    this.#manifests = manifestsOf(was.script);
    this.#hidesFiles = this.#manifests.size > 0;
    this.#lives = was.lives;
    this.#knownThen = was.known;
    this.#before = inputsIn(o.entries());
  }

  async run(): Promise<Minimized> {
    const others = this.#known.filter((one) => !this.#stays(one));
    const best = await this.#cut(others);
    if (best === null) return await this.#asItIs();
    const renamed = await this.#renamed(best.pods, best.inputs);
    return this.#minimized(renamed ?? best.found, this.#known.length - best.pods.length);
  }

  /** Null: it does not come again with less. */
  async #cut(others: readonly KnownPod[]): Promise<{ found: Try; pods: readonly string[]; inputs: ReadonlySet<number> } | null> {
    const goal = this.#goal;
    const all = Array.from({ length: goal.at.order + 1 }, (_, input) => input);
    const near = [goal.at.order, ...this.#lives.all.flatMap((uid) => (this.#isOf(uid) ? this.#lives.inputs(uid, goal.at.order) : []))];
    let best: { found: Try; pods: readonly string[]; inputs: ReadonlySet<number> } | null = null;
    const better = async (pods: readonly string[], inputs: ReadonlySet<number>): Promise<boolean> => {
      const found = await this.#try(this.#edit(pods, inputs));
      if (found !== null && (best === null || found.inputs <= best.found.inputs)) best = { found, pods, inputs: found.came };
      return found !== null;
    };
    // What it comes of, first without the rounds of loops that only lead there; where that is not enough, all that came before.
    const alone = uidsWithout(others, []);
    const begins = all.slice(0, Math.min(...near) + 1);
    const causes = [
      this.#causes.of(near, { once: true }),
      this.#causes.of([...begins, ...near], { once: true }),
      this.#causes.of([...begins, ...near], { once: false }),
    ];
    // While the node reads manifests it may come to it another way; and by its own timers where a worker slept then that is awake now.
    for (const [hidesFiles, firesCleared] of [true, false].flatMap((hides) => [false, true].map((fires) => [hides, fires] as const))) {
      if (best !== null || (hidesFiles && this.#manifests.size === 0)) continue;
      this.#hidesFiles = hidesFiles;
      this.#firesCleared = firesCleared;
      for (const inputs of [...causes, new Set(all)]) if (await better(alone, inputs)) break;
    }
    if (best === null && (await better([], new Set(all)))) await fewest(others, (some) => better(uidsWithout(others, some), new Set(all)));
    if (best === null) return best;
    const { pods, inputs } = best as { pods: readonly string[]; inputs: ReadonlySet<number> };
    const always = this.#causes.of([], { once: true });
    let kept = new Set(inputs);
    // Whole kinds of inputs first: most of them are rounds of loops that have nothing to do with it.
    for (const kind of this.#causes.kinds([...inputs].filter((input) => !always.has(input)))) {
      const left = new Set(kind);
      const some = new Set([...kept].filter((input) => !left.has(input)));
      if (some.size < kept.size && (await better(pods, some))) kept = new Set((best as { inputs: ReadonlySet<number> }).inputs);
    }
    const rest = this.#causes.sorted([...kept].filter((input) => !always.has(input)));
    await fewest(rest, (some) => better(pods, new Set([...always, ...some])));
    return best;
  }

  #minimized({ lines, inputs }: Pick<Try, 'lines' | 'inputs'>, after: number): Minimized {
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
    return this.#minimized({ lines: await this.#renamedAsItIs(cutAt(this.#o, goal)), inputs: goal.at.order + 1 }, this.#known.length);
  }

  /** In the order of the recording, under other names where they do not matter. */
  async #renamedAsItIs(lines: readonly string[]): Promise<readonly string[]> {
    const { around, header } = this.#o;
    for (const containers of [true, false]) {
      const names = standIns({ pods: this.#known, node: namesOfNode(header), texts: textsOf(header, this.#script), containers });
      const edit = new Edit({ names });
      const digests = new Digests(edit, around.hashes);
      await this.#strictly(lines, Object.assign(new Learner(), { digested: digests.digested.bind(digests) }));
      const renamed = renamedLines(lines, edit, digests);
      const again = await this.#strictly(renamed);
      if (again.failure !== null || !this.#isGoal(again, edit)) continue;
      if (!containers) this.#remarks.push(CONTAINERS_STAY);
      return renamed;
    }
    this.#remarks.push(NAMES_STAY);
    return lines;
  }

  /** A pod that was asked for, or in which it shows. */
  #stays({ uid, namespace, name }: KnownPod): boolean {
    return this.#o.pod === `${namespace}/${name}` || this.#isOf(uid);
  }

  #isOf(uid: string): boolean {
    const goal = this.#goal;
    if (goal.kind === 'end') return goal.pod.uid === uid;
    const { wasBy, nowBy } = goal.divergence;
    const pod = this.#known.find((one) => one.uid === uid);
    const isIts = (by: Doer | null): boolean =>
      by !== null && (by.actor.includes(uid) || (pod !== undefined && by.pod === fullNameOf(pod)));
    return isIts(wasBy) || isIts(nowBy) || JSON.stringify(goal.parted).includes(uid);
  }

  #edit(pods: readonly string[], inputs: ReadonlySet<number>, names: Renaming | null = null): Edit {
    return new Edit({ pods: this.#about(pods), only: inputs, names, firesCleared: this.#firesCleared });
  }

  /** What tells of these pods: their UIDs, and in listings the files that hold nothing else. */
  #about(pods: readonly string[]): string[] {
    if (!this.#hidesFiles) return [...pods];
    const files = [...this.#manifests].filter(([, uids]) => uids.every((uid) => pods.includes(uid)));
    return [...pods, ...files.map(([name]) => JSON.stringify(name))];
  }

  /** Null: the names matter. */
  async #renamed(pods: readonly string[], inputs: ReadonlySet<number>): Promise<Try | null> {
    const node = namesOfNode(this.#o.header);
    for (const containers of [true, false]) {
      const names = standIns({ pods: this.#known, node, texts: textsOf(this.#o.header, this.#script), containers });
      const found = await this.#try(this.#edit(pods, inputs, names), true);
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
    const meeting = goal.kind === 'divergence' ? new Meeting({ ...goal, edit }) : null;
    const lives = new Lives();
    const pods = new KnownPods();
    const isThere = (node: Node | null): boolean =>
      goal.kind === 'end' && node !== null && pods.has(goal.pod.uid) && pods.howIs(node, goal.pod.uid) === edit.into(goal.end);
    const run = await runLeniently({
      ...{ header, script: this.#script, edit, own, hashes: around.hashes, around },
      endMs: goal.at.atMs + (edit.firesCleared ? LATER_MS : 0),
      otherwise: defaultAnswers,
      line: (line, at) => (meeting === null ? void lines.push(line) : meeting.see(line, at)),
      ended: (node) => (meeting === null ? isThere(node) : meeting.met),
      step(e, node) {
        pods.see(e, node);
        lives.see(e, 0);
      },
    }).catch(() => null);
    if (run === null) return null;
    meeting?.end();
    if (!(meeting === null ? isThere(run.player.node) : meeting.met && this.#livesAgain(lives))) return null;
    const made = meeting?.lines ?? [...lines, ENDED];
    const again = await this.#strictly(made);
    if (again.failure !== null || !this.#isGoal(again, edit)) return null;
    on?.({ runs: this.#runs, lines: made.length, pods: this.#known.length });
    return { lines: made, inputs: again.inputs, came: run.lenient.time.came };
  }

  /** Pods in which it diverges are what they were: else what was done then need not be right. */
  #livesAgain(lives: Lives): boolean {
    return this.#lives.all.every((uid) => !this.#isOf(uid) || lives.of(uid) === this.#lives.of(uid, this.#goal.at.order));
  }

  async #strictly(lines: readonly string[], watch?: PlayerWatch): Promise<Ended> {
    const { own, around } = this.#o;
    const goal = this.#goal;
    const pods = new KnownPods();
    let end = '';
    let knowsAll = false;
    let at = 1;
    const again = await replay({
      ...{
        header: JSON.parse(lines[0] ?? '') as Header,
        own,
        entropy: around.hashes,
        drain: () => around.drain(),
        extensions: around.extensions,
        watch,
      },
      next: () => (at < lines.length ? entryOfLine(lines[at++] ?? '') : null),
      step: (e, node) => pods.see(e, node),
      leaves: (node) => {
        if (goal.kind === 'end' && pods.has(goal.pod.uid)) end = pods.howIs(node, goal.pod.uid);
        knowsAll = [...this.#knownThen].every(([uid, then]) => !this.#isOf(uid) || knowsSame(then, knownOf(node, uid)));
      },
    });
    return { ...again, end, knowsAll };
  }

  /** A replay of what was cut down shows what is kept. */
  #isGoal({ divergence, parted, end, knowsAll }: Ended, edit: Edit): boolean {
    const goal = this.#goal;
    if (goal.kind === 'end') return divergence === null && end === edit.into(goal.end);
    if (divergence === null || parted === null) return false;
    // The code that was right may look at what that of today does not.
    if (edit.names === null && !knowsAll) return false;
    if (divergence.stack !== goal.divergence.stack) return false;
    const plain = (text: string) => (edit.back(text) as string).replace(/\d+(?:\.\d+)? ms$/, 'ms');
    return plain(divergence.was) === plain(goal.divergence.was) && plain(divergence.now) === plain(goal.divergence.now);
  }
}

/** `end`: of the pod that is kept. `knowsAll`: the workers of pods in which it diverges know what they knew then. */
type Ended = Replayed & { readonly end: string; readonly knowsAll: boolean };

/** Without what comes after it. At a divergence what was done then is the last that is known. */
function cutAt({ header, entries }: MinimizeInput, goal: Goal): string[] {
  const lines = [JSON.stringify(header)];
  const next = entries();
  let inputs = -1;
  let done = 0;
  for (let entry = next(); entry !== null; entry = next()) {
    if (isInput(entry)) inputs += 1;
    if (inputs > goal.at.order) break;
    const isLast = goal.kind === 'divergence' && inputs === goal.at.order && isOutcome(entry);
    if (!isLast || done++ <= goal.parted.done.length) lines.push(lineOf(entry));
  }
  return [...lines, goal.kind === 'end' || goal.parted.was === null ? ENDED : '["open"]'];
}

function inputsIn(next: () => Entry | null): number {
  let inputs = 0;
  for (let entry = next(); entry !== null; entry = next()) if (isInput(entry)) inputs += 1;
  return inputs;
}

function uidsWithout(all: readonly KnownPod[], kept: readonly KnownPod[]): string[] {
  return all.filter((pod) => !kept.includes(pod)).map((pod) => pod.uid);
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
