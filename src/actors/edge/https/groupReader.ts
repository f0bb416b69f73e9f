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

/** One look at a time: requests that come meanwhile share its answer. */
export function createGroupReader(o: GroupReaderOptions): (signal: AbortSignal) => Promise<GroupReading> {
  const reader = new GroupReader(o);
  let looking: Promise<GroupReading> | null = null;
  return (signal) => {
    looking ??= reader.look(signal).finally(() => {
      looking = null;
    });
    return looking;
  };
}

/**
 * What looks found out, kept for as long as the container or sandbox runs; null: there is none. A question without an answer
 * is not kept: the next look asks again.
 */
interface Kept {
  /** By container. */
  places: Map<string, GroupPlace | null>;
  /** By sandbox. */
  pids: Map<string, number | null>;
}

class GroupReader {
  readonly #cri: CriClient;
  readonly #files: GroupFiles;
  #mounts: readonly GroupMount[] | undefined;
  #kept: Kept = { places: new Map(), pids: new Map() };

  constructor(o: GroupReaderOptions) {
    this.#cri = o.cri;
    this.#files = new GroupFiles(o);
  }

  async look(signal: AbortSignal): Promise<GroupReading> {
    const [{ containers }, { items }] = await Promise.all([
      this.#cri.read('ListContainers', { filter: { state: { state: 'CONTAINER_RUNNING' } } }, { signal }),
      this.#cri.read('ListPodSandbox', { filter: { state: { state: 'SANDBOX_READY' } } }, { signal }),
    ]);
    const seen: Kept = { places: new Map(), pids: new Map() };
    const found = { containers: new Map<string, FoundContainer>(), podPsi: new Map<string, Psi>(), pods: [] as FoundPod[] };
    await inTurns(containers, async (c) => {
      const at = await this.#placeOf(c.id, seen, signal);
      const uid = c.labels[CRI_LABELS.podUid] ?? '';
      if (at !== undefined) await this.#readPod(uid, at, found.podPsi);
      const key = containerKey(uid, c.labels[CRI_LABELS.containerName] ?? '');
      const of = { id: c.id, image: c.image?.image ?? c.imageRef };
      found.containers.set(key, at === undefined ? of : { ...of, path: at.path, figures: await this.#files.figures(at) });
    });
    await inTurns(items, async ({ id, labels }) => {
      const pid = await this.#pidOf(id, seen, signal);
      const interfaces = pid === undefined ? undefined : await this.#files.network(id, pid);
      if (interfaces === undefined) return;
      found.pods.push({ id, namespace: labels[CRI_LABELS.podNamespace] ?? '', name: labels[CRI_LABELS.podName] ?? '', interfaces });
    });
    // Only what still runs is kept.
    this.#kept = seen;
    const devices = deviceNames((await this.#files.read('/proc/diskstats')) ?? '');
    return { ...found, devices, node: await this.#files.node() };
  }

  async #readPod(uid: string, at: GroupPlace, podPsi: Map<string, Psi>): Promise<void> {
    const above = podPsi.has(uid) ? undefined : podPlace(at, uid);
    if (above === undefined) return;
    // The pod's other containers leave it to this one.
    podPsi.set(uid, {});
    podPsi.set(uid, await this.#files.psi(above));
  }

  async #placeOf(id: string, seen: Kept, signal: AbortSignal): Promise<GroupPlace | undefined> {
    const known = this.#kept.places.get(id);
    const at = known === undefined ? await this.#place(id, signal).catch(() => undefined) : known;
    if (at !== undefined) seen.places.set(id, at);
    return at ?? undefined;
  }

  async #pidOf(id: string, seen: Kept, signal: AbortSignal): Promise<number | undefined> {
    const known = this.#kept.pids.get(id);
    const pid = known === undefined ? await this.#sandboxPid(id, signal).catch(() => undefined) : known;
    if (pid !== undefined) seen.pids.set(id, pid);
    return pid ?? undefined;
  }

  async #place(id: string, signal: AbortSignal): Promise<GroupPlace | null> {
    const { info } = await this.#cri.read('ContainerStatus', { containerId: id, verbose: true }, { signal });
    const pid = pidOf(info);
    const text = pid === undefined ? undefined : await this.#files.read(`/proc/${pid}/cgroup`);
    this.#mounts ??= groupMounts((await this.#files.read('/proc/self/mountinfo')) ?? '');
    return text === undefined ? null : (groupPlace(text, id, this.#mounts) ?? null);
  }

  async #sandboxPid(id: string, signal: AbortSignal): Promise<number | null> {
    return pidOf((await this.#cri.read('PodSandboxStatus', { podSandboxId: id, verbose: true }, { signal })).info) ?? null;
  }
}

/** The kernel's files. One that is not there says nothing. */
class GroupFiles {
  readonly #o: Pick<GroupReaderOptions, 'fs' | 'pressure'>;

  constructor(o: Pick<GroupReaderOptions, 'fs' | 'pressure'>) {
    this.#o = o;
  }

  async read(path: string): Promise<string | undefined> {
    try {
      return new TextDecoder().decode(await this.#o.fs.readFile(path, { bytesMax: FILE_BYTES_MAX }));
    } catch {
      // Not on this kernel, or gone with its container.
      return undefined;
    }
  }

  async figures(at: GroupPlace): Promise<ReturnType<typeof groupFigures>> {
    const texts = new Map<string, string>();
    for (const [name, path] of groupFiles(at)) {
      if (!this.#o.pressure && name.endsWith('.pressure')) continue;
      const text = await this.read(path);
      if (text !== undefined) texts.set(name, text);
    }
    return groupFigures(texts);
  }

  async psi(at: GroupPlace): Promise<Psi> {
    const files = groupFiles(at);
    const texts = await Promise.all(
      PRESSURES.map(async (what) => [what, this.#o.pressure ? await this.read(files.get(`${what}.pressure`) ?? '') : undefined] as const),
    );
    const byName = new Map(texts);
    return psiOf((what) => byName.get(what) ?? '');
  }

  async network(id: string, pid: number): Promise<FoundPod['interfaces'] | undefined> {
    // The number may be another process's by now.
    const [groups, netDev] = [await this.read(`/proc/${pid}/cgroup`), await this.read(`/proc/${pid}/net/dev`)];
    return netDev === undefined || groups?.includes(id) !== true ? undefined : interfaceCounters(netDev);
  }

  async node(): Promise<GroupReading['node']> {
    const pressure = new Map<PressureOf, NonNullable<ReturnType<typeof pressureOf>>>();
    const texts = new Map<PressureOf, string>();
    for (const what of this.#o.pressure ? PRESSURES : []) {
      const text = (await this.read(`/proc/pressure/${what}`)) ?? '';
      texts.set(what, text);
      const of = pressureOf(text);
      if (of !== undefined) pressure.set(what, of);
    }
    const interfaces = interfaceCounters((await this.read('/proc/net/dev')) ?? '');
    return { interfaces, pressure: Object.fromEntries(pressure), psi: psiOf((what) => texts.get(what) ?? '') };
  }
}

async function inTurns<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = all.values();
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, all.length) }, async () => {
      for (const one of left) await work(one);
    }),
  );
}
