/** A node has a writer for each of thousands of pods: what is alike in them is in memory once. */
import { describe, expect, it } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import { podWritersSpec } from '../../src/actors/api/podWriters.ts';
import { fakePorts } from '../supervision/fakePorts.ts';

describe('writers of pods', () => {
  it('run one and the same machine', () => {
    const spec = podWritersSpec({ podsMax: 1 });
    const ports = { ...fakePorts(), kube: {} };
    const ctx = {
      ports,
      registry: { read: () => undefined, send: () => 'delivered' },
      log: ports.log,
      signal: new AbortController().signal,
    };
    const machineOf = (uid: string) => spec.child(uid, { type: 'pod.write', uid }).start(ctx as never).logic as AnyStateMachine;
    // States and implementations are what takes room: both writers have those of one machine.
    expect(machineOf('a').root).toBe(machineOf('b').root);
    expect(machineOf('a').implementations).toBe(machineOf('b').implementations);
    // An object that another inherits from has a hidden class to itself: writers have the same one above them, and no method of their own.
    expect(Object.getPrototypeOf(machineOf('a'))).toBe(Object.getPrototypeOf(machineOf('b')));
    expect(Object.keys(machineOf('a'))).toEqual([]);
  });
});
