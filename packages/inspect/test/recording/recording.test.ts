/** A recording of a whole node in virtual time says what the node was, at each moment of it. */

import { type ActorView, allPaths, findActor } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { describe, expect, it } from 'vitest';
import { pod, type VirtualNode, virtualNode } from '../../../../test/integration/virtualNode.ts';
import { decisionsFrame } from '../../src/feed/decisions.ts';
import { momentOf } from '../../src/feed/live.ts';
import { LIFE_FRAME } from '../../src/feed/podDetail.ts';
import { podRows } from '../../src/feed/rows.ts';
import { imageUse } from '../../src/page/words.ts';
import { RecordedAnswers } from '../../src/recording/answers.ts';
import { PastFeed } from '../../src/recording/pastFeed.ts';
import { Recording } from '../../src/recording/recording.ts';
import { RecordingWriter, type Sink, WRITE_AFTER_MS } from '../../src/recording/writer.ts';
import { inspectedOf, viewer } from '../rig.ts';

const RECORD = { flags: { record: '/var/log/node.rec' } } as const;
const SECRET = 'hunter2-planted';

interface MemorySink extends Sink {
  waitingBytes: number;
  generation: number;
  parts: Uint8Array[];
  earlier: Uint8Array[];
}
function memorySink(segmentSoftMax = 1e9): MemorySink {
  const self: MemorySink = {
    waitingBytes: 0,
    generation: 1,
    segmentSoftMax,
    parts: [],
    earlier: [],
    get segmentBytes() {
      return self.parts.reduce((n, p) => n + p.length, 0);
    },
    write(bytes) {
      self.parts.push(bytes);
      return true;
    },
    rotate() {
      self.earlier = self.parts;
      self.parts = [];
    },
  };
  return self;
}
const bytesOf = (parts: readonly Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
const read = (sink: MemorySink) => new Recording([bytesOf(sink.earlier), bytesOf(sink.parts)]);

function recorded(h: VirtualNode, sink = memorySink()) {
  return { sink, writer: new RecordingWriter(inspectedOf(h), sink) };
}
const statesOf = (root: ActorView) =>
  Object.fromEntries(
    allPaths(root).map((path) => [path, [findActor(root, path)?.lifecycle, findActor(root, path)?.state, findActor(root, path)?.restarts]]),
  );
const stateAt = (recording: Recording, atMs: number) =>
  JSON.parse(new RecordedAnswers(recording, atMs).get('/statez', {}).body) as ActorView;

describe('a recording', () => {
  it('says of each moment what the tree and the pods were then', async () => {
    await using h = await virtualNode(RECORD);
    const { sink, writer } = recorded(h);
    const seen: { atMs: number; states: object; pods: string[] }[] = [];
    const note = async () => {
      // Times are whole milliseconds: let this one pass.
      await h.advance(WRITE_AFTER_MS * 4 + 1);
      const pods = h.pods().map((p) => p.metadata.name);
      seen.push({ atMs: h.time.clock.wallMs(), states: statesOf(h.tree.state()), pods: pods.sort() });
      await h.advance(10);
    };
    await note();
    await h.run('web', pod('web'));
    await note();
    await h.run('api', pod('api'));
    h.kill('node/runtime/pleg');
    await h.advance(5_000);
    await note();
    h.kill(h.workerPath('web'));
    await h.advance(5_000);
    await note();
    h.remove('web');
    await h.until('web is gone', () => h.record('web') === undefined);
    await h.advance(2_000);
    await note();
    writer.flush();
    const recording = read(sink);
    expect(recording.figures.damagedBytes).toBe(0);
    for (const { atMs, states, pods } of seen) {
      const picture = recording.at(atMs);
      expect(statesOf(stateAt(recording, atMs))).toEqual(states);
      expect(
        podRows(picture)
          .map((p) => p.name)
          .sort(),
      ).toEqual(pods);
    }
    expect(seen[3]?.pods).toEqual(['api-n1', 'web-n1']);
  });

  it('says when a pod was Ready as the node itself does, though the clock goes on between the two', async () => {
    await using h = await virtualNode(RECORD);
    const inspected = inspectedOf(h);
    const { clock } = inspected;
    let later = 0;
    const sink = memorySink();
    const writer = new RecordingWriter({ ...inspected, clock: { ...clock, wallMs: () => clock.wallMs() + ++later } }, sink);
    await h.run('web', pod('web'));
    await h.until('it is Ready', () => inspected.history.of(h.uid('web'))?.readyAtMs !== undefined);
    const { containers, readyAtMs } = inspected.history.of(h.uid('web')) ?? {};
    await h.advance(1_000);
    writer.flush();
    const recording = read(sink);
    expect(recording.at(recording.toMs).timeline(h.uid('web'))).toMatchObject({ containers, readyAtMs });
  });

  it('answers what actorctl asks, of a node that was killed', async () => {
    await using h = await virtualNode(RECORD);
    const { sink } = recorded(h);
    await h.run('web', pod('web'));
    await h.advance(1_000);
    const uid = h.uid('web');
    await h.crash();
    const recording = read(sink);
    expect(recording.runs).toHaveLength(1);
    expect(recording.runs[0]?.stopped).toBe(false);
    const answers = new RecordedAnswers(recording, recording.toMs);
    const get = (path: string, query: Record<string, string> = {}) => answers.get(path, query);
    expect(get('/recorder', { path: `node/pods/workers/${uid}` }).body).toContain('creatingSandbox');
    expect(get('/recorder', { limit: '3' }).body.trim().split('\n')).toHaveLength(3);
    expect(get('/recorder', { path: 'node/pods/podManger' }).body).toContain('did you mean node/pods/podManager');
    const timeline = JSON.parse(get('/timeline', { pod: 'web' }).body) as {
      calls: { method: string; endMs: number }[];
      steps: { atMs: number; to: string }[];
      readyAtMs: number;
    };
    expect(timeline.calls.map((c) => c.method)).toEqual(expect.arrayContaining(['RunPodSandbox', 'CreateContainer', 'StartContainer']));
    expect(timeline.calls.filter((c) => c.method === 'StartContainer')).toHaveLength(1);
    expect(timeline.calls.every((c) => c.endMs !== null)).toBe(true);
    expect(timeline.steps.at(-1)?.to).toBe('syncing.settled');
    expect(timeline.readyAtMs).toBeGreaterThanOrEqual(timeline.steps[0]?.atMs ?? Number.POSITIVE_INFINITY);
    expect(get('/why', { pod: 'web' }).body).toContain('Running, 1 of 1 containers ready');
    expect(JSON.parse(get('/why', { pod: 'nobody' }).body)).toMatchObject({ found: false });
    expect(get('/events', { pod: uid }).body).toContain('Started');
    expect(get('/healthz').status).toBe(200);
    const chart = JSON.parse(get('/chart', { actor: `node/pods/workers/${uid}` }).body) as { active: string[]; state: string };
    expect(chart.state).toBe('syncing.settled');
    expect(chart.active.at(-1)).toMatch(/\.settled$/);
    expect(get('/logs', { pod: 'web' }).status).toBe(404);
  });

  it('names pods where a person reads them, live and afterwards: in healthz, and by which images are used', async () => {
    await using h = await virtualNode({ ...RECORD, config: { imageGCHighThresholdPercent: 85 } });
    const { sink, writer } = recorded(h);
    for (const [name, image] of [
      ['web', 'app:2'],
      ['cron', 'busybox'],
    ] as const)
      h.write(name, pod(name, { container: { image } }));
    await h.until('both run', () => h.phase('web') === 'Running' && h.phase('cron') === 'Running');
    const used = (frame: ReturnType<typeof decisionsFrame>) =>
      frame.images.flatMap((i) => (i.names.some((n) => /app:2|busybox/.test(n)) ? [imageUse(i).replace(/for .*/, 'for a while')] : []));
    const live = () => used(decisionsFrame(momentOf(inspectedOf(h))));
    // No look of the collector is needed: they are in use for as long as their containers run.
    await h.until('the collector has looked', () => live().length === 2, 600_000);
    expect(live().sort()).toEqual(['used by default/cron-n1', 'used by default/web-n1']);
    await h.advance(91_000);
    expect(live().sort()).toEqual(['used by default/cron-n1', 'used by default/web-n1']);
    const [uid, atMs] = [h.uid('web'), h.time.clock.wallMs()];
    h.remove('web');
    await h.until('web is gone', () => h.record('web') === undefined);
    await h.advance(1_000);
    expect(live().sort()).toEqual(['unused for a while', 'used by default/cron-n1']);
    writer.end();
    const recording = read(sink);
    const v = viewer();
    const joined = new PastFeed(recording, { startMs: atMs, life: LIFE_FRAME }).join(v);
    joined?.message(JSON.stringify({ t: 'watch', decisions: true }));
    joined?.message(JSON.stringify({ t: 'watch', decisions: true, atMs: recording.toMs }));
    expect(v.of('decisions').map((frame) => used(frame).sort())).toEqual([
      ['used by default/cron-n1', 'used by default/web-n1'],
      ['unused for a while', 'used by default/cron-n1'],
    ]);
    const health = new RecordedAnswers(recording, atMs).get('/healthz', { verbose: '' }).body;
    expect(health).toContain('[+]node/pods/workers/web-n1 ok');
    expect(health).not.toContain(uid);
  });

  it('begins anew in each segment, so that it is whole without the segments before', async () => {
    await using h = await virtualNode(RECORD);
    const { sink } = recorded(h, memorySink(300_000));
    let rotated = 0;
    const { rotate } = sink;
    sink.rotate = () => {
      rotated += 1;
      rotate();
    };
    await h.run('web', pod('web'));
    await h.until('it was rotated twice', () => rotated >= 2, 24 * 3_600_000);
    await h.advance(1_000);
    // The newest change of state may not be written yet.
    const latest = () => new Recording([bytesOf(sink.parts)]);
    const shown = (of: Recording) => JSON.stringify(statesOf(stateAt(of, of.toMs)));
    await h.until('all is written', () => shown(latest()) === JSON.stringify(statesOf(h.tree.state())));
    const last = latest();
    expect(last.runs).toHaveLength(1);
    expect(podRows(last.at(last.toMs))[0]?.phase).toBe('Running');
    expect(last.at(last.toMs).chart(h.workerPath('web'))).not.toBeNull();
    // Both segments are one life.
    expect(read(sink).runs).toHaveLength(1);
  });

  it('leaves entries out while the disk is too slow, and says how many', async () => {
    await using h = await virtualNode(RECORD);
    const { sink, writer } = recorded(h);
    await h.advance(1_000);
    sink.waitingBytes = 1e9;
    await h.run('web', pod('web'));
    await h.advance(1_000);
    expect(writer.figures.lost).toBeGreaterThan(10);
    sink.waitingBytes = 0;
    await h.run('api', pod('api'));
    await h.advance(6_000);
    const recording = read(sink);
    expect(recording.figures.lost).toBe(writer.figures.lost);
    expect(new RecordedAnswers(recording, recording.toMs).get('/recorder', {}).body).toContain('entries were not written');
    expect(statesOf(stateAt(recording, recording.toMs))).toEqual(statesOf(h.tree.state()));
  });

  it('says whether its daemon stopped in order, was killed, and what came after', async () => {
    await using h = await virtualNode(RECORD);
    const first = recorded(h);
    await h.advance(1_000);
    await h.restart();
    const second = recorded(h);
    await h.advance(1_000);
    second.writer.end();
    const recording = new Recording([bytesOf([...first.sink.parts, ...second.sink.parts])]);
    expect(recording.runs.map((r) => r.stopped)).toEqual([false, true]);
    const lines = new RecordedAnswers(recording, recording.toMs).get('/recorder', { path: 'node' }).body;
    expect(lines).toContain('the daemon before this one did not stop in order');
    expect(lines).toContain('the daemon stopped in order');
    // The moment before the second began belongs to the first.
    expect(recording.at((recording.runs[1]?.fromMs ?? 0) - 1).run).toBe(recording.runs[0]);
  });

  it('shows the page any moment, by the frames of a live node', async () => {
    await using h = await virtualNode(RECORD);
    const { sink } = recorded(h);
    await h.advance(1_000);
    const beforeMs = h.time.clock.wallMs();
    await h.advance(1_000);
    await h.run('web', pod('web'));
    await h.advance(1_000);
    const recording = read(sink);
    const feed = new PastFeed(recording, { startMs: recording.toMs, life: LIFE_FRAME });
    const v = viewer();
    const joined = feed.join(v);
    expect(v.of('hello')[0]?.recording?.runs).toHaveLength(1);
    expect(v.of('snapshot')[0]?.pods.map((p) => p.name)).toEqual(['web-n1']);
    joined?.message(JSON.stringify({ t: 'watch', pod: h.uid('web'), actor: h.workerPath('web') }));
    expect(v.of('pod')[0]?.pod?.phase).toBe('Running');
    expect(v.of('pod')[0]?.pod?.history.calls.length).toBeGreaterThan(3);
    expect(v.of('actor')[0]?.live?.value).toBe('syncing.settled');
    expect(v.of('chart')[0]?.chart?.root.states.length).toBeGreaterThan(3);
    joined?.message(JSON.stringify({ t: 'watch', actor: h.workerPath('web'), atMs: beforeMs }));
    expect(v.of('snapshot')[1]).toMatchObject({ atMs: beforeMs, pods: [] });
    expect(v.of('actor')[1]?.live).toBeNull();
    joined?.message('{"t":"watch","atMs":"x"}');
    joined?.message('nonsense');
    expect(feed.figures.malformed).toBe(1);
    expect(v.texts.length).toBeGreaterThan(6);
  });

  it('holds no secret of a pod', async () => {
    await using h = await virtualNode(RECORD);
    const { sink, writer } = recorded(h);
    const manifest = pod('web', {
      spec: {
        containers: [
          { name: 'main', image: 'hollow/run', command: ['sh', '-c', SECRET], args: [SECRET], env: [{ name: 'message', value: SECRET }] },
        ],
      },
    }) as { metadata: Record<string, unknown> };
    manifest.metadata.annotations = { reason: SECRET };
    manifest.metadata.labels = { name: SECRET };
    h.write('web', manifest);
    await h.until('web is known', () => h.record('web') !== undefined);
    await h.advance(10_000);
    h.remove('web');
    await h.advance(60_000);
    writer.end();
    const bytes = Buffer.concat(sink.parts);
    expect(bytes.includes('web-n1')).toBe(true);
    expect(bytes.includes(SECRET)).toBe(false);
  });

  it('holds no word that a runtime repeats of what an earlier daemon gave it', async () => {
    await using h = await virtualNode(RECORD);
    const refusal = { kind: 'refuse', code: 2, details: `exec: "${SECRET}": executable file not found` } as const;
    h.faults.fault = (method) => (method === 'RunPodSandbox' ? refusal : undefined);
    const { sink, writer } = recorded(h);
    h.write('web', pod('web', { container: { command: [SECRET] } }));
    await h.advance(20_000);
    writer.end();
    const bytes = Buffer.concat(sink.parts);
    expect([bytes.includes('executable file not found'), bytes.includes(SECRET)]).toEqual([true, false]);
  });
});
