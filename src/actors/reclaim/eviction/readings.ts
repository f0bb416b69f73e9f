/** What is left of memory, disk and process ids, as far as the ports can tell. */

import { groupUse } from '../../../machines/figures/groupStats.ts';
import type { Observation, Observations } from '../../../machines/reclaim/eviction/pass.ts';
import type { Signal, Threshold } from '../../../machines/reclaim/eviction/thresholds.ts';
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
/** Of the group of all pods, in either version of the kernel's interface. */
const GROUP_FILES = ['memory.current', 'memory.max', 'memory.usage_in_bytes', 'memory.limit_in_bytes', 'memory.stat'];
/** Where images are: found out once, then kept. `unseen`: at no place that this process can see. */
export type ImageFs = { kind: 'unknown' } | { kind: 'unseen' } | { kind: 'seen'; path: string; dedicated: boolean };

export class Readings {
  readonly #o: ReadingsOptions;
  readonly #wanted: ReadonlySet<Signal>;
  /** What was last said of a part that cannot be read. */
  readonly #said = new Map<string, string>();
  #imageFs: ImageFs = { kind: 'unknown' };

  constructor(o: ReadingsOptions) {
    this.#o = o;
    this.#wanted = new Set(o.thresholds.map((t) => t.signal));
  }

  get imageFs(): ImageFs {
    return this.#imageFs;
  }

  /** Only what some threshold is about; a part that cannot be read is left out, and said once. */
  async observe(signal: AbortSignal): Promise<Observations> {
    const { ports, rootDir } = this.#o;
    const { host } = ports;
    const seen = new Map<Signal, Observation>();
    const note = (name: Signal, available: number, capacity: number) => {
      if (this.#wanted.has(name)) seen.set(name, { available, capacity, atMs: ports.clock.monoMs() });
    };
    await this.#part('available memory', ['memory.available'], async () => {
      const memory = host.memory?.();
      if (memory !== undefined) note('memory.available', memory.availableBytes, memory.capacityBytes);
    });
    await this.#part('the memory of the group of all pods', ['allocatableMemory.available'], async () => {
      const memory = await this.podsMemory();
      if (memory !== undefined) note('allocatableMemory.available', memory.available, memory.capacity);
    });
    await this.#part('the number of processes', ['pid.available'], async () => {
      const tasks = host.tasks?.();
      if (tasks !== undefined) note('pid.available', tasks.max - tasks.current, tasks.max);
    });
    await this.#part(`the file system of ${rootDir}`, ['nodefs.available', 'nodefs.inodesFree'], async () => {
      const room = await ports.fs.statfs(rootDir);
      note('nodefs.available', room.bytesAvailable, room.bytesTotal);
      // Some file systems do not count inodes: they cannot run out of them.
      if (room.inodesTotal > 0) note('nodefs.inodesFree', room.inodesFree, room.inodesTotal);
    });
    await this.#part("the runtime's file system for images", ['imagefs.available', 'imagefs.inodesFree'], async () => {
      await this.findImageFs(signal);
      if (this.#imageFs.kind !== 'seen') return;
      const room = await ports.fs.statfs(this.#imageFs.path);
      note('imagefs.available', room.bytesAvailable, room.bytesTotal);
      if (room.inodesTotal > 0) note('imagefs.inodesFree', room.inodesFree, room.inodesTotal);
    });
    signal.throwIfAborted();
    return seen;
  }

  /** What is left of the limit of all pods together; undefined: there is no limit yet. @throws where the group cannot be read. */
  async podsMemory(): Promise<Pick<Observation, 'available' | 'capacity'> | undefined> {
    const path = this.#o.podsGroup();
    const { cgroups } = this.#o.ports;
    if (path === undefined || cgroups === undefined) return undefined;
    const texts = await cgroups.read(
      path,
      GROUP_FILES.map((file) => ({ controller: 'memory', file })),
    );
    const use = groupUse(new Map(GROUP_FILES.map((file, i) => [file, texts[i] ?? ''])));
    const { availableBytes: available, workingSetBytes } = use.memory ?? {};
    return available === undefined || workingSetBytes === undefined ? undefined : { available, capacity: available + workingSetBytes };
  }

  async #part(what: string, signals: readonly Signal[], read: () => Promise<void>): Promise<void> {
    if (!signals.some((s) => this.#wanted.has(s))) return;
    let err = '';
    try {
      await read();
    } catch (error) {
      err = messageOf(error);
    }
    if (err !== '' && this.#said.get(what) !== err)
      this.#o.log.warn({ err, signals }, `${what} cannot be read; thresholds about it are passed over, and it is read again`);
    this.#said.set(what, err);
  }

  /** Asked once. @throws CriError */
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
