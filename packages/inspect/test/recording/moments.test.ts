/**
 * A recording says of each moment what the node said at that moment: every answer of the admin socket, and the frames of the
 * page, of nodes to which random things happen, are compared with those of their recordings.
 */

import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { allPaths } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { PAGE_PATHS } from '@actorlet/shown/src/moment/pages.ts';
import { drawPod } from '@actorlet/sim/src/nemesis/workload/pods.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { expect, it } from 'vitest';
import { create, drop, inApi } from '../../../../test/integration/cluster/clusterPods.ts';
import { MANIFESTS, pod, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../../../../test/integration/virtualNode.ts';
import { rotating } from '../../../../test/rotation.ts';
import { seededRng } from '../../../../test/supervision/fakePorts.ts';
import { decisionsFrame } from '../../src/feed/decisions.ts';
import type { ServerFrame } from '../../src/feed/frames.ts';
import { momentOf } from '../../src/feed/live.ts';
import { LIFE_FRAME, podFrame } from '../../src/feed/podDetail.ts';
import { problemsFrame } from '../../src/feed/problems.ts';
import { allActorRows, podRows } from '../../src/feed/rows.ts';
import { RecordedAnswers } from '../../src/recording/answers.ts';
import { PastFeed } from '../../src/recording/pastFeed.ts';
import { Recording } from '../../src/recording/recording.ts';
import { RecordingWriter, type Sink } from '../../src/recording/writer.ts';
import { inspectedOf, viewer } from '../rig.ts';

/** Moments of one node. */
const OF_ONE_NODE = 25;
/** Odd nodes are of a cluster, even ones are not: each commit takes one. */
const NODES = [1, 2, 3, 4, 5, 6, 7, 8];
const LIVES = ['', 'run=1s,exit=1', 'run=5s,exit=3', 'run=3s,exit=0', 'term=ignore', 'start=2s'];
const NAMES = ['web', 'api', 'db', 'job'];

type Handler = Parameters<Ports['net']['serveHttp']>[1];
type Ask = (path: string, query: Record<string, string>) => Promise<{ status: number; body: string }>;

/** A node that is recorded, and what it answers on its admin socket. */
async function recordedNode(o: VirtualNodeOptions): Promise<{ h: VirtualNode; ask: Ask; parts: Uint8Array[]; writer: RecordingWriter }> {
  let admin: Handler | undefined;
  const ports = (made: Ports): Ports => ({
    ...made,
    net: {
      ...made.net,
      serveHttp(at, handler) {
        if ('socketPath' in at) admin = handler;
        return made.net.serveHttp(at, handler);
      },
    },
  });
  const h = await virtualNode({ ...o, flags: { record: '/node.rec', faultInjection: true, deathsMax: 20, ...o.flags }, ports });
  const parts: Uint8Array[] = [];
  const sink: Sink = {
    ...{ waitingBytes: 0, segmentBytes: 0, generation: 1, segmentSoftMax: 1e9 },
    write: (bytes) => parts.push(bytes) > 0,
    rotate: () => undefined,
  };
  const writer = new RecordingWriter(inspectedOf(h), sink);
  const { signal } = new AbortController();
  const ask: Ask = async (path, query) => {
    const reply = await admin?.({ method: 'GET', path, query: new URLSearchParams(query), headers: {}, body: new Uint8Array(), signal });
    return { status: reply?.status ?? 0, body: String(reply?.body) };
  };
  return { h, ask, parts, writer };
}

/** What is asked of each node at each moment. `charts`: of every so many-th actor. */
function questions(h: VirtualNode, charts = 1): [string, Record<string, string>][] {
  const pods = [...(h.tree.registry.read(podsView)?.value.records ?? [])];
  const uids = pods.map(([uid]) => uid);
  const names = [...new Set([...pods.map(([, r]) => r.pod.metadata.name), ...NAMES])];
  return [
    ['/statez', {}],
    ['/statez', { text: '' }],
    ['/pods', {}],
    ['/healthz', {}],
    ['/healthz', { verbose: '' }],
    ['/healthz', { verbose: '', json: '' }],
    ['/events', {}],
    ['/deaths', {}],
    ['/disagreements', {}],
    ['/recorder', { path: 'node/pods', limit: '50' }],
    ['/why', { pod: 'node' }],
    ['/why', { pod: 'broken.yaml' }],
    ['/why', { pod: 'nobody' }],
    ...names.flatMap((name): [string, Record<string, string>][] => [
      ['/why', { pod: name }],
      ['/events', { pod: name }],
    ]),
    ...uids.flatMap((uid): [string, Record<string, string>][] => [
      ['/why', { pod: uid }],
      ['/timeline', { pod: uid }],
    ]),
    ...allPaths(h.tree.state())
      .filter((_, i) => i % charts === 0)
      .map((actor): [string, Record<string, string>] => ['/chart', { actor }]),
  ];
}

/** The labels of pods are in no recording, and its own notes and numbers in no daemon. */
function comparable(path: string, { status, body }: { status: number; body: string }): unknown {
  const text = body.trim();
  if (!text.startsWith('{')) {
    return { status, lines: text.split('\n').filter((line) => !line.includes(' recording: ') && !line.includes('entries overwritten')) };
  }
  const value = JSON.parse(text) as { pods?: object[] };
  if (path !== '/pods' || value.pods === undefined) return { status, value };
  return { status, value: { ...value, pods: value.pods.map(({ labels: _, ...p }: { labels?: object }) => p) } };
}
function comparableFrame(frame: ServerFrame): unknown {
  const { notes: _, ...rest } = JSON.parse(JSON.stringify(frame)) as { notes?: unknown; pod?: { messages?: unknown } | null };
  if (frame.t !== 'pod' || !rest.pod) return rest;
  const { messages: __, ...pod } = rest.pod;
  return { ...rest, pod };
}

/** The frames that a page is sent, worked out from the running node. */
function framesOf(h: VirtualNode, uid: string): unknown[] {
  const now = momentOf(inspectedOf(h));
  const events: ServerFrame = { t: 'events', events: (now.read(eventsView) ?? []).slice(-500) };
  return [
    { actors: JSON.parse(JSON.stringify(allActorRows(now))) as unknown, pods: JSON.parse(JSON.stringify(podRows(now))) as unknown },
    ...[problemsFrame(now), podFrame(now, uid), events, decisionsFrame(now)].map(comparableFrame),
  ];
}
function recordedFrames(recording: Recording, atMs: number, uid: string): unknown[] {
  const v = viewer();
  const joined = new PastFeed(recording, { startMs: atMs, life: LIFE_FRAME }).join(v);
  joined?.message(JSON.stringify({ t: 'watch', pod: uid, events: true, decisions: true }));
  const snapshot = v.of('snapshot')[0];
  const of = (['problems', 'pod', 'events', 'decisions'] as const).map((t) => v.of(t)[0]);
  return [{ actors: snapshot?.actors, pods: snapshot?.pods }, ...of.map((frame) => (frame === undefined ? null : comparableFrame(frame)))];
}

interface Noted {
  atMs: number;
  answers: { path: string; query: Record<string, string>; said: unknown }[];
  uid: string;
  frames: unknown[];
}

async function note(h: VirtualNode, ask: Ask): Promise<Noted> {
  const answers: Noted['answers'] = [];
  const uid = [...(h.tree.registry.read(podsView)?.value.records.keys() ?? [])].at(-1) ?? 'none';
  const atMs = h.time.clock.wallMs();
  for (const [path, query] of questions(h, 7)) answers.push({ path, query, said: comparable(path, await ask(path, query)) });
  return { atMs, answers, uid, frames: framesOf(h, uid) };
}

/** One of the things that may happen to a node. */
function happen(h: VirtualNode, next: () => number, cluster: boolean): void {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  const name = pick(NAMES);
  const life = pick(LIVES);
  const made = { ...(life === '' ? {} : { life }), container: { image: pick(['busybox:1', 'missing:1', 'app:2']) } };
  const things: (() => void)[] = [
    () => h.write(name, pod(name, made)),
    // With init containers, sidecars, probes, hooks and volumes.
    () => h.write(name, drawPod(simRng(`${next()}`), { name, rev: 1, full: next() < 0.3 }).manifest),
    () => (h.fs.has(`${MANIFESTS}/${name}.json`) ? h.remove(name) : undefined),
    () => h.fs.put('/manifests/broken.yaml', next() < 0.5 ? 'kind: Pod\nspec: [' : 'apiVersion: v1\nkind: Pod\n'),
    () => {
      h.faults.away = !h.faults.away;
    },
    () => {
      h.faults.latencyMs = next() < 0.5 ? { StartContainer: 4_000, RunPodSandbox: 2_500 } : {};
    },
    () => {
      const refused = { kind: 'refuse', code: 2, details: 'no such image' } as const;
      h.faults.fault = (method) => (next() < 0.3 && method === 'PullImage' ? refused : undefined);
    },
    () => void h.kill(pick(allPaths(h.tree.state()).filter((path) => path !== 'node'))),
    ...(cluster
      ? [
          () => void (inApi(h, name) === undefined ? create(h, name, made) : drop(h, `pods/${name}`, 1)),
          () => {
            const refuse = { status: 500 };
            const away = next() < 0.5;
            h.kube.trouble.verdict = () => ({ delayMs: 0, ...(away ? { refuse } : {}) });
          },
        ]
      : []),
  ];
  pick(things)();
}

/** Where two values differ first; '' where they do not. */
function difference(live: unknown, recorded: unknown, at: string): string {
  if (Object.is(live, recorded)) return '';
  if (typeof recorded === 'string' && recorded.includes('(what it printed is in no recording)')) return '';
  // Times of the monotonic clock are kept to the microsecond.
  if (typeof live === 'number' && typeof recorded === 'number' && Math.abs(live - recorded) < 0.01) return '';
  if (typeof live !== 'object' || typeof recorded !== 'object' || live === null || recorded === null)
    return `${at}: live ${JSON.stringify(live)}, recorded ${JSON.stringify(recorded)}`;
  const keys = [...new Set([...Object.keys(live), ...Object.keys(recorded)])];
  return keys.map((key) => difference(Reflect.get(live, key), Reflect.get(recorded, key), `${at}.${key}`)).find((d) => d !== '') ?? '';
}

async function play(seed: number): Promise<{ compared: number; differences: string[] }> {
  const cluster = seed % 2 === 1;
  const rng = seededRng(seed);
  const next = () => rng.next();
  const { h, ask, parts, writer } = await recordedNode({ seed, cluster, config: { imageGCHighThresholdPercent: 85 } });
  await using _ = h;
  const noted: Noted[] = [];
  for (let n = 0; n < OF_ONE_NODE; n++) {
    for (let m = Math.floor(next() * 3); m >= 0; m--) happen(h, next, cluster);
    // Often in the middle of something.
    await h.advance(next() < 0.4 ? Math.ceil(next() * 300) : Math.ceil(next() ** 3 * 90_000));
    noted.push(await note(h, ask));
    // Times are whole milliseconds: let this one pass.
    await h.advance(1);
  }
  writer.end();
  const recording = new Recording([new Uint8Array(Buffer.concat(parts))]);
  expect(recording.figures).toMatchObject({ damagedBytes: 0, lost: 0 });
  const differences: string[] = [];
  for (const { atMs, answers, uid, frames } of noted) {
    const past = new RecordedAnswers(recording, atMs);
    const differs = (what: string, live: unknown, recorded: unknown): void => {
      const where = difference(live, recorded, '');
      if (where !== '') differences.push(`seed ${seed}, ${new Date(atMs).toISOString()}, ${what} ${where}`);
    };
    for (const { path, query, said } of answers) differs(`${path} ${JSON.stringify(query)}`, said, comparable(path, past.get(path, query)));
    recordedFrames(recording, atMs, uid).forEach((frame, i) => {
      differs(`frame ${i}`, frames[i], frame);
    });
  }
  return { compared: noted.length, differences };
}

it('asks every page that there is', async () => {
  await using h = await virtualNode({ flags: { record: '/node.rec' } });
  expect([...new Set(questions(h).map(([path]) => path)), '/timeline'].sort()).toEqual([...PAGE_PATHS].sort());
});

it.each(rotating('recorded nodes', NODES, NODES.length))(
  'node %i: no answer differs from that of its recording',
  async (seed) => {
    const { compared, differences } = await play(seed);
    expect(compared).toBe(OF_ONE_NODE);
    expect(differences.slice(0, 20), `${differences.length} differences`).toEqual([]);
  },
  120_000,
);
