/** How many starts are asked of the runtime at once, and who goes first when a place is free. */
import { describe, expect, it } from 'vitest';
import type { CriMethod } from '../../src/machines/cri.ts';
import { placesFor, StartGate } from '../../src/machines/runtime/startGate.ts';

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

  it('holds up starts only', () => {
    expect(['StartContainer', 'CreateContainer', 'RunPodSandbox'].every((m) => StartGate.guards(m as CriMethod))).toBe(true);
    expect(['StopContainer', 'StopPodSandbox', 'PullImage', 'ContainerStatus'].some((m) => StartGate.guards(m as CriMethod))).toBe(false);
    expect([1, 2, 8].map(placesFor)).toEqual([4, 4, 16]);
  });
});
