/** How many starts are asked of the runtime at once, and who goes first when a place is free. */
import { describe, expect, it } from 'vitest';
import { heldMsMax, holdsOn, placesFor, STOP_RANKS, StartGate } from '../../src/machines/runtime/cri/startGate.ts';
import type { CriMethod } from '../../src/machines/wire/criCalls.ts';

describe('the start gate', () => {
  const went: string[] = [];
  const one = (name: string, method: CriMethod = 'RunPodSandbox') => ({ method, go: () => void went.push(name) });
  const take = () => went.splice(0);

  it('lets so many go, then one for each that leaves, what is nearest to running first', () => {
    const gate = new StartGate(2);
    for (const name of ['a', 'b', 'c', 'd']) gate.enter(one(name));
    gate.enter(one('create', 'CreateContainer'));
    gate.enter(one('start', 'StartContainer'));
    expect(take()).toEqual(['a', 'b']);
    expect(gate.waiting()).toBe(4);
    for (let i = 0; i < 4; i++) gate.leave();
    expect(take()).toEqual(['start', 'create', 'c', 'd']);
    gate.leave();
    gate.enter(one('e'));
    expect(take()).toEqual(['e']);
  });

  it('lets the sandbox of another pod go before the ninth call of a pod of many containers', () => {
    const gate = new StartGate(2);
    const big = Array.from({ length: 400 }, (_, i) => ({ ...one(`big${i}`, 'CreateContainer'), pod: 'big' }));
    const small = (name: string, method: CriMethod) => ({ ...one(name, method), pod: 'small' });
    for (const call of big) gate.enter(call);
    gate.enter(small('sandbox', 'RunPodSandbox'));
    for (let i = 0; i < 7; i++) gate.leave(big[i]);
    expect(take().slice(-3)).toEqual(['big6', 'big7', 'sandbox']);
    gate.enter(small('create', 'CreateContainer'));
    gate.leave(big[7]);
    gate.leave(small('', 'RunPodSandbox'));
    expect(take()).toEqual(['create', 'big8']);
    gate.leave(small('', 'CreateContainer'));
    // It has nothing more to do here: what it had before is forgotten.
    for (let i = 8; i < 400; i++) gate.leave(big[i]);
    take();
    expect(gate.waiting()).toBe(0);
  });

  it('forgets one that gave up waiting', () => {
    const gate = new StartGate(1);
    gate.enter(one('a'));
    const [b, c] = [one('b'), one('c')];
    gate.enter(b);
    gate.enter(c);
    expect(gate.withdraw(b)).toBe(true);
    gate.leave();
    expect(take()).toEqual(['a', 'c']);
    expect(gate.withdraw(c)).toBe(false);
    expect(gate.waiting()).toBe(0);
  });

  it('takes sandboxes down before further containers are asked to stop', () => {
    const gate = new StartGate(1, STOP_RANKS);
    gate.enter(one('a', 'StopContainer'));
    gate.enter(one('b', 'StopContainer'));
    gate.enter(one('sandbox', 'StopPodSandbox'));
    for (let i = 0; i < 2; i++) gate.leave();
    expect(take()).toEqual(['a', 'sandbox', 'b']);
  });

  it('lets stops wait for no start and starts for no stop, and everything else go', () => {
    const guarded = (gate: StartGate) =>
      (
        ['RunPodSandbox', 'CreateContainer', 'StartContainer', 'StopContainer', 'StopPodSandbox', 'PullImage', 'ContainerStatus'] as const
      ).filter((m) => gate.guards(m));
    expect(guarded(new StartGate(1))).toEqual(['RunPodSandbox', 'CreateContainer', 'StartContainer']);
    expect(guarded(new StartGate(1, STOP_RANKS))).toEqual(['StopContainer', 'StopPodSandbox']);
    expect([1, 2, 8].map(placesFor)).toEqual([4, 4, 16]);
  });

  it('holds a stop for a tenth of a second only: the time to end is the own one of the process', () => {
    expect((['StopContainer', 'StopPodSandbox', 'RunPodSandbox'] as const).map(heldMsMax)).toEqual([100, 500, 500]);
  });

  it('holds a start for up to two seconds while the processors are busy', () => {
    expect([500, 1_000, 1_500, 2_000].map((ms) => holdsOn('RunPodSandbox', { ms, idleShare: 0.02 }))).toEqual([true, true, true, false]);
    expect(holdsOn('RunPodSandbox', { ms: 500, idleShare: 0.3 })).toBe(false);
    expect(holdsOn('RunPodSandbox', { ms: 500, idleShare: Number.NaN })).toBe(false);
    expect(holdsOn('StopContainer', { ms: 100, idleShare: 0 })).toBe(false);
  });
});
