/** What is left of memory, disk and process ids, as far as the ports can tell. */

import { type Reading, SIGNAL_FACTS, SIGNALS, type Signal, type StarvedResource } from '../../../machines/config/evictionSignals.ts';
import { groupUse } from '../../../machines/figures/groupStats.ts';
import { type DiskLayout, withLayers } from '../../../machines/reclaim/eviction/disks.ts';
import type { Observation, Observations } from '../../../machines/reclaim/eviction/pass.ts';
import type { Threshold } from '../../../machines/reclaim/eviction/thresholds.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Logger, Ports } from '../../../ports/ports.ts';
import type { CriClient } from '../../runtime/client.ts';

export interface ReadingsOptions {
  ports: Ports;
  cri: CriClient;
  /** The runtime answers just now. */
  runtimeUp(): boolean;
  log: Logger;
  rootDir: string;
  thresholds: readonly Threshold[];
  /** KubeletSeparateDiskGC. */
  separateDisks: boolean;
  /** Path of the group of all pods; undefined until the runtime has said its driver. */
  podsGroup(): string | undefined;
}
type Amount = Pick<Observation, 'available' | 'capacity'>;
/** What one reading tells. A resource that it tells nothing of is absent. */
type Left = Partial<Record<StarvedResource, Amount>>;

/** Files of the group of all pods, in either version of the kernel's interface. */
const GROUP_FILES = ['memory.current', 'memory.max', 'memory.usage_in_bytes', 'memory.limit_in_bytes', 'memory.stat'];
/** Where images and writable layers are: found out once, then kept. */
export interface Disks {
  layout: DiskLayout;
  imagePath?: string;
  /** Absent: with the images. */
  layerPath?: string;
}
/** The reference's words. It evicts nothing then. */
const GATE_IS_OFF = 'KubeletSeparateDiskGC is turned off but we still have a split filesystem';
const DISK_READINGS: readonly Reading[] = ['nodefs', 'imagefs', 'containerfs'];

export class Readings {
  readonly #o: ReadingsOptions;
  readonly #aboutDisks: boolean;
  /** What was last said of a part that cannot be read. */
  readonly #said = new Map<string, string>();
  #disks: Disks = { layout: 'unknown' };
  readonly #sources: Readonly<Record<Reading, { what: string; read(signal: AbortSignal): Promise<Left> }>>;

  constructor(o: ReadingsOptions) {
    this.#o = o;
    this.#aboutDisks = o.thresholds.some((t) => DISK_READINGS.includes(SIGNAL_FACTS[t.signal].reading));
    this.#sources = {
      memory: { what: 'available memory', read: () => Promise.resolve(this.#memory()) },
      podsMemory: { what: 'the memory of the group of all pods', read: () => this.#podsMemory() },
      pids: { what: 'the number of processes', read: () => Promise.resolve(this.#pids()) },
      nodefs: { what: `the file system of ${o.rootDir}`, read: () => this.#roomAt(o.rootDir) },
      imagefs: { what: "the runtime's file system for images", read: () => this.#roomOf(this.#disks.imagePath) },
      containerfs: { what: "the runtime's file system for containers", read: () => this.#roomOf(this.#disks.layerPath) },
    };
  }

  get disks(): Disks {
    return this.#disks;
  }

  /** Only what some threshold is about; a part that cannot be read is left out, and said once. */
  async observe(signal: AbortSignal): Promise<Observations> {
    const seen = new Map<Signal, Observation>();
    if (this.#aboutDisks) await this.#part('what the runtime says of its file systems', OF_RUNTIME, () => this.findDisks(signal));
    const thresholds = withLayers(this.#o.thresholds, this.#disks.layout);
    const asked = new Set(thresholds.map((t) => t.signal));
    for (const [reading, { what, read }] of Object.entries(this.#sources)) {
      const signals = SIGNALS.filter((s) => SIGNAL_FACTS[s].reading === reading);
      const wanted = signals.filter((s) => asked.has(s));
      if (wanted.length === 0) continue;
      const left = await this.#part(what, signals, () => read(signal));
      for (const s of wanted) {
        const amount = left[SIGNAL_FACTS[s].resource];
        if (amount !== undefined) seen.set(s, { ...amount, atMs: this.#o.ports.clock.monoMs() });
      }
    }
    signal.throwIfAborted();
    return seen;
  }

  /** One signal alone. @throws where it cannot be read. */
  async read(signal: Signal, ended: AbortSignal): Promise<Amount | undefined> {
    const { reading, resource } = SIGNAL_FACTS[signal];
    return (await this.#sources[reading].read(ended))[resource];
  }

  #memory(): Left {
    const memory = this.#o.ports.host.memory?.();
    return memory === undefined ? {} : { memory: { available: memory.availableBytes, capacity: memory.capacityBytes } };
  }

  #pids(): Left {
    const tasks = this.#o.ports.host.tasks?.();
    return tasks === undefined ? {} : { pids: { available: tasks.max - tasks.current, capacity: tasks.max } };
  }

  async #roomAt(path: string): Promise<Left> {
    const room = await this.#o.ports.fs.statfs(path);
    return {
      'ephemeral-storage': { available: room.bytesAvailable, capacity: room.bytesTotal },
      // Some file systems do not count inodes: they cannot run out of them.
      ...(room.inodesTotal > 0 ? { inodes: { available: room.inodesFree, capacity: room.inodesTotal } } : {}),
    };
  }

  async #roomOf(path: string | undefined): Promise<Left> {
    return path === undefined ? {} : this.#roomAt(path);
  }

  /** What is left of the limit of all pods together; nothing: there is no limit yet. @throws where the group cannot be read. */
  async #podsMemory(): Promise<Left> {
    const path = this.#o.podsGroup();
    const { cgroups } = this.#o.ports;
    if (path === undefined || cgroups === undefined) return {};
    const texts = await cgroups.read(
      path,
      GROUP_FILES.map((file) => ({ controller: 'memory', file })),
    );
    const use = groupUse(new Map(GROUP_FILES.map((file, i) => [file, texts[i] ?? ''])));
    const { availableBytes: available, workingSetBytes } = use.memory ?? {};
    return available === undefined || workingSetBytes === undefined ? {} : { memory: { available, capacity: available + workingSetBytes } };
  }

  async #part(what: string, signals: readonly Signal[], read: () => Promise<Left>): Promise<Left> {
    let err = '';
    let left: Left = {};
    try {
      left = await read();
    } catch (error) {
      err = messageOf(error);
    }
    if (err !== '' && this.#said.get(what) !== err)
      this.#o.log.warn({ err, signals }, `${what} cannot be read; thresholds about it are passed over, and it is read again`);
    this.#said.set(what, err);
    return left;
  }

  /** Finds them once. @throws CriError */
  async findDisks(signal: AbortSignal): Promise<Left> {
    if (this.#disks.layout !== 'unknown' || !this.#o.runtimeUp()) return {};
    const { imageFilesystems, containerFilesystems } = await this.#o.cri.read('ImageFsInfo', {}, { signal });
    const { fs } = this.#o.ports;
    const placeOf = async (named: string | undefined): Promise<Place | null> => {
      const found = named === undefined || named === '' ? null : await fs.stat(named).catch(() => null);
      return named === undefined || found === null ? null : { path: named, dev: found.dev };
    };
    const named = imageFilesystems[0]?.fsId?.mountpoint ?? '';
    const images = await placeOf(named);
    const layers = await placeOf(containerFilesystems?.[0]?.fsId?.mountpoint);
    if (images === null) {
      this.#disks = { layout: 'unseen' };
      this.#o.log.info(
        { path: named },
        'the runtime keeps images at no place that this node can see; thresholds about imagefs are passed over',
      );
      return {};
    }
    const root = await fs.stat(this.#o.rootDir);
    this.#disks = this.#layoutOf({ images, layers }, root.dev);
    return {};
  }

  /** Two places on one device are one file system. */
  #layoutOf({ images, layers }: { images: Place; layers: Place | null }, rootDev: number): Disks {
    const together: Disks = { layout: images.dev === rootDev ? 'single' : 'imagefs', imagePath: images.path };
    if (layers === null || layers.dev === images.dev) return together;
    const places = { images: images.path, containers: layers.path };
    if (!this.#o.separateDisks) {
      this.#o.log.error(places, `${GATE_IS_OFF}; the disk of containers is not looked at`);
      return together;
    }
    this.#o.log.info(places, 'images and writable layers lie on two file systems; thresholds of nodefs hold for that of the layers too');
    return { layout: 'split', imagePath: images.path, layerPath: layers.path };
  }
}

interface Place {
  path: string;
  dev: number;
}
const OF_RUNTIME = SIGNALS.filter((s) => ['imagefs', 'containerfs'].includes(SIGNAL_FACTS[s].reading));
