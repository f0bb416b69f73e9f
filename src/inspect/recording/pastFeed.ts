/** The page's feed from a recording: the frames of a live node, at the moment that each viewer chose. */

import { type Chart, statesOf } from '../../machines/chart/definition.ts';
import { workersAddr } from '../../machines/pods/workers/messages.ts';

import {
  type ActorFrame,
  type HelloFrame,
  type LifeFrame,
  type NextEvent,
  type PodFrame,
  PROTOCOL_VERSION,
  readViewerFrame,
  type ServerFrame,
  type WatchFrame,
} from '../feed/frames.ts';
import { isAbout, MESSAGES_MAX, nothingKnown } from '../feed/podFacts.ts';
import { type Joined, VIEWERS_MAX, type Viewer } from '../feed/viewer.ts';
import { activeStates } from './activeStates.ts';
import type { Picture, Recording } from './recording.ts';
import { transitionOf } from './replay.ts';

const EVENTS_MAX = 500;
const STEPS_MAX = 40;
const POD_STEPS_MAX = 160;
const RUNS_MAX = 200;
const NOTES_MAX = 60;

export class PastFeed {
  readonly #recording: Recording;
  readonly #startMs: number;
  readonly #life: LifeFrame;
  readonly #viewers = new Set<Viewer>();
  readonly figures = { viewers: 0, serialised: 0, malformed: 0 };

  /** `startMs`: the moment that a new viewer sees. `life`: the machine of each pod's life, which no recording holds. */
  constructor(recording: Recording, { startMs, life }: { startMs: number; life: LifeFrame }) {
    this.#recording = recording;
    this.#startMs = startMs;
    this.#life = life;
  }

  join(viewer: Viewer): Joined | null {
    if (this.#viewers.size >= VIEWERS_MAX) return null;
    this.#viewers.add(viewer);
    this.figures.viewers = this.#viewers.size;
    let shownMs = this.#startMs;
    this.#send(viewer, this.#hello());
    this.#send(viewer, this.#snapshot(this.#recording.at(shownMs)));
    return {
      message: (text) => {
        const watch = readViewerFrame(text);
        if (watch === null) {
          this.figures.malformed += 1;
          return;
        }
        const atMs = watch.atMs ?? shownMs;
        const picture = this.#recording.at(atMs);
        if (atMs !== shownMs) this.#send(viewer, this.#snapshot(picture));
        shownMs = atMs;
        for (const frame of this.#details(watch, picture)) this.#send(viewer, frame);
      },
      leave: () => {
        this.#viewers.delete(viewer);
        this.figures.viewers = this.#viewers.size;
      },
    };
  }

  close(): void {
    for (const viewer of this.#viewers) viewer.close('the recording is closed');
    this.#viewers.clear();
  }

  #send(viewer: Viewer, frame: ServerFrame): void {
    this.figures.serialised += 1;
    viewer.send(JSON.stringify(frame));
  }

  #hello(): HelloFrame {
    const { runs, fromMs, toMs } = this.#recording;
    const last = runs.at(-1);
    return {
      t: 'hello',
      protocol: PROTOCOL_VERSION,
      node: last?.node ?? '',
      version: last?.version ?? '',
      startedAtMs: last?.startedAtMs ?? 0,
      faultInjection: false,
      recording: { fromMs, toMs, runs: runs.slice(-RUNS_MAX).map((r) => ({ fromMs: r.fromMs, toMs: r.toMs, stopped: r.stopped })) },
    };
  }

  #snapshot(picture: Picture): ServerFrame {
    const events = this.#recording.lastEntries(picture, EVENTS_MAX, () => true);
    return { t: 'snapshot', seq: 0, atMs: picture.atMs, actors: [...picture.actors.values()], pods: [...picture.pods.values()], events };
  }

  #details(watch: WatchFrame, picture: Picture): ServerFrame[] {
    const { actor = '', pod = '' } = watch;
    const out: ServerFrame[] = [];
    if (actor !== '') {
      const chart = this.#recording.chartOf(actor);
      out.push({ t: 'chart', path: actor, chart }, this.#actor(actor, { picture, chart }));
    }
    if (pod !== '') out.push(this.#life, this.#pod(pod, picture));
    if (watch.events === true) out.push(this.#events(picture));
    if (watch.decisions === true && picture.decisions !== null) {
      const notes = this.#recording.lastEntries(picture, NOTES_MAX, (e) => e.path.startsWith('node/reclaim/') && e.kind !== 'transition');
      out.push({ ...picture.decisions, t: 'decisions', notes });
    }
    return out;
  }

  /** Kubernetes' events are kept with their pods. */
  #events({ pods, atMs }: Picture): ServerFrame {
    const events = [...pods.keys()].flatMap((uid) => this.#recording.podAt(uid, atMs)?.events ?? []);
    return { t: 'events', events: events.sort((a, b) => a.atMs - b.atMs).slice(-EVENTS_MAX) };
  }

  #actor(path: string, { picture, chart }: { picture: Picture; chart: Chart | null }): ActorFrame {
    const row = picture.actors.get(path);
    const history = this.#recording.lastEntries(picture, STEPS_MAX, (e) => e.path === path);
    const steps = history.flatMap((e) => {
      if (e.kind !== 'transition') return [];
      const { event, from, to } = transitionOf(e);
      return [{ n: e.n, atMs: e.atMs, event, label: event, from, to, transitions: [] }];
    });
    if (row === undefined || row.lifecycle !== 'running') return { t: 'actor', path, live: null, steps, history };
    const active = chart === null ? [] : activeStates(chart, row.state);
    const live = { status: 'active', value: row.state, active, context: '(not in a recording)', next: nextOf(chart, active), children: [] };
    return { t: 'actor', path, live, steps, history };
  }

  #pod(uid: string, picture: Picture): PodFrame {
    const detail = this.#recording.podAt(uid, picture.atMs);
    const history = this.#recording.historyAt(uid, picture, POD_STEPS_MAX);
    const messages = this.#recording.lastEntries(picture, MESSAGES_MAX, (e) => isAbout(e, uid));
    const known = detail ?? (history.steps.length + history.calls.length > 0 ? nothingKnown(uid, `${workersAddr.path}/${uid}`) : null);
    return { t: 'pod', uid, pod: known === null ? null : { ...known, history, messages } };
  }
}

/** What it would have taken next; inner states first. */
function nextOf(chart: Chart | null, active: readonly string[]): NextEvent[] {
  if (chart === null) return [];
  const states = new Map(statesOf(chart.root).map((s) => [s.id, s]));
  return active.toReversed().flatMap((id) => (states.get(id)?.transitions ?? []).filter((t) => t.event !== ''));
}
