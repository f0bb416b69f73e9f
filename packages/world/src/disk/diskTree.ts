/** Paths of a simulated disk: what is there now, and what is there once the power has failed. */

import type { FsEvent } from '@actorlet/kubelet/ports/ports.ts';
import type { SimRng } from '../rng.ts';
import { type Entry, failure, type Kind, NOTHING, nameOf, parentOf } from './diskEntry.ts';

const LINKS_MAX = 16;
/** More names than this stand in a set: of a few, which most directories have, a list takes a fifth of its memory. */
const LISTED_MAX = 16;
type Names = string[] | Set<string>;

export interface DiskTreeOptions {
  wallMs(): number;
  /** Everything is on the platter at once, so no power loss can be played. */
  lasting: boolean;
  /** Called after each change of a name or of a file. */
  onChange(path: string, kind: FsEvent['kind']): void;
}

export class DiskTree {
  readonly live = new Map<string, Entry>();
  readonly durable: Map<string, Entry>;
  /** Names in each directory of `live`. */
  readonly #names = new Map<string, Names>();
  readonly #o: DiskTreeOptions;
  #lastIno = 1;

  constructor(o: DiskTreeOptions) {
    this.#o = o;
    this.durable = o.lasting ? this.live : new Map();
    this.makeDir('/', true);
  }

  entry(kind: Kind, over: Partial<Entry> = {}): Entry {
    return {
      kind,
      data: NOTHING,
      synced: true,
      target: '',
      mode: 0o644,
      mtimeMs: this.#o.wallMs(),
      ino: ++this.#lastIno,
      ...over,
    };
  }

  set(path: string, e: Entry): void {
    this.live.set(path, e);
    if (path !== '/') this.#name(parentOf(path), nameOf(path));
    if (e.kind === 'dir' && !this.#names.has(path)) this.#names.set(path, []);
  }

  #name(dir: string, name: string): void {
    const names = this.#names.get(dir);
    if (names === undefined) return;
    if (!Array.isArray(names)) names.add(name);
    else if (names.includes(name)) return;
    // Anew, as one that grows takes room for 17.
    else this.#names.set(dir, names.length < LISTED_MAX ? names.concat(name) : new Set([...names, name]));
  }

  #unname(dir: string, name: string): void {
    const names = this.#names.get(dir);
    if (!Array.isArray(names)) names?.delete(name);
    else if (names.includes(name)) names.splice(names.indexOf(name), 1);
  }

  unset(path: string): void {
    this.live.delete(path);
    this.#unname(parentOf(path), nameOf(path));
    this.#names.delete(path);
  }

  found(path: string): Entry {
    const e = this.live.get(path);
    if (e === undefined) throw failure('ENOENT', path);
    return e;
  }

  /** Where the links at this very place lead. */
  realPath(path: string, depth = 0): string {
    const e = this.found(path);
    if (e.kind !== 'symlink') return path;
    if (depth >= LINKS_MAX) throw failure('ELOOP', path);
    return this.realPath(e.target.startsWith('/') ? e.target : `${parentOf(path)}/${e.target}`, depth + 1);
  }

  follow(path: string): Entry {
    return this.found(this.realPath(path));
  }

  namesIn(path: string): string[] {
    return [...(this.#names.get(path) ?? [])].sort();
  }

  /** What lies below, each directory before what is in it. */
  below(path: string): string[] {
    const found: string[] = [];
    const prefix = path === '/' ? '' : path;
    for (const name of this.#names.get(path) ?? []) found.push(`${prefix}/${name}`, ...this.below(`${prefix}/${name}`));
    return found;
  }

  /** Of what lies at this path and below it, as far as nothing else is mounted there. */
  sizeBelow(path: string, isMountPoint: (path: string) => boolean): { bytes: number; inodes: number } {
    let bytes = this.live.get(path)?.data.length ?? 0;
    let inodes = this.live.has(path) ? 1 : 0;
    const prefix = path === '/' ? '' : path;
    for (const name of this.#names.get(path) ?? []) {
      const at = `${prefix}/${name}`;
      if (isMountPoint(at)) continue;
      const below = this.sizeBelow(at, isMountPoint);
      bytes += below.bytes;
      inodes += below.inodes;
    }
    return { bytes, inodes };
  }

  makeDir(path: string, lasting: boolean): void {
    if (this.live.has(path)) {
      if (this.follow(path).kind !== 'dir') throw failure('ENOTDIR', path);
    } else {
      if (path !== '/') this.makeDir(parentOf(path), lasting);
      this.set(path, this.entry('dir', { mode: 0o755 }));
      if (path !== '/') this.#o.onChange(path, 'create');
    }
    const made = this.live.get(path);
    if (lasting && made !== undefined) this.durable.set(path, made);
  }

  store(path: string, e: Entry): void {
    if (this.live.get(parentOf(path))?.kind !== 'dir') throw failure('ENOENT', path);
    const was = this.live.has(path);
    this.set(path, e);
    this.#o.onChange(path, was ? 'modify' : 'create');
  }

  storeLasting(path: string, e: Entry): void {
    this.store(path, e);
    this.durable.set(path, e);
  }

  remove(path: string): void {
    this.found(path);
    this.unset(path);
    this.#o.onChange(path, 'delete');
  }

  rename(from: string, to: string): void {
    const e = this.found(from);
    this.unset(from);
    this.#o.onChange(from, 'delete');
    this.store(to, e);
  }

  modified(path: string): void {
    this.#o.onChange(path, 'modify');
  }

  forgetBelow(path: string): void {
    if (this.#o.lasting) return;
    this.durable.delete(path);
    for (const p of [...this.durable.keys()]) if (p.startsWith(`${path}/`)) this.durable.delete(p);
  }

  syncNames(dir: string): void {
    const now = this.#names.get(dir);
    if (now === undefined) throw failure('ENOENT', dir);
    if (this.#o.lasting) return;
    const names = new Set(now);
    for (const p of [...this.durable.keys()]) if (p !== '/' && parentOf(p) === dir && !names.has(nameOf(p))) this.forgetBelow(p);
    const prefix = dir === '/' ? '' : dir;
    for (const name of now) {
      const e = this.live.get(`${prefix}/${name}`);
      if (e !== undefined) this.durable.set(`${prefix}/${name}`, e);
    }
  }

  /** Another directory with the same files is at this path. */
  replaceDir(path: string, dir: Entry): void {
    const other = { ...dir, ino: ++this.#lastIno, mtimeMs: this.#o.wallMs() };
    this.live.set(path, other);
    this.durable.set(path, other);
  }

  /** Each path that was not synced is kept, lost or torn. */
  powerLoss(rng: SimRng): void {
    const after = new Map<string, Entry>();
    const paths = [...new Set([...this.live.keys(), ...this.durable.keys()])].sort();
    for (const path of paths) {
      const now = this.live.get(path);
      const safe = this.durable.get(path);
      const kept = now === safe || rng.chance(0.5) ? now : safe;
      if (kept === undefined || (path !== '/' && after.get(parentOf(path))?.kind !== 'dir')) continue;
      if (kept.kind === 'file' && !kept.synced) {
        after.set(path, { ...kept, synced: true, data: kept.data.slice(0, rng.int(kept.data.length + 1)) });
      } else after.set(path, kept);
    }
    this.live.clear();
    this.durable.clear();
    this.#names.clear();
    for (const [path, e] of after) {
      this.set(path, e);
      this.durable.set(path, e);
    }
  }
}
