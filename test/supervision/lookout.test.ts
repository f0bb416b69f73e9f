/** Looks of machines: a step only where there is something to do. */
import { describe, expect, it } from 'vitest';
import { createActor, setup } from 'xstate';
import { lookout } from '../../src/actors/supervision/looks/lookout.ts';
import { pathName } from '../../src/machines/pod/pathName.ts';
import { isLookDue as evictionLookDue } from '../../src/machines/reclaim/eviction/evictionMachine.ts';
import { type Actual, isLookDue, type Looked } from '../../src/machines/services/volumes/reconcile.ts';
import { type LookDue, unprovidedLookout } from '../../src/machines/xstate/lookout.ts';
import { provided } from '../../src/machines/xstate/provide.ts';
import { virtualTime } from '../integration/virtualTime.ts';
import { container, pod } from '../machines/pods/fixtures.ts';

const machine = setup({
  types: { context: {} as { wanted: boolean }, events: {} as LookDue },
  actors: { lookout: unprovidedLookout() },
  actions: { look: () => {} },
}).createMachine({
  context: { wanted: true },
  invoke: { src: 'lookout', input: { everyMs: 1_000 } },
  on: { 'look.due': { actions: 'look' } },
});

/** Seconds at which the machine looked, of the first ten. */
async function looks(isDue: (second: number, context: { wanted: boolean }) => boolean): Promise<number[]> {
  const time = virtualTime();
  const fromMs = time.clock.monoMs();
  const second = (): number => (time.clock.monoMs() - fromMs) / 1_000;
  const seen: number[] = [];
  const logic = provided(machine, {
    actors: { lookout: lookout<{ wanted: boolean }>(time.clock, (context) => isDue(second(), context)) },
    actions: { look: () => void seen.push(second()) },
  });
  const actor = createActor(logic).start();
  await time.advance(10_000);
  actor.stop();
  await time.advance(10_000);
  return seen;
}

describe('a lookout', () => {
  it('wakes its machine where there is something to do, by what the machine knows, and as long as it lives', async () => {
    expect(await looks((second, { wanted }) => wanted && second % 4 === 0)).toEqual([4, 8]);
  });

  it('lets the machine look where it cannot tell', async () => {
    const unknown = (second: number): boolean => {
      if (second === 3) throw new Error('no view');
      return false;
    };
    expect(await looks(unknown)).toEqual([3]);
  });
});

describe('a look at volumes', () => {
  const own = pod({ containers: [container('main')] });
  const at = (over: Partial<Looked> = {}): Looked => ({
    desired: new Map(),
    actual: new Map(),
    pods: undefined,
    listed: undefined,
    ...over,
  });
  const held = (plugin: string): Actual => ({
    ...{ ref: { uid: pathName('u'), plugin: pathName(plugin), name: pathName('v') }, phase: 'mounted', error: '', sinceMs: 0, done: null },
  });
  const desired = new Map([['u', { pod: own, refreshAtMonoMs: 60_000 }]]);

  it('is due where something is another than at the last, and where the time of a pod has come', () => {
    const now = at({ desired, actual: new Map([['u/v', held('kubernetes.io~empty-dir')]]) });
    expect(isLookDue(now, null, 0)).toBe(true);
    expect(isLookDue(now, { ...now }, 0)).toBe(false);
    expect(isLookDue(now, { ...now }, 60_000)).toBe(true);
    expect(isLookDue(now, { ...now, desired: new Map(desired) }, 0)).toBe(true);
    expect(isLookDue({ ...now, listed: { atMonoMs: 1, pods: new Map(), via: 'cri' } }, now, 0)).toBe(true);
  });

  it('is due once more after the last volume has gone', () => {
    expect(isLookDue(at(), at({ desired }), 0)).toBe(true);
    expect([isLookDue(at(), null, 0), isLookDue(at(), at(), 0)]).toEqual([false, false]);
  });
});

describe('a look of the eviction manager', () => {
  const limited = pod({ containers: [container('main', { resources: { limits: { 'ephemeral-storage': '1Gi' } } })] });
  const due = (limits: boolean, limitsMs: number, candidates = [limited]): boolean =>
    evictionLookDue({ thresholds: [], limits, limitsMs } as never, { candidates, monoMs: 100_000 } as never);

  it('without thresholds is about pods with limits of what they may write, once a minute', () => {
    expect([due(true, 40_000), due(true, 40_001), due(false, 0), due(true, 0, [pod()])]).toEqual([true, false, false, false]);
  });
});
