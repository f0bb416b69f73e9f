/**
 * The mount table of a simulated machine: it outlives daemons. Mounts hide nothing; what is on a tmpfs goes when it is unmounted. Faults are read at every call.
 */

import type { MountEntry } from '@actorlet/kubelet/machines/host/mountinfo.ts';
import { mayHang, serverOf, serverOfSource } from '@actorlet/kubelet/machines/host/unmounting.ts';
import type { ToolAnswer } from '@actorlet/kubelet/machines/services/volumes/devices/format.ts';
import { codeOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { MountCall, Mounter, PathKind, SubPathResult } from '@actorlet/kubelet/ports/machine/mounter.ts';
import type { Clock, HostFs } from '@actorlet/kubelet/ports/ports.ts';

interface MountTrouble {
  /** Virtual milliseconds a call takes; the deadline comes first where this is longer. */
  delayMs(op: string, path: string): number;
  /** Code the call fails with; the effect is not there. */
  failing(op: string, path: string): string | undefined;
  /** The call never ends, and its effect comes at the deadline all the same. */
  hanging(op: string, path: string): boolean;
}

/** What a fake disk must tell and do for mounts. */
interface MountedDisk {
  fs: HostFs;
  /** Sockets and devices have no place on a fake disk: they are named here. */
  special?: ReadonlyMap<string, PathKind>;
  /** Empties a directory: the tmpfs on it is gone. */
  emptyDir(path: string): void;
}

interface Connected {
  disk: MountedDisk;
  clock: Clock;
  power: { on: boolean };
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

const NO_TROUBLE: MountTrouble = { delayMs: () => 0, failing: () => undefined, hanging: () => false };
const LINKS_MAX = 40;
/** File systems of this machine need no numbers that differ. */
const LOCAL = '8:1';
/** As long as the real one waits for an answer. */
const SEVER_MS = 5_000;
/** What is on these was never on the disk: it is not there when they are unmounted. */
const isElsewhere = (type: string): boolean => ['tmpfs', 'hugetlbfs'].includes(type) || mayHang(type);

/** Where a part of a volume is, links that stay inside followed; what is missing is made. */
async function resolveBelow(
  fs: HostFs,
  volume: string,
  subPath: string,
): Promise<{ kind: 'found'; path: string } | Extract<SubPathResult, { kind: 'refused' }>> {
  const out = (step: 'create' | 'prepare', why: string) => ({ kind: 'refused' as const, step, why });
  const parts = (path: string) => path.split('/').filter((name) => name !== '' && name !== '.');
  const left = parts(subPath);
  const at: string[] = [];
  for (let links = 0, name = left.shift(); name !== undefined; name = left.shift()) {
    if (name === '..') {
      if (at.pop() === undefined) return out('prepare', 'it leads out of the volume');
      continue;
    }
    const path = [volume, ...at, name].join('/');
    try {
      if ((await fs.lstat(path)).kind === 'symlink') {
        links += 1;
        const target = await fs.readlink(path);
        if (target.startsWith('/') || links > LINKS_MAX) return out('prepare', `${path} leads to ${target}`);
        left.unshift(...parts(target));
        continue;
      }
    } catch (error) {
      if (!(codeOf(error) === 'ENOENT')) throw error;
      await fs.mkdirp(path, 0o755);
    }
    at.push(name);
  }
  return { kind: 'found', path: [volume, ...at].join('/') };
}

export class SimMounts {
  trouble: MountTrouble = { ...NO_TROUBLE };
  /** The mount table of the moment. */
  readonly table: (MountEntry & { options: readonly string[] })[] = [];
  /** Owners given so far, by path: `uid:gid`, `-` for an id left alone. */
  readonly owners = new Map<string, string>();
  /** Type of the file system on each device that has one; what mkfs made, too. */
  readonly formatted = new Map<string, string>();
  /** Devices that mkfs was called for although something was on them. */
  readonly overwritten: string[] = [];
  /** Servers that answer nothing: what asks them hangs until its deadline, and has no effect. */
  readonly dead = new Set<string>();
  /** Devices that were given up: nothing waits for their server any more. */
  readonly severed: string[] = [];

  /** It would ask a dead server. `source`: of what is to be mounted. */
  asksTheDead(path: string, source = ''): boolean {
    if (this.dead.size === 0) return false;
    const there = this.table[this.topmost(path)];
    if (source === '' && there !== undefined && this.severed.includes(there.device)) return false;
    return this.dead.has(serverOf(this.table, path)) || (source !== '' && this.dead.has(serverOfSource(source)));
  }

  /** blkid and mkfs.TYPE; all others end well. */
  tool(name: string, args: readonly string[]): ToolAnswer {
    const device = args.at(-1) ?? '';
    const type = this.formatted.get(device);
    if (name === 'blkid') return type === undefined ? { code: 2, out: '', err: '' } : { code: 0, out: `TYPE=${type}\n`, err: '' };
    if (name.startsWith('mkfs.')) {
      if (type !== undefined) this.overwritten.push(device);
      this.formatted.set(device, name.slice('mkfs.'.length));
    }
    return { code: 0, out: '', err: '' };
  }

  /** Mounts of one export share a file system, until it was given up. */
  deviceOf({ type, source }: Pick<MountEntry, 'type' | 'source'>): string {
    if (!mayHang(type)) return LOCAL;
    for (let n = 0; ; n++) if (!this.severed.includes(`${source}#${n}`)) return `${source}#${n}`;
  }

  sever(path: string, device: string): 'answers' | 'severed' {
    if (!this.asksTheDead(path)) return 'answers';
    if (!this.severed.includes(device)) this.severed.push(device);
    return 'severed';
  }

  /** Containers of this pod wait for a dead server, if they write. */
  holds(podUid: string): boolean {
    return this.table.some((m) => m.path.includes(`/pods/${podUid}/`) && mayHang(m.type) && this.asksTheDead(m.path));
  }

  /** A user of the machine mounts something. */
  put(entry: Pick<MountEntry, 'path' | 'type' | 'source'>): void {
    this.table.push({ root: '/', options: [], ...entry, device: this.deviceOf(entry) });
  }

  take(path: string): void {
    this.table.splice(this.topmost(path), 1);
  }

  /** The machine's power fails: nothing is mounted any more, and what was on a tmpfs is gone. Containers keep what they had. */
  powerLoss(disk: Pick<MountedDisk, 'emptyDir'>): void {
    for (const entry of this.table.splice(0)) if (isElsewhere(entry.type)) disk.emptyDir(entry.path);
  }

  connect(machine: Connected): Mounter {
    return mounterOn(this, machine);
  }

  /** Index in the table; -1: nothing is mounted there. */
  topmost(path: string): number {
    return this.table.findLastIndex((e) => e.path === path);
  }

  /** Source of what is mounted there; '' where nothing is. */
  sourceOf(path: string): string {
    return this.table[this.topmost(path)]?.source ?? '';
  }

  /** Mounts of one thing show the group that one of them was given. */
  groupOf(path: string): number {
    const of = this.table[this.topmost(path)];
    const same = this.table.filter((e) => e.source === of?.source && e.root === of.root).map((e) => this.owners.get(e.path));
    return Number(same.findLast((owner) => owner !== undefined)?.split(':')[1] ?? 0);
  }

  remount(path: string, options: readonly string[]): void {
    const there = this.table[this.topmost(path)];
    if (there === undefined) throw failure('EINVAL', `mount: ${path}: mount point not mounted or bad option.`);
    there.options = options;
  }

  unmount(path: string, disk: MountedDisk): void {
    const at = this.topmost(path);
    if (at < 0) throw failure('EINVAL', `umount: ${path}: not mounted.`);
    const below = this.table.find((e) => e.path.startsWith(`${path}/`));
    if (below !== undefined) throw failure('EBUSY', `umount: ${path}: target is busy.`);
    const [gone] = this.table.splice(at, 1);
    if (gone !== undefined && isElsewhere(gone.type)) disk.emptyDir(path);
  }

  async bindSubPath(o: { volume: string; subPath: string; target: string }, disk: MountedDisk): Promise<SubPathResult> {
    const { volume, subPath, target } = o;
    const found = await resolveBelow(disk.fs, volume, subPath);
    if (found.kind === 'refused') return found;
    const at = this.topmost(target);
    if (at >= 0 && this.table[at]?.root === found.path) return { kind: 'bound' };
    if (at >= 0) this.unmount(target, disk);
    const { kind } = await disk.fs.lstat(found.path);
    if (kind === 'dir') await disk.fs.mkdirp(target, 0o750);
    else await disk.fs.writeFile(target, '');
    const of = this.table[this.topmost(volume)];
    const served =
      of !== undefined && mayHang(of.type)
        ? { type: of.type, source: of.source, device: of.device }
        : { type: 'none', source: volume, device: LOCAL };
    this.table.push({ path: target, root: found.path, ...served, options: ['bind'] });
    return { kind: 'bound' };
  }
}

/** The calls of one daemon. */
function mounterOn(mounts: SimMounts, machine: Connected): Mounter {
  const { table, owners } = mounts;
  const { disk, power } = machine;
  const never = <T>() => new Promise<T>(() => {});
  const run = <T>(op: string, o: { path: string; call: MountCall; source?: string }, act: () => T | Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const dead = mounts.asksTheDead(o.path, o.source);
      // The table forgets such a mount at once, and its clean-up waits for the server.
      if (dead && (op === 'lazy' || op === 'forced')) mounts.unmount(o.path, disk);
      const silence = { act: () => new Promise<T>(() => {}), trouble: NO_TROUBLE };
      timed({ op, ...o, machine, ...(dead ? silence : { act, trouble: mounts.trouble }), resolve, reject });
    });
  return {
    list: async (dir, at = dir) =>
      power.on
        ? table.filter((e) => e.path === at || e.path.startsWith(at === '/' ? at : `${at}/`)).map(({ options: _, ...entry }) => entry)
        : never(),
    mount: ({ type, source, path, options }, call) =>
      run('mount', { path, call, source }, async () => {
        if ((await kindOf(disk, path)) === 'absent') throw failure('ENOENT', `mount: ${path}: mount point does not exist.`);
        if (options.includes('remount')) return mounts.remount(path, options);
        table.push({ path, root: '/', type: type === '' ? 'none' : type, source, options, device: mounts.deviceOf({ type, source }) });
      }),
    bindSubPath: (o, call) => run('mount', { path: o.target, call, source: mounts.sourceOf(o.volume) }, () => mounts.bindSubPath(o, disk)),
    unmount: (path, _type, call) => run('unmount', { path, call }, () => mounts.unmount(path, disk)),
    detach: (path, way, call) => run(way, { path, call }, () => mounts.unmount(path, disk)),
    sever: (path, device, call) =>
      new Promise((resolve, reject) => {
        const trouble = { ...mounts.trouble, delayMs: () => (mounts.asksTheDead(path) ? SEVER_MS : 0) };
        timed({ op: 'sever', path, call, trouble, machine, act: () => mounts.sever(path, device), resolve, reject });
      }),
    kindOf: (path, call) => run('kindOf', { path, call }, () => kindOf(disk, path)),
    makeDir: (path, mode, call) => run('makeDir', { path, call }, async () => void (await disk.fs.mkdirp(path, mode))),
    makeFile: (path, mode, call) => run('makeFile', { path, call }, () => disk.fs.writeFile(path, '', { mode, exclusive: true })),
    giveToGroup: (path, { gid }, call) =>
      run('chown', { path, call }, () => {
        owners.set(path, `-:${gid}`);
        return { left: '' };
      }),
    groupOf: (path, call) => run('groupOf', { path, call }, () => mounts.groupOf(path)),
    growFileSystem: (_device, path, call) => run('grow', { path, call }, () => {}),
    tool: (name, args, call) => run(name, { path: args.at(-1) ?? '', call }, () => mounts.tool(name, args)),
    tellKernel: (path, _text, call) => run('tellKernel', { path, call }, () => undefined),
    chown: async (path, { uid, gid }) => {
      if (!power.on) return never();
      await disk.fs.lstat(path);
      const code = mounts.trouble.failing('chown', path);
      if (code !== undefined) throw failure(code, `chown: ${path}: ${code}`);
      owners.set(path, `${uid ?? '-'}:${gid ?? '-'}`);
    },
  };
}

async function kindOf(disk: MountedDisk, path: string): Promise<PathKind> {
  const special = disk.special?.get(path);
  if (special !== undefined) return special;
  try {
    const { kind } = await disk.fs.stat(path);
    return kind === 'symlink' ? 'other' : kind;
  } catch {
    return 'absent';
  }
}

interface Timed<T> {
  op: string;
  path: string;
  call: MountCall;
  trouble: MountTrouble;
  machine: Connected;
  act(): T | Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** Ends with the act, the deadline or the signal, whichever is first; the dead hear nothing. */
function timed<T>({ op, path, call, trouble, machine, act, resolve, reject }: Timed<T>): void {
  const { clock, power } = machine;
  let over = false;
  const end = (fn: () => void): void => {
    if (over) return;
    over = true;
    call.signal.removeEventListener('abort', cancel);
    clock.clearTimeout(late);
    clock.clearTimeout(work);
    if (power.on) fn();
  };
  const cancel = () => end(() => reject(failure('ECANCELED', `${op} ${path}: cancelled`)));
  const hangs = trouble.hanging(op, path);
  const effect = async (): Promise<T> => {
    const code = trouble.failing(op, path);
    if (code !== undefined) throw failure(code, `${op}: ${path}: ${code}`);
    return act();
  };
  const late = clock.setTimeout(() => {
    const message = `${op} ${path}: no end within ${call.timeoutMs} ms`;
    if (!hangs) return end(() => reject(failure('ETIMEDOUT', message)));
    effect()
      .catch(() => undefined)
      .finally(() => end(() => reject(failure('ETIMEDOUT', message))));
  }, call.timeoutMs);
  const begin = (): void => {
    effect().then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error)),
    );
  };
  const work = hangs ? undefined : clock.setTimeout(begin, trouble.delayMs(op, path));
  if (call.signal.aborted) cancel();
  else call.signal.addEventListener('abort', cancel, { once: true });
}
