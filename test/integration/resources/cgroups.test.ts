/** Cgroups of the node's own, in a whole node: resources 1.4 to 1.8, and traps 13 to 19. */
import { expect, it } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { Ports } from '../../../src/ports/ports.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const manager = 'node/allocation/cgroups';
const reaper = 'node/allocation/cgroupReaper';
const FILES = { cpu: 'cpu.weight', quota: 'cpu.max', memory: 'memory.max', pages: 'hugetlb.2MB.max', pids: 'pids.max' } as const;

const groups = (h: VirtualNode): string[] => [...h.cgroups.groups.keys()].filter((p) => p !== '').sort();
const pods = (h: VirtualNode): string[] => groups(h).filter((p) => p.includes('/pod'));
const value = (h: VirtualNode, path: string, file: keyof typeof FILES): string | undefined => h.cgroups.groups.get(path)?.get(FILES[file]);
const events = (h: VirtualNode, reason: string): string[] =>
  (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === reason).map((e) => `${e.type} ${e.message}`);
const both = { cpu: '500m', memory: '64Mi' };
const limited = (resources: object) => [{ name: 'main', image: 'busybox:1', resources }];

it('makes groups only where they were asked for', async () => {
  await using h = await virtualNode();
  await h.run('a', pod('a'));
  expect(groups(h)).toEqual([]);
  expect(h.actor(manager)).toBeUndefined();
  expect(h.runtime.dump().sandboxes.map((s) => s.cgroupParent)).toEqual([undefined]);
});

it('traps 14 and 16: puts each pod into its group before its sandbox is made, one that is Guaranteed right below kubepods', async () => {
  await using h = await virtualNode({ cgroups: true });
  const seen: string[] = [];
  h.faults.fault = (method, req) => {
    const parent = (req as { config?: { linux?: { cgroupParent?: string } } }).config?.linux?.cgroupParent ?? 'none';
    if (method === 'RunPodSandbox') seen.push(`${parent} ${h.cgroups.groups.has(parent)}`);
    return undefined;
  };
  h.write('g', pod('g', { spec: { containers: limited({ limits: both }) } }));
  h.write('b', pod('b', { spec: { containers: limited({ requests: both }) } }));
  h.write('e', pod('e'));
  await h.until('all run', () => ['g', 'b', 'e'].every((n) => h.phase(n) === 'Running'));
  const [g, b, e] = [`/kubepods/pod${h.uid('g')}`, `/kubepods/burstable/pod${h.uid('b')}`, `/kubepods/besteffort/pod${h.uid('e')}`];
  expect(groups(h)).toEqual(['/kubepods', '/kubepods/besteffort', '/kubepods/burstable', g, b, e].sort());
  expect(seen.sort()).toEqual([g, b, e].map((p) => `${p} true`).sort());
  const of = (path: string) => [value(h, path, 'cpu'), value(h, path, 'quota'), value(h, path, 'memory'), value(h, path, 'pages')];
  expect(of(g)).toEqual(['20', '50000 100000', String(64 << 20), '0']);
  expect(of(b)).toEqual(['20', 'max 100000', 'max', '0']);
  expect(of(e)).toEqual(['1', 'max 100000', 'max', '0']);
  expect(of('/kubepods/burstable')).toEqual(['20', undefined, undefined, String(1n << 62n)]);

  for (const name of ['g', 'b', 'e']) h.remove(name);
  await h.until('none is left', () => pods(h).length === 0, 120_000);
  await h.until('the class weighs nothing any more', () => value(h, '/kubepods/burstable', 'cpu') === '1', 120_000);
  expect(groups(h)).toEqual(['/kubepods', '/kubepods/besteffort', '/kubepods/burstable']);
});

it('trap 13: limits a pod as a whole only where all of its containers are limited', async () => {
  await using h = await virtualNode({ cgroups: true });
  const one = { name: 'one', image: 'busybox:1', resources: { limits: { memory: '64Mi' } } };
  h.write('partly', pod('partly', { spec: { containers: [one, { name: 'two', image: 'busybox:1' }] } }));
  h.write('all', pod('all', { spec: { containers: [one, { ...one, name: 'two' }] } }));
  await h.until('both run', () => ['partly', 'all'].every((n) => h.phase(n) === 'Running'));
  expect(value(h, `/kubepods/burstable/pod${h.uid('partly')}`, 'memory')).toBe('max');
  expect(value(h, `/kubepods/burstable/pod${h.uid('all')}`, 'memory')).toBe(String(128 << 20));
});

it('takes a pod whose limits as a whole its containers could go beyond, since its group holds them', async () => {
  await using h = await virtualNode({ cgroups: true });
  const containers = ['one', 'two'].map((name) => ({ name, image: 'busybox:1' }));
  await h.run('whole', pod('whole', { spec: { containers, resources: { requests: { cpu: '1' }, limits: { cpu: '2', memory: '1Gi' } } } }));
  const path = `/kubepods/burstable/pod${h.uid('whole')}`;
  expect([value(h, path, 'cpu'), value(h, path, 'quota'), value(h, path, 'memory')]).toEqual(['39', '200000 100000', String(1 << 30)]);
  // What it asks for beyond its containers is the weight of its group, not shared out among them.
  const made = h.calls.filter((c) => c.method === 'CreateContainer');
  expect(made).toHaveLength(2);
});

it('trap 17: what hard eviction defends is kept back from what is told, not from what is enforced', async () => {
  const config = { evictionHard: { 'memory.available': '512Mi' }, kubeReserved: { memory: '1Gi' }, systemReserved: { cpu: '500m' } };
  await using h = await virtualNode({ cgroups: true, config });
  await h.until('it is enforced', () => h.state(manager) === 'enforced');
  expect(value(h, '/kubepods', 'memory')).toBe(String(7 * 1024 ** 3));
  expect(h.node.facts.allocatable.memory).toBe('6656Mi');
  expect(value(h, '/kubepods', 'cpu')).toBe('137');
  expect(value(h, '/kubepods', 'pids')).toBe('32768');
  expect(events(h, 'NodeAllocatableEnforced')).toEqual(['Normal Updated Node Allocatable limit across pods']);
});

it('trap 18: a limit below what is used is tried again each minute, and both is said', async () => {
  let full = true;
  const before = (n: VirtualNode): void => {
    n.cgroups.failing = (operation, path, file) =>
      full && operation === 'apply' && path === '/kubepods' && file === FILES.memory ? 'EBUSY' : null;
  };
  await using h = await virtualNode({ cgroups: true, before });
  await h.until('it is not enforced', () => h.state(manager) === 'notEnforced');
  expect(events(h, 'FailedNodeAllocatableEnforcement')).toEqual([
    expect.stringMatching(/^Warning Failed to update Node Allocatable Limits "\/kubepods": EBUSY: /),
  ]);
  // Pods run meanwhile.
  await h.run('a', pod('a'));
  await h.advance(50_000);
  expect(events(h, 'NodeAllocatableEnforced')).toEqual([]);
  full = false;
  await h.until('it is enforced', () => h.state(manager) === 'enforced', 20_000);
  expect(events(h, 'NodeAllocatableEnforced')).toHaveLength(1);
  expect(value(h, '/kubepods', 'memory')).toBe(String(8 * 1024 ** 3));
  await h.advance(180_000);
  expect(events(h, 'NodeAllocatableEnforced')).toHaveLength(1);
});

it('trap 19: the group of a pod stays while its volumes do, with hardly any weight', async () => {
  await using h = await virtualNode({ cgroups: true });
  let busy = true;
  h.mounts.trouble.failing = (op) => (op === 'unmount' && busy ? 'EBUSY' : undefined);
  const volume = { name: 'v', emptyDir: { medium: 'Memory' } };
  const containers = [{ name: 'main', image: 'busybox:1', resources: { requests: both }, volumeMounts: [{ name: 'v', mountPath: '/v' }] }];
  await h.run('a', pod('a', { spec: { volumes: [volume], containers } }));
  const path = `/kubepods/burstable/pod${h.uid('a')}`;
  expect(value(h, path, 'cpu')).toBe('20');
  h.remove('a');
  await h.until('it weighs hardly anything', () => value(h, path, 'cpu') === '1', 120_000);
  await h.advance(120_000);
  expect(pods(h)).toEqual([path]);
  busy = false;
  await h.until('it is gone', () => pods(h).length === 0, 300_000);
});

it('holds a pod back whose group cannot be made, says so, and goes on when it can', async () => {
  await using h = await virtualNode({ cgroups: true });
  let broken = true;
  h.cgroups.failing = (operation, path) => (broken && operation === 'create' && path.includes('/pod') ? 'EIO' : null);
  h.write('a', pod('a'));
  await h.until('it is said', () => events(h, 'FailedCreatePodContainer').length > 0);
  expect(events(h, 'FailedCreatePodContainer')[0]).toMatch(/^Warning unable to ensure pod container exists: EIO: create/);
  expect(h.runtime.dump().sandboxes).toEqual([]);
  broken = false;
  await h.until('it runs', () => h.phase('a') === 'Running', 120_000);
});

it('makes all again when somebody took its groups away, and waits for a root that is not there', async () => {
  await using h = await virtualNode({ cgroups: true, config: { cgroupRoot: '/lab' }, ready: false });
  await h.until('it cannot', () => h.state(manager) === 'unprepared');
  h.cgroups.put('/lab');
  await h.until('it can', () => h.state(manager) === 'enforced');
  expect(groups(h)).toContain('/lab/kubepods/burstable');
  h.cgroups.take('/lab/kubepods');
  await h.until('it noticed', () => h.state(manager) === 'renewFailed', 120_000);
  await h.until('it is there again', () => value(h, '/lab/kubepods', 'memory') !== undefined && h.state(manager) === 'enforced');
});

it('MemoryQoS and QOSReserved: floors and ceilings of the classes follow their pods, a class over its own is held at what it has', async () => {
  const config = {
    memoryReservationPolicy: 'TieredReservation',
    qosReserved: { memory: '50%' },
    featureGates: { QOSReserved: true, MemoryQoS: true },
    kubeReserved: { memory: '1Gi' },
  };
  await using h = await virtualNode({ cgroups: true, config });
  const gi = 1024 ** 3;
  const file = (path: string, name: string) => h.cgroups.groups.get(path)?.get(name);
  await h.until('it is enforced', () => h.state(manager) === 'enforced');
  expect(file('/kubepods/besteffort', 'memory.max')).toBe(String(7 * gi));
  await h.run('b', pod('b', { spec: { containers: limited({ requests: { cpu: '100m', memory: '2Gi' } }) } }));
  expect(file(`/kubepods/burstable/pod${h.uid('b')}`, 'memory.low')).toBe(String(2 * gi));
  expect(file('/kubepods/burstable', 'memory.low')).toBe(String(2 * gi));
  expect(file('/kubepods', 'memory.low')).toBe(String(2 * gi));
  const kept = (await h.metrics.render()).split('\n').filter((line) => line.startsWith('kubelet_memory_qos_node_memory_'));
  expect(kept.sort()).toEqual([`kubelet_memory_qos_node_memory_low_bytes ${2 * gi}`, 'kubelet_memory_qos_node_memory_min_bytes 0']);
  expect(file('/kubepods/besteffort', 'memory.max')).toBe(String(6 * gi));
  h.cgroups.failing = (operation, path, name) =>
    operation === 'apply' && path === '/kubepods/besteffort' && name === 'memory.max' && file(path, name) === String(6 * gi)
      ? 'EBUSY'
      : null;
  h.write('c', pod('c', { spec: { containers: limited({ requests: { memory: '1Gi' } }) } }));
  await h.until('it runs', () => h.phase('c') === 'Running', 120_000);
  h.cgroups.failing = () => null;
  await h.until('it is held to less', () => file('/kubepods/besteffort', 'memory.max') === String(5.5 * gi), 120_000);
});

it('moves this agent and the programs of the system into their groups, again each minute', async () => {
  await using h = await virtualNode({ cgroups: true, config: { cgroupRoot: '/', kubeletCgroups: '/agent', systemCgroups: '/system' } });
  await h.until('they are there', () => h.cgroups.groups.has('/agent') && h.cgroups.groups.has('/system'));
  h.cgroups.take('/agent');
  await h.until('it is there again', () => h.cgroups.groups.has('/agent'), 70_000);
});

const saying = (cgroupDriver: 'SYSTEMD' | 'CGROUPFS') => (h: VirtualNode) => {
  h.faults.answer = (method, answer) => (method === 'RuntimeConfig' ? { linux: { cgroupDriver } } : answer);
};
const parents = (h: VirtualNode) => h.runtime.dump().sandboxes.map((s) => s.cgroupParent);

it('makes slices for a runtime with the systemd driver, and takes them away again', async () => {
  await using h = await virtualNode({ cgroups: true, before: saying('SYSTEMD') });
  h.write('a', pod('a', { spec: { containers: limited({ limits: both }) } }));
  h.write('b', pod('b', { uid: 'with_underscore' }));
  await h.until('they run', () => h.phase('a') === 'Running' && h.phase('b') === 'Running');
  const slice = `/kubepods.slice/kubepods-pod${h.uid('a').replaceAll('-', '_')}.slice`;
  const best = '/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podwith_underscore.slice';
  expect(parents(h).sort()).toEqual([best, slice].sort());
  expect(value(h, slice, 'memory')).toBe(String(64 << 20));
  await h.advance(70_000);
  // A slice does not tell a dash from an underscore; its pod is known all the same.
  expect(h.cgroups.groups.has(best)).toBe(true);
  h.remove('a');
  h.remove('b');
  await h.until('their slices are gone', () => !h.cgroups.groups.has(slice) && !h.cgroups.groups.has(best), 120_000);
});

it('shows the driver of the runtime in /configz, whatever the configuration says', async () => {
  let admin: Parameters<Ports['net']['serveHttp']>[1] | undefined;
  await using h = await virtualNode({
    cgroups: true,
    config: { cgroupDriver: 'cgroupfs' },
    before: saying('SYSTEMD'),
    ports: (ports) => ({
      ...ports,
      net: {
        ...ports.net,
        serveHttp: (at, handler) => {
          if ('socketPath' in at) admin = handler;
          return ports.net.serveHttp(at, handler);
        },
      },
    }),
  });
  await h.until('it is enforced', () => h.state(manager) === 'enforced' && admin !== undefined);
  const signal = new AbortController().signal;
  const reply = await admin?.({
    method: 'GET',
    path: '/configz',
    query: new URLSearchParams(),
    headers: {},
    body: new Uint8Array(),
    signal,
  });
  expect(JSON.parse(String(reply?.body))).toMatchObject({ kubeletconfig: { kind: 'KubeletConfiguration', cgroupDriver: 'systemd' } });
});

it('makes its groups anew where the runtime came back with another driver', async () => {
  await using h = await virtualNode({ cgroups: true });
  await h.until('it is enforced', () => h.state(manager) === 'enforced');
  saying('SYSTEMD')(h);
  expect(h.kill('node/runtime/cri')).toBe(true);
  await h.until(
    'slices are there',
    () => h.cgroups.groups.has('/kubepods.slice/kubepods-burstable.slice') && h.state(manager) === 'enforced',
  );
  await h.run('a', pod('a'));
  expect(parents(h)[0]).toMatch(/^\/kubepods\.slice\//);
});

it('takes the driver of the configuration where the runtime does not say its own', async () => {
  await using h = await virtualNode({
    cgroups: true,
    config: { cgroupDriver: 'systemd' },
    before: (v) => {
      v.faults.fault = (method) => (method === 'RuntimeConfig' ? { kind: 'refuse', code: 12, details: 'unknown method' } : undefined);
    },
  });
  await h.run('a', pod('a'));
  expect(parents(h)[0]).toMatch(/^\/kubepods\.slice\//);
});

it('without groups names a slice to a runtime that takes nothing else, and nothing to another', async () => {
  for (const [said, parent] of [
    ['SYSTEMD', '/system.slice'],
    ['CGROUPFS', undefined],
  ] as const) {
    await using h = await virtualNode({ before: saying(said) });
    await h.run('a', pod('a'));
    expect(parents(h)).toEqual([parent]);
  }
});

it('kills what is left in the group of a pod that nobody knows, and never what the runtime runs', async () => {
  await using h = await virtualNode({ cgroups: true });
  const orphan = '/kubepods/burstable/poduid-of-nobody';
  const left = new Set([77]);
  const { pidsIn } = h.cgroups;
  h.cgroups.pidsIn = (path) => (path === orphan ? [...left] : pidsIn(path));
  const killed: string[] = [];
  h.cgroups.killed = (pids, path) => {
    killed.push(`${path} ${pids.join()}`);
    for (const pid of pids) left.delete(pid);
  };
  await h.run('a', pod('a'));
  const running = h.running('a').map((c) => c.id);
  h.cgroups.put(orphan);
  await h.until('it is gone', () => !h.cgroups.groups.has(orphan), 120_000);
  expect(killed).toEqual([`${orphan} 77`]);
  expect(h.running('a').map((c) => c.id)).toEqual(running);
  expect(pods(h)).toEqual([`/kubepods/besteffort/pod${h.uid('a')}`]);
});

it('leaves the group of a pod that runs alone when daemon, manager and reaper start over', async () => {
  await using h = await virtualNode({ cgroups: true });
  await h.run('a', pod('a', { spec: { containers: limited({ limits: both }) } }));
  const path = `/kubepods/pod${h.uid('a')}`;
  const removed: string[] = [];
  h.cgroups.failing = (operation, at) => {
    if (operation === 'remove') removed.push(at);
    return null;
  };
  for (const actor of [manager, reaper]) expect(h.kill(actor)).toBe(true);
  await h.advance(10_000);
  await h.restart();
  await h.advance(70_000);
  expect(h.state(manager)).toBe('enforced');
  expect(h.running('a')).toHaveLength(1);
  expect(pods(h)).toEqual([path]);
  expect(removed).toEqual([]);
});

/** The groups of the node and of the classes take this long; all that comes later takes no time. */
function slowGroups(h: VirtualNode, ms: number): void {
  let made = 0;
  h.cgroups.delayMs = (operation) => (operation === 'create' && made++ < 3 ? ms : 0);
}

/** Monotonic ms since the runtime is there, of each call of a method. */
function timesOf(h: VirtualNode, wanted: string): number[] {
  const beganMs = h.time.clock.monoMs();
  const times: number[] = [];
  h.faults.fault = (method) => {
    if (method === wanted) times.push(h.time.clock.monoMs() - beganMs);
    return undefined;
  };
  return times;
}

it('pods that come before the groups of the node are made wait for them, and begin at once when they are: 20 of 20 late starts', async () => {
  const names = ['a', 'b', 'c'];
  const manifests = Object.fromEntries(names.map((name) => [name, pod(name)]));
  const late: string[] = [];
  for (let start = 0; start < 20; start++) {
    const before = (n: VirtualNode): void => {
      n.faults.away = true;
      slowGroups(n, start * 100);
    };
    await using h = await virtualNode({ seed: start + 1, cgroups: true, before, manifests });
    expect(h.state(manager)).toBe('awaitingDriver');
    await h.advance(3_000 + start * 1_731);
    h.faults.away = false;
    const asked = timesOf(h, 'RunPodSandbox');
    const there = h.until('the groups are there', () => h.state(manager).startsWith('enforc')).then(() => h.time.clock.monoMs());
    const beganMs = h.time.clock.monoMs();
    const readyMs = (await there) - beganMs;
    await h.until('all are asked for', () => asked.length === names.length, 60_000);
    if (asked.some((ms) => ms - readyMs > 500)) late.push(`start ${start}: groups after ${readyMs} ms, sandboxes after ${asked}`);
    expect(events(h, 'FailedCreatePodContainer')).toEqual([]);
  }
  expect(late).toEqual([]);
});

it('a pod says what it waits for while the groups of the node cannot be made, and begins when they can', async () => {
  const before = (n: VirtualNode): void => {
    n.cgroups.failing = (operation) => (operation === 'create' ? 'EIO' : null);
  };
  await using h = await virtualNode({ cgroups: true, before });
  await h.until('they cannot', () => h.state(manager) === 'unprepared');
  h.write('a', pod('a'));
  const worker = () => h.record('a')?.worker;
  await h.until('it waits', () => worker()?.reason === 'AwaitingCgroups');
  expect(worker()?.message).toMatch(/^the cgroups of this node are not made yet: EIO: /);
  expect(events(h, 'FailedCreatePodContainer')[0]).toMatch(
    /^Warning unable to ensure pod container exists: the cgroups of this node .* EIO/,
  );
  await h.advance(120_000);
  const saidBefore = events(h, 'FailedCreatePodContainer').length;
  h.cgroups.failing = () => null;
  await h.until('they are there', () => h.state(manager) === 'enforced', 6_000);
  await h.until('it runs', () => h.phase('a') === 'Running', 2_000);
  expect(events(h, 'FailedCreatePodContainer')).toHaveLength(saidBefore);
});

it('a container that starts again as a daemon begins waits for the groups of the node, without the back-off of a failure', async () => {
  await using h = await virtualNode({ cgroups: true, manifests: { a: pod('a') } });
  await h.until('it runs', () => h.phase('a') === 'Running');
  await h.crash();
  const [container] = h.running('a');
  h.runtime.exit(container?.id ?? '', { exitCode: 1, reason: '' });
  slowGroups(h, 700);
  h.faults.away = true;
  await h.boot();
  await h.advance(5_000);
  h.faults.away = false;
  const asked = timesOf(h, 'CreateContainer');
  await h.until('it runs again', () => h.running('a').length === 1);
  expect(asked).toHaveLength(1);
  expect(asked[0]).toBeLessThan(4_000);
  expect(events(h, 'Failed')).toEqual([]);
});
