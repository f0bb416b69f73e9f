/** Traps of the pod lifecycle that only a whole node shows, in virtual time: restarts of the daemon, lost instances, long work. */
import { describe, expect } from 'vitest';
import type { ContainerStatus } from '../../src/machines/kube/types.ts';
import { workersAddr } from '../../src/machines/pods/workers/messages.ts';
import type { CriMethod, CriRequest } from '../../src/machines/wire/criCalls.ts';
import { itOnNode as it } from '../integration/onNode.ts';
import { pod, type VirtualNode } from '../integration/virtualNode.ts';

const main = (h: VirtualNode, name: string) => h.status(name)?.status.containerStatuses?.find((c) => c.name === 'main');
const calls = (h: VirtualNode, method: CriMethod) => h.calls.filter((c) => c.method === method).length;
/** As somebody at the runtime's own command line. */
const atRuntime = (h: VirtualNode, method: 'StopContainer' | 'RemoveContainer', containerId: string) =>
  h.runtime.call(method, method === 'StopContainer' ? { containerId, timeout: 0 } : { containerId }, {
    timeoutMs: null,
    signal: new AbortController().signal,
  });
const making = (h: VirtualNode) => h.record('web') !== undefined && h.state(h.workerPath('web')).includes('creatingSandbox');
/** Every status of the container that is shown from now on, once each. */
function shown(h: VirtualNode, name: string): ContainerStatus[] {
  const seen: ContainerStatus[] = [];
  const look = () => {
    const now = main(h, name);
    if (now !== undefined && JSON.stringify(now) !== JSON.stringify(seen.at(-1))) seen.push(now);
  };
  look();
  h.tree.observe(look);
  return seen;
}

describe('a pod in a crash loop', () => {
  it('trap 22: never shows less after a restart of the daemon than how it ended, though what was said of its starts is lost', async ({
    h,
  }) => {
    h.write('crash', pod('crash', { life: 'run=1s,exit=7' }));
    await h.until(
      'it backs off for long',
      () => main(h, 'crash')?.restartCount === 4 && main(h, 'crash')?.state.waiting?.reason === 'CrashLoopBackOff',
      600_000,
    );
    await h.restart();
    const seen = shown(h, 'crash');
    await h.advance(5_000);
    expect(seen.length).toBeGreaterThan(0);
    for (const s of seen) {
      if (s.state.waiting === undefined) expect(s.state.terminated).toMatchObject({ exitCode: 7 });
      else expect([s.state.waiting.reason, s.lastState.terminated?.exitCode]).toEqual(['CrashLoopBackOff', 7]);
      expect(s.restartCount).toBe(4);
    }
    expect(seen.at(-1)?.state.waiting?.reason).toBe('CrashLoopBackOff');
  });

  it('trap 16: whose image is changed starts at once, from the beginning of the series', async ({ h }) => {
    const crash = (image: string) => pod('crash', { uid: 'pinned-1', life: 'run=1s,exit=1', container: { image } });
    h.write('crash', crash('busybox:1'));
    await h.until(
      'it backs off for long',
      () => main(h, 'crash')?.restartCount === 5 && main(h, 'crash')?.state.waiting?.reason === 'CrashLoopBackOff',
      900_000,
    );
    await h.advance(5_000);
    const beganMs = h.time.clock.monoMs();
    h.write('crash', crash('busybox:2'));
    await h.until('it runs', () => h.running('crash').length === 1, 5_000);
    expect(h.time.clock.monoMs() - beganMs).toBeLessThan(2_000);
    const [anew] = h.running('crash');
    await h.until('it ends', () => h.running('crash').length === 0, 5_000);
    await h.until('it runs again', () => h.running('crash').length === 1, 60_000);
    const endedMs = h.containers('crash').find((c) => c.id === anew?.id)?.finishedAtMs ?? 0;
    expect(Math.round(((h.running('crash')[0]?.startedAtMs ?? 0) - endedMs) / 1000)).toBe(10);
  });
});

describe('what is collected', () => {
  it('trap 37: an init container that was removed does not run again beside its pod', async ({ h }) => {
    await h.run('app', pod('app', { lives: { 'init-0': 'run=1s' }, inits: [{}] }));
    const init = h.containers('app').find((c) => c.name === 'init-0');
    await atRuntime(h, 'RemoveContainer', init?.id ?? '');
    await h.advance(180_000);
    await h.restart();
    await h.advance(180_000);
    expect(h.containers('app').map((c) => c.name)).toEqual(['main']);
    expect(h.runtime.dump().counts.containersStarted).toBe(2);
    expect(h.phase('app')).toBe('Running');
  });

  it('trap 59: one dead instance stays through every sweep, so that a Never pod does not run it again', async ({ h }) => {
    const spec = {
      restartPolicy: 'Never',
      containers: ['main', 'once'].map((name) => ({ name, image: 'busybox:1' })),
    };
    h.write('job', pod('job', { lives: { once: 'run=1s,exit=3' }, spec }));
    await h.until('both ran', () => h.containers('job').some((c) => c.name === 'once' && c.state === 'CONTAINER_EXITED'));
    await h.advance(600_000);
    await h.restart();
    await h.advance(600_000);
    expect(h.containers('job').map((c) => [c.name, c.state])).toContainEqual(['once', 'CONTAINER_EXITED']);
    expect(h.runtime.dump().counts.containersStarted).toBe(2);
    const once = h.status('job')?.status.containerStatuses?.find((c) => c.name === 'once');
    expect(once).toMatchObject({ restartCount: 0, state: { terminated: { exitCode: 3 } } });
  });

  it('trap 20: restart counts go on when the runtime has forgotten every container, for the logs are still there', async ({ h }) => {
    await h.run('web', pod('web'));
    const dir = `/var/log/actorlet/pods/default_web-n1_${h.uid('web')}/main`;
    h.fs.put(`${dir}/6.log`, '');
    const [first] = h.running('web');
    await h.crash();
    await atRuntime(h, 'RemoveContainer', first?.id ?? '');
    await h.boot();
    await h.until('another was made', () => h.running('web').length === 1);
    expect(h.running('web')[0]?.attempt).toBe(7);
    await h.until('it is shown', () => main(h, 'web')?.restartCount === 7);
  });
});

describe('a stop', () => {
  it('trap 34: stops every sandbox of its pod, also when containers do not stop, and again those that are not ready', async ({ h }) => {
    await h.run('web', pod('web'));
    const [old] = h.runtime.dump().sandboxes;
    await h.runtime.call('StopPodSandbox', { podSandboxId: old?.id ?? '' }, { timeoutMs: null, signal: new AbortController().signal });
    await h.until('it runs in another sandbox', () => h.running('web').some((c) => c.sandboxId !== old?.id), 120_000);
    // A container that cannot be stopped does not keep the sandboxes from it; one that is not ready is stopped with the others.
    h.faults.fault = (method) => (method === 'StopContainer' ? { kind: 'refuse', code: 13, details: 'no' } : undefined);
    const there = h.runtime.dump().sandboxes.map((s) => s.id);
    h.calls.splice(0);
    h.remove('web');
    const stopped = () =>
      new Set(h.calls.flatMap((c) => (c.method === 'StopPodSandbox' ? [(c.req as CriRequest<'StopPodSandbox'>).podSandboxId] : [])));
    await h.until('each sandbox was stopped', () => there.every((id) => stopped().has(id)), 20_000);
    h.faults.fault = () => undefined;
    await h.until('nothing is left', () => h.runtime.dump().sandboxes.length === 0, 300_000);
  });
});

describe('a burst of changes during long work', () => {
  it('trap 60: is answered once, for the newest of them', async ({ h }) => {
    const web = (image: string) => pod('web', { uid: 'pinned-1', container: { image } });
    h.faults.latencyMs.RunPodSandbox = 20_000;
    h.write('web', web('busybox:1'));
    await h.until('its sandbox is being made', () => making(h));
    for (let i = 2; i <= 9; i++) {
      h.write('web', web(`busybox:${i}`));
      await h.advance(500);
    }
    await h.until('it runs', () => h.phase('web') === 'Running');
    await h.advance(60_000);
    const made = h.calls.filter((c) => c.method === 'CreateContainer').map((c) => (c.req as CriRequest<'CreateContainer'>).config);
    expect(made.map((c) => c.image.userSpecifiedImage)).toEqual(['busybox:9']);
    expect([calls(h, 'RunPodSandbox'), calls(h, 'StopContainer')]).toEqual([1, 0]);
  });

  it('trap 60: never covers a stop', async ({ h }) => {
    const web = (image: string) => pod('web', { uid: 'pinned-1', container: { image } });
    h.faults.latencyMs.RunPodSandbox = 20_000;
    h.write('web', web('busybox:1'));
    await h.until('its sandbox is being made', () => making(h));
    const { pod: definition } = h.record('web') ?? {};
    if (definition === undefined) throw new Error('no pod');
    h.tree.registry.send(workersAddr, { type: 'pod.kill', uid: 'pinned-1', life: 1 });
    for (let i = 0; i < 5; i++) {
      h.tree.registry.send(workersAddr, {
        type: 'pod.update',
        uid: 'pinned-1',
        life: 1,
        kind: 'update',
        pod: definition,
        causes: [],
      });
    }
    await h.until('it has ended', () => h.record('web')?.worker?.phase === 'finished', 120_000);
    expect(calls(h, 'CreateContainer')).toBe(0);
  });
});
