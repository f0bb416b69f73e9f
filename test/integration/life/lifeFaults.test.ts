/** A runtime that is slow, lost, or answers nothing; hints that are lost or doubled; a daemon that is killed. */
import { describe, expect } from 'vitest';
import type { CriMethod } from '../../../src/machines/wire/criCalls.ts';
import { rotating } from '../../rotation.ts';
import { seededRng } from '../../supervision/fakePorts.ts';
import { notRunning, picture, workerless } from '../kill/killing.ts';
import { itOnNode as it } from '../onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const STARTS = ['RunPodSandbox', 'PullImage', 'CreateContainer', 'StartContainer'] as const satisfies CriMethod[];
const STOPS = ['StopContainer', 'StopPodSandbox', 'RemoveContainer', 'RemovePodSandbox'] as const satisfies CriMethod[];
const empty = (h: VirtualNode) => h.runtime.dump().containers.length === 0 && h.runtime.dump().sandboxes.length === 0;
const up = (h: VirtualNode, name: string, containers = 1) => h.phase(name) === 'Running' && h.running(name).length === containers;

describe('a container that the runtime cannot start', () => {
  it('counts as crashed: a second start at once, a third after its back-off; the words of the runtime are told', async ({ h }) => {
    const starts: number[] = [];
    h.faults.fault = (m) => {
      if (m === 'StartContainer') starts.push(h.time.clock.monoMs());
      return undefined;
    };
    h.write('web', pod('web', { life: 'startError=no such file' }));
    await h.until('three starts', () => starts.length === 3, 60_000);
    expect((starts[1] ?? 0) - (starts[0] ?? 0)).toBeLessThan(2_000);
    expect((starts[2] ?? 0) - (starts[1] ?? 0)).toBeGreaterThanOrEqual(10_000);
    const main = () => h.status('web')?.status.containerStatuses?.[0];
    await h.until('it backs off', () => main()?.state.waiting?.reason === 'CrashLoopBackOff');
    expect(main()).toMatchObject({ restartCount: 2, lastState: { terminated: { reason: 'StartError', message: 'no such file' } } });
  });
});

describe('a call without an answer', () => {
  it.each(STARTS.flatMap((m) => [true, false].map((effect) => [m, effect] as const)))(
    '%s (took effect: %s) is asked about, not repeated blindly: one container, no restart counted',
    async (method, effect) => {
      await using h = await virtualNode();
      let left = 1;
      h.faults.fault = (m) => (m === method && left-- > 0 ? { kind: 'timeout', effect, afterMs: 2_000 } : undefined);
      h.write('web', pod('web', { inits: [{}], lives: { 'init-0': 'run=1s' } }));
      await h.until('web runs', () => up(h, 'web'), 300_000);
      await h.advance(120_000);
      expect(h.violations).toEqual([]);
      expect(h.running('web')).toHaveLength(1);
      expect(h.status('web')?.status.containerStatuses?.[0]?.restartCount).toBe(0);
      expect(h.runtime.dump().sandboxes.filter((s) => s.ready)).toHaveLength(1);
    },
  );

  it.each(STOPS.flatMap((m) => [true, false].map((effect) => [m, effect] as const)))(
    '%s (took effect: %s) is tried again until nothing is left',
    async (method, effect) => {
      await using h = await virtualNode();
      h.write('web', pod('web'));
      await h.until('web runs', () => up(h, 'web'));
      let left = 2;
      h.faults.fault = (m) => (m === method && left-- > 0 ? { kind: 'timeout', effect, afterMs: 2_000 } : undefined);
      h.remove('web');
      await h.until('nothing is left', () => empty(h), 600_000);
      await h.until('nor is its record', () => h.record('web') === undefined);
    },
  );

  it('one in five of all calls, for ten minutes: pods come and go all the same', async () => {
    await using h = await virtualNode({ seed: 7 });
    const rng = seededRng(7);
    h.faults.fault = () => {
      const at = rng.next();
      if (at < 0.1) return { kind: 'timeout', effect: true, afterMs: 1_000 };
      if (at < 0.2) return { kind: 'timeout', effect: false, afterMs: 1_000 };
      return undefined;
    };
    for (let i = 0; i < 5; i++) h.write(`web-${i}`, pod(`web-${i}`, { inits: [{}], lives: { 'init-0': 'run=1s' } }));
    await h.advance(300_000);
    for (let i = 0; i < 2; i++) h.remove(`web-${i}`);
    await h.advance(300_000);
    h.faults.fault = () => undefined;
    await h.until('the rest runs and nothing else', () => [2, 3, 4].every((i) => up(h, `web-${i}`)) && h.running().length === 3, 300_000);
    expect(h.violations).toEqual([]);
  });
});

describe('a runtime that is away', () => {
  it('for a while: nothing is touched, what ended meanwhile is restarted, what was removed goes', async ({ h }) => {
    for (const name of ['stays', 'ends', 'goes']) h.write(name, pod(name));
    await h.until('all run', () => ['stays', 'ends', 'goes'].every((n) => up(h, n)));
    await h.advance(10_000);
    const [stays] = h.running('stays');
    const [ends] = h.running('ends');
    h.faults.away = true;
    h.runtime.dropStreams();
    await h.advance(5_000);
    h.runtime.exit(ends?.id ?? '', { exitCode: 1 });
    h.remove('goes');
    h.write('new', pod('new'));
    await h.advance(60_000);
    expect(h.running('stays')).toEqual([stays]);
    expect(notRunning(h)).toEqual([]);
    h.faults.away = false;
    await h.until('all is as wanted', () => up(h, 'stays') && up(h, 'ends') && up(h, 'new') && h.record('goes') === undefined);
    expect(h.running('stays')).toEqual([stays]);
    expect(h.status('ends')?.status.containerStatuses?.[0]?.restartCount).toBe(1);
    expect(h.violations).toEqual([]);
  });

  it('from the start: the node comes up and waits', async () => {
    await using h = await virtualNode({
      manifests: { web: pod('web') },
      before: (n) => {
        n.faults.away = true;
      },
    });
    await h.advance(120_000);
    expect(h.phase('web') ?? 'Pending').toBe('Pending');
    h.faults.away = false;
    await h.until('web runs', () => up(h, 'web'));
  });
});

describe('hints', () => {
  it.each([
    ['lost', 0],
    ['doubled', 2],
    ['told nine times', 9],
  ])('%s: an exit is found and answered by one restart', async (_, copies) => {
    await using h = await virtualNode();
    h.faults.hintCopies = copies;
    h.write('web', pod('web'));
    await h.until('web runs', () => up(h, 'web'));
    // Long enough for a stream that is trusted to have slowed the listings down.
    await h.advance(600_000);
    h.runtime.exit(h.running('web')[0]?.id ?? '', { exitCode: 1 });
    const beganMs = h.time.clock.monoMs();
    await h.until('it was restarted', () => up(h, 'web') && h.running('web')[0]?.attempt === 1, 120_000);
    expect(h.time.clock.monoMs() - beganMs).toBeLessThan(copies === 0 ? 91_000 : 1_500);
    await h.advance(30_000);
    expect(h.runtime.dump().counts.containersStarted).toBe(2);
    expect(h.violations).toEqual([]);
  });
});

describe('a daemon that is killed', () => {
  it.each(rotating('seeds of a burst', [1, 2, 3], 3))(
    'at thirty random moments of a burst: what runs keeps its id, nothing is doubled or lost (seed %s)',
    async (seed) => {
      await using h = await virtualNode({ seed });
      const rng = seededRng(seed);
      h.faults.latencyMs = {
        RunPodSandbox: 60,
        PullImage: 90,
        CreateContainer: 20,
        StartContainer: 40,
        StopContainer: 30,
        ListContainers: 5,
      };
      const names = Array.from({ length: 8 }, (_, i) => `web-${i}`);
      for (const name of names) h.write(name, pod(name, { lives: { 'init-0': 'run=200ms' }, inits: [{}, { restartPolicy: 'Always' }] }));
      const ran = new Map<string, string>();
      for (let i = 0; i < 30; i++) {
        await h.advance(rng.next() * 250);
        for (const c of h.running()) if (c.name !== 'init-0') ran.set(`${c.podUid} ${c.name}`, ran.get(`${c.podUid} ${c.name}`) ?? c.id);
        await h.restart();
      }
      await h.until('all run', () => names.every((n) => up(h, n, 2)), 300_000);
      await h.advance(60_000);
      for (const c of h.running()) expect(ran.get(`${c.podUid} ${c.name}`) ?? c.id, `${c.name} of ${c.podUid}`).toBe(c.id);
      for (const n of names) expect(h.status(n)?.status.containerStatuses?.[0]?.restartCount, n).toBe(0);
      expect(h.violations).toEqual([]);
      expect(workerless(h)).toEqual([]);
    },
  );

  it('while everything is steady, and its manifests change meanwhile: exactly the difference is carried out', async ({ h }) => {
    for (const name of ['stays', 'edited', 'goes', 'pinned']) h.write(name, pod(name, name === 'pinned' ? { uid: 'pinned-1' } : {}));
    await h.until('all run', () => ['stays', 'edited', 'goes', 'pinned'].every((n) => up(h, n)));
    const before = picture(h).running;
    await h.crash();
    h.remove('goes');
    h.write('edited', pod('edited', { container: { image: 'busybox:2' } }));
    h.write('pinned', pod('pinned', { uid: 'pinned-1', container: { image: 'busybox:3' } }));
    h.write('new', pod('new'));
    await h.advance(30_000);
    await h.boot();
    await h.until(
      'all is as wanted',
      () => ['stays', 'edited', 'pinned', 'new'].every((n) => up(h, n)) && h.running().length === 4,
      120_000,
    );
    await h.advance(60_000);
    const after = picture(h).running;
    expect([...after.keys()].sort()).toEqual(['edited-n1 main', 'new-n1 main', 'pinned-n1 main', 'stays-n1 main']);
    expect(after.get('stays-n1 main')).toBe(before.get('stays-n1 main'));
    expect(after.get('edited-n1 main')).not.toBe(before.get('edited-n1 main'));
    expect(after.get('pinned-n1 main')).not.toBe(before.get('pinned-n1 main'));
    expect(h.violations).toEqual([]);
  });

  it('and podConfig too: a crash of it while manifests change loses no change', async ({ h }) => {
    for (const name of ['stays', 'edited', 'goes']) h.write(name, pod(name));
    await h.until('all run', () => ['stays', 'edited', 'goes'].every((n) => up(h, n)));
    const before = picture(h).running;
    h.kill('node/pods/config');
    h.remove('goes');
    h.write('edited', pod('edited', { container: { image: 'busybox:2' } }));
    await h.until(
      'all is as wanted',
      () => up(h, 'stays') && up(h, 'edited') && h.running().length === 2 && h.record('goes') === undefined,
      120_000,
    );
    await h.advance(30_000);
    expect(picture(h).running.get('stays-n1 main')).toBe(before.get('stays-n1 main'));
    expect(h.record('edited')?.pod.spec.containers[0]?.image).toBe('busybox:2');
    expect(h.violations).toEqual([]);
  });
});
