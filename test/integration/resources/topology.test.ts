/** Topology manager and memory manager on a whole node of two NUMA nodes with four CPUs each, in virtual time. */
import { describe, expect } from 'vitest';
import { topologyView } from '../../../src/machines/allocation/coordinator/messages.ts';
import type { PluginDevice } from '../../../src/machines/allocation/devices/types.ts';
import { decodeMemoryState } from '../../../src/machines/allocation/memory/file.ts';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import { waitingPodsView } from '../../../src/machines/pods/admission/messages.ts';
import { cluster, create, created, createReady, drop, envOf, inApi, isReady } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const GI = 2 ** 30;
const FILE = `${ROOT}/memory_manager_state`;
const RESOURCE = 'example.com/gpu';
const RECONCILED_MS = 30_000;

const MACHINE = {
  cpus: [0, 1, 2, 3, 4, 5, 6, 7].map((id) => ({ id, socket: Math.floor(id / 4), siblings: [id], node: Math.floor(id / 4) })),
  numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 4 * GI, hugePages: [], distances: id === 0 ? [10, 21] : [21, 10] })),
};
const STATIC: Partial<KubeletConfiguration> = {
  cpuManagerPolicy: 'static',
  reservedSystemCPUs: '0',
  memoryManagerPolicy: 'Static',
  systemReserved: { memory: '412Mi' },
  evictionHard: { 'memory.available': '100Mi' },
  reservedMemory: [{ numaNode: 0, limits: { memory: '512Mi' } }],
};
const devices = (...nodes: number[]): PluginDevice[] => nodes.map((node, i) => ({ id: `d${i}`, healthy: true, numaNodes: [node] }));
async function node(config: Partial<KubeletConfiguration> = {}, gpus: PluginDevice[] = []): Promise<VirtualNode> {
  const h = await cluster({
    ...MACHINE,
    config: { ...STATIC, ...config },
    devices: true,
    before: (w) => {
      if (gpus.length > 0) w.devices.add(`${ROOT}/device-plugins/gpu.sock`, { resource: RESOURCE, devices: gpus });
    },
  });
  if (gpus.length > 0) await h.advance(5_000);
  return h;
}
const it = itWith(node);

const whole = (cpu: string, memory = '512Mi', more: Record<string, string> = {}) => {
  const amounts = { cpu, memory, ...more };
  return { container: { resources: { requests: amounts, limits: amounts } } };
};
const place = (h: VirtualNode, name: string) => {
  const { cpusetCpus, cpusetMems } = created(h, name).at(-1)?.linux?.resources ?? {};
  return [cpusetCpus, cpusetMems];
};
const refusal = (h: VirtualNode, name: string) => {
  const status = inApi(h, name)?.status;
  return status?.phase === 'Failed' ? [status.reason, status.message] : undefined;
};
const figures = async (h: VirtualNode, name: RegExp) =>
  (await h.metrics.render())
    .split('\n')
    .filter((line) => name.test(line))
    .sort();
const free = (h: VirtualNode) => {
  const read = decodeMemoryState(h.fs.textOf(FILE) ?? '');
  if (!read.ok) throw new Error(read.why);
  return [...read.ledger.machine.values()].map(({ tables }) => (tables.get('memory')?.free ?? 0) / 2 ** 20);
};

describe('the memory manager', () => {
  it('gives a Guaranteed pod memory of one NUMA node, tells the runtime, and writes it down', async ({ h }) => {
    create(h, 'one', whole('1', '1Gi'));
    create(h, 'shares', { container: {} });
    await h.until('both are ready', () => isReady(h, 'one') && isReady(h, 'shares'));
    expect(place(h, 'one')).toEqual(['1', '0']);
    expect(place(h, 'shares')[1]).toBeUndefined();
    expect(free(h)).toEqual([4096 - 512 - 1024, 4096]);
    expect(h.podResources?.get({ namespace: 'default', name: 'one' }).containers[0]?.memory).toEqual([
      { memoryType: 'memory', size: GI, topology: { nodes: [{ ID: 0 }] } },
    ]);
    expect(h.podResources?.allocatable().memory.map((m) => m.size)).toEqual([3.5 * GI, 4 * GI]);
    drop(h, 'pods/one');
    await h.until('its memory is free', () => free(h)[0] === 4096 - 512, 3 * RECONCILED_MS);
    expect(await figures(h, /^kubelet_memory_manager/)).toEqual([
      'kubelet_memory_manager_pinning_errors_total 0',
      'kubelet_memory_manager_pinning_requests_total 1',
    ]);
  });

  it('gives of two NUMA nodes together what one has not, and not of one that gives alone', async ({ h }) => {
    await createReady(h, 'wide', whole('1', '5Gi'));
    expect(place(h, 'wide')[1]).toBe('0-1');
    // Both give together only from now on.
    await createReady(h, 'small', whole('1', '1Gi'));
    expect(place(h, 'small')[1]).toBe('0-1');
    for (const name of ['wide', 'small']) drop(h, `pods/${name}`);
    await h.until('all is free', () => free(h).join() === '3584,4096', 3 * RECONCILED_MS);
    await createReady(h, 'alone', whole('1', '1Gi'));
    create(h, 'late', whole('1', '5Gi'));
    await h.until('it is refused', () => refusal(h, 'late') !== undefined);
    expect(refusal(h, 'late')).toEqual([
      'UnexpectedAdmissionError',
      'Pod was rejected: Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available, which is unexpected',
    ]);
  });

  it('uses memory of init containers again, and frees what is left of it when they are over', async ({ h }) => {
    const { resources } = whole('1', '2Gi').container;
    await createReady(h, 'steps', { ...whole('1', '1Gi'), inits: [{ resources }], lives: { 'init-0': 'run=1s' } });
    await h.until('only its own is left', () => free(h)[0] === 4096 - 512 - 1024, 3 * RECONCILED_MS);
    // In a new sandbox they run again, on the NUMA nodes of the pod.
    const [sandbox] = h.runtime.dump().sandboxes;
    const call = { timeoutMs: 10_000, signal: new AbortController().signal };
    void h.runtime.connect().call('StopPodSandbox', { podSandboxId: sandbox?.id ?? '' }, call);
    await h.until('it has run twice', () => created(h, 'steps').filter((c) => c.metadata?.name === 'init-0').length === 2);
    await h.until('it is ready again', () => isReady(h, 'steps'));
    expect(place(h, 'steps')).toEqual(['1', '0']);
  });

  it('keeps it over a restart of the daemon', async ({ h }) => {
    await createReady(h, 'one', whole('1', '1Gi'));
    const before = h.fs.textOf(FILE);
    h.kill('node/allocation/memory');
    await h.advance(RECONCILED_MS);
    await createReady(h, 'two', whole('1', '1Gi'));
    expect(before).not.toBe(h.fs.textOf(FILE));
    expect(free(h)[0]).toBe(4096 - 512 - 2048);
  });
});

describe('the topology manager', () => {
  it('puts CPUs, memory and devices of a container on one NUMA node', async () => {
    await using h = await node({ topologyManagerPolicy: 'single-numa-node' }, devices(0, 1, 1));
    await createReady(h, 'near', whole('2', '512Mi', { [RESOURCE]: '2' }));
    expect(place(h, 'near')).toEqual(['4-5', '1']);
    expect(envOf(created(h, 'near').at(-1)).GPU_IDS).toBe('d1,d2');
    const [seen] = [...(h.tree.registry.read(topologyView)?.value.values() ?? [])].filter(({ pod }) => pod === 'default/near');
    expect(seen?.decisions).toEqual([
      {
        container: 'main',
        affinity: { nodes: [1], preferred: true },
        chosen: 'NUMA 1',
        outcome: 'admitted',
        hints: [
          'example.com/gpu (devices): NUMA 1; 1 wider or worse',
          'cpu (cpus): NUMA 0, 1; 1 wider or worse',
          'memory (memory): NUMA 0, 1; 1 wider or worse',
        ],
      },
    ]);
    expect(await figures(h, /^kubelet_(topology_manager_admission_(requests|errors)|container_aligned.*numa_node)/)).toEqual([
      'kubelet_container_aligned_compute_resources_count{boundary="numa_node",scope="container"} 1',
      'kubelet_container_aligned_compute_resources_count{boundary="numa_node",scope="pod"} 0',
      'kubelet_container_aligned_compute_resources_failure_count{boundary="numa_node",scope="container"} 0',
      'kubelet_container_aligned_compute_resources_failure_count{boundary="numa_node",scope="pod"} 0',
      'kubelet_topology_manager_admission_errors_total 0',
      'kubelet_topology_manager_admission_requests_total 1',
    ]);
  });

  it('refuses what is on no one NUMA node, and says what each provider could give', async () => {
    await using h = await node({ topologyManagerPolicy: 'single-numa-node' }, devices(0, 1));
    create(h, 'apart', whole('1', '512Mi', { [RESOURCE]: '2' }));
    await h.until('it is refused', () => refusal(h, 'apart') !== undefined);
    const [reason, message] = refusal(h, 'apart') ?? [];
    expect(reason).toBe('TopologyAffinityError');
    expect(message).toMatch(
      /^Pod was rejected: Resources cannot be allocated with Topology locality \(container main: example.com\/gpu \(devices\): NUMA 0\+1;/,
    );
    // Nothing of it is held: another one fits.
    await createReady(h, 'one', whole('3', '512Mi', { [RESOURCE]: '1' }));
  });

  it('keeps what one provider gave while another takes its time', async () => {
    await using h = await node({ topologyManagerPolicy: 'single-numa-node' });
    await h.until('there is a file', () => h.fs.has(FILE));
    h.fs.failing = (op, path) => (op === 'writeFile' && path.includes('memory_manager_state') ? 'EIO' : undefined);
    create(h, 'slow', whole('2'));
    // Longer than a pod is believed in that no view shows, and within the time of an answer.
    await h.advance(20_000);
    expect(place(h, 'slow')).toEqual([undefined, undefined]);
    h.fs.failing = () => undefined;
    await h.until('it is ready', () => isReady(h, 'slow'), 120_000);
    expect(place(h, 'slow')).toEqual(['1-2', '0']);
  });

  it('admits it under best-effort', async () => {
    await using h = await node({ topologyManagerPolicy: 'best-effort' }, devices(0, 1));
    await createReady(h, 'apart', whole('1', '512Mi', { [RESOURCE]: '2' }));
  });

  it('waits for what a pod on its way out still holds', async () => {
    await using h = await node({ topologyManagerPolicy: 'single-numa-node', topologyManagerScope: 'pod' });
    for (const name of ['first', 'other']) {
      create(h, name, whole('2', '64Mi'));
      await h.until(`${name} is ready`, () => isReady(h, name));
    }
    expect([place(h, 'first')[0], place(h, 'other')[0]]).toEqual(['1-2', '4-5']);
    h.faults.latencyMs.StopContainer = 20_000;
    drop(h, 'pods/first');
    // There are three, and not on one NUMA node.
    create(h, 'second', whole('3', '64Mi'));
    await h.until('it waits', () => (h.tree.registry.read(waitingPodsView)?.value.size ?? 0) > 0);
    expect(refusal(h, 'second')).toBeUndefined();
    h.faults.latencyMs = {};
    await h.until('it is ready', () => isReady(h, 'second'), 60_000);
    expect(place(h, 'second')).toEqual(['1-3', '0']);
  });

  it('puts the containers of a pod on one NUMA node in scope pod, and on several in scope container', async () => {
    const two = (cpu: string) => {
      const { resources } = whole(cpu).container;
      return {
        container: { resources },
        spec: {
          containers: [
            { name: 'main', image: 'busybox:1', resources },
            { name: 'side', image: 'busybox:1', resources },
          ],
        },
      };
    };
    const places = async (topologyManagerScope: 'container' | 'pod') => {
      await using h = await node({ topologyManagerPolicy: 'restricted', topologyManagerScope });
      await createReady(h, 'two', two('2'));
      // Each container counts once, as often as its pod is asked about.
      expect(await figures(h, /^kubelet_cpu_manager_pinning_requests/)).toEqual(['kubelet_cpu_manager_pinning_requests_total 2']);
      return created(h, 'two').map((c) => c.linux?.resources?.cpusetCpus);
    };
    expect(await places('pod')).toEqual(['4-5', '6-7']);
    expect(await places('container')).toEqual(['1-2', '4-5']);
  });

  it('admits a burst with a few writes, however slow the disk is', async () => {
    await using h = await node({ topologyManagerPolicy: 'best-effort', maxPods: 60 });
    let writes = 0;
    h.fs.delayMs = (op, path) => {
      if (op !== 'writeFile' || !/_manager_state/.test(path)) return 0;
      writes += 1;
      return 200;
    };
    const names = Array.from({ length: 40 }, (_, i) => `p${i}`);
    const beganMs = h.time.clock.monoMs();
    for (const name of names) create(h, name, whole('10m', '4Mi'));
    await h.until('all are ready', () => names.every((name) => isReady(h, name)));
    // Pods that wait for each other's write take 40 of them, and 8 seconds.
    expect(writes).toBeLessThan(10);
    expect(h.time.clock.monoMs() - beganMs).toBeLessThan(4_000);
    expect(free(h)[0]).toBe(4096 - 512 - 40 * 4);
  });

  it('asks anew when a provider ends between its draft and the write', async () => {
    await using h = await node({ topologyManagerPolicy: 'single-numa-node' });
    h.fs.delayMs = (op, path) => (op === 'writeFile' && path.includes('memory_manager_state') ? 5_000 : 0);
    create(h, 'slow', whole('2'));
    await h.advance(2_000);
    expect(place(h, 'slow')).toEqual([undefined, undefined]);
    h.kill('node/allocation/memory');
    h.fs.delayMs = () => 0;
    await h.until('it is ready', () => isReady(h, 'slow'), 60_000);
    expect(place(h, 'slow')).toEqual(['1-2', '0']);
    expect(free(h)).toEqual([4096 - 512 - 512, 4096]);
  });

  it('does not count CPUs of init containers as free with full-pcpus-only, as the kubelet', async () => {
    await using h = await node({ topologyManagerPolicy: 'none', cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' } });
    create(h, 'steps', { ...whole('1', '64Mi'), inits: [{ resources: whole('7', '64Mi').container.resources }] });
    await h.until('it is refused', () => refusal(h, 'steps') !== undefined);
    expect(refusal(h, 'steps')).toEqual([
      'SMTAlignmentError',
      'Pod was rejected: SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 0, requested CPUs = 1, CPUs per core = 1',
    ]);
  });

  it('takes pods in turn: none is given what another was promised', async () => {
    await using h = await node({ topologyManagerPolicy: 'single-numa-node' });
    for (const name of ['a', 'b', 'c']) create(h, name, whole('2', '64Mi'));
    await h.until('all are ready', () => ['a', 'b', 'c'].every((name) => isReady(h, name)));
    expect(['a', 'b', 'c'].map((name) => place(h, name).join(' ')).sort()).toEqual(['1-2 0', '4-5 1', '6-7 1']);
  });
});
