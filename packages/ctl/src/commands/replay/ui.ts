/** `actorctl replay FILE --ui`: the inspection page on a replay, with a slider: every actor in full at each moment. */
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { WatchedActor } from '@actorlet/inspect/src/feed/actorDetail.ts';
import { decisionsFrame } from '@actorlet/inspect/src/feed/decisions.ts';
import { PROTOCOL_VERSION, readViewerFrame, type ServerFrame, type WatchFrame } from '@actorlet/inspect/src/feed/frames.ts';
import { momentOf } from '@actorlet/inspect/src/feed/live.ts';
import { LIFE_FRAME, podFrame } from '@actorlet/inspect/src/feed/podDetail.ts';
import { problemsFrame } from '@actorlet/inspect/src/feed/problems.ts';
import { allActorRows, PodLook } from '@actorlet/inspect/src/feed/rows.ts';
import { type Joined, VIEWERS_MAX, type Viewer } from '@actorlet/inspect/src/feed/viewer.ts';
import type { Target } from '@actorlet/inspect/src/server/pageServer.ts';
import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import type { Surroundings } from '@actorlet/replay/src/lenient/run.ts';
import { Replay } from '@actorlet/replay/src/player/replay.ts';
import { silentLogger, silentMetrics } from '@actorlet/replay/src/player/silent.ts';
import type { CtlIo } from '../../io.ts';
import { servePage } from '../recording/recordingUi.ts';
import { inputFiles, openInputs } from './file.ts';
import { surroundings } from './surroundings.ts';
import { stopAt } from './until.ts';

const EVENTS_MAX = 500;

export interface ReplayUi {
  path: string;
  /** Where it begins; absent: at the end. */
  until: string | undefined;
  port: number;
  open: boolean;
}

/** Serves the page until Ctrl-C. */
export async function runReplayUi(io: CtlIo, o: ReplayUi): Promise<number> {
  const files = await inputFiles(o.path);
  const [file] = files;
  if (file === undefined || files.length > 1) throw new CtlError(EXIT.usage, `${o.path}: ${files.length} recordings; name one of them.`);
  const past = await Past.of(file, o.until, surroundings(io));
  if (past.remark !== '') io.err(`${printable(past.remark)}\n`);
  return servePage(io, o, new ReplayFeed(past));
}

/** A recording at any moment: forward by its next inputs, backward from its start again. */
export class Past {
  readonly fromMs: number;
  toMs: number;
  /** The moment that a viewer sees first. */
  startMs: number;
  /** What a person has to know. */
  remark = '';
  /** Times of steps, each once. */
  readonly #stepsMs: number[] = [];
  readonly #file: string;
  readonly #around: Surroundings;
  #replay: Replay;
  /** When the last input of `#replay` came. */
  #inputMs: number;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(file: string, first: { replay: Replay; fromMs: number; around: Surroundings }) {
    this.#file = file;
    this.#around = first.around;
    this.#replay = first.replay;
    this.fromMs = first.fromMs;
    this.toMs = first.fromMs;
    this.startMs = first.fromMs;
    this.#inputMs = first.fromMs;
  }

  /** Runs it once: to know its end, its steps, and the moment of `until`. */
  static async of(file: string, until: string | undefined, around: Surroundings): Promise<Past> {
    const opened = await replayOf(file, { around });
    const past = new Past(file, { ...opened, around });
    await past.#lookThrough(until);
    return past;
  }

  get node(): Inspected | null {
    return this.#replay.node?.inspected ?? null;
  }

  steps(atMs: number): { beforeMs: number | null; afterMs: number | null } {
    const beforeMs = this.#stepsMs.findLast((ms) => ms < atMs) ?? null;
    return { beforeMs, afterMs: this.#stepsMs.find((ms) => ms > atMs) ?? null };
  }

  /** One after the other: `look` sees the node as it was at this moment. */
  at(atMs: number, look: () => void): Promise<void> {
    const next = this.#turn.then(async () => {
      if (atMs < this.#inputMs) this.#replay = (await replayOf(this.#file, { around: this.#around })).replay;
      await runTo(this.#replay, atMs, (ms) => {
        this.#inputMs = ms;
      });
      look();
    });
    this.#turn = next.catch(() => {});
    return next;
  }

  async #lookThrough(until: string | undefined): Promise<void> {
    const isThere = until === undefined ? null : stopAt(until);
    let foundMs: number | null = null;
    // The clock moves while the node takes an input, and a moment shows an input as a whole.
    let inputMs = this.fromMs;
    const { replay } = await replayOf(this.#file, {
      around: this.#around,
      step: (e, node) => {
        if (this.#stepsMs.at(-1) !== inputMs) this.#stepsMs.push(inputMs);
        if (foundMs === null && isThere?.(e, node) === true) foundMs = inputMs;
      },
    });
    await runTo(replay, Infinity, (ms) => {
      inputMs = ms;
    });
    const { divergence } = await replay.run();
    this.toMs = Math.max(this.fromMs + 1, replay.wallMs);
    if (divergence !== null) this.remark = `It ends at a divergence. Then: ${divergence.was}. Now: ${divergence.now}.`;
    if (isThere !== null && foundMs === null)
      throw new CtlError(EXIT.no, `--until ${until}: no actor comes there. ${this.remark}`.trimEnd());
    this.startMs = foundMs ?? this.toMs;
  }
}

/** Gives the node the inputs that came up to then; `comes` hears when each did. */
async function runTo(replay: Replay, atMs: number, comes: (ms: number) => void): Promise<void> {
  for (let next = replay.nextWallMs; next !== null && next <= atMs; next = replay.nextWallMs) {
    comes(next);
    await replay.step();
  }
}

type SeenStep = NonNullable<ConstructorParameters<typeof Replay>[0]['stopAt']>;

async function replayOf(
  file: string,
  o: { around: Surroundings; step?: (...seen: Parameters<SeenStep>) => void },
): Promise<{ replay: Replay; fromMs: number }> {
  const { header, next, more } = await openInputs(file);
  const replay = new Replay({
    ...{ header, next, more, entropy: o.around.hashes, drain: () => o.around.drain(), lookedAt: true },
    extensions: o.around.extensions,
    own: { log: silentLogger, metrics: silentMetrics },
    step: (e, node) => (e.kind === 'transition' ? o.step?.(e, node) : undefined),
  });
  return { replay, fromMs: header.wallMs };
}

/** The page's feed from a replay. All viewers share the one node, which goes to the moment that a viewer asks for. */
export class ReplayFeed implements Target {
  readonly figures = { viewers: 0, malformed: 0 };
  readonly #past: Past;
  readonly #viewers = new Set<Viewer>();

  constructor(past: Past) {
    this.#past = past;
  }

  join(viewer: Viewer): Joined | null {
    if (this.#viewers.size >= VIEWERS_MAX) return null;
    this.#viewers.add(viewer);
    this.figures.viewers = this.#viewers.size;
    let shownMs = this.#past.startMs;
    this.#show(viewer, shownMs, () => [this.#hello(), this.#snapshot(shownMs)]);
    return {
      message: (text) => {
        const watch = readViewerFrame(text);
        if (watch === null) {
          this.figures.malformed += 1;
          return;
        }
        const atMs = watch.atMs ?? shownMs;
        const moved = atMs !== shownMs;
        shownMs = atMs;
        this.#show(viewer, atMs, () => [...(moved ? [this.#snapshot(atMs)] : []), ...this.#details(watch)]);
      },
      leave: () => {
        this.#viewers.delete(viewer);
        this.figures.viewers = this.#viewers.size;
      },
    };
  }

  close(): void {
    for (const viewer of this.#viewers) viewer.close('the replay is closed');
    this.#viewers.clear();
  }

  #show(viewer: Viewer, atMs: number, frames: () => readonly ServerFrame[]): void {
    this.#past
      .at(atMs, () => {
        for (const frame of frames()) viewer.send(JSON.stringify(frame));
      })
      .catch(() => viewer.close('the recording cannot be replayed to this moment'));
  }

  #hello(): ServerFrame {
    const { node, fromMs, toMs } = this.#past;
    return {
      ...{ t: 'hello', protocol: PROTOCOL_VERSION, faultInjection: false },
      ...{ node: node?.nodeName ?? '', version: node?.version ?? '', startedAtMs: node?.startedAtMs ?? fromMs },
      recording: { fromMs, toMs, runs: [{ fromMs, toMs, stopped: true }] },
    };
  }

  #snapshot(atMs: number): ServerFrame {
    const { node } = this.#past;
    const steps = this.#past.steps(atMs);
    if (node === null) return { t: 'snapshot', seq: 0, atMs, actors: [], pods: [], events: [], steps };
    const now = momentOf(node);
    const pods = new PodLook();
    pods.update(now, []);
    const events = node.recorder.last(EVENTS_MAX, () => true);
    return { t: 'snapshot', seq: 0, atMs, actors: allActorRows(now), pods: pods.all, events, steps };
  }

  #details(watch: WatchFrame): ServerFrame[] {
    const { node } = this.#past;
    if (node === null) return [];
    const now = momentOf(node);
    const { actor = '', pod = '' } = watch;
    const out: ServerFrame[] = [problemsFrame(now)];
    if (actor !== '') {
      using watched = new WatchedActor(actor, node);
      out.push(watched.lastChart(), watched.frame());
    }
    if (pod !== '') out.push(LIFE_FRAME, podFrame(now, pod));
    if (watch.events === true) out.push({ t: 'events', events: (now.read(eventsView) ?? []).slice(-EVENTS_MAX) });
    if (watch.decisions === true) out.push(decisionsFrame(now));
    return out;
  }
}
