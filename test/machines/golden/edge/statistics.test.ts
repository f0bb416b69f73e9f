/**
 * What is told of the use of a node and its pods (resources and volumes 7.1, 7.3, 7.5, 7.7, 7.8): the summary and both pages of
 * metrics, from what the runtime, /proc and the file systems say. A row for each line of the tables there.
 */
import { createStats } from '../../../../src/actors/edge/stats/stats.ts';
import type { CriClient } from '../../../../src/actors/runtime/client.ts';
import { cadvisorMetrics, containerKey, NOTHING_READ } from '../../../../src/machines/edge/stats/cadvisorMetrics.ts';
import { resourceMetrics } from '../../../../src/machines/edge/stats/resourceMetrics.ts';
import type { Summary } from '../../../../src/machines/edge/stats/stats.ts';
import type { GroupUse } from '../../../../src/machines/figures/groupStats.ts';
import { CRI_LABELS } from '../../../../src/machines/wire/cri.ts';
import type { CriContainerStats } from '../../../../src/machines/wire/criStats.ts';
import type { Ports } from '../../../../src/ports/ports.ts';
import { memFs } from '../../../integration/memFs.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { FACTS } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const AT_NS = 1_767_225_600_000_000_000n;
const SECOND_NS = 1_000_000_000n;
const labelsOf = (pod: string, container?: string): Record<string, string> => ({
  [CRI_LABELS.podUid]: `uid-${pod}`,
  [CRI_LABELS.podName]: pod,
  [CRI_LABELS.podNamespace]: 'ns',
  ...(container === undefined ? {} : { [CRI_LABELS.containerName]: container }),
});
const figure = (value: number | null) => (value === null ? null : { value: String(value) });
const counted = (pod: string, name: string, more: Partial<CriContainerStats> = {}, usedNs = 2_500_000_000): CriContainerStats => ({
  attributes: { id: `${pod}-${name}`, metadata: null, labels: labelsOf(pod, name), annotations: {} },
  cpu: { timestamp: String(AT_NS), usageCoreNanoSeconds: figure(usedNs), usageNanoCores: null },
  memory: {
    timestamp: String(AT_NS),
    workingSetBytes: figure(4_096),
    availableBytes: figure(12_288),
    usageBytes: figure(8_192),
    rssBytes: figure(2_048),
    pageFaults: figure(7),
    majorPageFaults: figure(1),
  },
  writableLayer: { timestamp: String(AT_NS), fsId: null, usedBytes: figure(100), inodesUsed: figure(3) },
  ...more,
});
const memoryOf = (more: Partial<NonNullable<CriContainerStats['memory']>>): Partial<CriContainerStats> => {
  const { memory } = counted('web', 'main');
  return memory === null ? {} : { memory: { ...memory, ...more } };
};

interface Machine {
  pods?: Readonly<Record<string, readonly string[]>>;
  stats?: readonly CriContainerStats[];
  /** Of the newest sandbox of each pod. */
  sandbox?: string;
  /** That it had before. */
  earlierSandbox?: string;
  meminfo?: string;
  threadsMax?: string | null;
  images?: 'there' | 'elsewhere' | 'none';
  /** Named by the runtime: on a disk of their own, or in another folder of the same. Absent: it names no place. */
  layers?: 'apart' | 'same disk' | 'gate off';
  /** Processor time of the machine when the source was made. */
  usedBeforeNs?: bigint;
  podsAtRoot?: boolean;
  /** What the groups of pods used, by UID. */
  podUse?: () => ReadonlyMap<string, GroupUse>;
}
const MEMINFO = 'MemTotal: 8000 kB\nMemFree: 3000 kB\nInactive(file): 1000 kB\nAnonPages: 2000 kB\nSwapTotal: 4000 kB\nSwapFree: 3000 kB\n';

const LAYERS = '/var/lib/layers';

function machine(o: Machine = {}) {
  const time = virtualTime();
  const fs = memFs(time.clock);
  for (const dir of [LAYERS, '/var/lib/containerd']) fs.makeDir(dir);
  const layerRoom = { bytesTotal: 2_000, bytesAvailable: 900, inodesTotal: 200, inodesFree: 90 };
  if (o.layers === 'apart' || o.layers === 'gate off') fs.disks.set(LAYERS, { dev: 3, room: layerRoom });
  const put = (path: string, text: string): void => {
    fs.makeDir(path.slice(0, path.lastIndexOf('/')));
    fs.put(path, text);
  };
  put('/proc/stat', 'cpu  100 10 50 5000 20 5 5 0 0 0\nbtime 1767225000\n');
  put('/proc/meminfo', o.meminfo ?? MEMINFO);
  put('/proc/vmstat', 'pgfault 900\npgmajfault 9\n');
  put('/proc/net/dev', 'Inter-|   Receive\n face |bytes\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0\n  eth0: 1000 10 1 0 0 0 0 0 2000 20 2 0\n');
  put('/proc/loadavg', '0.1 0.2 0.3 2/345 999\n');
  put('/proc/sys/kernel/pid_max', '4194304\n');
  if (o.threadsMax !== null) put('/proc/sys/kernel/threads-max', o.threadsMax ?? '60000\n');
  const pods = o.pods ?? { web: ['main'] };
  for (const [pod, names] of Object.entries(pods))
    for (const name of names) put(`/var/log/pods/ns_${pod}_uid-${pod}/${name}/0.log`, 'x'.repeat(50));
  fs.room = { bytesTotal: 1_000, bytesAvailable: 500, bytesFree: 600, inodesTotal: 100, inodesFree: 40 };
  const containers = Object.entries(pods).flatMap(([pod, names]) =>
    names.map((name) => ({
      id: `${pod}-${name}`,
      state: 'CONTAINER_RUNNING',
      createdAt: String(AT_NS - 60n * SECOND_NS),
      labels: labelsOf(pod, name),
    })),
  );
  let stats: readonly CriContainerStats[] = o.stats ?? containers.map((c) => counted(c.id.split('-')[0] ?? '', c.id.split('-')[1] ?? ''));
  const answers: Record<string, () => unknown> = {
    ListContainerStats: () => ({ stats }),
    ListContainers: () => ({ containers }),
    ListPodSandbox: () => ({
      items: Object.keys(pods).flatMap((pod) => [
        ...(o.earlierSandbox === undefined
          ? []
          : [{ id: `${pod}-0`, state: o.earlierSandbox, createdAt: String(AT_NS - 90n * SECOND_NS), labels: labelsOf(pod) }]),
        { id: `${pod}-1`, state: o.sandbox ?? 'SANDBOX_READY', createdAt: String(AT_NS - 61n * SECOND_NS), labels: labelsOf(pod) },
      ]),
    }),
    ImageFsInfo: () => ({
      imageFilesystems:
        o.images === 'none'
          ? []
          : [
              {
                timestamp: String(AT_NS),
                fsId: { mountpoint: o.images === 'elsewhere' ? '' : '/var/lib/containerd' },
                usedBytes: figure(300),
                inodesUsed: figure(30),
              },
            ],
      ...(o.layers === undefined
        ? {}
        : {
            containerFilesystems: [
              { timestamp: String(AT_NS), fsId: { mountpoint: LAYERS }, usedBytes: figure(70), inodesUsed: figure(7) },
            ],
          }),
    }),
  };
  const source = createStats({
    ports: { fs, clock: time.clock } as unknown as Ports,
    cri: { read: async (method: string) => answers[method]?.() } as unknown as CriClient,
    nodeName: 'node-a',
    rootDir: FACTS.rootDir,
    podLogsDir: '/var/log/pods',
    volumes: async () => new Map(),
    usedCpuNs: () => o.usedBeforeNs,
    podsAtRoot: o.podsAtRoot ?? false,
    podUse: async () => o.podUse?.() ?? new Map(),
    separateDisks: o.layers !== 'gate off',
  });
  const look = (brief = false): Promise<Summary> => source.summary({ brief, signal: new AbortController().signal });
  const show = (next: readonly CriContainerStats[]): void => {
    stats = next;
  };
  return { time, look, show };
}
const summary = async (o: Machine = {}, brief = false): Promise<Summary> => machine(o).look(brief);
const told = (text: string): string[] => text.split('\n').filter((l) => l !== '' && !l.startsWith('# HELP'));
/** Two looks; what the second says of the use of the processor. */
const rates = async (afterMs: number, usedNs: number) => {
  const m = machine();
  await m.look();
  await m.time.advance(afterMs);
  m.show([
    counted('web', 'main', {
      cpu: { timestamp: String(AT_NS + BigInt(afterMs) * 1_000_000n), usageCoreNanoSeconds: figure(usedNs), usageNanoCores: null },
    }),
  ]);
  const { node, pods } = await m.look();
  return [pods[0]?.containers[0]?.cpu?.usageNanoCores ?? null, pods[0]?.cpu?.usageNanoCores ?? null, node.cpu?.usageNanoCores ?? null];
};
const SWAP: Partial<CriContainerStats> = {
  swap: { timestamp: String(AT_NS), swapAvailableBytes: figure(900), swapUsageBytes: figure(100) },
};
const usedByPod = (cpuNs: bigint): ReadonlyMap<string, GroupUse> =>
  new Map([['uid-web', { cpuNs, memory: { usageBytes: 70_000, workingSetBytes: 60_000, rssBytes: 50_000, pageFaults: 99 } }]]);
const two = { web: ['main', 'side'] };
const failure = async (of: Promise<unknown>): Promise<string> =>
  of.then(
    () => 'no failure',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );

const RX = { rxBytes: 1000, rxPackets: 10, rxErrors: 1, rxDropped: 0 };
const TX = { txBytes: 2000, txPackets: 20, txErrors: 2, txDropped: 0 };

goldenTable('what is told of the use of a node and its pods is as recorded', 'edge/statistics', {
  '7.1 all of it': () => summary(),
  '7.1 only processor and memory': () => summary({}, true),
  '7.1 pod: two containers, summed up': async () => {
    const [pod] = (await summary({ pods: two })).pods;
    return { cpu: pod?.cpu, memory: pod?.memory, 'ephemeral-storage': pod?.['ephemeral-storage'] };
  },
  '7.1 pod: a figure that one of its containers lacks': async () => {
    const stats = [counted('web', 'main'), counted('web', 'side', memoryOf({ availableBytes: null, rssBytes: null }))];
    return (await summary({ pods: two, stats })).pods[0]?.memory;
  },
  '7.1 pod: of its own group, which also counts what ended in it': async () => {
    const [pod] = (await summary({ pods: two, podUse: () => usedByPod(9_000_000_000n) })).pods;
    return { cpu: pod?.cpu, memory: pod?.memory };
  },
  '7.1 pod: of its own group, processor and memory only': async () => {
    const [pod] = (await summary({ podUse: () => usedByPod(9_000_000_000n) }, true)).pods;
    return { cpu: pod?.cpu, memory: pod?.memory };
  },
  '7.1 pod: nothing of it runs': async () => (await summary({ pods: { web: [] }, stats: [counted('web', 'main')] })).pods,
  '7.1 pod: its sandbox is not ready': async () => (await summary({ sandbox: 'SANDBOX_NOTREADY' })).pods,
  '7.1 pod: its sandbox was made anew': async () =>
    (await summary({ earlierSandbox: 'SANDBOX_NOTREADY' })).pods.map((p) => [p.podRef.name, p.startTime]),
  '7.1 pod: an earlier sandbox is ready and the newest is not': async () =>
    (await summary({ earlierSandbox: 'SANDBOX_READY', sandbox: 'SANDBOX_NOTREADY' })).pods,
  '7.1 container: no limit, nothing is available (resources trap 42)': async () =>
    (await summary({ stats: [counted('web', 'main', memoryOf({ availableBytes: figure(0) }))] })).pods[0]?.containers[0]?.memory,
  '7.1 container: the runtime has no figures': async () =>
    (await summary({ stats: [counted('web', 'main', { cpu: null, memory: null, writableLayer: null })] })).pods[0]?.containers[0],
  '7.1 container: none of whom the runtime tells': async () => (await summary({ stats: [] })).pods,
  '7.1 swap: of a container and its pod': async () => {
    const { pods } = await summary({ pods: two, stats: [counted('web', 'main', SWAP), counted('web', 'side', SWAP)] });
    return [pods[0]?.containers[0]?.swap, pods[0]?.swap];
  },
  '7.1 swap: a kernel without': async () => (await summary({ meminfo: 'MemTotal: 8000 kB\nMemFree: 3000 kB\n' })).node.swap,
  '7.1 swap: a machine that has none, and a runtime that does not tell': async () => {
    const { node, pods } = await summary({ meminfo: `${MEMINFO.replace(/Swap.*/s, '')}SwapTotal: 0 kB\nSwapFree: 0 kB\n` });
    return [node.swap, pods[0]?.containers[0]?.swap, pods[0]?.swap];
  },
  '7.1 all pods are in the root group': async () => (await summary({ podsAtRoot: true }, true)).node.systemContainers,
  '7.1 page faults: none': async () =>
    (await summary({ stats: [counted('web', 'main', memoryOf({ pageFaults: figure(0), majorPageFaults: figure(0) }))] })).pods[0]?.memory,
  '7.1 rlimit: the lesser of two limits': async () => [
    (await summary({})).node.rlimit,
    (await summary({ threadsMax: '9000000\n' })).node.rlimit?.maxpid,
    (await summary({ threadsMax: null })).node.rlimit?.maxpid,
  ],
  '7.3 nanocores: the first look': () => rates(0, 2_500_000_000),
  '7.3 nanocores: of the node at the first look, since the start': async () => {
    const m = machine({ usedBeforeNs: 800_000_000n });
    await m.time.advance(2_000);
    return (await m.look()).node.cpu?.usageNanoCores ?? null;
  },
  '7.3 nanocores: ten seconds later': () => rates(10_000, 7_500_000_000),
  '7.3 nanocores: of the group of a pod': async () => {
    let used = 9_000_000_000n;
    const m = machine({ podUse: () => usedByPod(used) });
    const first = (await m.look()).pods[0]?.cpu?.usageNanoCores ?? null;
    await m.time.advance(10_000);
    used += 20_000_000_000n;
    return [first, (await m.look()).pods[0]?.cpu?.usageNanoCores ?? null];
  },
  '7.3 nanocores: less than a second later says nothing': () => rates(500, 3_000_000_000),
  '7.3 nanocores: a counter that went back': () => rates(10_000, 1),
  '7.5 node: what is set aside for root counts as not used': async () => (await summary()).node.fs,
  '7.5 images: layers on a disk of their own': async () => {
    const { node, pods } = await summary({ layers: 'apart' });
    return { runtime: node.runtime, rootfs: pods[0]?.containers[0]?.rootfs };
  },
  '7.5 images: layers in another folder of the same disk': async () => (await summary({ layers: 'same disk' })).node.runtime,
  '7.5 images: layers on a disk of their own, KubeletSeparateDiskGC off': async () => (await summary({ layers: 'gate off' })).node.runtime,
  '7.5 images: at a place that this node cannot see': async () => (await summary({ images: 'elsewhere' })).node.runtime,
  '7.5 images: the runtime names no place': () => failure(summary({ images: 'none' })),
  '7.7 metrics': async () => told(resourceMetrics(await summary({ stats: [counted('web', 'main', SWAP)] }, true))),
  '7.7 metrics: of the group of a pod': async () =>
    told(resourceMetrics(await summary({ podUse: () => usedByPod(9_000_000_000n) }, true))).filter((l) => l.startsWith('pod_')),
  '7.7 metrics: a figure that is missing is no sample': async () =>
    told(resourceMetrics(await summary({ stats: [counted('web', 'main', { cpu: null })], meminfo: '' }, true))),
  '7.7 metrics: no figures': () => told(resourceMetrics(null)),
  '7.8 metrics': async () =>
    told(
      cadvisorMetrics({
        summary: await summary(),
        groups: {
          ...NOTHING_READ,
          node: { interfaces: [{ name: 'eth0', ...RX, ...TX }], pressure: {}, psi: {} },
          containers: new Map([[containerKey('uid-web', 'main'), { id: 'web-main', image: 'example.org/web:v1' }]]),
        },
        machine: { cpus: 4, memoryBytes: 8_192_000 },
      }),
    ),
  '7.8 metrics: no figures': () =>
    told(cadvisorMetrics({ summary: null, groups: NOTHING_READ, machine: { cpus: 4, memoryBytes: 8_192_000 } })),
});
