/**
 * The page's feed. With nobody attached it does nothing at all: no timer, no look at the tree, nothing serialised. With
 * viewers it writes one frame for all of them 100 ms after something happened, and looks around once a second.
 * A viewer that reads too slowly misses frames and gets a fresh snapshot once it has caught up; no actor ever waits.
 */

import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import type { ActorState } from '@actorlet/kubelet/actors/supervision/types.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { lostPeers } from '@actorlet/shown/src/moment/lostPeers.ts';
import { WatchedActor } from './actorDetail.ts';
import { decisionsFrame } from './decisions.ts';
import {
  type ActorRow,
  type DeltaFrame,
  type HelloFrame,
  type HostFrame,
  type PodRow,
  PROTOCOL_VERSION,
  readViewerFrame,
  type ServerFrame,
  type SnapshotFrame,
  type WatchFrame,
} from './frames.ts';
import { kubeletFrame } from './kubelet.ts';
import { momentOf } from './live.ts';
import { LIFE_FRAME, podFrame } from './podDetail.ts';
import { problemsFrame } from './problems.ts';
import { actorRows, PodLook, podNamesOf, Rows } from './rows.ts';
import { BACKLOG_BYTES_MAX, type Joined, LAG_MAX_MS, VIEWERS_MAX, type Viewer } from './viewer.ts';

/** An update is on its way within 150 ms of the transition. */
const LOOK_AFTER_MS = 100;
/** Details whose ages move without an event, and viewers that lag. */
const DETAILS_EVERY_MS = 1_000;
/**
 * The whole tree, for what no event tells (a mailbox that fills). In between, who changed his state is looked at alone: all of
 * 100 pods take some 2 ms.
 */
const TREE_EVERY_MS = 5_000;
/** Kubernetes' events that a viewer is given. */
const KUBE_EVENTS_MAX = 300;
/** Events in one delta; the viewer is told how many were left out. */
const EVENTS_PER_DELTA_MAX = 400;
/** Events that a new viewer is given of what was before it. */
const EVENTS_REPLAYED_MAX = 500;
/** Between two starts of the process that reads the host's figures. */
const HOST_AGAIN_MS = 1_000;

/** Figures of the host while somebody looks at them. */
export type HostWatch = (onFrame: (frame: HostFrame) => void) => Disposable;

export interface HubFigures {
  viewers: number;
  /** Frames turned into text since the start: 0 while nobody was ever attached. */
  serialised: number;
  /** Frames from viewers that were no request of theirs. */
  malformed: number;
  /** Frames that slow viewers did not get. */
  skipped: number;
}

interface Client {
  viewer: Viewer;
  watch: WatchFrame;
  /** Since when it lags; null when it does not. */
  lagsSinceMs: number | null;
  /** The last text sent per kind of detail. */
  sent: Map<string, string>;
}

interface Changes {
  actors: { changed: ActorRow[]; gone: string[] };
  pods: { changed: PodRow[]; gone: string[] };
}
/** After these one actor is another, or gone. */
const OF_ONE_ACTOR: ReadonlySet<RecorderEntry['kind']> = new Set([
  ...(['transition', 'child.started', 'child.exited', 'child.restarting'] as const),
  ...(['child.asleep', 'child.woken'] as const),
]);
/** After all else, who is there may be others. */
const LEAVES_THE_TREE: ReadonlySet<RecorderEntry['kind']> = new Set([...OF_ONE_ACTOR, 'message', 'dead-letter', 'note']);

export class Hub {
  readonly #node: Inspected;
  readonly #watchHost: HostWatch;
  readonly #actsOnPods: boolean;
  readonly #clients = new Set<Client>();
  readonly #actors = new Rows<ActorRow>((r) => r.path);
  readonly #pods = new PodLook();
  readonly #watched = new Map<string, WatchedActor>();
  #timer: unknown = null;
  /** The last look that came to be due after something happened. */
  #soon: unknown = null;
  #tap: Disposable | null = null;
  #seq = 0;
  #nextEvent = 0;
  #treeLookedMs = 0;
  /** Actors whose outside could not be reached at the last look. */
  #lost = '';
  #host: Disposable | null = null;
  #hostBeganMs = Number.NEGATIVE_INFINITY;
  /** When viewers last got what they asked for, and the answer that is due; null: none is. */
  #answeredMs = Number.NEGATIVE_INFINITY;
  #answer: unknown = null;
  readonly figures: HubFigures = { viewers: 0, serialised: 0, malformed: 0, skipped: 0 };

  constructor(node: Inspected, watchHost: HostWatch, { actsOnPods = false }: { actsOnPods?: boolean } = {}) {
    this.#node = node;
    this.#watchHost = watchHost;
    this.#actsOnPods = actsOnPods;
  }

  /** Null: too many viewers. */
  join(viewer: Viewer): Joined | null {
    if (this.#clients.size >= VIEWERS_MAX) return null;
    const client: Client = { viewer, watch: { t: 'watch' }, lagsSinceMs: null, sent: new Map() };
    const first = this.#clients.size === 0;
    this.#clients.add(client);
    this.figures.viewers = this.#clients.size;
    if (first) {
      this.#look();
      this.#nextEvent = this.#node.recorder.recorded;
    }
    const node = this.#node;
    const hello: HelloFrame = {
      t: 'hello',
      protocol: PROTOCOL_VERSION,
      node: node.nodeName,
      version: node.version,
      startedAtMs: node.startedAtMs,
      faultInjection: node.faults !== null,
      ...(this.#actsOnPods ? { actsOnPods: true } : {}),
    };
    viewer.send(this.#text(hello));
    viewer.send(this.#text(this.#snapshot()));
    if (first) this.#begin();
    return {
      message: (text) => this.#message(client, text),
      leave: () => this.#leave(client),
    };
  }

  #leave(client: Client): void {
    if (!this.#clients.delete(client)) return;
    this.figures.viewers = this.#clients.size;
    // Called by the socket: what throws here would end the daemon.
    this.#guarded(() => this.#settleWatches());
    if (this.#clients.size > 0) return;
    this.#tap?.[Symbol.dispose]();
    for (const timer of [this.#timer, this.#soon, this.#answer]) this.#node.clock.clearTimeout(timer);
    this.#timer = null;
    this.#soon = null;
    this.#answer = null;
  }

  close(): void {
    for (const client of [...this.#clients]) {
      client.viewer.close('the daemon ends');
      this.#leave(client);
    }
  }

  #message(client: Client, text: string): void {
    const frame = readViewerFrame(text);
    if (frame === null) {
      this.figures.malformed += 1;
      return;
    }
    client.watch = frame;
    client.sent.clear();
    const { clock } = this.#node;
    const waitMs = this.#answeredMs + LOOK_AFTER_MS - clock.monoMs();
    // However often viewers ask, and however many they are.
    if (waitMs <= 0) this.#answerAll();
    else this.#answer ??= clock.setTimeout(() => this.#answerAll(), waitMs);
  }
  #answerAll(): void {
    this.#answer = null;
    this.#answeredMs = this.#node.clock.monoMs();
    this.#guarded(() => {
      this.#settleWatches();
      this.#details(true);
    });
  }

  /** Attaches to what somebody watches and lets go of the rest. */
  #settleWatches(): void {
    const wanted = new Set([...this.#clients].flatMap((c) => (c.watch.actor ? [c.watch.actor] : [])));
    for (const [path, actor] of this.#watched) {
      if (wanted.has(path)) continue;
      actor[Symbol.dispose]();
      this.#watched.delete(path);
    }
    for (const path of wanted) if (!this.#watched.has(path)) this.#watched.set(path, new WatchedActor(path, this.#node));
    this.#settleHost();
  }
  #settleHost(): void {
    const wanted = [...this.#clients].some((c) => c.watch.host === true);
    const nowMs = this.#node.clock.monoMs();
    if (wanted && this.#host === null && nowMs - this.#hostBeganMs >= HOST_AGAIN_MS) {
      this.#hostBeganMs = nowMs;
      this.#host = this.#watchHost((frame) => this.#toHostWatchers(frame));
    }
    if (wanted || this.#host === null) return;
    this.#host[Symbol.dispose]();
    this.#host = null;
  }

  #toHostWatchers(frame: HostFrame): void {
    const text = this.#text(frame);
    for (const client of this.#clients) if (client.watch.host === true) this.#send(client, text);
  }

  // ---- looking -------------------------------------------------------------------------------------------------------

  #begin(): void {
    this.#await();
    this.#arm();
  }
  /** The first event until the next look is enough: those behind it cost nobody anything. */
  #await(): void {
    const { tree, clock } = this.#node;
    this.#tap = tree.observe(() => {
      this.#tap?.[Symbol.dispose]();
      this.#soon = clock.setTimeout(() => {
        this.#await();
        this.#tick(false);
      }, LOOK_AFTER_MS);
    });
  }
  #arm(): void {
    this.#timer = this.#node.clock.setTimeout(() => {
      this.#tick(true);
      if (this.#clients.size > 0) this.#arm();
    }, DETAILS_EVERY_MS);
  }

  /** A fault of the inspector's own must not reach the daemon: the next look may do better. */
  #tick(full: boolean): void {
    this.#guarded(() => this.#lookAround(full));
  }
  #guarded(fn: () => void): void {
    try {
      fn();
    } catch (error) {
      this.#node.log.warn({ err: String(error) }, 'inspection page: one update was left out');
    }
  }
  #lookAround(full: boolean): void {
    const nowMs = this.#node.clock.monoMs();
    const moved = this.#node.recorder.recorded !== this.#nextEvent;
    const peersMoved = full && this.#lost !== [...this.#lostPeers().keys()].join();
    if (moved || peersMoved || nowMs - this.#treeLookedMs >= TREE_EVERY_MS) this.#delta(peersMoved);
    if (moved || full) this.#details(full);
    if (full) this.#settleHost();
    this.#rescue(nowMs);
  }

  #lostPeers(): ReadonlyMap<string, string> {
    return lostPeers(momentOf(this.#node));
  }

  /** `only`: nobody else can have changed. */
  #look(only?: ReadonlySet<string>): Changes {
    const { tree, clock } = this.#node;
    const now = momentOf(this.#node);
    const podName = podNamesOf(now);
    const lost = lostPeers(now);
    const rowsOf = (state: ActorState) => actorRows(state, { nowMs: now.nowMs, lost, podName });
    const states = [...(only ?? [])].map((path) => [path, tree.stateAt(path)] as const);
    // Actors below one that changed may be gone too.
    const whole = only === undefined || states.some(([path, state]) => (state ?? this.#actors.get(path))?.type !== 'actor');
    if (whole) {
      this.#lost = [...lost.keys()].join();
      this.#treeLookedMs = clock.monoMs();
      return this.#withPods(this.#actors.update(rowsOf(tree.state())));
    }
    const changed = this.#actors.patch(states.flatMap(([, state]) => (state === undefined ? [] : rowsOf(state))));
    const gone = states.flatMap(([path, state]) => (state === undefined ? [path] : []));
    this.#actors.drop(gone);
    return this.#withPods({ changed, gone });
  }
  #withPods(actors: Changes['actors']): Changes {
    const moved = actors.changed.map((a) => a.path);
    return { actors, pods: this.#pods.update(momentOf(this.#node), moved) };
  }

  /** `all`: actors may have changed that no event names. */
  #delta(all: boolean): void {
    const { recorder, clock } = this.#node;
    const from = this.#nextEvent;
    const events = recorder.since(from, EVENTS_PER_DELTA_MAX);
    this.#nextEvent = recorder.recorded;
    const missed = recorder.recorded - from - events.length;
    const whole =
      all || missed > 0 || clock.monoMs() - this.#treeLookedMs >= TREE_EVERY_MS || events.some((e) => !LEAVES_THE_TREE.has(e.kind));
    const { actors, pods } = this.#look(whole ? undefined : new Set(events.flatMap((e) => (OF_ONE_ACTOR.has(e.kind) ? [e.path] : []))));
    if (actors.changed.length + actors.gone.length + pods.changed.length + pods.gone.length + events.length === 0) return;
    this.#seq += 1;
    const delta: DeltaFrame = {
      t: 'delta',
      seq: this.#seq,
      atMs: clock.wallMs(),
      actors: actors.changed,
      goneActors: actors.gone,
      pods: pods.changed,
      gonePods: pods.gone,
      events,
      missed,
    };
    const text = this.#text(delta);
    for (const client of this.#clients) this.#send(client, text);
  }

  #snapshot(): SnapshotFrame {
    const events: RecorderEntry[] = this.#node.recorder.last(EVENTS_REPLAYED_MAX, (e) => e.n < this.#nextEvent);
    return { t: 'snapshot', seq: this.#seq, atMs: this.#node.clock.wallMs(), actors: this.#actors.all, pods: this.#pods.all, events };
  }

  /** Details go out only to those who watch them, and only where they changed. `full`: those that cost more, too. */
  #details(full: boolean): void {
    for (const [path, actor] of this.#watched) {
      const chart = actor.chart();
      for (const client of this.#clients) {
        if (client.watch.actor !== path) continue;
        if (chart !== null || !client.sent.has('chart')) this.#once(client, 'chart', actor.lastChart());
        this.#once(client, 'actor', actor.frame());
      }
    }
    const pods = new Map<string, ServerFrame>();
    const now = momentOf(this.#node);
    const problems = full ? problemsFrame(now) : null;
    for (const client of this.#clients) {
      if (problems !== null) this.#once(client, 'problems', problems);
      const uid = client.watch.pod ?? '';
      if (uid !== '' && (full || !client.sent.has('pod'))) {
        const frame = pods.get(uid) ?? podFrame(now, uid);
        pods.set(uid, frame);
        if (!client.sent.has('life')) this.#once(client, 'life', LIFE_FRAME);
        this.#once(client, 'pod', frame);
      }
      if (client.watch.events === true && (full || !client.sent.has('events'))) {
        const events = now.read(eventsView) ?? [];
        this.#once(client, 'events', { t: 'events', events: events.slice(-KUBE_EVENTS_MAX) });
      }
      if (client.watch.decisions === true && (full || !client.sent.has('decisions'))) {
        this.#once(client, 'decisions', decisionsFrame(now));
      }
      if (client.watch.kubelet === true && (full || !client.sent.has('kubelet'))) {
        const frame = kubeletFrame(now);
        if (frame !== null) this.#once(client, 'kubelet', frame);
      }
    }
  }

  #once(client: Client, kind: string, frame: ServerFrame): void {
    const text = this.#text(frame);
    if (client.sent.get(kind) === text) return;
    if (this.#send(client, text)) client.sent.set(kind, text);
  }

  // ---- sending -------------------------------------------------------------------------------------------------------

  #text(frame: ServerFrame): string {
    this.figures.serialised += 1;
    return JSON.stringify(frame);
  }

  /** False: this viewer lags and does not get it. */
  #send(client: Client, text: string): boolean {
    if (client.lagsSinceMs === null && client.viewer.backlogBytes() <= BACKLOG_BYTES_MAX) {
      client.viewer.send(text);
      return true;
    }
    client.lagsSinceMs ??= this.#node.clock.monoMs();
    this.figures.skipped += 1;
    return false;
  }

  /** Viewers that caught up begin anew; those that did not are let go. */
  #rescue(nowMs: number): void {
    for (const client of [...this.#clients]) {
      if (client.lagsSinceMs === null) continue;
      if (client.viewer.backlogBytes() === 0) {
        client.lagsSinceMs = null;
        client.sent.clear();
        this.#send(client, this.#text(this.#snapshot()));
      } else if (nowMs - client.lagsSinceMs > LAG_MAX_MS) {
        client.viewer.close('it did not read what it was sent');
        this.#leave(client);
      }
    }
  }
}
