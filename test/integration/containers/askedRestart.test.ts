/** A restart of a pod that a person asks for, on a whole node in virtual time. */
import { describe, expect } from 'vitest';
import { askRestart, type RestartResult, type RestartWish } from '../../../src/actors/edge/admin/restarts.ts';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { itOnNode as it } from '../onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

/** The answer comes in the step in which the worker hears of it; an asker that waits is answered at the end of its time. */
async function restart(h: VirtualNode, wish: Partial<RestartWish> = {}): Promise<RestartResult> {
  const { registry } = h.tree;
  const at = { registry, by: 'node/edge/admin', nowMs: h.time.clock.wallMs() };
  let result: RestartResult | undefined;
  void askRestart({ pods: ['web'], container: '', over: 'the admin socket', ...wish }, at).then((r) => {
    result = r;
  });
  await h.until('it is answered', () => result !== undefined, 10_000);
  return result as unknown as RestartResult;
}
const why = (r: RestartResult): string => (r.ok ? r.pods.map((p) => (p.ok ? 'ok' : p.why)).join() : r.why);
const hows = (r: RestartResult) =>
  r.ok ? r.pods.flatMap((p) => (p.ok ? p.containers.map((c) => `${c.name} ${c.how}`) : [p.why])) : [r.why];
const shown = (h: VirtualNode, name = 'web') => {
  const { initContainerStatuses: inits = [], containerStatuses: regular = [] } = h.status(name)?.status ?? {};
  return [...inits, ...regular];
};
const counts = (h: VirtualNode) => Object.fromEntries(shown(h).map((s) => [s.name, s.restartCount]));
const killing = (h: VirtualNode) =>
  (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === 'Killing').map((e) => e.message);
const ready = (h: VirtualNode) =>
  h.until('all run', () => shown(h).length > 0 && shown(h).every((s) => s.state.terminated?.exitCode === 0 || s.ready), 60_000);
const TEXT = 'Container main will be restarted: a person asked for it over the admin socket';
const app = { name: 'app', image: 'busybox:1', lifecycle: { preStop: { sleep: { seconds: 3 } } } };
const proxied = { inits: [{}, { restartPolicy: 'Always' }], lives: { 'init-0': 'run=100ms' }, spec: { containers: [app] } };

describe('a restart that a person asks for', () => {
  it('ends what runs and starts it again in its sandbox, at once, and once', async ({ h }) => {
    h.write('web', pod('web'));
    await ready(h);
    const [sandbox] = h.runtime.dump().sandboxes.map((s) => s.id);
    const [before] = h.running('web').map((c) => c.id);
    const atMs = h.time.clock.monoMs();
    expect(hows(await restart(h))).toEqual(['main ends']);
    expect(hows(await restart(h))).toEqual(['main ends']);
    await h.until('it runs again', () => shown(h)[0]?.ready === true && h.running('web')[0]?.id !== before, 10_000);
    expect(h.time.clock.monoMs() - atMs).toBeLessThan(2_000);
    expect(counts(h)).toEqual({ main: 1 });
    expect(shown(h)[0]?.lastState.terminated?.reason).toBeDefined();
    expect(killing(h)).toEqual([TEXT]);
    expect(h.record('web')?.worker?.causes.map((c) => c.what)).toContain('a person asked for its restart over the admin socket');
    await h.advance(300_000);
    expect(counts(h)).toEqual({ main: 1 });
    expect(h.record('web')?.worker?.asked).toBeUndefined();
    expect(h.runtime.dump().sandboxes.map((s) => s.id)).toEqual([sandbox]);
  });

  it('is no crash: neither it nor the next one waits, and a container that crashes later begins its series', async ({ h }) => {
    h.write('web', pod('web', { life: `${'run=1h;'.repeat(8)}run=1s,exit=1` }));
    await ready(h);
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const atMs = h.time.clock.monoMs();
      await restart(h);
      await h.until('it runs again', () => counts(h).main === n, 10_000);
      expect(h.time.clock.monoMs() - atMs).toBeLessThan(2_000);
      await h.advance(500);
    }
    await h.until('it crashes and starts at once', () => counts(h).main === 9, 10_000);
  });

  it('ends the back-off of a crash, which the next crash goes on with', async ({ h }) => {
    h.write('web', pod('web', { life: 'run=1s,exit=1' }));
    await h.until('it waits for 40 s', () => counts(h).main === 3 && shown(h)[0]?.state.waiting?.reason === 'CrashLoopBackOff', 120_000);
    await h.advance(1_000);
    expect(hows(await restart(h))).toEqual(['main starts']);
    await h.until('it runs', () => shown(h)[0]?.state.running !== undefined, 2_000);
    expect(counts(h)).toEqual({ main: 4 });
    await h.until('it waits again', () => shown(h)[0]?.state.waiting?.reason === 'CrashLoopBackOff', 30_000);
    expect(shown(h)[0]?.state.waiting?.message).toContain('back-off 40s');
    expect(killing(h)).toEqual([]);
  });

  it('runs preStop hooks, ends sidecars last and starts them first, and runs no init container again', async ({ h }) => {
    h.write('web', pod('web', proxied));
    await ready(h);
    h.calls.length = 0;
    const atMs = h.time.clock.monoMs();
    expect(hows(await restart(h))).toEqual(['init-1 ends', 'app ends']);
    await h.until('both restarted', () => shown(h).filter((s) => s.restartCount === 1 && s.ready).length === 2, 60_000);
    expect(h.time.clock.monoMs() - atMs).toBeGreaterThanOrEqual(3_000);
    const nameOf = (id: string) => h.runtime.dump().containers.find((c) => c.id === id)?.name;
    const of = (method: string) =>
      h.calls.filter((c) => c.method === method).map((c) => nameOf((c.req as { containerId: string }).containerId));
    expect(of('StopContainer')).toEqual(['app', 'init-1']);
    expect(of('StartContainer')).toEqual(['init-1', 'app']);
    expect(counts(h)).toEqual({ 'init-0': 0, 'init-1': 1, app: 1 });
  });

  it.each([[[{}]], [[{}, {}]], [[{}, { restartPolicy: 'Always' }]], [[{ restartPolicy: 'Always' }, {}]]])(
    'runs no init container again of which the runtime holds nothing any more: %j',
    async (inits) => {
      await using h = await virtualNode();
      h.write(
        'web',
        pod('web', { inits, lives: Object.fromEntries(inits.map((c, i) => [`init-${i}`, 'restartPolicy' in c ? 'run=1h' : 'run=100ms'])) }),
      );
      await ready(h);
      const passed = h.containers('web').filter((c) => c.state === 'CONTAINER_EXITED');
      expect(passed.length).toBeGreaterThan(0);
      const o = { timeoutMs: null, signal: new AbortController().signal };
      for (const { id } of passed) void h.runtime.connect().call('RemoveContainer', { containerId: id }, o);
      await h.until('they are collected', () => h.containers('web').every((c) => c.state === 'CONTAINER_RUNNING'));
      await restart(h);
      const up = () =>
        shown(h)
          .filter((s) => s.restartCount === 1 && s.ready)
          .map((s) => s.name);
      await h.until('those that ran restarted', () => up().length === inits.length + 1 - passed.length, 60_000);
      await h.advance(30_000);
      for (const { name } of passed) expect(h.containers('web').map((c) => c.name)).not.toContain(name);
    },
  );

  it('restarts one container, or an init container that runs, and leaves the others', async ({ h }) => {
    h.write(
      'web',
      pod('web', { ...proxied, spec: { containers: [app, { name: 'other', image: 'busybox:1' }] }, lives: { 'init-0': 'run=20s' } }),
    );
    await h.until('its init container runs', () => shown(h)[0]?.state.running !== undefined);
    await h.advance(1_000);
    expect(hows(await restart(h, { container: 'init-0' }))).toEqual(['init-0 ends']);
    await ready(h);
    expect(counts(h)).toEqual({ 'init-0': 1, 'init-1': 0, app: 0, other: 0 });
    await restart(h, { container: 'other' });
    await h.until('it restarted', () => counts(h).other === 1, 10_000);
    expect(counts(h)).toEqual({ 'init-0': 1, 'init-1': 0, app: 0, other: 1 });
    expect(why(await restart(h, { container: 'init-0' }))).toContain('an init container that has done its part is not run again');
    expect(why(await restart(h, { container: 'ap' }))).toContain('it has no container ap, only init-0, init-1, app, other');
  });

  it('asks no restart policy where another follows: OnFailure with code 0, rules about exit codes', async ({ h }) => {
    const rules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'NotIn', values: [1] } }];
    const containers = [
      { name: 'main', image: 'busybox:1', restartPolicy: 'OnFailure', restartPolicyRules: rules },
      { name: 'beside', image: 'busybox:1' },
    ];
    h.write('web', pod('web', { life: 'termExit=0', spec: { containers } }));
    await ready(h);
    expect(hows(await restart(h, { container: 'main' }))).toEqual(['main ends']);
    await h.until('it restarted', () => counts(h).main === 1 && shown(h).every((s) => s.ready), 60_000);
    await h.advance(60_000);
    expect(counts(h)).toEqual({ main: 1, beside: 0 });
  });

  it('is refused where nothing would start again, with what would happen', async ({ h }) => {
    h.write('web', pod('web', { spec: { restartPolicy: 'Never' } }));
    h.write('job', pod('job', { life: 'run=1s,exit=0', spec: { restartPolicy: 'OnFailure' } }));
    h.write(
      'part',
      pod('part', {
        lives: { once: 'run=1s,exit=0' },
        spec: {
          restartPolicy: 'OnFailure',
          containers: [
            { name: 'once', image: 'busybox:1' },
            { name: 'main', image: 'busybox:1' },
          ],
        },
      }),
    );
    await h.until('they run', () => h.phase('web') === 'Running' && h.phase('part') === 'Running');
    await h.until('it is over', () => h.phase('job') === 'Succeeded', 60_000);
    await h.advance(5_000);
    expect(why(await restart(h))).toBe(
      'pod default/web-n1 is not restarted: container main: its restart policy is Never, so it would end and not start again',
    );
    expect(why(await restart(h, { pods: ['job'] }))).toBe(
      'pod default/job-n1 is not restarted: it has ended, and its containers start no more',
    );
    expect(why(await restart(h, { pods: ['part'], container: 'once' }))).toContain(
      'container once: it has ended (exit code 0), and its restart policy starts it no more',
    );
    const part = await restart(h, { pods: ['part'] });
    expect(part.ok && part.pods[0]?.ok && part.pods[0].left.map((l) => l.name)).toEqual(['once']);
    expect(why(await restart(h, { pods: ['part', 'nobody'] }))).toBe('no pod called "nobody" on this node');
    expect(await restart(h, { pods: ['part', 'web'] })).toMatchObject({ ok: false, status: 409 });
    await h.advance(10_000);
    expect(h.running('web')).toHaveLength(1);
  });

  it('is refused for a pod that ends', async ({ h }) => {
    h.write('web', pod('web', { life: 'term=ignore', spec: { terminationGracePeriodSeconds: 60 } }));
    await ready(h);
    h.remove('web');
    await h.until('it ends', () => h.state(h.workerPath('web')).startsWith('terminating'));
    expect(why(await restart(h))).toContain('no source has it any more, and it is being stopped');
  });

  it('waits for nothing that held the pod back, and is refused while the runtime is away', async ({ h }) => {
    h.write('web', pod('web'));
    await ready(h);
    h.faults.away = true;
    await h.advance(200_000);
    expect(h.state(h.workerPath('web'))).toBe('syncing.runtimeAway');
    expect(await restart(h)).toMatchObject({
      ok: false,
      status: 503,
      why: expect.stringContaining('the container runtime does not answer'),
    });
    h.faults.away = false;
    await ready(h);
    expect(counts(h)).toEqual({ main: 0 });
  });
});

describe('a restart that is under way', () => {
  const slow = pod('web', {
    life: 'termExit=0',
    container: { lifecycle: { preStop: { sleep: { seconds: 5 } } } },
    spec: { restartPolicy: 'OnFailure' },
  });

  it.each([0, 2_000, 5_200])('goes on after a crash of its worker %s ms later', async (afterMs) => {
    await using h = await virtualNode();
    h.write('web', slow);
    await ready(h);
    h.faults.latencyMs.StopContainer = 500;
    await restart(h);
    await h.advance(afterMs);
    expect(h.kill(h.workerPath('web'))).toBe(true);
    await h.until('it restarted', () => counts(h).main === 1 && shown(h)[0]?.ready === true, 60_000);
    await h.advance(120_000);
    expect(counts(h)).toEqual({ main: 1 });
    expect(new Set(killing(h))).toEqual(new Set([TEXT]));
  });

  it('is forgotten by a daemon that begins before the container was asked to stop', async ({ h }) => {
    h.write('web', slow);
    await ready(h);
    await restart(h);
    await h.advance(2_000);
    await h.restart();
    await ready(h);
    await h.advance(120_000);
    expect(counts(h)).toEqual({ main: 0 });
  });

  it('gives way to the end of the pod', async ({ h }) => {
    h.write('web', slow);
    await ready(h);
    await restart(h);
    await h.advance(1_000);
    h.remove('web');
    await h.until('it is gone', () => h.record('web') === undefined, 60_000);
    expect(h.running()).toEqual([]);
  });
});
