/** The packet filter of simulated machines and the watch of the node's own object: what is drawn, and that worlds with it hold. */
import { describe, expect, it, vi } from 'vitest';
import { runSim } from '../../src/sim/index.ts';
import { drawInitialEvents, initialEventsTrouble } from '../../src/sim/nemesis/draws/initialEvents.ts';
import { nodeWatchTrouble } from '../../src/sim/nemesis/draws/nodeWatch.ts';
import { drawPacketFilter, packetFilterTrouble } from '../../src/sim/nemesis/draws/packetFilter.ts';
import type { Add, Drawn } from '../../src/sim/nemesis/entries.ts';
import { promptAdder } from '../../src/sim/nemesis/entries.ts';
import { type SimRng, simRng } from '../../src/sim/world/rng.ts';

vi.setConfig({ testTimeout: 120_000 });

const SEEDS = Array.from({ length: 300 }, (_, seed) => simRng(`n ${seed}`));

function drawnBy(trouble: (rng: SimRng, o: { spanMs: number }, add: Add) => void): Set<string> {
  const drawn: Drawn[] = [];
  for (const rng of SEEDS) trouble(rng.fork('trouble'), { spanMs: 60_000 }, promptAdder(drawn, 0));
  return new Set(drawn.map(({ act }) => `${act.kind} ${'action' in act ? act.action : ''}`.trim()));
}

describe('what is drawn apart from everything else', () => {
  it('is a packet filter on three nodes in ten, and commands to it that go wrong in each way', () => {
    const some = SEEDS.filter((rng) => drawPacketFilter(rng.fork('filter'))).length;
    expect(some).toBeGreaterThan(60);
    expect(some).toBeLessThan(120);
    const ways = ['iptables.flush', 'iptables error', 'iptables hang', 'iptables locked', 'actor.kill'];
    expect([...drawnBy(packetFilterTrouble)].sort()).toEqual(ways.sort());
  });

  it('is a watch of the own object that is silent, late or expired', () => {
    const ways = ['api.watch silence', 'api.watch delay', 'api.watch expire', 'node.moved', 'history.compact'];
    expect([...drawnBy(nodeWatchTrouble)].sort()).toEqual(ways.sort());
  });

  it('are API servers that send, refuse and ignore, and streams that break off or come twice', () => {
    expect(new Set(SEEDS.map((rng) => drawInitialEvents(rng.fork('server'))))).toEqual(new Set(['send', 'refuse', 'ignore']));
    const ways = ['api.watch duplicate', 'api.watch truncate', 'api.watch close', 'history.compact', 'actor.kill'];
    expect([...drawnBy(initialEventsTrouble)].sort()).toEqual(ways.sort());
  });
});

// Each with chains in the packet filter, one of them with a cluster.
it.each([9, 23, 49])('holds every claim in seed %i', async (seed) => {
  const r = await runSim({ seed, minutes: 1 });
  expect(r.violation, JSON.stringify(r.violation)).toBeNull();
  expect(r.tuning.some((t) => t.packetFilter)).toBe(true);
});
