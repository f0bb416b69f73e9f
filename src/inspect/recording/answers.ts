/** Answers what `actorctl` asks a daemon, from a recording: the same paths, the same shapes, at one moment of it. */

import type { RecordedEvent } from '../../machines/foundation/messages.ts';
import { findSummary } from '../../machines/shown/findPod.ts';
import { compare, type PodSummary } from '../../machines/shown/podSummary.ts';
import { treeHealth } from '../../machines/shown/treeHealth.ts';
import { type ActorView, findActor, noSuchActor } from '../../machines/supervision/actorState.ts';
import { clockTime } from '../../machines/text/duration.ts';
import { entryLine, isBelow } from '../../recorder/recorder.ts';
import type { ActorRow, PodRow } from '../feed/frames.ts';
import { activeStates } from './activeStates.ts';
import type { Picture, Recording } from './recording.ts';

export interface RecordedAnswer {
  status: number;
  body: string;
}
const STEPS_MAX = 160;
const RECORDER_LINES_MAX = 100_000;

const json = (value: unknown): RecordedAnswer => ({ status: 200, body: JSON.stringify(value) });
const refused = (status: number, why: string): RecordedAnswer => ({ status, body: `${status}: ${why}\n` });

type Query = Readonly<Record<string, string>>;

export class RecordedAnswers {
  readonly #recording: Recording;
  readonly #picture: Picture;

  constructor(recording: Recording, atMs: number) {
    this.#recording = recording;
    this.#picture = recording.at(atMs);
  }

  get(path: string, query: Query): RecordedAnswer {
    switch (path) {
      case '/statez':
        return json(this.#tree());
      case '/pods':
        return json({ stale: '', sourcesReady: true, pods: this.#summaries() });
      case '/healthz':
        return this.#healthz(query);
      case '/recorder':
        return this.#recorder(query);
      case '/events':
        return this.#events(query.pod ?? '');
      case '/why':
        return this.#why(query.pod ?? '');
      case '/timeline':
        return this.#timeline(query.pod ?? '');
      case '/chart':
        return this.#chart(query.actor ?? '');
      default:
        return refused(404, `a recording cannot answer ${path}: it holds no logs and no objects, and nothing can be done to it`);
    }
  }

  #tree(): ActorView {
    return treeOf(this.#picture);
  }

  #summaries(): PodSummary[] {
    return [...this.#picture.pods.values()]
      .map(({ seenAtMs, ...row }) => ({ ...row, ageMs: Math.max(0, this.#picture.atMs - seenAtMs) }))
      .sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid));
  }

  #healthz(query: Query): RecordedAnswer {
    const all = treeHealth(this.#tree());
    const shown = 'verbose' in query ? all : all.filter((h) => !h.ok);
    const down = all.some((h) => h.down);
    if ('json' in query) return json({ healthy: !down, actors: shown, faultsAtWork: null });
    const lines = shown.map((h) => (h.ok ? `[+]${h.path} ok` : `[-]${h.path} failed: ${h.reason}`));
    return { status: down ? 500 : 200, body: `${[...lines, `healthz check ${down ? 'failed' : 'passed'}`].join('\n')}\n` };
  }

  #recorder({ path = '', limit = '', since = '', ...more }: Query): RecordedAnswer {
    const wanted = Number(limit);
    const sinceMs = Number(since);
    const max = Number.isInteger(wanted) && wanted > 0 ? Math.min(wanted, RECORDER_LINES_MAX) : RECORDER_LINES_MAX;
    const from = since !== '' && Number.isFinite(sinceMs) ? sinceMs : Number.NEGATIVE_INFINITY;
    const entries = this.#recording.lastEntries(this.#picture, max, (e) => e.atMs >= from && (path === '' || isBelow(e.path, path)));
    if (entries.length === 0 && path !== '') {
      const tree = this.#tree();
      if (findActor(tree, path) === undefined) return refused(404, noSuchActor(tree, path));
    }
    if ('json' in more) return json({ entries });
    return { status: 200, body: entries.map((e) => `${entryLine(e)}\n`).join('') };
  }

  /** A pod of that moment, or one that is gone and is named by its UID. */
  #pod(query: string): { uid: string; row: PodRow | null } | RecordedAnswer {
    const found = findSummary(query, [...this.#picture.pods.values()]);
    if (found.kind === 'many') return refused(400, `${query} fits several pods: ${found.names.join(', ')}`);
    if (found.kind === 'one') return { uid: found.uid, row: found.record.summary };
    const known = this.#recording.historyAt(query, this.#picture, 1);
    if (known.steps.length + known.calls.length > 0) return { uid: query, row: null };
    const names = [...this.#picture.pods.values()].map((p) => p.name).slice(0, 8);
    const others = names.length === 0 ? 'there were none' : `there were ${names.join(', ')}`;
    return refused(404, `no pod called ${JSON.stringify(query)} at ${clockTime(this.#picture.atMs)}; ${others}`);
  }

  #why(query: string): RecordedAnswer {
    const pod = this.#pod(query);
    if ('status' in pod) return pod.status === 404 ? json({ found: false, lines: [pod.body.replace(/^404: |\n$/g, '')] }) : pod;
    const detail = this.#recording.podAt(pod.uid, this.#picture.atMs);
    return json({ found: detail !== null, lines: detail?.why ?? [`${pod.uid} was gone by then; actorctl timeline has its life.`] });
  }

  #timeline(query: string): RecordedAnswer {
    const pod = this.#pod(query);
    if ('status' in pod) return pod;
    const { row, uid } = pod;
    const name = row === null ? uid : `${row.namespace}/${row.name}`;
    return json({ name, seenAtMs: row?.seenAtMs ?? 0, ...this.#recording.historyAt(uid, this.#picture, STEPS_MAX), kept: true });
  }

  #events(query: string): RecordedAnswer {
    const pod = query === '' ? null : this.#pod(query);
    if (pod !== null && 'status' in pod) return pod;
    const uids = pod === null ? [...this.#picture.pods.keys()] : [pod.uid];
    const events: RecordedEvent[] = uids.flatMap((uid) => this.#recording.podAt(uid, this.#picture.atMs)?.events ?? []);
    return json({ events: events.sort((a, b) => a.atMs - b.atMs) });
  }

  #chart(path: string): RecordedAnswer {
    const chart = this.#recording.chartOf(path);
    if (chart === null) return refused(404, `no state machine of ${JSON.stringify(path)} is recorded`);
    const state = this.#picture.actors.get(path)?.state ?? '';
    return json({ chart, active: activeStates(chart, state), state });
  }
}

/** The flat rows as the tree that they were. */
function treeOf({ actors, atMs }: Pick<Picture, 'actors' | 'atMs'>): ActorView {
  const below = new Map<string, ActorRow[]>();
  for (const row of actors.values()) {
    const siblings = below.get(row.parent) ?? [];
    siblings.push(row);
    below.set(row.parent, siblings);
  }
  const viewOf = (row: ActorRow, depth: number): ActorView => ({
    path: row.path,
    type: row.type,
    lifecycle: row.lifecycle,
    state: row.state,
    reason: row.reason,
    message: row.message,
    ageMs: Math.max(0, atMs - row.sinceMs),
    incarnation: row.incarnation,
    restarts: row.restarts,
    ...(row.mail === null ? {} : { mailbox: mailOf(row.mail, atMs) }),
    ...(row.error === '' ? {} : { lastError: row.error }),
    // A hostile file may name a row its own parent.
    children:
      depth >= DEPTH_MAX ? [] : (below.get(row.path) ?? []).filter((c) => c.path.length > row.path.length).map((c) => viewOf(c, depth + 1)),
  });
  const root = below.get('')?.[0];
  return root === undefined ? { ...NO_TREE, children: [...actors.values()].map((row) => viewOf(row, DEPTH_MAX)) } : viewOf(root, 0);
}
/** Levels of the tree; ours has six. */
const DEPTH_MAX = 32;
const NO_TREE: ActorView = {
  path: 'node',
  type: 'supervisor',
  lifecycle: 'starting',
  state: '',
  reason: '',
  message: '',
  ageMs: 0,
  incarnation: 1,
  restarts: 0,
  children: [],
};

function mailOf(mail: NonNullable<ActorRow['mail']>, atMs: number): NonNullable<ActorView['mailbox']> {
  const { oldestAtMs, ...rest } = mail;
  return { ...rest, oldestAgeMs: mail.depth === 0 ? 0 : Math.max(0, atMs - oldestAtMs) };
}
