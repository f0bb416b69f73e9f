/** The page's feed from a recording: the frames of a live node, at the moment that each viewer chose. */

import { activeStates } from '@actorlet/kubelet/machines/chart/active.ts';
import { type Chart, statesOf } from '@actorlet/kubelet/machines/chart/definition.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { transitionOf } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { isUp } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { decisionsFrame } from '../feed/decisions.ts';
import {
  type ActorFrame,
  type HelloFrame,
  type LifeFrame,
  type NextEvent,
  PROTOCOL_VERSION,
  readViewerFrame,
  type ServerFrame,
  type WatchFrame,
} from '../feed/frames.ts';
import { kubeletFrame } from '../feed/kubelet.ts';
import { podFrame } from '../feed/podDetail.ts';
import { problemsFrame } from '../feed/problems.ts';
import { allActorRows, podRows } from '../feed/rows.ts';
import { type Joined, VIEWERS_MAX, type Viewer } from '../feed/viewer.ts';
import type { RecordedMoment } from './recordedMoment.ts';
import type { Recording } from './recording.ts';

const EVENTS_MAX = 500;
const STEPS_MAX = 40;
const RUNS_MAX = 200;

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
        const moment = this.#recording.at(atMs);
        if (atMs !== shownMs) this.#send(viewer, this.#snapshot(moment));
        shownMs = atMs;
        for (const frame of this.#details(watch, moment)) this.#send(viewer, frame);
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

  #snapshot(m: RecordedMoment): ServerFrame {
    const events = m.last(EVENTS_MAX, () => true);
    return { t: 'snapshot', seq: 0, atMs: m.nowMs, actors: allActorRows(m), pods: podRows(m), events };
  }

  #details(watch: WatchFrame, m: RecordedMoment): ServerFrame[] {
    const { actor = '', pod = '' } = watch;
    const out: ServerFrame[] = [problemsFrame(m)];
    if (actor !== '') {
      const chart = m.chart(actor)?.chart ?? null;
      out.push({ t: 'chart', path: actor, chart }, actorFrame(actor, { m, chart }));
    }
    if (pod !== '') out.push(this.#life, podFrame(m, pod));
    if (watch.events === true) out.push({ t: 'events', events: (m.read(eventsView) ?? []).slice(-EVENTS_MAX) });
    if (watch.decisions === true) out.push(decisionsFrame(m));
    const kubelet = watch.kubelet === true ? kubeletFrame(m) : null;
    if (kubelet !== null) out.push(kubelet);
    return out;
  }
}

/** Contexts are in no recording. */
function actorFrame(path: string, { m, chart }: { m: RecordedMoment; chart: Chart | null }): ActorFrame {
  const found = m.stateAt(path);
  const history = m.last(STEPS_MAX, (e) => e.path === path);
  const steps = history.flatMap((e) => {
    if (e.kind !== 'transition') return [];
    const { event, from, to } = transitionOf(e);
    return [{ n: e.n, atMs: e.atMs, event, label: event, from, to, transitions: [] }];
  });
  if (found === undefined || !isUp(found)) return { t: 'actor', path, live: null, steps, history };
  const active = chart === null ? [] : activeStates(chart, found.state);
  const live = { status: 'active', value: found.state, active, context: '(not in a recording)', next: nextOf(chart, active), children: [] };
  return { t: 'actor', path, live, steps, history };
}

/** What it would have taken next; inner states first. */
function nextOf(chart: Chart | null, active: readonly string[]): NextEvent[] {
  if (chart === null) return [];
  const states = new Map(statesOf(chart.root).map((s) => [s.id, s]));
  return active.toReversed().flatMap((id) => (states.get(id)?.transitions ?? []).filter((t) => t.event !== ''));
}
