/** What is left of memory, disk and process ids, as far as the ports can tell. */

import { type Reading, SIGNAL_FACTS, SIGNALS, type Signal, type StarvedResource } from '../../../machines/config/evictionSignals.ts';
import { groupUse } from '../../../machines/figures/groupStats.ts';
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
  /** Path of the group of all pods; undefined until the runtime has said its driver. */
  podsGroup(): string | undefined;
}
type Amount = Pick<Observation, 'available' | 'capacity'>;
/** What one reading tells. A resource that it tells nothing of is absent. */
type Left = Partial<Record<StarvedResource, Amount>>;

/** Files of the group of all pods, in either version of the kernel's interface. */
const GROUP_FILES = ['memory.current', 'memory.max', 'memory.usage_in_bytes', 'memory.limit_in_bytes', 'memory.stat'];
/** Where images are: found out once, then kept. `unseen`: at no place that this process can see. */
export type ImageFs = { kind: 'unknown' } | { kind: 'unseen' } | { kind: 'seen'; path: string; dedicated: boolean };

export class Readings {
  readonly #o: ReadingsOptions;
  readonly #wanted: ReadonlySet<Signal>;
  /** What was last said of a part that cannot be read. */
  readonly #said = new Map<string, string>();
  #imageFs: ImageFs = { kind: 'unknown' };
  readonly #sources: Readonly<Record<Reading, { what: string; read(signal: AbortSignal): Promise<Left> }>>;

  constructor(o: ReadingsOptions) {
    this.#o = o;
    this.#wanted = new Set(o.thresholds.map((t) => t.signal));
    this.#sources = {
      memory: { what: 'available memory', read: () => Promise.resolve(this.#memory()) },
      podsMemory: { what: 'the memory of the group of all pods', read: () => this.#podsMemory() },
      pids: { what: 'the number of processes', read: () => Promise.resolve(this.#pids()) },
      nodefs: { what: `the file system of ${o.rootDir}`, read: () => this.#roomAt(o.rootDir) },
      imagefs: { what: "the runtime's file system for images", read: (signal) => this.#imageRoom(signal) },
    };
  }

  get imageFs(): ImageFs {
    return this.#imageFs;
  }

  /** Only what some threshold is about; a part that cannot be read is left out, and said once. */
  async observe(signal: AbortSignal): Promise<Observations> {
    const seen = new Map<Signal, Observation>();
    for (const [reading, { what, read }] of Object.entries(this.#sources)) {
      const signals = SIGNALS.filter((s) => SIGNAL_FACTS[s].reading === reading);
      const wanted = signals.filter((s) => this.#wanted.has(s));
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

  async #imageRoom(signal: AbortSignal): Promise<Left> {
    await this.findImageFs(signal);
    return this.#imageFs.kind === 'seen' ? this.#roomAt(this.#imageFs.path) : {};
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

  /** Finds it once. @throws CriError */
  async findImageFs(signal: AbortSignal): Promise<void> {
    if (this.#imageFs.kind !== 'unknown' || !this.#o.runtimeUp()) return;
    const { imageFilesystems } = await this.#o.cri.read('ImageFsInfo', {}, { signal });
    const path = imageFilesystems[0]?.fsId?.mountpoint ?? '';
    const { fs } = this.#o.ports;
    const place = path === '' ? null : await fs.stat(path).catch(() => null);
    if (place === null) {
      this.#imageFs = { kind: 'unseen' };
      this.#o.log.info({ path }, 'the runtime keeps images at no place that this node can see; thresholds about imagefs are passed over');
      return;
    }
    const root = await fs.stat(this.#o.rootDir);
    this.#imageFs = { kind: 'seen', path, dedicated: place.dev !== root.dev };
  }
}
