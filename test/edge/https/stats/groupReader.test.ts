/** What one look at the cgroups of a node finds, in either version of the kernel's interface, and what it does not read again. */
import { describe, expect, it } from 'vitest';
import { createGroupReader, type GroupReaderOptions } from '../../../../src/actors/edge/stats/groupReader.ts';
import type { CriClient } from '../../../../src/actors/runtime/client.ts';
import { cadvisorMetrics, containerKey } from '../../../../src/machines/edge/stats/cadvisorMetrics.ts';

const UID = '11111111-2222-3333-4444-555555555555';
const MADE_MS = 5000;
const LABELS = { 'io.kubernetes.pod.uid': UID, 'io.kubernetes.pod.name': 'web', 'io.kubernetes.pod.namespace': 'ns' };
const answers: Record<string, unknown> = {
  ListContainers: {
    containers: [
      { id: 'c1', labels: { ...LABELS, 'io.kubernetes.container.name': 'main' }, image: { image: 'sha256:1' }, imageRef: 'sha256:1' },
    ],
  },
  ListPodSandbox: { items: [{ id: 's1', labels: LABELS }] },
  ContainerStatus: { status: { image: { image: 'docker.io/library/web:1' } }, info: { info: '{"pid": 70}' } },
  PodSandboxStatus: { info: { info: '{"pid": 71, "image": "pause:3"}' } },
  ImageFsInfo: { imageFilesystems: [{ fsId: { mountpoint: '/var/lib/containerd' } }] },
};
const V2_POD = `/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice`;
const COMMON = {
  '/proc/70/limits': 'Max open files            1024                 4096                 files     \n',
  '/proc/71/net/dev': 'Inter-|\n eth0: 100 1 2 0 0 0 0 0 200 3 4 0 0 0 0 0\n',
  '/proc/diskstats': ' 254       0 vda 10 1 200 3000 20 2 400 6000 5 7000 9000\n',
  '/proc/1/limits': 'Max open files            unlimited            unlimited            files     \n',
};
const V2 = {
  ...COMMON,
  '/proc/self/mountinfo': '30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n22 1 254:0 / / rw - ext4 /dev/vda rw\n',
  '/proc/70/cgroup': `0::${V2_POD}/cri-containerd-c1.scope\n`,
  '/proc/71/cgroup': `0::${V2_POD}/cri-containerd-s1.scope\n`,
  [`/sys/fs/cgroup${V2_POD}/cri-containerd-c1.scope/cgroup.procs`]: '70\n72\n',
  [`/sys/fs/cgroup${V2_POD}/cri-containerd-c1.scope/pids.current`]: '4\n',
  [`/sys/fs/cgroup${V2_POD}/cri-containerd-c1.scope/memory.max`]: '4096\n',
  [`/sys/fs/cgroup${V2_POD}/cri-containerd-s1.scope/cgroup.procs`]: '71\n',
  [`/sys/fs/cgroup${V2_POD}/memory.current`]: '1000\n',
  '/sys/fs/cgroup/kubepods.slice/memory.current': '2000\n',
  '/sys/fs/cgroup/system.slice/memory.current': '3000\n',
  '/sys/fs/cgroup/cgroup.procs': '1\n',
  '/sys/fs/cgroup/cpu.stat': 'usage_usec 5000000\nuser_usec 3000000\nsystem_usec 2000000\n',
};
const FDS: Record<string, string[]> = { '/proc/70/fd': ['0', '1', '2'], '/proc/72/fd': ['0'], '/proc/1/fd': ['3'] };

function node(files: Record<string, string>, links: Record<string, string> = { '/proc/70/fd/2': 'socket:[99]' }) {
  const asked: string[] = [];
  const dirs = new Set(Object.keys(files).map((path) => path.slice(0, path.lastIndexOf('/'))));
  const fs: GroupReaderOptions['fs'] = {
    async readFile(path) {
      asked.push(path);
      if (files[path] === undefined) throw new Error(`ENOENT: ${path}`);
      return new TextEncoder().encode(files[path]);
    },
    readdir: async (path) => {
      asked.push(path);
      if (FDS[path] === undefined) throw new Error(`ENOENT: ${path}`);
      return FDS[path];
    },
    readlink: async (path) => links[path] ?? '/dev/null',
    statfs: async () => ({ bytesTotal: 100, bytesAvailable: 40, bytesFree: 50, inodesTotal: 10, inodesFree: 4 }),
    stat: async (path) => {
      asked.push(path);
      if (!dirs.has(path)) throw new Error(`ENOENT: ${path}`);
      return { kind: 'dir', size: 0, diskBytes: 0, links: 1, mode: 0, mtimeMs: MADE_MS, ctimeMs: 0, dev: 1, ino: 1 };
    },
  };
  const cri = {
    read: async (method: string) => {
      asked.push(method);
      return answers[method];
    },
  } as unknown as CriClient;
  const systemGroups = () => ({ kubelet: '', runtime: '/system.slice', pods: '/kubepods.slice' });
  return { asked, look: createGroupReader({ fs, cri, pressure: true, systemGroups }) };
}
const { signal } = new AbortController();

describe('a full look', () => {
  it('finds groups above, sandboxes, processes, and the disks of the machine', async () => {
    const found = await node(V2).look(signal, 'all');
    expect(found.containers.get(containerKey(UID, 'main'))?.figures).toMatchObject({
      limits: { memoryBytes: 4096 },
      tasks: { processes: 2, threads: 4, descriptors: 4, sockets: 1, openFilesMax: 1024 },
    });
    // The name that the runtime made the container from, as in the reference: the specification of the runtime has the ID.
    expect(found.containers.get(containerKey(UID, 'main'))?.image).toBe('docker.io/library/web:1');
    expect(found.groups.map((g) => [g.path, g.madeMs, g.pod?.name, g.figures.memory?.usageBytes])).toEqual([
      ['/kubepods.slice', MADE_MS, undefined, 2000],
      [V2_POD, MADE_MS, 'web', 1000],
      ['/system.slice', MADE_MS, undefined, 3000],
    ]);
    expect(found.pods).toMatchObject([
      { id: 's1', image: 'pause:3', path: `${V2_POD}/cri-containerd-s1.scope`, madeMs: MADE_MS, figures: { tasks: { processes: 1 } } },
    ]);
    expect(found.imageDevice).toBe('/dev/vda');
    expect(found.node).toMatchObject({
      figures: { cpu: { usedSeconds: 5 }, tasks: { processes: 1, descriptors: 1, sockets: 0, openFilesMax: -1 } },
      disks: [{ device: '/dev/vda', room: { bytesTotal: 100 }, io: { reads: 10, weightedSeconds: 9 } }],
    });
    const text = cadvisorMetrics({ summary: null, groups: found, machine: { cpus: 2, memoryBytes: 8192 } }).split('\n');
    const sandbox = `container="",id="${V2_POD}/cri-containerd-s1.scope",image="pause:3",name="s1",namespace="ns",pod="web"`;
    for (const line of [
      `container_processes{${sandbox}} 1`,
      `container_memory_usage_bytes{container="",id="${V2_POD}",image="",name="",namespace="ns",pod="web"} 1000`,
      'container_spec_memory_limit_bytes{container="",id="/",image="",name="",namespace="",pod=""} 8192',
      'container_fs_usage_bytes{container="",device="/dev/vda",id="/",image="",name="",namespace="",pod=""} 50',
      'container_fs_writes_total{container="",device="/dev/vda",id="/",image="",name="",namespace="",pod=""} 20',
      'container_ulimits_soft{container="",id="/",image="",name="",namespace="",pod="",ulimit="max_open_files"} -1',
    ])
      expect(text).toContain(line);
  });
  it('of the first version finds them in the hierarchies of their controllers', async () => {
    const pod = `/kubepods/besteffort/pod${UID}`;
    const mounts = ['cpu,cpuacct', 'memory', 'pids'].map((c, i) => `3${i} 1 0:${i} / /cg/${c} rw - cgroup cgroup rw,${c}\n`);
    const at = (id: string) => `3:pids:${pod}/${id}\n2:memory:${pod}/${id}\n1:cpu,cpuacct:${pod}/${id}\n`;
    const files = {
      ...COMMON,
      '/proc/self/mountinfo': mounts.join(''),
      '/proc/70/cgroup': at('c1'),
      '/proc/71/cgroup': at('s1'),
      [`/cg/cpu,cpuacct${pod}/c1/cgroup.procs`]: '70\n',
      [`/cg/pids${pod}/c1/pids.max`]: '100\n',
      [`/cg/memory${pod}/memory.usage_in_bytes`]: '1000\n',
      '/cg/memory/kubepods/besteffort/memory.usage_in_bytes': '2000\n',
      '/cg/memory/kubepods/memory.usage_in_bytes': '3000\n',
      '/cg/memory/memory.kmem.usage_in_bytes': '4000\n',
    };
    const found = await node(files).look(signal, 'all');
    expect(found.groups.map((g) => [g.path, g.pod?.name, g.figures.memory?.usageBytes])).toEqual([
      ['/kubepods', undefined, 3000],
      ['/kubepods/besteffort', undefined, 2000],
      [pod, 'web', 1000],
    ]);
    expect(found.containers.get(containerKey(UID, 'main'))?.figures).toMatchObject({ limits: { threads: 100 }, tasks: { processes: 1 } });
    expect(found.node.figures?.memory?.kernelBytes).toBe(4000);
  });
  it('asks the runtime and the kernel once for what stays while a container runs', async () => {
    const { asked, look } = node(V2);
    await look(signal, 'all');
    asked.length = 0;
    await look(signal, 'all');
    const again = ['ContainerStatus', 'PodSandboxStatus', 'ImageFsInfo', '/proc/self/mountinfo', `/sys/fs/cgroup${V2_POD}`];
    expect(again.filter((what) => asked.includes(what))).toEqual([]);
    expect(asked).toContain(`/sys/fs/cgroup${V2_POD}/cri-containerd-c1.scope/memory.max`);
  });
  it('does not say how many sockets there are among more open files than it looks at', async () => {
    FDS['/proc/72/fd'] = Array.from({ length: 5000 }, (_, i) => String(i));
    const found = await node(V2).look(signal, 'all');
    FDS['/proc/72/fd'] = ['0'];
    const { tasks } = found.containers.get(containerKey(UID, 'main'))?.figures ?? {};
    expect([tasks?.descriptors, tasks?.sockets]).toEqual([5003, undefined]);
  });
  it('does not list the open files of a process that may have a million, nor count beyond what it lists', async () => {
    const tasksOf = async (files: Record<string, string>) => {
      const { asked, look } = node(files);
      const { tasks } = (await look(signal, 'all')).containers.get(containerKey(UID, 'main'))?.figures ?? {};
      return { tasks, listed: asked.includes('/proc/72/fd') };
    };
    const many = await tasksOf({ ...V2, '/proc/72/status': 'Name:\tx\nFDSize:\t1048576\nGroups:\t\n' });
    expect(many).toMatchObject({ tasks: { processes: 2 }, listed: false });
    expect([many.tasks?.descriptors, many.tasks?.sockets]).toEqual([undefined, undefined]);
    FDS['/proc/72/fd'] = Array.from({ length: 20_000 }, (_, i) => String(i));
    const untold = await tasksOf(V2);
    FDS['/proc/72/fd'] = ['0'];
    expect(untold).toMatchObject({ tasks: { processes: 2 }, listed: true });
    expect(untold.tasks?.descriptors).toBeUndefined();
  });
});

describe('a look for the summary', () => {
  it('reads the group of the pod and no other above it, of processes how many containers have, and no disks', async () => {
    const { asked, look } = node(V2);
    const found = await look(signal);
    expect(found.groups.map((g) => g.path)).toEqual([V2_POD]);
    expect(asked.filter((path) => path.endsWith('/fd') || path.includes('system.slice'))).toEqual([]);
    expect(asked.filter((path) => path.endsWith('cgroup.procs'))).toEqual([`/sys/fs/cgroup${V2_POD}/cri-containerd-c1.scope/cgroup.procs`]);
    expect([found.node.disks, found.imageDevice]).toEqual([undefined, undefined]);
  });
  it('shares a full look that is under way', async () => {
    const { look } = node(V2);
    expect(look(signal, 'all')).toBe(look(signal));
  });
});
