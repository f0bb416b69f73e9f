/** What /stats/summary has from cgroups and network namespaces: PSI, networks of pods, groups of the machine. */
import { describe, expect, it } from 'vitest';
import { createGroupReader } from '../../../../src/actors/edge/stats/groupReader.ts';
import { createPodUse } from '../../../../src/actors/edge/stats/podUse.ts';
import { createSystemGroups } from '../../../../src/actors/edge/stats/systemGroups.ts';
import type { CriClient } from '../../../../src/actors/runtime/client.ts';
import { NOTHING_READ } from '../../../../src/machines/edge/stats/cadvisorMetrics.ts';
import type { Summary } from '../../../../src/machines/edge/stats/stats.ts';
import { podsAtRoot, systemContainer, withGroups } from '../../../../src/machines/edge/stats/summaryGroups.ts';
import { groupMounts, placeAt } from '../../../../src/machines/figures/groupPlaces.ts';
import { psiOf } from '../../../../src/machines/figures/groupStats.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import type { Ports } from '../../../../src/ports/ports.ts';

const UID = '11111111-2222-3333-4444-555555555555';
const V2 = '30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n';
const V1 = '31 1 0:1 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n32 1 0:2 / /cg/memory rw - cgroup cgroup rw,memory\n';
const psiText = (total: number) =>
  `some avg10=1.50 avg60=2.00 avg300=3.25 total=${total}\nfull avg10=0.00 avg60=0.50 avg300=0.00 total=${total - 1}\n`;
const psi = (total: number) => ({
  some: { avg10: 1.5, avg60: 2, avg300: 3.25, total },
  full: { avg10: 0, avg60: 0.5, avg300: 0, total: total - 1 },
});
const TIME = '2026-01-01T00:00:00.000000000Z';

type Files = Pick<Ports['fs'], 'readFile' | 'readdir' | 'readlink' | 'stat' | 'statfs'>;
function disk(files: Record<string, string>): Files & { read: string[] } {
  const read: string[] = [];
  return {
    read,
    async readFile(path) {
      read.push(path);
      if (files[path] === undefined) throw new Error(`ENOENT: ${path}`);
      return new TextEncoder().encode(files[path]);
    },
    readdir: async () => [],
    readlink: async () => '',
    statfs: async () => ({ bytesTotal: 1, bytesAvailable: 1, inodesTotal: 1, inodesFree: 1 }),
    stat: async () => ({ kind: 'dir', size: 0, diskBytes: 0, links: 1, mode: 0, mtimeMs: Date.parse(TIME), ctimeMs: 0, dev: 1, ino: 1 }),
  };
}

describe('groups of the machine', () => {
  const v2 = {
    '/proc/self/mountinfo': V2,
    '/proc/self/cgroup': '0::/system.slice/actorlet.service\n',
    '/sys/fs/cgroup/system.slice/actorlet.service/cpu.stat': 'usage_usec 5000\n',
    '/sys/fs/cgroup/kubepods.slice/cpu.stat': 'usage_usec 2000000\nuser_usec 1\n',
    '/sys/fs/cgroup/kubepods.slice/memory.current': '1000\n',
    '/sys/fs/cgroup/kubepods.slice/memory.max': '4000\n',
    '/sys/fs/cgroup/kubepods.slice/memory.stat': 'anon 300\ninactive_file 400\npgfault 7\npgmajfault 2\n',
    '/sys/fs/cgroup/kubepods.slice/memory.pressure': psiText(50),
    '/sys/fs/cgroup/kubepods.slice/io.pressure': psiText(60),
  };
  const paths = () => ({ kubelet: '', runtime: '/system.slice/gone.service', misc: '', pods: '/kubepods.slice' });
  const told = async (fs: ReturnType<typeof disk>, pressure = true, of = paths) =>
    (await createSystemGroups({ fs, pressure, paths: of })()).map((g) => systemContainer(g, { time: TIME, rate: (used) => Number(used) }));

  it("are the agent's own, and that of all pods with what it may still use", async () => {
    expect(await told(disk(v2))).toEqual([
      { name: 'kubelet', startTime: TIME, cpu: { time: TIME, usageNanoCores: 5_000_000, usageCoreNanoSeconds: 5_000_000 } },
      {
        name: 'pods',
        startTime: TIME,
        cpu: { time: TIME, usageNanoCores: 2e9, usageCoreNanoSeconds: 2e9 },
        memory: {
          ...{ time: TIME, availableBytes: 3400, usageBytes: 1000, workingSetBytes: 600, rssBytes: 300 },
          ...{ pageFaults: 7, majorPageFaults: 2, psi: psi(50) },
        },
        io: { time: TIME, psi: psi(60) },
      },
    ]);
  });
  it('have no pressure without its gate, and it is not read', async () => {
    const fs = disk(v2);
    expect(JSON.stringify(await told(fs, false))).not.toContain('psi');
    expect(fs.read.filter((path) => path.endsWith('.pressure'))).toEqual([]);
  });
  it('are read of the first version, where a limit beyond all memory is none', async () => {
    const v1 = {
      '/proc/self/mountinfo': V1,
      '/proc/self/cgroup': '2:memory:/\n1:cpu,cpuacct:/\n',
      '/cg/cpu,cpuacct/kubepods/cpuacct.usage': '123\n',
      '/cg/memory/kubepods/memory.usage_in_bytes': '900\n',
      '/cg/memory/kubepods/memory.limit_in_bytes': '9223372036854771712\n',
      '/cg/memory/kubepods/memory.stat': 'total_inactive_file 100\ntotal_rss 50\n',
    };
    const of = () => ({ kubelet: '', runtime: '', misc: '', pods: '/kubepods' });
    expect(await told(disk(v1), true, of)).toEqual([
      {
        ...{ name: 'pods', startTime: TIME, cpu: { time: TIME, usageNanoCores: 123, usageCoreNanoSeconds: 123 } },
        memory: { time: TIME, usageBytes: 900, workingSetBytes: 800, rssBytes: 50 },
      },
    ]);
  });
  it('are found in the long table of mounts that a node with many pods has, and after one that could not be read', async () => {
    const overlay = `40 30 0:50 / /run/containerd/rootfs rw - overlay overlay rw,lowerdir=${'/var/lib/layer:'.repeat(50)}\n`;
    const fs = disk({ ...v2, '/proc/self/mountinfo': V2 + overlay.repeat(500) });
    let readable = false;
    const bounded = async (path: string, { bytesMax }: { bytesMax: number }) => {
      const text = await fs.readFile(path, { bytesMax });
      if (!readable || text.length > bytesMax) throw new Error(`EFBIG: ${path}`);
      return text;
    };
    const look = createSystemGroups({ fs: { ...fs, readFile: bounded }, pressure: true, paths });
    expect(await look()).toEqual([]);
    readable = true;
    expect((await look()).map((g) => g.name)).toEqual(['kubelet', 'pods']);
  });
  it('is not the root group, which is the machine', () => {
    expect(placeAt({ procCgroup: '0::/\n' }, groupMounts(V2)).dirs).toEqual({});
  });
});

describe('the group of a pod', () => {
  const pod = { metadata: { uid: UID } } as Pod;
  const used = async (files: Record<string, string>, path: string | undefined) => {
    const fs = disk(files);
    return { found: await createPodUse({ fs, pods: () => [pod], path: () => path })(), read: fs.read };
  };

  it('tells what it used, in either version, and its other files are not read', async () => {
    const v2 = {
      '/proc/self/mountinfo': V2,
      '/sys/fs/cgroup/kubepods/pod1/cpu.stat': 'usage_usec 7\n',
      '/sys/fs/cgroup/kubepods/pod1/memory.current': '900\n',
      '/sys/fs/cgroup/kubepods/pod1/memory.stat': 'anon 50\ninactive_file 100\n',
      '/sys/fs/cgroup/kubepods/pod1/memory.max': 'max\n',
    };
    const { found, read } = await used(v2, '/kubepods/pod1');
    const memory = { usageBytes: 900, workingSetBytes: 800, rssBytes: 50 };
    expect(found).toEqual(new Map([[UID, { cpuNs: 7_000n, memory }]]));
    expect(read.sort()).toEqual(Object.keys(v2).sort());
    const v1 = {
      '/proc/self/mountinfo': V1,
      '/cg/cpu,cpuacct/kubepods/pod1/cpuacct.usage': '7000\n',
      '/cg/memory/kubepods/pod1/memory.usage_in_bytes': '900\n',
      '/cg/memory/kubepods/pod1/memory.stat': 'total_inactive_file 100\ntotal_rss 50\n',
    };
    expect((await used(v1, '/kubepods/pod1')).found).toEqual(found);
  });
  it('tells nothing where there is none', async () => {
    expect((await used({ '/proc/self/mountinfo': V2 }, '/kubepods/pod1')).found.size).toBe(0);
    expect((await used({ '/proc/self/mountinfo': V2 }, undefined)).found.size).toBe(0);
  });
});

const POD_DIR = `/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice`;
const answers: Record<string, unknown> = {
  ListContainers: {
    containers: [{ id: 'c1', labels: { 'io.kubernetes.pod.uid': UID, 'io.kubernetes.container.name': 'main' }, imageRef: 'i' }],
  },
  ListPodSandbox: { items: [{ id: 's1', labels: { 'io.kubernetes.pod.name': 'web', 'io.kubernetes.pod.namespace': 'ns' } }] },
  ContainerStatus: { info: { info: '{"pid": 70}' } },
  PodSandboxStatus: { info: { info: '{"pid": 71}' } },
};
const FILES = {
  '/proc/self/mountinfo': V2,
  '/proc/70/cgroup': `0::${POD_DIR}/cri-containerd-c1.scope\n`,
  '/proc/71/cgroup': `0::${POD_DIR}/cri-containerd-s1.scope\n`,
  '/proc/71/net/dev': 'Inter-|\n eth0: 100 1 2 0 0 0 0 0 200 3 4 0 0 0 0 0\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n',
  [`/sys/fs/cgroup${POD_DIR}/cri-containerd-c1.scope/cpu.pressure`]: psiText(10),
  [`/sys/fs/cgroup${POD_DIR}/cri-containerd-c1.scope/cgroup.procs`]: '70\n72\n',
  [`/sys/fs/cgroup${POD_DIR}/cpu.pressure`]: psiText(20),
  [`/sys/fs/cgroup${POD_DIR}/io.pressure`]: psiText(30),
  '/proc/pressure/memory': psiText(40),
};
const SUMMARY: Summary = {
  node: { nodeName: 'n1', startTime: null, memory: { time: TIME } },
  pods: [
    {
      podRef: { name: 'web', namespace: 'ns', uid: UID },
      startTime: null,
      cpu: { time: TIME, usageNanoCores: 5 },
      containers: [{ name: 'main', startTime: null, cpu: { time: TIME } }],
    },
  ],
};

describe('a pod', () => {
  const reading = (files: Record<string, string>) =>
    createGroupReader({
      fs: disk(files),
      cri: { read: async (method: string) => answers[method] } as unknown as CriClient,
      pressure: true,
    })(new AbortController().signal);

  it('has the network of its namespace, the processes of its containers, and the pressure of its own group, beside that of its container and of the node', async () => {
    const { node, pods } = withGroups(SUMMARY, await reading(FILES), TIME);
    const eth0 = { name: 'eth0', rxBytes: 100, rxErrors: 2, txBytes: 200, txErrors: 4 };
    expect(pods).toEqual([
      {
        podRef: { name: 'web', namespace: 'ns', uid: UID },
        startTime: null,
        cpu: { time: TIME, usageNanoCores: 5, psi: psi(20) },
        io: { time: TIME, psi: psi(30) },
        containers: [{ name: 'main', startTime: null, cpu: { time: TIME, psi: psi(10) } }],
        network: { time: TIME, ...eth0, interfaces: [eth0] },
        process_stats: { process_count: 2 },
      },
    ]);
    expect(node.memory?.psi).toEqual(psi(40));
  });
  it('has no pressure of its own where its containers are in a group that others share', async () => {
    const shared = {
      '/proc/70/cgroup': '0::/system.slice/cri-containerd-c1.scope\n',
      '/sys/fs/cgroup/system.slice/cpu.pressure': psiText(99),
    };
    expect(JSON.stringify(withGroups(SUMMARY, await reading({ ...FILES, ...shared }), TIME))).not.toContain('"total":99');
  });
  it('has the swap of its cgroups where the runtime does not tell, up to their limit or what is free', async () => {
    const scope = `/sys/fs/cgroup${POD_DIR}/cri-containerd-c1.scope`;
    const swap = async (max: string, current = '100\n') => {
      const files = { ...FILES, [`${scope}/memory.swap.current`]: current, [`${scope}/memory.swap.max`]: max };
      const node = { ...SUMMARY.node, swap: { time: TIME, swapAvailableBytes: 5000, swapUsageBytes: 1000 } };
      const { pods } = withGroups({ ...SUMMARY, node }, await reading(files), TIME);
      expect(pods[0]?.swap).toEqual(pods[0]?.containers[0]?.swap);
      return pods[0]?.swap;
    };
    expect(await swap('max\n')).toEqual({ time: TIME, swapAvailableBytes: 5000, swapUsageBytes: 100 });
    expect(await swap('300\n')).toEqual({ time: TIME, swapAvailableBytes: 200, swapUsageBytes: 100 });
    expect(await swap('0\n', '0\n')).toEqual({ time: TIME, swapAvailableBytes: 0, swapUsageBytes: 0 });
  });
  it('is with all others in the root group where pods have none of their own', () => {
    const cpu = { time: TIME, usageNanoCores: 7 };
    expect(podsAtRoot({ nodeName: 'n1', startTime: TIME, cpu, fs: { time: TIME } })).toEqual({ name: 'pods', startTime: TIME, cpu });
  });
  it('is told without any of it where nothing was read', () => {
    expect(withGroups(SUMMARY, NOTHING_READ, TIME)).toEqual(SUMMARY);
  });
});

it('reads a file of pressure with one line, and none of other text', () => {
  const zero = { avg10: 0, avg60: 0, avg300: 0, total: 0 };
  expect(psiOf((what) => (what === 'cpu' ? 'some avg10=1.00 avg60=0.00 avg300=0.00 total=5\n' : 'Operation not supported'))).toEqual({
    cpu: { some: { ...zero, avg10: 1, total: 5 }, full: zero },
  });
});
