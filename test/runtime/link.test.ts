/** The CRI link: does it find, watch and lose the runtime; does it fence what changes a pod. */
import { afterEach, describe, expect, it } from 'vitest';
import { criCall, criClient } from '../../src/actors/runtime/client.ts';
import { type CriEvent, type CriResult, criAddr, criView, runtimeBusy } from '../../src/machines/runtime/cri/messages.ts';
import type { ReplyTo } from '../../src/machines/supervision/address.ts';
import type { PodSandboxConfig } from '../../src/machines/wire/cri.ts';
import { CriError, type Host } from '../../src/ports/ports.ts';
import { fakePorts } from '../supervision/fakePorts.ts';
import { type FakeCri, fail, fakeCri, healthy } from './fakeCri.ts';
import { type World, world } from './world.ts';

let w: World;
afterEach(() => w.stop());
const link = () => w.tree.registry.read(criView)?.value;
const client = () => criClient(w.tree.registry);
const stopOf = (id: string) => criCall('StopContainer', { containerId: id, timeout: 5 });

describe('the CRI link', () => {
  it('asks for the version, the cgroup driver and the status, then for the status every five seconds', async () => {
    w = await world({ only: ['cri'] });
    expect(w.cri.calls.map((c) => c.method)).toEqual(['Version', 'RuntimeConfig', 'Status']);
    expect(link()).toMatchObject({ state: 'ready', runtimeName: 'fake', runtimeReady: true, networkReady: true });
    await w.ports.advance(10_000);
    expect(w.cri.of('Status')).toHaveLength(3);
  });

  it.each([
    ['systemd', 'SYSTEMD', 'systemd'],
    ['cgroupfs', 'CGROUPFS', 'cgroupfs'],
  ])('says that the runtime has the cgroup driver %s', async (_, cgroupDriver, said) => {
    const cri = healthy(fakeCri());
    cri.answer('RuntimeConfig', () => ({ linux: { cgroupDriver } }));
    w = await world({ cri, only: ['cri'] });
    expect(link()).toMatchObject({ state: 'ready', cgroupDriver: said });
  });

  it('takes a runtime that does not implement RuntimeConfig, and none whose answer is unknown', async () => {
    const cri = healthy(fakeCri());
    cri.answer('RuntimeConfig', () => fail(12, 'unknown method RuntimeConfig'));
    w = await world({ cri, only: ['cri'] });
    expect(link()).toMatchObject({ state: 'ready', cgroupDriver: null });
    await w.stop();
    cri.answer('RuntimeConfig', () => ({ linux: { cgroupDriver: 'OTHER' } }));
    w = await world({ cri, only: ['cri'] });
    expect(link()).toMatchObject({ state: 'lost', reason: 'runtime returned an unknown cgroup driver "OTHER"' });
  });

  it('is lost with the error as its reason, dials again with growing waits, and comes back by itself', async () => {
    const cri = fakeCri();
    cri.answer('Version', () => fail(14, 'connect ENOENT /run/x.sock'));
    w = await world({ cri, only: ['cri'] });
    expect(link()).toMatchObject({ state: 'lost', runtimeReady: false });
    expect(link()?.reason).toContain('connect ENOENT /run/x.sock');
    await w.ports.advance(100 + 200 + 250);
    expect(cri.of('Version')).toHaveLength(4);
    healthy(cri);
    await w.ports.advance(250);
    expect(link()).toMatchObject({ state: 'ready' });
  });

  it('is asked again soon while its network is not ready', async () => {
    const cri = fakeCri();
    healthy(cri);
    const status = (ready: boolean) => ({
      status: {
        conditions: ['RuntimeReady', 'NetworkReady'].map((type) => ({
          type,
          status: type === 'RuntimeReady' || ready,
          reason: '',
          message: '',
        })),
      },
      info: {},
    });
    cri.answer('Status', () => status(false));
    w = await world({ cri, only: ['cri'] });
    expect(link()).toMatchObject({ state: 'ready', networkReady: false });
    cri.answer('Status', () => status(true));
    await w.ports.advance(500);
    expect(link()).toMatchObject({ networkReady: true });
    const asked = cri.of('Status').length;
    await w.ports.advance(4_900);
    expect(cri.of('Status')).toHaveLength(asked);
  });

  it('is lost with an error in the log, again every five minutes while that lasts, and once when it is back', async () => {
    w = await world({ only: ['cri'] });
    const said = () => w.ports.lines.filter((l) => l.msg.startsWith('the container runtime')).map((l) => [l.level, l.fields.lostFor]);
    expect(said()).toEqual([['info', undefined]]);
    for (const method of ['Version', 'Status'] as const) w.cri.answer(method, () => fail(14, 'connect ENOENT /run/x.sock'));
    await w.ports.advance(60_000);
    expect(said().slice(1)).toEqual([['error', '0ms']]);
    await w.ports.advance(600_000);
    expect(said().slice(1)).toEqual([
      ['error', '0ms'],
      ['error', expect.stringMatching(/^5m/)],
      ['error', expect.stringMatching(/^10m/)],
    ]);
    healthy(w.cri);
    await w.ports.advance(5_000);
    expect(said().at(-1)).toEqual(['info', expect.stringMatching(/^10m/)]);
    await w.ports.advance(60_000);
    expect(said()).toHaveLength(5);
  });

  it('is lost when a status poll is not answered, and stays usable for calls', async () => {
    w = await world({ only: ['cri'] });
    w.cri.answer('Status', () => fail(4, 'Deadline exceeded'));
    await w.ports.advance(5000);
    expect(link()?.state).toBe('lost');
    w.cri.answer('ListContainers', () => ({ containers: [] }));
    const answer = client().read('ListContainers', {});
    await w.ports.settle();
    await expect(answer).resolves.toEqual({ containers: [] });
  });

  it('shows a runtime that says it is not ready, with its words', async () => {
    const cri = healthy(fakeCri());
    cri.answer('Status', () => ({
      status: {
        conditions: [
          { type: 'RuntimeReady', status: true, reason: '', message: '' },
          { type: 'NetworkReady', status: false, reason: 'NoCni', message: 'no config' },
        ],
      },
      info: {},
    }));
    w = await world({ cri, only: ['cri'] });
    expect(link()).toMatchObject({ state: 'ready', networkReady: false, networkReason: 'NoCni: no config' });
  });

  it('looks at once when a call finds the connection gone', async () => {
    w = await world({ only: ['cri'] });
    w.cri.answer('ListContainers', () => fail(14, 'No connection established'));
    w.cri.answer('Status', () => fail(14, 'No connection established'));
    const answer = client().read('ListContainers', {});
    answer.catch(() => {});
    await w.ports.settle();
    await expect(answer).rejects.toBeInstanceOf(CriError);
    expect(link()?.state).toBe('lost');
  });

  it('runs reads at once, and acts of one pod one after the other', async () => {
    w = await world({ only: ['cri'] });
    const first = client().act('u', 1, [stopOf('a'), stopOf('b')]);
    const second = client().act('u', 1, [criCall('RemoveContainer', { containerId: 'c' })]);
    const other = client().act('v', 1, [stopOf('d')]);
    await w.ports.settle();
    const asked = () => [...w.cri.of('StopContainer'), ...w.cri.of('RemoveContainer')];
    const ids = () => asked().map((c) => (c.request as { containerId: string }).containerId);
    expect(ids()).toEqual(['a', 'b', 'd']);
    const [a, b, d] = w.cri.of('StopContainer');
    expect(a?.timeoutMs).toBe(125_000);
    a?.resolve({});
    await w.ports.settle();
    expect(ids()).toEqual(['a', 'b', 'd']);
    b?.reject({ code: 2, details: 'busy' });
    await w.ports.settle();
    expect(ids()).toEqual(['a', 'b', 'd', 'c']);
    expect((await first).map((r) => r.ok)).toEqual([true, false]);
    asked()[3]?.resolve({});
    d?.resolve({});
    await w.ports.settle();
    expect(await second).toEqual([{ ok: true, value: {} }]);
    expect((await other)[0]?.ok).toBe(true);
  });

  it('asks for so many starts at once, and lets hung ones hold up the others for two seconds only', async () => {
    w = await world({ only: ['cri'] });
    const abort = new AbortController();
    const start = (uid: string, signal?: AbortSignal) =>
      client().act(uid, 1, [criCall('StartContainer', { containerId: uid })], signal === undefined ? {} : { signal });
    const acts = ['a', 'b', 'c', 'd', 'e', 'f'].map((uid) => start(uid));
    const givesUp = start('g', abort.signal);
    await w.ports.settle();
    const ids = () => w.cri.of('StartContainer').map((c) => (c.request as { containerId: string }).containerId);
    expect(ids()).toEqual(['a', 'b', 'c', 'd']);
    const busy = () => w.tree.registry.read(runtimeBusy)?.value;
    expect(busy()).toBe(true);
    w.cri.of('StartContainer')[2]?.resolve({});
    await w.ports.settle();
    expect(ids()).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect((await acts[2])?.[0]?.ok).toBe(true);
    abort.abort();
    expect((await givesUp)[0]?.ok).toBe(false);
    // Stops never wait.
    void client().act('z', 1, [stopOf('z')]);
    await w.ports.settle();
    expect(w.cri.of('StopContainer')).toHaveLength(1);
    await w.ports.advance(2_000);
    expect(ids()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(busy()).toBe(false);
    for (const call of [...w.cri.of('StartContainer'), ...w.cri.of('StopContainer')]) call.resolve({});
    await w.ports.settle();
    expect((await Promise.all(acts)).every(([result]) => result?.ok)).toBe(true);
  });

  it.each([
    ['idle: a slow call needs no processor', 2, 5],
    ['busy: one more would make all of them slower', 0, 4],
  ])('gives the place of a call that takes half a second to another one while the processors are %s', async (_, idlePerMs, asked) => {
    const { host } = fakePorts();
    const told = Object.create(host, { idleMs: { value: () => idlePerMs * w.ports.clock.monoMs() } }) as Host;
    w = await world({ only: ['cri'], ports: { host: told } });
    for (const uid of ['a', 'b', 'c', 'd', 'e']) void client().act(uid, 1, [criCall('RunPodSandbox', { config: {} as PodSandboxConfig })]);
    await w.ports.advance(600);
    expect(w.cri.of('RunPodSandbox')).toHaveLength(asked);
    await w.ports.advance(1_500);
    expect(w.cri.of('RunPodSandbox')).toHaveLength(5);
  });

  it('holds a fence until the cancelled act of the predecessor has really ended', async () => {
    w = await world({ only: ['cri'] });
    const abort = new AbortController();
    const act = client().act('u', 1, [stopOf('a')], { signal: abort.signal });
    await w.ports.settle();
    let fenced: number | undefined;
    void client()
      .fence('u', 2)
      .then((f) => {
        fenced = f.monoMs;
      });
    await w.ports.advance(1000);
    expect(fenced).toBeUndefined();
    abort.abort();
    await w.ports.settle();
    expect(w.cri.of('StopContainer')[0]?.signal.aborted).toBe(true);
    expect(fenced).toBe(w.ports.clock.monoMs());
    const [result] = await act;
    expect(result).toMatchObject({ ok: false, error: { code: 1, outcome: 'unknown' } });
  });

  it('lets a start that was given up end for ten seconds: the next act of its pod waits so long', async () => {
    w = await world({ only: ['cri'] });
    const abort = new AbortController();
    const starts = ['u', 'v'].map((uid) =>
      client().act(uid, 1, [criCall('StartContainer', { containerId: uid })], { signal: abort.signal }),
    );
    await w.ports.settle();
    abort.abort();
    const stops = ['u', 'v'].map((uid) => client().act(uid, 2, [stopOf(uid)]));
    await w.ports.advance(9_900);
    const [u, v] = w.cri.of('StartContainer');
    expect([u?.signal.aborted, w.cri.of('StopContainer').length]).toEqual([false, 0]);
    u?.resolve({});
    await w.ports.settle();
    expect(w.cri.of('StopContainer').map((c) => c.request)).toMatchObject([{ containerId: 'u' }]);
    await w.ports.advance(200);
    expect([u?.signal.aborted, v?.signal.aborted]).toEqual([false, true]);
    for (const stop of w.cri.of('StopContainer')) stop.resolve({});
    await w.ports.settle();
    expect((await Promise.all(stops)).every(([result]) => result?.ok)).toBe(true);
    expect(await Promise.all(starts)).toMatchObject([[{ ok: false }], [{ ok: false }]]);
  });

  it('refuses an act of an older incarnation, as surely not done', async () => {
    w = await world({ only: ['cri'] });
    const fence = client().fence('u', 2);
    await w.ports.settle();
    await fence;
    const late = client().act('u', 1, [stopOf('a')]);
    await w.ports.settle();
    expect(await late).toMatchObject([{ ok: false, error: { outcome: 'failed', code: 10 } }]);
    expect(w.cri.of('StopContainer')).toHaveLength(0);
  });

  it('takes "not found" on stop and remove for done, and on anything else for an error', async () => {
    w = await world({ only: ['cri'] });
    w.cri.answer('RemoveContainer', () => fail(5, 'not found'));
    w.cri.answer('StartContainer', () => fail(5, 'not found'));
    const removed = client().act('u', 1, [criCall('RemoveContainer', { containerId: 'a' })]);
    const started = client().act('u', 1, [criCall('StartContainer', { containerId: 'a' })]);
    await w.ports.settle();
    expect(await removed).toEqual([{ ok: true, value: {} }]);
    expect(await started).toMatchObject([{ ok: false, error: { code: 5 } }]);
  });

  it('refuses to change a pod without knowing which', async () => {
    w = await world({ only: ['cri'] });
    const answer = w.tree.registry.ask(
      criAddr,
      (replyTo: ReplyTo<readonly CriResult[]>): CriEvent => ({
        type: 'cri.call',
        calls: [{ method: 'StopContainer', request: {}, timeoutMs: 1 }],
        replyTo,
      }),
      { timeoutMs: 1000 },
    );
    await w.ports.settle();
    expect(await answer).toMatchObject({ kind: 'refused' });
  });

  it('when it is killed cancels its calls, tells the askers that the outcome is unknown, and comes back ready', async () => {
    w = await world({ only: ['cri'] });
    const act = client().act('u', 1, [stopOf('a')]);
    await w.ports.settle();
    expect(w.tree.kill('node/runtime/cri', 'test')).toBe(true);
    await w.ports.settle();
    expect(await act).toMatchObject([{ ok: false, error: { outcome: 'unknown' } }]);
    expect(w.cri.of('StopContainer')[0]?.signal.aborted).toBe(true);
    await w.ports.advance(1000);
    expect(w.cri.of('Version')).toHaveLength(2);
    expect(link()?.state).toBe('ready');
  });

  it.each([
    ['connecting', (cri: FakeCri) => cri.answer('Version', 'hang')],
    ['lost', (cri: FakeCri) => cri.answer('Version', () => fail(14, 'gone'))],
    ['ready.polling', (cri: FakeCri) => cri.answer('Status', 'hang')],
  ])('killed while it is %s is ready again once the runtime is', async (state, arrange) => {
    const cri = healthy(fakeCri());
    if (state !== 'ready.polling') arrange(cri);
    w = await world({ cri, only: ['cri'] });
    if (state === 'ready.polling') arrange(cri);
    await w.ports.advance(5000);
    if (state === 'lost') await w.ports.settle();
    expect(JSON.stringify(w.tree.state())).toContain(`"state":"${state}"`);
    expect(w.tree.kill('node/runtime/cri', 'test')).toBe(true);
    healthy(cri);
    await w.ports.advance(2000);
    expect(link()).toMatchObject({ state: 'ready', runtimeName: 'fake' });
  });

  it('counts operations by the names of the kubelet', async () => {
    w = await world({ only: ['cri'] });
    w.cri.answer('ListContainers', () => fail(2, 'no'));
    client()
      .read('ListContainers', {})
      .catch(() => {});
    await w.ports.settle();
    const text = await w.ports.metrics.render();
    expect(text).toContain('kubelet_runtime_operations_total{operation_type="version"} 1');
    expect(text).toContain('kubelet_runtime_operations_errors_total{operation_type="list_containers"} 1');
  });
});
