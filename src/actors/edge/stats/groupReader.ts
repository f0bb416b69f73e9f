/** Reads what /metrics/cadvisor needs beyond the runtime's statistics: cgroups of containers, of pods and above, networks of pods. */

import {
  containerKey,
  type FoundContainer,
  type FoundGroup,
  type FoundPod,
  type GroupReading,
} from '../../../machines/edge/stats/cadvisorMetrics.ts';
import { type DiskMount, deviceAt, diskMounts } from '../../../machines/edge/stats/diskStats.ts';
import {
  type GroupMount,
  type GroupPlace,
  groupMounts,
  groupPlace,
  isOfPod,
  placeAt,
  placesAbove,
} from '../../../machines/figures/groupPlaces.ts';
import { deviceNames, type GroupFigures, imageOf, PRESSURES, type Psi, pidOf } from '../../../machines/figures/groupStats.ts';
import { CRI_LABELS } from '../../../machines/wire/cri.ts';
import type { CriClient } from '../../runtime/client.ts';
import { GroupFiles, type GroupFilesOptions, type LinkBudget, linkBudget, MOUNTS_BYTES_MAX } from './groupFiles.ts';

/** Files that the summary needs of a group: pressure and swap. */
const FILES_OF_USE: ReadonlySet<string> = new Set([
  ...PRESSURES.map((what) => `${what}.pressure`),
  ...['memory.stat', 'memory.swap.current', 'memory.swap.max', 'memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'],
]);
/** Containers looked at side by side: the file system's threads serve the rest of the node too. */
const AT_ONCE = 8;

export interface GroupReaderOptions extends GroupFilesOptions {
  cri: CriClient;
  /** Paths of further groups that the page tells of; absent or '': none. */
  systemGroups?(): Readonly<Record<string, string>>;
}
/** `use`: what /stats/summary tells. `all`: also groups above pods, the root group, processes and disks. */
export type LookFor = 'use' | 'all';

/** One look at a time: requests that come meanwhile share its answer. */
export function createGroupReader(o: GroupReaderOptions): (signal: AbortSignal, what?: LookFor) => Promise<GroupReading> {
  const reader = new GroupReader(o);
  const looking = new Map<LookFor, Promise<GroupReading>>();
  return (signal, what = 'use') => {
    const running = looking.get('all') ?? looking.get(what);
    if (running !== undefined) return running;
    const look = reader.look(what, signal).finally(() => looking.delete(what));
    looking.set(what, look);
    return look;
  };
}

interface Placed {
  place: GroupPlace;
  pid: number;
  /** The first name of its image; undefined: the runtime has none. */
  image: string | undefined;
}
interface Sandbox {
  pid: number;
  place: GroupPlace | undefined;
  image: string;
  madeMs: number | undefined;
}
/**
 * What looks found out, kept for as long as the container or sandbox runs; null: there is none. A question without an answer
 * is not kept: the next look asks again.
 */
interface Kept {
  containers: Map<string, Placed | null>;
  sandboxes: Map<string, Sandbox | null>;
  /** When a group was made, by path. */
  made: Map<string, number>;
}
const nothingKept = (): Kept => ({ containers: new Map(), sandboxes: new Map(), made: new Map() });
interface Mounts {
  groups: readonly GroupMount[];
  disks: readonly DiskMount[];
}
interface PodName {
  uid: string;
  namespace: string;
  name: string;
}
const podOf = (labels: Readonly<Record<string, string>>): PodName => ({
  uid: labels[CRI_LABELS.podUid] ?? '',
  namespace: labels[CRI_LABELS.podNamespace] ?? '',
  name: labels[CRI_LABELS.podName] ?? '',
});

/** One look: what it found so far, and what it was told to look for. */
interface Look {
  what: LookFor;
  signal: AbortSignal;
  seen: Kept;
  budget: LinkBudget;
  mounts: Mounts;
  /** Groups above containers and sandboxes, by path. */
  above: Map<string, { place: GroupPlace; pod?: PodName }>;
}

class GroupReader {
  readonly #o: GroupReaderOptions;
  readonly #files: GroupFiles;
  #mounts: Mounts | undefined;
  #imageDevice: string | undefined;
  #kept = nothingKept();

  constructor(o: GroupReaderOptions) {
    this.#o = o;
    this.#files = new GroupFiles(o);
  }

  async look(what: LookFor, signal: AbortSignal): Promise<GroupReading> {
    const [{ containers }, { items }] = await Promise.all([
      this.#o.cri.read('ListContainers', { filter: { state: { state: 'CONTAINER_RUNNING' } } }, { signal }),
      this.#o.cri.read('ListPodSandbox', { filter: { state: { state: 'SANDBOX_READY' } } }, { signal }),
    ]);
    const mounts = await this.#mountTable();
    const look: Look = { what, signal, seen: nothingKept(), budget: linkBudget(), mounts, above: new Map() };
    const found = { containers: new Map<string, FoundContainer>(), pods: [] as FoundPod[] };
    await inTurns(containers, async (c) => {
      const pod = podOf(c.labels);
      const placed = await this.#placeOf(c.id, look);
      const of = { id: c.id, image: placed?.image ?? c.image?.image ?? c.imageRef };
      const figures = placed === undefined ? undefined : await this.#figures(placed.place, placed.pid, look);
      if (placed !== undefined) noteAbove(placed.place, pod, look);
      const own = placed === undefined || figures === undefined ? of : { ...of, path: placed.place.path, figures };
      found.containers.set(containerKey(pod.uid, c.labels[CRI_LABELS.containerName] ?? ''), own);
    });
    await inTurns(items, async ({ id, labels }) => {
      const pod = await this.#pod(id, podOf(labels), look);
      if (pod !== undefined) found.pods.push(pod);
    });
    const { groups, podPsi } = await this.#groups(look);
    // Only what still runs is kept.
    this.#kept = look.seen;
    const diskstats = (await this.#files.read('/proc/diskstats')) ?? '';
    const node = await this.#files.node();
    const reading = { ...found, groups, podPsi, devices: deviceNames(diskstats), node };
    if (what === 'use') return reading;
    const [figures, disks] = [await this.#files.root(mounts.groups, look.budget), await this.#files.disks(mounts.disks, diskstats)];
    const imageDevice = await this.#imagesOn(signal);
    return { ...reading, node: { ...node, figures, disks }, ...(imageDevice === undefined ? {} : { imageDevice }) };
  }

  async #figures(place: GroupPlace, pid: number | undefined, look: Look): Promise<GroupFigures> {
    if (look.what === 'use') {
      const figures = await this.#files.figures(place, FILES_OF_USE);
      // Nobody asks how many processes a group above containers has.
      const processes = pid === undefined ? undefined : (await this.#files.processes(place))?.length;
      return processes === undefined ? figures : { ...figures, tasks: { ...figures.tasks, processes } };
    }
    const figures = await this.#files.figures(place);
    return { ...figures, tasks: { ...figures.tasks, ...(await this.#files.tasks(place, pid, look.budget)) } };
  }

  async #pod(id: string, pod: PodName, look: Look): Promise<FoundPod | undefined> {
    const sandbox = await this.#sandboxOf(id, look);
    const interfaces = sandbox === undefined ? undefined : await this.#files.network(id, sandbox.pid);
    if (sandbox === undefined || interfaces === undefined) return undefined;
    const { place, image, pid, madeMs } = sandbox;
    if (place !== undefined) noteAbove(place, pod, look);
    const of = { id, namespace: pod.namespace, name: pod.name, interfaces, image };
    if (place === undefined || look.what === 'use') return of;
    return { ...of, path: place.path, figures: await this.#figures(place, pid, look), ...(madeMs === undefined ? {} : { madeMs }) };
  }

  /** Groups above containers. The summary needs those of pods alone. */
  async #groups(look: Look): Promise<{ groups: FoundGroup[]; podPsi: Map<string, Psi> }> {
    const { above, seen, mounts, what } = look;
    for (const path of what === 'use' ? [] : Object.values(this.#o.systemGroups?.() ?? {}))
      if (path !== '' && path !== '/' && !above.has(path)) above.set(path, { place: placeAt({ path }, mounts.groups) });
    const groups: FoundGroup[] = [];
    const podPsi = new Map<string, Psi>();
    await inTurns([...above.values()], async ({ place, pod }) => {
      if (what === 'use' && pod === undefined) return;
      const madeMs = this.#kept.made.get(place.path) ?? (await this.#files.madeMs(place));
      // Without a folder there is no such group.
      if (madeMs === undefined) return;
      seen.made.set(place.path, madeMs);
      const figures = await this.#figures(place, undefined, look);
      if (pod !== undefined && figures.psi !== undefined) podPsi.set(pod.uid, figures.psi);
      groups.push({
        path: place.path,
        figures,
        madeMs,
        ...(pod === undefined ? {} : { pod: { namespace: pod.namespace, name: pod.name } }),
      });
    });
    groups.sort((a, b) => (a.path < b.path ? -1 : 1));
    return { groups, podPsi };
  }

  async #placeOf(id: string, look: Look): Promise<Placed | undefined> {
    const known = this.#kept.containers.get(id);
    const at = known === undefined ? await this.#place(id, look).catch(() => undefined) : known;
    if (at !== undefined) look.seen.containers.set(id, at);
    return at ?? undefined;
  }

  async #sandboxOf(id: string, look: Look): Promise<Sandbox | undefined> {
    const known = this.#kept.sandboxes.get(id);
    const at = known === undefined ? await this.#sandbox(id, look).catch(() => undefined) : known;
    if (at !== undefined) look.seen.sandboxes.set(id, at);
    return at ?? undefined;
  }

  async #place(id: string, { mounts, signal }: Look): Promise<Placed | null> {
    const { info, status } = await this.#o.cri.read('ContainerStatus', { containerId: id, verbose: true }, { signal });
    const pid = pidOf(info);
    const text = pid === undefined ? undefined : await this.#files.read(`/proc/${pid}/cgroup`);
    const place = text === undefined ? undefined : groupPlace(text, id, mounts.groups);
    return place === undefined || pid === undefined ? null : { place, pid, image: status?.image?.image };
  }

  async #sandbox(id: string, { mounts, signal }: Look): Promise<Sandbox | null> {
    const { info } = await this.#o.cri.read('PodSandboxStatus', { podSandboxId: id, verbose: true }, { signal });
    const pid = pidOf(info);
    if (pid === undefined) return null;
    const place = groupPlace((await this.#files.read(`/proc/${pid}/cgroup`)) ?? '', id, mounts.groups);
    return { pid, place, image: imageOf(info) ?? '', madeMs: place === undefined ? undefined : await this.#files.madeMs(place) };
  }

  /** Read once. A table that could not be read is read again. */
  async #mountTable(): Promise<Mounts> {
    if (this.#mounts !== undefined) return this.#mounts;
    const text = await this.#files.read('/proc/self/mountinfo', MOUNTS_BYTES_MAX);
    const mounts = { groups: groupMounts(text ?? ''), disks: diskMounts(text ?? '') };
    if (text !== undefined) this.#mounts = mounts;
    return mounts;
  }

  /** Found out once: the runtime keeps images and writable layers at one place while it runs. */
  async #imagesOn(signal: AbortSignal): Promise<string | undefined> {
    if (this.#imageDevice !== undefined) return this.#imageDevice;
    try {
      const path = (await this.#o.cri.read('ImageFsInfo', {}, { signal })).imageFilesystems[0]?.fsId?.mountpoint ?? '';
      const text = await this.#files.read('/proc/self/mountinfo', MOUNTS_BYTES_MAX);
      if (path !== '' && text !== undefined) this.#imageDevice = deviceAt(text, path);
    } catch {
      // The runtime does not tell; the next look asks again.
    }
    return this.#imageDevice;
  }
}

function noteAbove(of: GroupPlace, pod: PodName, { above, mounts }: Look): void {
  for (const place of placesAbove(of, mounts.groups)) {
    if (isOfPod(place, pod.uid)) above.set(place.path, { place, pod });
    else if (!above.has(place.path)) above.set(place.path, { place });
  }
}

export async function inTurns<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = all.values();
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, all.length) }, async () => {
      for (const one of left) await work(one);
    }),
  );
}
