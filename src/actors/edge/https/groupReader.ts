/** Reads what /metrics/cadvisor needs beyond the runtime's statistics: cgroups of containers, networks of pods. */
import { CRI_LABELS } from '../../../machines/cri.ts';
import { containerKey, type FoundContainer, type FoundPod, type GroupReading } from '../../../machines/edge/https/cadvisorMetrics.ts';
import {
  deviceNames,
  type GroupMount,
  type GroupPlace,
  groupFigures,
  groupFiles,
  groupMounts,
  groupPlace,
  PRESSURES,
  type PressureOf,
  type Psi,
  pidOf,
  podPlace,
  pressureOf,
  psiOf,
} from '../../../machines/edge/https/groupStats.ts';
import { interfaceCounters } from '../../../machines/edge/https/procStats.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { CriClient } from '../../runtime/client.ts';

/** The kernel's own files are some kB; one that never ends is not read on. */
const FILE_BYTES_MAX = 256 * 1024;
/** Containers looked at side by side: the file system's threads serve the rest of the node too. */
const AT_ONCE = 8;

export interface GroupReaderOptions {
  fs: Pick<Ports['fs'], 'readFile'>;
  cri: CriClient;
  /** Pressure is told, where the kernel has it. */
  pressure: boolean;
}

/** One look at a time: requests that come meanwhile share its answer. Places are kept for as long as their container runs. */
export function createGroupReader(o: GroupReaderOptions): (signal: AbortSignal) => Promise<GroupReading> {
  let mounts: readonly GroupMount[] | undefined;
  let places = new Map<string, GroupPlace | null>();
  let pids = new Map<string, number | null>();
  let looking: Promise<GroupReading> | null = null;

  const read = async (path: string): Promise<string | undefined> => {
    try {
      return new TextDecoder().decode(await o.fs.readFile(path, { bytesMax: FILE_BYTES_MAX }));
    } catch {
      // Not on this kernel, or gone with its container.
      return undefined;
    }
  };
  const place = async (id: string, signal: AbortSignal): Promise<GroupPlace | null> => {
    const { info } = await o.cri.read('ContainerStatus', { containerId: id, verbose: true }, { signal });
    const pid = pidOf(info);
    const text = pid === undefined ? undefined : await read(`/proc/${pid}/cgroup`);
    mounts ??= groupMounts((await read('/proc/self/mountinfo')) ?? '');
    return text === undefined ? null : (groupPlace(text, id, mounts) ?? null);
  };
  const sandboxPid = async (id: string, signal: AbortSignal): Promise<number | null> =>
    pidOf((await o.cri.read('PodSandboxStatus', { podSandboxId: id, verbose: true }, { signal })).info) ?? null;
  const figures = async (at: GroupPlace) => {
    const texts = new Map<string, string>();
    for (const [name, path] of groupFiles(at)) {
      if (!o.pressure && name.endsWith('.pressure')) continue;
      const text = await read(path);
      if (text !== undefined) texts.set(name, text);
    }
    return groupFigures(texts);
  };
  const psi = async (at: GroupPlace): Promise<Psi> => {
    const files = groupFiles(at);
    const texts = await Promise.all(
      PRESSURES.map(async (what) => [what, o.pressure ? await read(files.get(`${what}.pressure`) ?? '') : undefined] as const),
    );
    const byName = new Map(texts);
    return psiOf((what) => byName.get(what) ?? '');
  };
  const network = async (id: string, pid: number) => {
    // The number may be another process's by now.
    const [groups, netDev] = [await read(`/proc/${pid}/cgroup`), await read(`/proc/${pid}/net/dev`)];
    return netDev === undefined || groups?.includes(id) !== true ? undefined : interfaceCounters(netDev);
  };

  async function look(signal: AbortSignal): Promise<GroupReading> {
    const [{ containers }, { items }] = await Promise.all([
      o.cri.read('ListContainers', { filter: { state: { state: 'CONTAINER_RUNNING' } } }, { signal }),
      o.cri.read('ListPodSandbox', { filter: { state: { state: 'SANDBOX_READY' } } }, { signal }),
    ]);
    const [seenPlaces, seenPids] = [new Map<string, GroupPlace | null>(), new Map<string, number | null>()];
    const foundContainers = new Map<string, FoundContainer>();
    const pods: FoundPod[] = [];
    const podPsi = new Map<string, Psi>();
    await inTurns(containers, async (c) => {
      // A question without an answer is asked again at the next look.
      const known = places.get(c.id);
      const at = known === undefined ? await place(c.id, signal).catch(() => undefined) : known;
      if (at !== undefined) seenPlaces.set(c.id, at);
      const uid = c.labels[CRI_LABELS.podUid] ?? '';
      const above = at === null || at === undefined || podPsi.has(uid) ? undefined : podPlace(at, uid);
      if (above !== undefined) {
        podPsi.set(uid, {});
        podPsi.set(uid, await psi(above));
      }
      const key = containerKey(uid, c.labels[CRI_LABELS.containerName] ?? '');
      const of = { id: c.id, image: c.image?.image ?? c.imageRef };
      foundContainers.set(key, at === null || at === undefined ? of : { ...of, path: at.path, figures: await figures(at) });
    });
    await inTurns(items, async ({ id, labels }) => {
      const known = pids.get(id);
      const pid = known === undefined ? await sandboxPid(id, signal).catch(() => undefined) : known;
      if (pid !== undefined) seenPids.set(id, pid);
      const interfaces = pid === null || pid === undefined ? undefined : await network(id, pid);
      if (interfaces === undefined) return;
      pods.push({ id, namespace: labels[CRI_LABELS.podNamespace] ?? '', name: labels[CRI_LABELS.podName] ?? '', interfaces });
    });
    // Only what still runs is kept.
    [places, pids] = [seenPlaces, seenPids];
    const devices = deviceNames((await read('/proc/diskstats')) ?? '');
    const pressure = new Map<PressureOf, NonNullable<ReturnType<typeof pressureOf>>>();
    const texts = new Map<PressureOf, string>();
    for (const what of o.pressure ? PRESSURES : []) {
      const text = (await read(`/proc/pressure/${what}`)) ?? '';
      texts.set(what, text);
      const of = pressureOf(text);
      if (of !== undefined) pressure.set(what, of);
    }
    const interfaces = interfaceCounters((await read('/proc/net/dev')) ?? '');
    const node = { interfaces, pressure: Object.fromEntries(pressure), psi: psiOf((what) => texts.get(what) ?? '') };
    return { containers: foundContainers, pods, devices, podPsi, node };
  }
  return (signal) => {
    looking ??= look(signal).finally(() => {
      looking = null;
    });
    return looking;
  };
}

async function inTurns<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = all.values();
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, all.length) }, async () => {
      for (const one of left) await work(one);
    }),
  );
}
