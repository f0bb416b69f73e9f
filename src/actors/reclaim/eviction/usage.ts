/** What pods use of what is short: asked only when one of them is about to be evicted. */

import { SIGNAL_FACTS, type Signal, STARVED } from '../../../machines/config/evictionSignals.ts';
import { figure } from '../../../machines/figures/figure.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { etcHostsPath } from '../../../machines/pod/names.ts';
import { pathName } from '../../../machines/pod/pathName.ts';
import { containerLogDir, podFolder } from '../../../machines/pod/runtime/logNames.ts';
import { INLINE_KINDS } from '../../../machines/pod/volumes/kinds.ts';
import { podDir } from '../../../machines/pod/volumes/volumePaths.ts';
import type { Parts } from '../../../machines/reclaim/eviction/disks.ts';
import type { StorageUse } from '../../../machines/reclaim/eviction/limits.ts';
import type { PodUsage, Usage } from '../../../machines/reclaim/eviction/rank.ts';
import { CRI_LABELS } from '../../../machines/wire/cri.ts';
import type { CriContainerStats } from '../../../machines/wire/criStats.ts';
import { listIfThere } from '../../../ports/ifThere.ts';
import type { Ports } from '../../../ports/ports.ts';
import { type CriClient, isRefusal } from '../../runtime/client.ts';

export interface UsageOptions {
  ports: Pick<Ports, 'clock' | 'fs' | 'mounter' | 'cgroups' | 'diskUsage'>;
  cri: CriClient;
  /** Gate PodAndContainerStatsFromCRI: the runtime tells of pods with all their containers. */
  fromCri: boolean;
  rootDir: string;
  podLogsDir: string;
  /** What counts of each pod's disk. */
  parts: Parts;
  /** Path of the group of one pod; undefined: it has none. */
  podGroup(pod: Pod): string | undefined;
  signal: AbortSignal;
}
/** Files of one tree that are counted here: a larger one is counted by a process of its own. */
const FILES_MAX = 20_000;
/** So is one with a longer path: containers make directories in each other beyond what a path can have, which is 4,096 bytes. */
const PATH_CHARS_MAX = 1_200;
/** For all those processes of one look, which the eviction of others waits for: what is not counted by then is not counted. */
const COUNT_MS = 30_000;
const TASKS = { controller: 'pids', file: 'pids.current' };
/** Names in directories of kinds whose volumes are the pod's own. */
const SCRATCH = INLINE_KINDS.filter((kind) => kind.scratch).map((kind) => kind.plugin);

type Sum = { bytes: number; inodes: number };

/** A container may mount in its emptyDir what a dead server serves: a look at that waits for ever, and holds a thread. */
interface Walk {
  fs: Ports['fs'];
  diskUsage: Ports['diskUsage'];
  /** Of {@link COUNT_MS}. */
  leftMs(): number;
  /** Never looked at. */
  mounted: ReadonlySet<string>;
  signal: AbortSignal;
}
async function walkOf(o: Pick<UsageOptions, 'ports' | 'rootDir' | 'podLogsDir' | 'signal'>): Promise<Walk> {
  const { ports, rootDir, podLogsDir, signal } = o;
  const { clock, fs, mounter, diskUsage } = ports;
  const untilMs = clock.monoMs() + COUNT_MS;
  const tables = await Promise.all([rootDir, podLogsDir].map((dir) => mounter?.list(dir) ?? []));
  return { fs, diskUsage, leftMs: () => untilMs - clock.monoMs(), mounted: new Set(tables.flat().map((e) => e.path)), signal };
}

/**
 * Of containers that run. Runtimes may list ended ones too, without their memory and beside the instance that runs under
 * their name: they would make their pod one of unknown usage. @throws CriError
 */
async function runningStats({ cri, fromCri, signal }: Pick<UsageOptions, 'cri' | 'fromCri' | 'signal'>): Promise<CriContainerStats[]> {
  const [stats, { containers }] = await Promise.all([
    containerStats({ cri, fromCri, signal }),
    cri.read('ListContainers', { filter: { state: { state: 'CONTAINER_RUNNING' } } }, { signal }),
  ]);
  const running = new Set(containers.map((c) => c.id));
  return stats.filter(({ attributes }) => attributes !== null && running.has(attributes.id));
}

/** Of all that the runtime tells of. As for /stats/summary, one that refuses figures of pods is asked for those of containers. */
async function containerStats({ cri, fromCri, signal }: Pick<UsageOptions, 'cri' | 'fromCri' | 'signal'>): Promise<CriContainerStats[]> {
  if (fromCri) {
    try {
      return (await cri.read('ListPodSandboxStats', {}, { signal })).stats.flatMap(({ linux }) => linux?.containers ?? []);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }
  return (await cri.read('ListContainerStats', {}, { signal })).stats;
}

/** @throws CriError */
export async function measure(pods: readonly Pod[], about: Signal, o: UsageOptions): Promise<ReadonlyMap<string, PodUsage>> {
  const ranked = STARVED[SIGNAL_FACTS[about].resource].figure;
  if (ranked === 'tasks') return tasksOf(pods, o);
  const containers = new Map<string, Map<string, Usage & { layer: Sum }>>();
  for (const s of await runningStats(o)) {
    const labels = s.attributes?.labels;
    const uid = labels?.[CRI_LABELS.podUid];
    const name = labels?.[CRI_LABELS.containerName];
    if (uid === undefined || name === undefined) continue;
    const memoryBytes = figure(s.memory?.workingSetBytes);
    const layer = { bytes: figure(s.writableLayer?.usedBytes) ?? 0, inodes: figure(s.writableLayer?.inodesUsed) ?? 0 };
    const mine = containers.get(uid) ?? new Map<string, Usage & { layer: Sum }>();
    containers.set(uid, mine.set(name, { ...(memoryBytes === undefined ? {} : { memoryBytes }), layer }));
  }
  const usage = new Map<string, PodUsage>();
  const walk = ranked === 'memoryBytes' ? null : await walkOf(o);
  for (const pod of pods) {
    const mine = containers.get(pod.metadata.uid);
    if (mine === undefined) continue;
    usage.set(pod.metadata.uid, walk === null ? memoryOf(mine) : await diskOf(pod, mine, { ...o, walk }));
  }
  return usage;
}

async function tasksOf(pods: readonly Pod[], o: UsageOptions): Promise<ReadonlyMap<string, PodUsage>> {
  const usage = new Map<string, PodUsage>();
  for (const pod of pods) {
    o.signal.throwIfAborted();
    const path = o.podGroup(pod);
    const read = path === undefined ? undefined : o.ports.cgroups?.read(path, [TASKS]);
    const [text = ''] = (await read?.catch(() => [])) ?? [];
    if (/^\d+\s*$/.test(text)) usage.set(pod.metadata.uid, { tasks: Number(text), containers: new Map() });
  }
  return usage;
}

function memoryOf(mine: ReadonlyMap<string, Usage>): PodUsage {
  let memoryBytes = 0;
  for (const c of mine.values()) {
    // A sum that leaves something out misleads.
    if (c.memoryBytes === undefined) return { containers: mine };
    memoryBytes += c.memoryBytes;
  }
  return { memoryBytes, containers: mine };
}

async function diskOf(pod: Pod, mine: ReadonlyMap<string, { layer: Sum }>, o: UsageOptions & { walk: Walk }): Promise<PodUsage> {
  const { name, namespace, uid } = pod.metadata;
  const { layers, files } = o.parts;
  const total: Sum = { bytes: 0, inodes: 0 };
  const add = (s: Sum) => {
    total.bytes += s.bytes;
    total.inodes += s.inodes;
  };
  const containers = new Map<string, Usage>();
  for (const [container, { layer }] of mine) {
    const logs = files
      ? await treeSize(o.walk, containerLogDir(o.podLogsDir, podFolder({ uid, name, namespace }), pathName(container)))
      : NOTHING;
    const own = { bytes: logs.bytes + (layers ? layer.bytes : 0), inodes: logs.inodes + (layers ? layer.inodes : 0) };
    add(own);
    containers.set(container, { diskBytes: own.bytes, inodes: own.inodes });
  }
  if (files) for (const part of [...(await scratchSizes(o, uid)).values(), await servedFiles(o, uid)]) add(part);
  return { diskBytes: total.bytes, inodes: total.inodes, containers };
}

/** What pods wrote, of which each part may have a limit. @throws CriError */
export async function measureStorage(
  pods: readonly Pod[],
  o: Omit<UsageOptions, 'parts' | 'podGroup'>,
): Promise<ReadonlyMap<string, StorageUse>> {
  const layers = new Map<string, number>();
  for (const { attributes, writableLayer } of await runningStats(o)) {
    const key = `${attributes?.labels[CRI_LABELS.podUid] ?? ''} ${attributes?.labels[CRI_LABELS.containerName] ?? ''}`;
    layers.set(key, figure(writableLayer?.usedBytes) ?? 0);
  }
  const use = new Map<string, StorageUse>();
  const walk = await walkOf(o);
  for (const { metadata, spec } of pods) {
    const { uid } = metadata;
    const containers = new Map<string, { logs: number; layer: number }>();
    for (const c of [...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])]) {
      const logs = await treeSize(walk, containerLogDir(o.podLogsDir, podFolder(metadata), pathName(c.name)));
      containers.set(c.name, { logs: logs.bytes, layer: layers.get(`${uid} ${c.name}`) ?? 0 });
    }
    const sizes = await scratchSizes({ walk, rootDir: o.rootDir }, uid);
    const { bytes: served } = await servedFiles({ walk, rootDir: o.rootDir }, uid);
    use.set(uid, { volumes: new Map([...sizes].map(([name, { bytes }]) => [name, bytes])), containers, served });
  }
  return use;
}

/** Files of the node that containers write: /etc/hosts, and those of last messages. */
async function servedFiles({ walk: { fs }, rootDir }: { walk: Walk; rootDir: string }, uid: string): Promise<Sum> {
  const sum: Sum = { bytes: 0, inodes: 0 };
  const dir = `${podDir(rootDir, pathName(uid))}/containers`;
  const list = (of: string) => listIfThere(fs, of).catch(() => []);
  const files = [etcHostsPath(rootDir, pathName(uid))];
  for (const container of await list(dir)) for (const name of await list(`${dir}/${container}`)) files.push(`${dir}/${container}/${name}`);
  for (const file of files) {
    const info = await fs.lstat(file).catch(() => null);
    if (info?.kind !== 'file') continue;
    sum.bytes += info.diskBytes;
    sum.inodes += 1;
  }
  return sum;
}

/** By name, of each volume that is the pod's own. */
async function scratchSizes({ walk, rootDir }: { walk: Walk; rootDir: string }, uid: string): Promise<Map<string, Sum>> {
  const sizes = new Map<string, Sum>();
  for (const plugin of SCRATCH) {
    const dir = `${podDir(rootDir, pathName(uid))}/volumes/${plugin}`;
    for (const volume of await listIfThere(walk.fs, dir).catch(() => [])) {
      const path = `${dir}/${volume}`;
      // A volume in memory takes nothing of the disk.
      if (!walk.mounted.has(path)) sizes.set(volume, await treeSize(walk, path));
    }
  }
  return sizes;
}

const NOTHING: Sum = { bytes: 0, inodes: 0 };

/**
 * What a folder and all below it take of its file system, as du(1) counts: no holes, and a file of several names once. What
 * goes meanwhile, or cannot be read, counts for nothing.
 */
async function treeSize(walk: Walk, root: string): Promise<Sum> {
  const { fs, mounted, signal } = walk;
  const top = await fs.lstat(root).catch(() => null);
  if (top === null || top.kind !== 'dir') return NOTHING;
  const sum = { bytes: top.diskBytes, inodes: 1 };
  const counted = new Set<number>();
  const open = [root];
  let dir = open.pop();
  for (; dir !== undefined && sum.inodes < FILES_MAX && dir.length < PATH_CHARS_MAX; dir = open.pop()) {
    signal.throwIfAborted();
    for (const name of await listIfThere(fs, dir).catch(() => [])) {
      if (sum.inodes === FILES_MAX) break;
      const path = `${dir}/${name}`;
      const info = mounted.has(path) ? null : await fs.lstat(path).catch(() => null);
      // What was mounted since takes nothing of this file system either.
      if (info === null || info.dev !== top.dev || counted.has(info.ino)) continue;
      sum.inodes += 1;
      sum.bytes += info.diskBytes;
      if (info.kind === 'dir') open.push(path);
      else if (info.links > 1) counted.add(info.ino);
    }
  }
  return dir === undefined && sum.inodes < FILES_MAX ? sum : ((await countedBeside(walk, root)) ?? sum);
}

/** Null where nothing can be said: it would look at what is mounted inside, or did not end in time. */
async function countedBeside({ diskUsage, leftMs, mounted, signal }: Walk, root: string): Promise<Sum | null> {
  const timeoutMs = leftMs();
  if (diskUsage === undefined || timeoutMs <= 0 || [...mounted].some((path) => path.startsWith(`${root}/`))) return null;
  const found = await diskUsage.measure(root, { tree: true, timeoutMs, signal }).catch(() => null);
  return found === null ? null : { bytes: found.bytesUsed, inodes: found.inodesUsed };
}
