/** Workers of settled pods sleep: what they kept holds, what is due wakes them, and nobody beside notices. */
import { describe, expect, it } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { workersAddr } from '../../../src/machines/pods/workers/messages.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const up = (h: VirtualNode, name: string) => h.phase(name) === 'Running' && h.running(name).length === 1;
const lifecycle = (h: VirtualNode, name: string) => h.actor(h.workerPath(name))?.lifecycle;
const asleep = (h: VirtualNode, name: string) => h.until(`${name} sleeps`, () => lifecycle(h, name) === 'asleep', 60_000);
const exit = (h: VirtualNode, name: string) => h.runtime.exit(h.running(name)[0]?.id ?? '', { exitCode: 1 });

describe('a settled pod', () => {
  it('sleeps on for an hour: its looks take no worker', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web') } });
    await h.until('it runs', () => up(h, 'web'));
    await asleep(h, 'web');
    const { incarnation } = h.actor(h.workerPath('web')) ?? {};
    const calls = h.runtime.dump();
    await h.advance(3_600_000);
    expect([lifecycle(h, 'web'), h.actor(h.workerPath('web'))?.incarnation]).toEqual(['asleep', incarnation]);
    expect(h.runtime.dump().containers).toEqual(calls.containers);
  });

  it('wakes for the end of its container, and backs off as long as if it had not slept', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web') } });
    await h.until('it runs', () => up(h, 'web'));
    const waits: number[] = [];
    for (let i = 0; i < 4; i++) {
      await asleep(h, 'web');
      exit(h, 'web');
      const from = h.time.clock.monoMs();
      await h.until('it runs again', () => up(h, 'web'), 120_000);
      waits.push(Math.round((h.time.clock.monoMs() - from) / 1_000));
    }
    expect(waits).toEqual([0, 10, 20, 40]);
    expect(h.actor(h.workerPath('web'))?.restarts).toBe(0);
  });

  it.each([false, true])('sleeps while a container backs off, and says nothing anew if something wakes it (%s)', async (woken) => {
    await using h = await virtualNode({ manifests: { web: pod('web') } });
    const said = () => JSON.stringify((h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === 'BackOff'));
    const incarnation = () => h.actor(h.workerPath('web'))?.incarnation;
    await h.until('it runs', () => up(h, 'web'));
    for (let i = 0; i < 4; i++) {
      exit(h, 'web');
      if (i < 3) await h.until('it runs again', () => up(h, 'web'), 120_000);
    }
    await h.until('it backs off', () => h.containerState('web', 'main') === 'backingOff');
    const next = h.record('web')?.worker?.containers[0]?.nextStartAtMs ?? 0;
    await asleep(h, 'web');
    const [before, asSaid] = [incarnation(), said()];
    expect(asSaid).toContain('BackOff');
    if (woken) {
      h.tree.registry.send(workersAddr, { type: 'pod.dirty', uid: h.uid('web'), why: 'the test asks', causes: [] });
      await h.until('it woke and sleeps again', () => incarnation() === (before ?? 0) + 1 && lifecycle(h, 'web') === 'asleep', 20_000);
    }
    expect([said(), h.record('web')?.worker?.containers[0]?.nextStartAtMs]).toEqual([asSaid, next]);
    await h.until('it runs again', () => up(h, 'web'), 120_000);
    const lateMs = h.time.clock.wallMs() - next;
    expect([lateMs >= 0, lateMs < 1_000, h.violations]).toEqual([true, true, []]);
  });

  it('wakes for its active deadline', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web', { spec: { activeDeadlineSeconds: 120 } }) } });
    await h.until('it runs', () => up(h, 'web'));
    await asleep(h, 'web');
    const from = h.time.clock.monoMs();
    await h.until('its deadline is over', () => h.phase('web') === 'Failed', 120_000);
    expect(h.time.clock.monoMs() - from).toBeGreaterThan(90_000);
    expect(h.status('web')?.status.reason).toBe('DeadlineExceeded');
  });

  it('goes when its manifest goes, and is made anew when that changes', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web'), goes: pod('goes') } });
    await h.until('both run', () => up(h, 'web') && up(h, 'goes'));
    await asleep(h, 'web');
    await asleep(h, 'goes');
    const [before] = h.running('web');
    h.remove('goes');
    h.write('web', pod('web', { spec: { containers: [{ name: 'main', image: 'busybox:2' }] } }));
    await h.until(
      'one is gone, the other is new',
      () => h.record('goes') === undefined && up(h, 'web') && h.running('web')[0]?.id !== before?.id,
    );
    expect(h.violations).toEqual([]);
  });
});
