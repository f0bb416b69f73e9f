/** The packet filter and kernel settings of simulated machines, and the watch of the node's own object: what is drawn, and that worlds with it hold. */

import { enforceKernelSettings } from '@actorlet/kubelet/actors/kernelSettings.ts';
import { KERNEL_SETTINGS } from '@actorlet/kubelet/machines/host/kernelSettings.ts';
import { runSim } from '@actorlet/sim/src/index.ts';
import { drawInitialEvents, initialEventsTrouble } from '@actorlet/sim/src/nemesis/draws/initialEvents.ts';
import { drawKernelSettings, kernelSettingsTrouble } from '@actorlet/sim/src/nemesis/draws/node/kernelSettings.ts';
import { nodeWatchTrouble } from '@actorlet/sim/src/nemesis/draws/node/nodeWatch.ts';
import { drawPacketFilter, packetFilterTrouble } from '@actorlet/sim/src/nemesis/draws/node/packetFilter.ts';
import { type Add, type Drawn, promptAdder } from '@actorlet/sim/src/nemesis/entries.ts';
import type { Fault } from '@actorlet/sim/src/nemesis/faults.ts';
import { describe, expect, it, vi } from 'vitest';
import { rotating } from '../../../test/rotation.ts';
import { type SysctlVerdict, simKernelSettings } from '../src/host/kernelSettings.ts';
import { type SimRng, simRng } from '../src/rng.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Of one node each, which changes no setting, and which sets them. */
const PROTECTS = 42;
const SETS = 11;

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

  it('are kernel settings on two nodes in ten, of which some change none, and trouble with them at a start in each way', () => {
    const drawn = SEEDS.map((rng) => drawKernelSettings(rng.fork('kernel'))).filter((k) => k !== null);
    expect(drawn.length).toBeGreaterThan(35);
    expect(drawn.length).toBeLessThan(85);
    expect(new Set(drawn.map((k) => k.protect))).toEqual(new Set([true, false]));
    const ways = ['sysctl changed', 'sysctl unreadable', 'sysctl readonly', 'sysctl forbidden', 'node.kill process', 'node.kill power'];
    expect([...drawnBy(kernelSettingsTrouble)].sort()).toEqual(ways.sort());
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
it.each(rotating('seeds with a packet filter', [9, 23, 49], 3))('holds every invariant in seed %i', async (seed) => {
  const r = await runSim({ seed, minutes: 1 });
  expect(r.violation, JSON.stringify(r.violation)).toBeNull();
  expect(r.tuning.some((t) => t.packetFilter)).toBe(true);
});

describe('kernel settings', () => {
  const log = { info: () => {} };
  const machine = (o: { trouble?: SysctlVerdict; changed?: boolean } = {}) => {
    const settings = simKernelSettings();
    settings.reboot(true);
    if (o.changed === true) settings.set('kernel/panic', 0);
    settings.trouble = (operation) => ((operation === 'read') === (o.trouble === 'EIO') ? (o.trouble ?? 'pass') : 'pass');
    return { settings, port: settings.connect({ power: { on: true } }) };
  };
  const PANIC = 'invalid kernel flag: kernel/panic, expected value: 10, actual value: 0';

  it.each([
    ['none differs', {}, { protect: false }, []],
    ['one is set', { changed: true }, { protect: false }, []],
    ['one differs, and none may be set', { changed: true }, { protect: true }, [PANIC]],
    [
      'the place is read-only',
      { changed: true, trouble: 'EROFS' },
      { protect: false },
      [`${PANIC}, and cannot be changed: EROFS: read-only file system, open '/proc/sys/kernel/panic'`],
    ],
    [
      'this user may not write',
      { changed: true, trouble: 'EPERM' },
      { protect: false },
      [`${PANIC}, and cannot be changed: EPERM: operation not permitted, open '/proc/sys/kernel/panic'`],
    ],
  ] as const)('refuse a start with the words of the reference, or not: %s', async (_, host, { protect }, problems) => {
    const { settings, port } = machine(host);
    expect(await enforceKernelSettings(port, { protect, log })).toEqual(problems);
    expect(settings.values.get('kernel/panic')).toBe(problems.length === 0 ? '10\n' : '0\n');
  });

  it('that cannot be changed in a user namespace are left with gate KubeletInUserNamespace, and named with a hint without it', async () => {
    const { port } = machine({ changed: true, trouble: 'EPERM' });
    expect(await enforceKernelSettings(port, { protect: false, log, userNamespace: 'ignored' })).toEqual([]);
    const [problem] = await enforceKernelSettings(port, { protect: false, log, userNamespace: 'refused' });
    expect(problem).toMatch(/cannot be changed: EPERM.*\(Hint: enable KubeletInUserNamespace feature flag to ignore the error\)$/);
  });

  it('that cannot be read refuse a start, each by name', async () => {
    const problems = await enforceKernelSettings(machine({ trouble: 'EIO' }).port, { protect: false, log });
    expect(problems).toHaveLength(KERNEL_SETTINGS.length);
    expect(problems[0]).toBe("vm.overcommit_memory cannot be read: EIO: i/o error, open '/proc/sys/vm/overcommit_memory'");
  });

  // Over a kill of the daemon: some of its starts are refused.
  const always = { node: 0, afterSteps: 0, probability: 1, select: {} } as const;
  it.each([
    [PROTECTS, 'changed'],
    [SETS, 'unreadable'],
    [SETS, 'readonly'],
    [SETS, 'forbidden'],
  ] as const)('hold every invariant in seed %i when they are %s at a start', async (seed, action) => {
    const schedule: Fault[] = [
      { ...always, id: 0, atMs: 1_000, forMs: 9_000, kind: 'sysctl', action: 'changed' },
      { ...always, id: 1, atMs: 1_000, forMs: 9_000, kind: 'sysctl', action },
      { ...always, id: 2, atMs: 2_000, forMs: 0, kind: 'node.kill', action: 'process', downMs: 100 },
    ];
    const r = await runSim({ seed, nodes: 1, minutes: 1, pods: 2, schedule });
    expect(r.violation, JSON.stringify(r.violation)).toBeNull();
    expect(r.tuning[0]?.kernel).toEqual({ protect: seed === PROTECTS });
    expect(r.faults.get('node.kill')).toBe(1);
    expect(r.edges.size).toBeGreaterThan(0);
  });
});
