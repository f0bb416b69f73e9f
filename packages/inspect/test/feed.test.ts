import { describe, expect, it } from 'vitest';
import { pod, virtualNode } from '../../../test/integration/virtualNode.ts';
import type { ActorRow, ServerFrame } from '../src/feed/frames.ts';
import { Hub } from '../src/feed/hub.ts';
import { BACKLOG_BYTES_MAX, VIEWERS_MAX } from '../src/feed/viewer.ts';
import { attach, hubOf, INSPECT, inspectedOf, viewer, watch } from './rig.ts';

/** The tree as a viewer knows it after all its frames. */
function actorsOf(frames: readonly ServerFrame[]): Map<string, ActorRow> {
  let known = new Map<string, ActorRow>();
  for (const f of frames) {
    if (f.t === 'snapshot') known = new Map(f.actors.map((a) => [a.path, a]));
    if (f.t !== 'delta') continue;
    for (const a of f.actors) known.set(a.path, a);
    for (const path of f.goneActors) known.delete(path);
  }
  return known;
}

describe('the feed of the inspection page', () => {
  it('says of the actor that has a link that it is not well while the link is lost, and no longer', async () => {
    await using h = await virtualNode(INSPECT);
    const v = viewer();
    attach(hubOf(h), v);
    const cri = () => actorsOf(v.frames).get('node/runtime/cri');
    await h.until('the runtime is there', () => cri()?.state.startsWith('ready') === true);
    h.faults.away = true;
    await h.until('its actor is not well', () => cri()?.lost === true);
    expect(cri()).toMatchObject({ ok: false, error: expect.stringContaining('does not answer') });
    expect(v.of('problems').at(-1)).toMatchObject({ count: 1, node: [expect.stringContaining('does not answer')] });
    h.faults.away = false;
    await h.until('it is well again', () => cri()?.ok === true && cri()?.lost === undefined);
  });

  it('gives Kubernetes’ events to those who watch them', async () => {
    await using h = await virtualNode(INSPECT);
    const v = viewer();
    const joined = attach(hubOf(h), v);
    await h.run('web', pod('web'));
    expect(v.of('events')).toEqual([]);
    watch(joined, { events: true });
    await h.advance(200);
    expect(
      v
        .of('events')
        .at(-1)
        ?.events.map((e) => e.reason),
    ).toContain('Started');
  });

  it('serialises nothing and sets no timer while nobody is attached', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    await h.run('web', pod('web'));
    await h.advance(60_000);
    expect(hub.figures.serialised).toBe(0);
    const v = viewer();
    attach(hub, v).leave();
    const { serialised } = hub.figures;
    h.remove('web');
    await h.advance(60_000);
    expect(hub.figures.serialised).toBe(serialised);
  });

  it('gives the tree at once and every change within 150 ms, pods by their names', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    const v = viewer();
    attach(hub, v);
    expect(v.frames.map((f) => f.t)).toEqual(['hello', 'snapshot']);
    expect(actorsOf(v.frames).get('node/pods/podManager')?.state).toBe('ready');
    await h.run('web', pod('web'));
    await h.advance(150);
    const worker = actorsOf(v.frames).get(h.workerPath('web'));
    expect(worker?.name).toBe('web-n1');
    expect(worker?.state).toBe(h.actor(h.workerPath('web'))?.state);
    await h.advance(2_000);
    expect([...actorsOf(v.frames).keys()].sort()).toEqual([...pathsOf(h.tree.state())].sort());
    h.remove('web');
    await h.until('web is gone', () => h.record('web') === undefined);
    await h.advance(1_100);
    expect([...actorsOf(v.frames).keys()].sort()).toEqual([...pathsOf(h.tree.state())].sort());
  });

  it('numbers its deltas without a gap', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    const v = viewer();
    attach(hub, v);
    await h.run('web', pod('web'));
    await h.advance(5_000);
    const seqs = v.of('delta').map((d) => d.seq);
    expect(seqs.length).toBeGreaterThan(3);
    expect(seqs).toEqual(seqs.map((_, i) => (seqs[0] ?? 0) + i));
    const late = viewer();
    attach(hub, late);
    expect(late.of('snapshot')[0]?.seq).toBe(seqs.at(-1));
  });

  it('leaves a slow viewer out and gives it a fresh snapshot once it has caught up', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    const [slow, quick] = [viewer(), viewer()];
    attach(hub, slow);
    attach(hub, quick);
    slow.stuckBytes = BACKLOG_BYTES_MAX + 1;
    await h.run('web', pod('web'));
    await h.advance(1_100);
    expect(quick.of('delta').length).toBeGreaterThan(0);
    expect(slow.of('delta')).toEqual([]);
    expect(hub.figures.skipped).toBeGreaterThan(0);
    slow.stuckBytes = 0;
    await h.advance(1_100);
    expect(slow.of('snapshot')).toHaveLength(2);
    expect(actorsOf(slow.frames).has(h.workerPath('web'))).toBe(true);
  });

  it('lets go of a viewer that never reads, and of no more viewers than its limit', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    const stuck = viewer();
    attach(hub, stuck);
    stuck.stuckBytes = BACKLOG_BYTES_MAX + 1;
    h.write('web', pod('web'));
    await h.advance(40_000);
    expect(stuck.closed).toBe('it did not read what it was sent');
    for (let n = 0; n < VIEWERS_MAX; n++) attach(hub, viewer());
    expect(hub.join(viewer())).toBeNull();
  });

  it('drops and counts what is no request of a viewer; nothing of it reaches an actor', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    const v = viewer();
    const joined = attach(hub, v);
    const before = inspectedOf(h).recorder.recorded;
    const bad = [
      '',
      '{',
      '[]',
      'null',
      '{"t":"event","to":"node/pods/podManager","event":{"type":"pods.op"}}',
      '{"t":"watch","actor":7}',
      `{"t":"watch","actor":"${'x'.repeat(5000)}"}`,
    ];
    for (const text of bad) joined.message(text);
    expect(hub.figures.malformed).toBe(bad.length);
    expect(inspectedOf(h).recorder.recorded).toBe(before);
    expect(v.frames.map((f) => f.t)).toEqual(['hello', 'snapshot']);
  });
});

describe('viewers that ask without end', () => {
  it('are answered ten times a second together, with what each asked for last', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    const viewers = Array.from({ length: 4 }, () => viewer());
    const joined = viewers.map((v) => attach(hub, v));
    await h.advance(1_000);
    const before = hub.figures.serialised;
    for (let n = 0; n < 1_000; n++) for (const j of joined) watch(j, { actor: n % 2 === 0 ? 'node' : 'node/pods', decisions: true });
    await h.advance(100);
    // An actor's chart and frame, and the decisions, for each of them: twice.
    expect(hub.figures.serialised - before).toBeLessThanOrEqual(2 * 3 * viewers.length + 2);
    for (const v of viewers) expect(v.of('actor').at(-1)?.path).toBe('node/pods');
  });

  it('start the process that reads figures of the host once a second at most', async () => {
    await using h = await virtualNode(INSPECT);
    let [begun, live] = [0, 0];
    const hub = new Hub(inspectedOf(h), () => {
      begun += 1;
      live += 1;
      return {
        [Symbol.dispose]() {
          live -= 1;
        },
      };
    });
    for (let n = 0; n < 100; n++) {
      const joined = attach(hub, viewer());
      watch(joined, { host: true });
      await h.advance(50);
      joined.leave();
      expect(live).toBe(0);
    }
    expect(begun).toBeGreaterThan(3);
    expect(begun).toBeLessThanOrEqual(6);
    const stays = attach(hub, viewer());
    watch(stays, { host: true });
    await h.advance(2_100);
    expect(live).toBe(1);
    stays.leave();
    expect(live).toBe(0);
  });
});

describe('a watched actor', () => {
  it('shows its chart, the state that it is in, the transitions it took and what it would take next', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    await h.run('web', pod('web'));
    await h.advance(5_000);
    const v = viewer();
    const joined = attach(hub, v);
    watch(joined, { actor: h.workerPath('web') });
    expect(v.of('chart')[0]?.chart?.id).toBe('podWorker');
    const first = v.of('actor')[0];
    expect(first?.live?.active).toContain('podWorker.syncing.settled');
    expect(first?.live?.next.map((n) => n.event)).toContain('pod.kill');
    h.remove('web');
    await h.advance(2_000);
    const steps = v.of('actor').flatMap((f) => f.steps);
    const killed = steps.find((s) => s.event === 'pod.kill');
    expect(killed?.transitions).toEqual(['podWorker.syncing|pod.kill|0']);
  });

  it('is none where its name is that of what every object has; other viewers come, see and go', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    await h.run('web', pod('web'));
    const bad = attach(hub, viewer());
    const v = viewer();
    const good = attach(hub, v);
    for (const child of ['constructor', '__proto__', 'toString']) {
      watch(bad, { actor: `${h.workerPath('web')}>${child}` });
      await h.advance(2_000);
      v.frames.length = 0;
      watch(good, { actor: h.workerPath('web') });
      await h.advance(2_000);
      expect(v.of('actor').at(-1)?.live?.status).toMatch(/^(active|asleep)$/);
    }
    good.leave();
    expect(hub.figures.viewers).toBe(1);
  });

  it('is followed into a restart, and costs nothing once nobody watches it', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    const v = viewer();
    const joined = attach(hub, v);
    watch(joined, { actor: 'node/runtime/pleg' });
    const before = v.of('actor').length;
    h.kill('node/runtime/pleg');
    await h.advance(5_000);
    expect(v.of('actor').length).toBeGreaterThan(before);
    expect(v.of('actor').at(-1)?.live?.status).toBe('active');
    expect(
      v
        .of('actor')
        .at(-1)
        ?.history.some((e) => e.kind === 'child.exited' && e.what === 'killed by test'),
    ).toBe(true);
    watch(joined, {});
    const after = v.of('actor').length;
    await h.advance(60_000);
    expect(v.of('actor').length).toBe(after);
  });
});

describe('a watched pod', () => {
  it('shows its phases, each call of the runtime as a span, and the chain of causes', async () => {
    await using h = await virtualNode(INSPECT);
    const hub = hubOf(h);
    const v = viewer();
    const joined = attach(hub, v);
    await h.run('web', pod('web'));
    watch(joined, { pod: h.uid('web') });
    await h.advance(2_000);
    const told = v.of('pod').at(-1)?.pod;
    expect(told?.name).toBe('web-n1');
    expect(told?.history.steps.map((s) => s.to)).toContain('syncing.creatingSandbox');
    const spans = told?.history.calls ?? [];
    const ended = spans.filter((c) => c.endMs !== null && c.error === '').map((c) => c.method);
    expect(ended).toEqual(expect.arrayContaining(['RunPodSandbox', 'CreateContainer', 'StartContainer']));
    expect(told?.history.readyAtMs).toBeGreaterThanOrEqual(spans.at(-1)?.startMs ?? Number.POSITIVE_INFINITY);
    expect(told?.causes.length).toBeGreaterThan(0);
    expect(told?.messages.some((m) => m.from !== '' && m.path.startsWith('node/'))).toBe(true);
    // It stays readable for a while after its end.
    const uid = h.uid('web');
    h.remove('web');
    await h.until('web is gone', () => h.record('web') === undefined);
    await h.advance(1_100);
    expect(v.of('pod').at(-1)?.uid).toBe(uid);
    expect(
      v
        .of('pod')
        .at(-1)
        ?.pod?.history.steps.map((s) => s.to),
    ).toContain('finished');
  });
});

function* pathsOf(state: { path: string; children: readonly { path: string }[] }): Generator<string> {
  yield state.path;
  for (const child of state.children) yield* pathsOf(child as typeof state);
}
