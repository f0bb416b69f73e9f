/** What the page knows of the node: one WebSocket, its frames folded into one state that components subscribe to. */

import type { Chart } from '@actorlet/kubelet/machines/chart/definition.ts';
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { useSyncExternalStore } from 'react';
import type {
  ActorFrame,
  ActorRow,
  ChartFrame,
  DecisionsFrame,
  EventsFrame,
  HelloFrame,
  HostFrame,
  KubeletFrame,
  PodFrame,
  PodRow,
  ProblemsFrame,
  ServerFrame,
  SnapshotFrame,
  WatchFrame,
} from '../feed/frames.ts';
import { hasRecording, openRecording } from './embedded.ts';

/** Entries of the trace kept by the page; more than a person scrolls through. */
const EVENTS_MAX = 3000;
/** Two minutes of figures. */
const HOST_SAMPLES_MAX = 60;
const SEEK_AFTER_MS = 60;
const RECONNECT_MIN_MS = 500;
const RECONNECT_MAX_MS = 10_000;

export interface PageState {
  link: 'connecting' | 'live' | 'lost';
  /** Why the recording in this page cannot be shown; ''. */
  error: string;
  hello: HelloFrame | null;
  /** The daemon's clock less the browser's. */
  skewMs: number;
  /** Of a replay: the steps of actors before and after this moment. */
  steps: NonNullable<SnapshotFrame['steps']> | null;
  /** The moment that is shown; of a recording, time stands still at it. */
  atMs: number;
  actors: ReadonlyMap<string, ActorRow>;
  pods: ReadonlyMap<string, PodRow>;
  events: readonly RecorderEntry[];
  missed: number;
  actor: ActorFrame | null;
  chart: ChartFrame | null;
  /** Chart of every pod's life. */
  life: Chart | null;
  pod: PodFrame | null;
  kubeEvents: EventsFrame | null;
  decisions: DecisionsFrame | null;
  kubelet: KubeletFrame | null;
  /** Null: not told yet. */
  problems: ProblemsFrame | null;
  host: HostFrame | null;
  hostPast: readonly HostFrame[];
}

const EMPTY: PageState = {
  link: 'connecting',
  error: '',
  hello: null,
  skewMs: 0,
  atMs: 0,
  actors: new Map(),
  pods: new Map(),
  events: [],
  missed: 0,
  steps: null,
  actor: null,
  chart: null,
  life: null,
  pod: null,
  kubeEvents: null,
  decisions: null,
  kubelet: null,
  problems: null,
  host: null,
  hostPast: [],
};

/** Folds one frame in. Pure. */
function folded(state: PageState, frame: ServerFrame, nowMs: number): PageState {
  switch (frame.t) {
    case 'hello':
      return { ...state, hello: frame };
    case 'snapshot':
      return {
        ...state,
        skewMs: frame.atMs - nowMs,
        atMs: frame.atMs,
        actors: new Map(frame.actors.map((a) => [a.path, a])),
        pods: new Map(frame.pods.map((p) => [p.uid, p])),
        events: frame.events,
        missed: 0,
        steps: frame.steps ?? null,
      };
    case 'delta':
      return {
        ...state,
        skewMs: frame.atMs - nowMs,
        atMs: frame.atMs,
        actors: patched(state.actors, frame.actors, { gone: frame.goneActors, key: (a) => a.path }),
        pods: patched(state.pods, frame.pods, { gone: frame.gonePods, key: (p) => p.uid }),
        events: frame.events.length === 0 ? state.events : [...state.events, ...frame.events].slice(-EVENTS_MAX),
        missed: state.missed + frame.missed,
      };
    case 'actor':
      return { ...state, actor: frame };
    case 'chart':
      return { ...state, chart: frame };
    case 'life':
      return { ...state, life: frame.chart };
    case 'pod':
      return { ...state, pod: frame };
    case 'events':
      return { ...state, kubeEvents: frame };
    case 'decisions':
      return { ...state, decisions: frame };
    case 'kubelet':
      return { ...state, kubelet: frame };
    case 'problems':
      return { ...state, problems: frame };
    case 'host':
      return { ...state, host: frame, hostPast: [...state.hostPast, frame].slice(-HOST_SAMPLES_MAX) };
    default:
      // A newer daemon says more than this page knows.
      return state;
  }
}

function patched<R>(
  known: ReadonlyMap<string, R>,
  rows: readonly R[],
  o: { gone: readonly string[]; key(row: R): string },
): ReadonlyMap<string, R> {
  if (rows.length === 0 && o.gone.length === 0) return known;
  const next = new Map(known);
  for (const row of rows) next.set(o.key(row), row);
  for (const key of o.gone) next.delete(key);
  return next;
}

class Store {
  #state: PageState = EMPTY;
  readonly #listeners = new Set<() => void>();
  /** To the daemon, or to the recording in this page; null while neither listens. */
  #send: ((text: string) => void) | null = null;
  #watch: Omit<WatchFrame, 't'> = {};
  #retryMs = RECONNECT_MIN_MS;
  #seekMs: number | null = null;
  #seeking = false;

  get state(): PageState {
    return this.#state;
  }
  subscribe = (fn: () => void): (() => void) => {
    this.#listeners.add(fn);
    return () => this.#listeners.delete(fn);
  };

  #set(next: PageState): void {
    this.#state = next;
    for (const fn of this.#listeners) fn();
  }

  connect(): void {
    if (!hasRecording()) {
      this.#connectDaemon();
      return;
    }
    openRecording((frame) => this.#set(folded(this.#state, frame, Date.now()))).then(
      (send) => this.#begin(send),
      (error: unknown) => this.#set({ ...this.#state, link: 'lost', error: String(error) }),
    );
  }
  #begin(send: (text: string) => void): void {
    this.#send = send;
    this.#set({ ...this.#state, link: 'live' });
    this.#tell();
  }
  #connectDaemon(): void {
    const socket = new WebSocket(`ws://${location.host}/feed`);
    socket.onopen = () => {
      this.#retryMs = RECONNECT_MIN_MS;
      this.#begin((text) => socket.send(text));
    };
    socket.onmessage = (e: MessageEvent<string>) => {
      this.#set(folded(this.#state, JSON.parse(e.data) as ServerFrame, Date.now()));
    };
    socket.onclose = () => {
      this.#send = null;
      this.#set({ ...this.#state, link: 'lost' });
      setTimeout(() => this.#connectDaemon(), this.#retryMs);
      this.#retryMs = Math.min(RECONNECT_MAX_MS, this.#retryMs * 2);
    };
  }

  /** What the page looks at now; details of anything else are forgotten. */
  watch(what: Omit<WatchFrame, 't'>): void {
    if (JSON.stringify(what) === JSON.stringify(this.#watch)) return;
    const s = this.#state;
    this.#watch = what;
    this.#set({
      ...s,
      actor: s.actor?.path === what.actor ? s.actor : null,
      chart: s.chart?.path === what.actor ? s.chart : null,
      pod: s.pod?.uid === what.pod ? s.pod : null,
      hostPast: what.host === true ? s.hostPast : [],
    });
    this.#tell();
  }

  /** Shows another moment of a recording. A slider that is dragged asks for many: the last one of a while counts. */
  seek(atMs: number): void {
    this.#seekMs = atMs;
    if (this.#seeking) return;
    this.#seeking = true;
    setTimeout(() => {
      this.#seeking = false;
      this.#tell();
    }, SEEK_AFTER_MS);
  }

  #tell(): void {
    this.#send?.(JSON.stringify({ t: 'watch', ...this.#watch, ...(this.#seekMs === null ? {} : { atMs: this.#seekMs }) }));
  }
}

export const store = new Store();

export function usePage(): PageState {
  return useSyncExternalStore(store.subscribe, () => store.state);
}

/** The daemon's time; its clock is not the browser's. */
export function nowMs(state: PageState): number {
  return state.hello?.recording === undefined ? Date.now() + state.skewMs : state.atMs;
}
