/**
 * A disk with the truth of disks: what was written but not synced may be gone, or half there, after the power fails;
 * names last when their directory was synced. One disk outlives many processes, each reaching it through its own mount.
 */

import type { Clock, FsEvent, HostFs, Sys } from '@actorlet/kubelet/ports/ports.ts';
import type { SimRng } from '../rng.ts';
import type { Power, SimTime } from '../time.ts';
import { failure, nameOf, type OpenFile, openFile, parentOf } from './diskEntry.ts';
import { diskMount } from './diskMount.ts';
import { DiskTree } from './diskTree.ts';
import type { DiskTrouble, SimDisk } from './types.ts';

interface Watch {
  path: string;
  power: Power;
  onEvent(e: FsEvent): void;
  onEnd(error: Error): void;
}

/** Where a watch is whose directory was replaced. */
const NOWHERE = '(replaced)';
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** `lasting`: without power losses, which takes less memory. */
export function simDisk(o: { time: Pick<SimTime, 'yieldFor'>; clock: Clock; lasting?: boolean }): SimDisk {
  return new Disk(o);
}

class Disk implements SimDisk {
  trouble: DiskTrouble = {
    full: () => false,
    delayMs: () => 0,
    failing: () => undefined,
    deaf: () => false,
    availableBytes: () => undefined,
  };
  onRemove: SimDisk['onRemove'] = () => {};
  isMountPoint: SimDisk['isMountPoint'] = () => false;
  deviceOf: SimDisk['deviceOf'] = () => 1;
  readonly #time: Pick<SimTime, 'yieldFor'>;
  readonly #wallMs: () => number;
  readonly #tree: DiskTree;
  readonly #watches = new Set<Watch>();

  constructor(o: Parameters<typeof simDisk>[0]) {
    this.#time = o.time;
    this.#wallMs = () => o.clock.wallMs();
    const { lasting = false } = o;
    this.#tree = new DiskTree({ wallMs: this.#wallMs, lasting, onChange: (path, kind) => this.#tell(path, kind) });
  }

  #tell(path: string, kind: FsEvent['kind']): void {
    const dir = parentOf(path);
    for (const w of this.#watches) {
      if (w.path !== dir || this.trouble.deaf(path)) continue;
      this.#time.yieldFor(w.power).defer(() => (this.#watches.has(w) ? w.onEvent({ kind, name: nameOf(path) }) : undefined));
    }
  }

  mount(power: Power, clock: Clock): { fs: HostFs; watchDir: Sys['watchDir'] } {
    return {
      fs: diskMount({ tree: this.#tree, disk: this, power, clock, wallMs: this.#wallMs }),
      watchDir: (path, onEvent, onEnd) => {
        if (this.#tree.follow(path).kind !== 'dir') throw failure('ENOTDIR', path);
        const watch: Watch = { path, power, onEvent, onEnd };
        this.#watches.add(watch);
        return { [Symbol.dispose]: () => void this.#watches.delete(watch) };
      },
    };
  }

  powerLoss(rng: SimRng): void {
    this.#tree.powerLoss(rng);
    this.#watches.clear();
  }

  put(path: string, text: string): void {
    this.#tree.makeDir(parentOf(path), true);
    this.#tree.storeLasting(path, this.#tree.entry('file', { data: encoder.encode(text) }));
  }

  putLink(path: string, target: string): void {
    this.#tree.storeLasting(path, this.#tree.entry('symlink', { target }));
  }

  putSocket(path: string): void {
    this.#tree.makeDir(parentOf(path), true);
    if (this.has(path)) this.#tree.remove(path);
    this.#tree.storeLasting(path, this.#tree.entry('other'));
  }

  drop(path: string): void {
    this.#tree.remove(path);
    this.#tree.durable.delete(path);
  }

  makeDir(path: string): void {
    this.#tree.makeDir(path, true);
  }

  takeDir(path: string): boolean {
    const { live } = this.#tree;
    if (live.get(path)?.kind !== 'dir') return false;
    for (const p of this.#tree.below(path).sort().reverse()) this.#tree.remove(p);
    this.#tree.remove(path);
    this.#tree.forgetBelow(path);
    this.breakWatches('the directory was removed', (p) => p === path || p.startsWith(`${path}/`));
    return true;
  }

  swapDir(path: string): boolean {
    const dir = this.#tree.live.get(path);
    if (dir?.kind !== 'dir') return false;
    this.#tree.replaceDir(path, dir);
    for (const w of this.#watches) if (w.path === path) w.path = NOWHERE;
    return true;
  }

  has(path: string): boolean {
    return this.#tree.live.has(path);
  }

  textOf(path: string): string | undefined {
    const e = this.#tree.live.get(path);
    return e?.kind === 'file' ? decoder.decode(e.data) : undefined;
  }

  linkAt(path: string): string | undefined {
    const e = this.#tree.live.get(path);
    return e?.kind === 'symlink' ? e.target : undefined;
  }

  namesIn(path: string): string[] {
    return this.#tree.namesIn(path);
  }

  opened(path: string): OpenFile | undefined {
    const { live } = this.#tree;
    if (live.get(parentOf(path))?.kind !== 'dir') return undefined;
    const file = live.get(path) ?? this.#tree.entry('file', { synced: false });
    if (file.kind !== 'file') return undefined;
    this.#tree.set(path, file);
    return openFile(file, { isAt: (other) => live.get(other) === file, wallMs: this.#wallMs });
  }

  sizeBelow(path: string): { bytes: number; inodes: number } {
    return this.#tree.sizeBelow(path, this.isMountPoint);
  }

  emptyDir(path: string): void {
    for (const p of this.#tree.below(path)) this.#tree.unset(p);
    this.#tree.forgetBelow(path);
  }

  breakWatches(message: string, which: (path: string) => boolean = () => true): number {
    const broken = [...this.#watches].filter((w) => which(w.path));
    for (const w of broken) {
      this.#watches.delete(w);
      this.#time.yieldFor(w.power).defer(() => w.onEnd(new Error(message)));
    }
    return broken.length;
  }
}
