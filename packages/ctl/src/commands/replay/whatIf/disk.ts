/**
 * The simulation's disk in the place of the recorded one: what the recording shows of it is there from when on it was, and what
 * the node writes is, too. Files of the kernel stay those of the recording.
 */
import type { Clock, FileInfo, HostFs, Sys } from '@actorlet/kubelet/ports/ports.ts';
import type { Json } from '@actorlet/replay/src/entries.ts';
import type { Otherwise } from '@actorlet/replay/src/lenient/lenient.ts';
import type { Script } from '@actorlet/replay/src/lenient/script.ts';
import { simDisk } from '@actorlet/world/src/disk/disk.ts';
import type { SimDisk } from '@actorlet/world/src/disk/types.ts';
import type { Took } from './lives.ts';
import { PlayedMounts, parentOf, stoodAtFirst } from './mounts.ts';
import { plain } from './plain.ts';

interface Thing {
  readonly kind: 'dir' | 'other' | 'file' | 'symlink';
  /** Of a file; of a link, where it leads. */
  readonly text?: Uint8Array | string;
}
/** What somebody else than the node did. Null: it was removed. */
interface Change {
  readonly atMs: number;
  readonly path: string;
  readonly thing: Thing | null;
}
export interface KnownDisk {
  readonly first: readonly Change[];
  readonly changes: readonly Change[];
  /** By path, in order of time: what `stat` and `lstat` told. */
  readonly infos: ReadonlyMap<string, readonly { readonly atMs: number; readonly info: FileInfo }[]>;
  /** Paths on which something was mounted before the daemon began. */
  readonly mounted: ReadonlySet<string>;
}

const KERNEL = /^\/(?:proc|sys|dev)(?:\/|$)/;
/** Their answers are of the machine. */
const NOT_PLAYED: ReadonlySet<string> = new Set(['statfs']);
const DIR: Thing = { kind: 'dir' };
const EMPTY: Thing = { kind: 'file', text: '' };

/** @param logsDir Where the runtime writes logs. */
export function knownDisk(script: Script, logsDir: string): KnownDisk {
  return new Reader(script, logsDir).read();
}

/** Follows what the node did to its disk, so that all else is somebody else's. */
class Reader {
  readonly #script: Script;
  /** Null: nothing is there. Absent: not known yet. */
  readonly #now = new Map<string, Thing | null>();
  readonly #logsDir: string;
  /** Folders that the node made. */
  readonly #made = new Set<string>();
  /** Folders of which all names are known. */
  readonly #listed = new Set<string>();
  /** What the node takes for a folder at any time. */
  readonly #folders = new Set<string>();
  readonly #first: Change[] = [];
  readonly #changes: Change[] = [];
  readonly #infos = new Map<string, { atMs: number; info: FileInfo }[]>();

  constructor(script: Script, logsDir: string) {
    this.#script = script;
    this.#logsDir = logsDir;
  }

  read(): KnownDisk {
    const calls = this.#script.asked.flatMap((ask) => {
      const settled = this.#script.settled.get(ask.call ?? -1);
      const [path] = ask.args as readonly Json[];
      const isDisk = ask.name.startsWith('fs.') && typeof path === 'string' && !KERNEL.test(path);
      return settled === undefined || !isDisk ? [] : [{ name: ask.name.slice(3), path, ask, settled }];
    });
    for (const { name, path } of calls) {
      if (['readdir', 'mkdirp', 'rmdir', 'fsyncDir'].includes(name)) this.#folders.add(path);
      for (let at = parentOf(path); !this.#folders.has(at) && at !== '/'; at = parentOf(at)) this.#folders.add(at);
    }
    for (const { name, path, ask, settled } of calls.sort((a, b) => a.settled.order - b.settled.order)) {
      const value = settled.failed ? null : plain(settled.value);
      if (settled.failed) this.#failed(name, { path, atMs: ask.atMs, code: codeOf(settled.value) });
      else if (!this.#did(name, { path, other: (plain(ask.args) as unknown[])[1], value }))
        this.#saw(name, { path, atMs: ask.atMs, value });
    }
    return { first: this.#first, changes: this.#changes, infos: this.#infos, mounted: stoodAtFirst(this.#script) };
  }

  /** The node itself did it. */
  #did(name: string, { path, other, value }: { path: string; other: unknown; value: unknown }): boolean {
    switch (name) {
      case 'writeFile':
        this.#now.set(path, { kind: 'file', text: other as Uint8Array | string });
        return true;
      case 'rename':
        this.#move(path, String(other));
        return true;
      case 'symlink':
        this.#now.set(String(other), { kind: 'symlink', text: path });
        return true;
      case 'mkdirp':
        if (value === true) this.#made.add(path);
        if (this.#now.get(path) === undefined || this.#now.get(path) === null) this.#now.set(path, DIR);
        return true;
      case 'unlink':
      case 'rmdir':
        if (!this.#now.has(path)) this.#first.push({ atMs: 0, path, thing: name === 'rmdir' ? DIR : EMPTY });
        this.#now.set(path, null);
        return true;
      default:
        return ['fsyncDir', 'chmod', 'statfs', 'openRead'].includes(name);
    }
  }

  #move(from: string, to: string): void {
    for (const [path, thing] of [...this.#now])
      if (path === from || path.startsWith(`${from}/`)) {
        this.#now.set(to + path.slice(from.length), thing);
        this.#now.set(path, null);
      }
  }

  #failed(name: string, { path, atMs, code }: { path: string; atMs: number; code: string }): void {
    if (code === 'ENOENT' && ['readFile', 'readTail', 'readdir', 'stat', 'lstat', 'readlink'].includes(name)) this.#is(path, null, atMs);
  }

  #saw(name: string, { path, atMs, value }: { path: string; atMs: number; value: unknown }): void {
    switch (name) {
      case 'readFile':
      case 'readTail':
        this.#is(path, { kind: 'file', text: value as Uint8Array }, atMs);
        return;
      case 'readlink':
        this.#is(path, { kind: 'symlink', text: String(value) }, atMs);
        return;
      case 'readdir':
        this.#lists(path, { names: value as string[], atMs });
        return;
      case 'stat':
      case 'lstat': {
        const info = value as FileInfo;
        const infos = this.#infos.get(path) ?? [];
        this.#infos.set(path, [...infos, { atMs, info }]);
        const now = this.#now.get(path);
        if (now === undefined || now === null)
          this.#is(path, info.kind === 'dir' ? DIR : info.kind === 'file' ? EMPTY : { kind: 'other' }, atMs);
        else if (info.kind === 'dir' && now === EMPTY) this.#is(path, DIR, atMs);
      }
    }
  }

  #lists(path: string, { names, atMs }: { names: readonly string[]; atMs: number }): void {
    const isNew = !this.#now.has(path);
    if (isNew) this.#is(path, DIR, atMs);
    const there = new Set(names);
    const below = new Set(
      [...this.#now].flatMap(([at, thing]) => (thing !== null && parentOf(at) === path ? [at.slice(path.length + 1)] : [])),
    );
    for (const name of names) if (!below.has(name)) this.#is(`${path}/${name}`, this.#folders.has(`${path}/${name}`) ? DIR : EMPTY, atMs);
    for (const name of below) if (!there.has(name)) this.#is(`${path}/${name}`, null, atMs);
    this.#listed.add(path);
  }

  #is(path: string, thing: Thing | null, atMs: number): void {
    const now = this.#now.get(path);
    if (now !== undefined && isSame(now, thing)) return;
    // Of a name in a listing nobody knows yet what it is.
    const known = now === EMPTY && thing !== null ? this.#last(path) : undefined;
    if (known !== undefined) known.list[known.at] = { ...(known.list[known.at] as Change), thing };
    else if (now === undefined && thing !== null && !this.#isLater(path)) this.#first.push({ atMs: 0, path, thing });
    // The runtime that is played writes logs of its own.
    else if ((now !== undefined || thing !== null) && !path.startsWith(`${this.#logsDir}/`)) this.#changes.push({ atMs, path, thing });
    this.#now.set(path, thing);
  }

  /** In a folder that was listed without it, that was not there, or that the node made: it was not there from the start. */
  #isLater(path: string): boolean {
    if (this.#listed.has(parentOf(path))) return true;
    for (let at = parentOf(path); at !== '/'; at = parentOf(at)) if (this.#made.has(at) || this.#now.get(at) === null) return true;
    return false;
  }

  #last(path: string): { list: Change[]; at: number } | undefined {
    for (const list of [this.#changes, this.#first]) {
      const at = list.findLastIndex((change) => change.path === path);
      if (at >= 0) return { list, at };
    }
    return undefined;
  }
}

export interface PlayedDisk {
  readonly answers: Otherwise;
  /** Somebody else than the node makes an empty file, where there is a folder for it. */
  touch(path: string): void;
}

export function playedDisk(known: KnownDisk, o: { clock: Clock; took: Took }): PlayedDisk {
  const { clock } = o;
  const power = { on: true };
  const disk = simDisk({ time: { yieldFor: () => ({ defer: (fn) => void clock.setTimeout(fn, 0) }) }, clock, lasting: true });
  for (const change of known.first) make(disk, change);
  for (const change of known.changes) clock.setTimeout(() => make(disk, change), Math.max(0, change.atMs - clock.monoMs()));
  disk.trouble = { ...disk.trouble, delayMs: (op) => (op === 'write' ? 0 : o.took(`fs.${op}`)) };
  const { fs, watchDir } = disk.mount(power, clock);
  const touched = new Set<string>();
  // A node that comes to it earlier than the recorded one sees what stood there from the start: on a mount, another device.
  const first = new Set(known.first.map(({ path }) => path));
  const seenAt = (path: string): FileInfo | undefined => {
    const infos = known.infos.get(path) ?? [];
    return (infos.findLast(({ atMs }) => atMs <= clock.monoMs()) ?? (first.has(path) ? infos[0] : undefined))?.info;
  };
  const mounts = new PlayedMounts({
    stood: known.mounted,
    recorded: (path) => (first.has(path) || !touched.has(path) ? seenAt(path)?.dev : undefined),
    empty(path) {
      if (disk.takeDir(path)) disk.makeDir(path);
      touched.add(path);
    },
  });
  disk.isMountPoint = (path) => mounts.isMounted(path);
  const info = async (call: 'stat' | 'lstat', path: string, made: Promise<FileInfo>): Promise<FileInfo> => {
    const own = await made;
    const seen = touched.has(path) ? undefined : seenAt(path);
    const shown = seen === undefined || (call === 'lstat' && own.kind !== seen.kind) ? own : seen;
    return { ...shown, dev: mounts.deviceOf(path) };
  };
  const answers: Otherwise = (name, args) => {
    const [path] = args;
    if (name.startsWith('mounter.')) return mounts.answers(name, args);
    if (name === 'sys.watchDir') return watched(() => watchDir(...(args as Parameters<Sys['watchDir']>)));
    const call = name.slice(3) as keyof HostFs;
    if (!name.startsWith('fs.') || !(call in fs) || NOT_PLAYED.has(call) || typeof path !== 'string' || KERNEL.test(path)) return undefined;
    for (const word of call.startsWith('read') || call === 'stat' || call === 'lstat' ? [] : args)
      if (typeof word === 'string') touched.add(word);
    const result = (fs[call] as (...of: readonly unknown[]) => Promise<unknown>)(...args);
    return { result: call === 'stat' || call === 'lstat' ? info(call, path, result as Promise<FileInfo>) : result };
  };
  return { answers, touch: (path) => void (disk.has(parentOf(path)) && !disk.has(path) ? disk.put(path, '') : undefined) };
}

/** Thrown as the port throws it. */
function watched(watch: () => Disposable): { result: unknown } {
  return { result: watch() };
}

function make(disk: SimDisk, { path, thing }: Change): void {
  try {
    if (thing === null) {
      if (!disk.takeDir(path) && disk.has(path)) disk.drop(path);
    } else if (thing.kind === 'dir') disk.makeDir(path);
    else if (thing.kind === 'other') disk.putSocket(path);
    else if (thing.kind === 'symlink') {
      disk.makeDir(parentOf(path));
      if (!disk.has(path)) disk.putLink(path, textOf(thing));
    } else disk.put(path, textOf(thing));
  } catch {
    // With the change, the node has something else there, which stays.
  }
}

function isSame(a: Thing | null, b: Thing | null): boolean {
  if (a === null || b === null || a.kind !== b.kind) return a === b;
  return textOf(a) === textOf(b);
}

function textOf({ text = '' }: Thing): string {
  return typeof text === 'string' ? text : new TextDecoder().decode(text);
}

function codeOf(error: Json): string {
  return String((error as { p?: { code?: Json } } | null)?.p?.code ?? '');
}
