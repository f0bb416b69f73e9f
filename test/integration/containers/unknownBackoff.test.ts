/** Calls whose outcome stays unknown: each is looked at, and the next attempt waits longer every time. */
import { describe, expect, it } from 'vitest';
import type { CriMethod } from '../../../src/machines/wire/criCalls.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

/** Every call of `method` fails at once with an unknown outcome, as a request that the connection never survives. */
function breaking(h: VirtualNode, method: CriMethod): { calls: number[]; mend(): void } {
  const calls: number[] = [];
  h.faults.fault = (m) => {
    if (m !== method) return undefined;
    calls.push(h.time.clock.monoMs());
    return { kind: 'timeout', effect: false, afterMs: 0 };
  };
  return {
    calls,
    mend: () => {
      h.faults.fault = () => undefined;
    },
  };
}
const up = (h: VirtualNode) => h.phase('web') === 'Running' && h.running('web').length === 1;

describe('an outcome that stays unknown', () => {
  it.each(['CreateContainer', 'StartContainer', 'RunPodSandbox'] as const)('of %s is repeated with a growing wait', async (method) => {
    await using h = await virtualNode();
    const { calls, mend } = breaking(h, method);
    h.write('web', pod('web'));
    await h.until('the first call', () => calls.length > 0);
    await h.advance(120_000);
    expect(calls.length).toBeGreaterThan(4);
    expect(calls.length).toBeLessThan(method === 'RunPodSandbox' ? 24 : 12);
    const waits = calls.slice(1).map((at, i) => at - (calls[i] ?? 0));
    // Once at once, since a runtime that restarted under a call answers the next one.
    expect(waits[0]).toBeLessThan(1_000);
    expect(waits.at(-1)).toBeGreaterThan(5_000);
    mend();
    await h.until('web runs', () => up(h), 120_000);
    expect(h.violations).toEqual([]);
  });

  it('is told in the status of the container, and a new definition is tried at once', async () => {
    await using h = await virtualNode();
    const { calls, mend } = breaking(h, 'CreateContainer');
    h.write('web', pod('web'));
    await h.until('it waits', () => calls.length >= 7, 120_000);
    const waiting = () => h.status('web')?.status.containerStatuses?.[0]?.state.waiting;
    await h.until('its status tells', () => waiting()?.reason === 'CreateContainerError', 10_000);
    expect(waiting()?.message).toMatch(/outcome unknown \d times in a row/);
    mend();
    const before = h.time.clock.monoMs();
    h.write('web', pod('web', { container: { image: 'busybox:2' } }));
    await h.until('it runs', () => up(h), 60_000);
    expect(h.time.clock.monoMs() - before).toBeLessThan(10_000);
  });
});
