/**
 * The file system behind the border. Reads pass. What the tree writes into its own folder is written; what it writes elsewhere is the
 * kubelet's to write: folders of pods and volumes are waited for, and all else is held in memory until the disk shows it.
 */
import { codeOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock, FileInfo, HostFs, ReadHandle } from '@actorlet/kubelet/ports/ports.ts';
import type { Expectations } from '../expectations.ts';
import { untilShown } from '../waiting.ts';
import type { Wanted } from '../wanted.ts';
import { HeldFiles, infoOf } from './heldFiles.ts';

export interface FileBorderOptions {
  clock: Clock;
  expectations: Expectations;
  /** Of the kubelet. */
  rootDir: string;
  /** Of this program. */
  stateDir: string;
  podOf(uid: string): string;
}

/** What is written and never read back is not kept. */
const HELD_BYTES_MAX = 64 * 1024;
/** After it the tree is told that it is not known, and looks again. */
const WAIT_MS = 120_000;
/** A volume may have to be attached first, but for those that the kubelet fills by itself. */
const VOLUME_BOUND_MS = 120_000;
const FILLED = /^kubernetes\.io~(?:configmap|secret|projected|downward-api|empty-dir)$/;

/**
 * `own`: of this program. `pod`: the folder of a pod. `volume`: of a volume. `inside`: below one of these, where the kubelet does as
 * it likes. `other`: all else.
 */
type Place = { kind: 'own' | 'other' } | { kind: 'pod' | 'volume' | 'inside'; uid: string };

export class FileBorder {
  readonly #fs: HostFs;
  readonly #o: FileBorderOptions;
  readonly #held = new HeldFiles();
  readonly #ownOfKubelet: string;
  readonly #ownHere: string;

  constructor(fs: HostFs, o: FileBorderOptions) {
    this.#fs = fs;
    this.#o = o;
    this.#ownOfKubelet = `${o.rootDir}/actorlet`;
    this.#ownHere = `${o.stateDir}/actorlet`;
  }

  // Reads.

  readFile = (path: string, opts: Parameters<HostFs['readFile']>[1]): Promise<Uint8Array> =>
    this.#read(
      path,
      (at) => this.#fs.readFile(at, opts),
      (held) => held.data,
    );

  readTail = (path: string, opts: Parameters<HostFs['readTail']>[1]): Promise<Uint8Array> =>
    this.#read(
      path,
      (at) => this.#fs.readTail(at, opts),
      (held) => held.data.slice(-opts.bytesMax),
    );

  openRead = (path: string, opts?: Parameters<HostFs['openRead']>[1]): Promise<ReadHandle> =>
    this.#read(
      path,
      (at) => this.#fs.openRead(at, opts),
      (held) => ({
        read: async (offset, bytesMax) => held.data.slice(offset, offset + bytesMax),
        stat: async () => infoOf(held),
        close: async () => undefined,
      }),
    );

  readdir = async (path: string, opts?: Parameters<HostFs['readdir']>[1]): Promise<string[]> => {
    const held = this.#held.names(path);
    const names = await this.#read(
      path,
      (at) => this.#fs.readdir(at, opts),
      (h) => (h.kind === 'dir' ? [] : fail('ENOTDIR', path)),
    );
    return held.length === 0 ? names : [...new Set([...names, ...held])].sort((a, b) => (a < b ? -1 : 1));
  };

  stat = (path: string): Promise<FileInfo> => this.#read(path, (at) => this.#fs.stat(at), infoOf);
  lstat = (path: string, opts?: Parameters<HostFs['lstat']>[1]): Promise<FileInfo> =>
    this.#read(path, (at) => this.#fs.lstat(at, opts), infoOf);
  readlink = (path: string): Promise<string> =>
    this.#read(
      path,
      (at) => this.#fs.readlink(at),
      (held) => (held.kind === 'symlink' ? held.target : fail('EINVAL', path)),
    );
  statfs: HostFs['statfs'] = (path) => this.#fs.statfs(this.#at(path));

  // Acts.

  writeFile: HostFs['writeFile'] = async (path, data, opts) => {
    const place = this.#place(path);
    if (place.kind === 'own') return this.#fs.writeFile(this.#at(path), data, opts);
    if (opts?.exclusive === true && (await this.#kindOf(path)) !== null) fail('EEXIST', path);
    if (await this.#onDisk(path)) return undefined;
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data;
    // Files of volumes may be secret, and are never read back.
    const kept = place.kind === 'inside' && isOfVolume(path) ? 0 : HELD_BYTES_MAX;
    this.#hold(path, { kind: 'file', mode: opts?.mode ?? 0o644, ...(bytes.length <= kept ? { data: bytes.slice() } : {}) });
    return undefined;
  };

  mkdirp: HostFs['mkdirp'] = async (path, mode) => {
    const place = this.#place(path);
    if (place.kind === 'own') return this.#fs.mkdirp(this.#at(path), mode);
    if (await this.#onDisk(path)) return false;
    if (place.kind === 'volume') {
      const what = `made the folder of volume ${path.split('/').slice(-2).join('/')}`;
      const bound = FILLED.test(path.split('/').at(-2) ?? '') ? {} : { boundMs: VOLUME_BOUND_MS };
      await this.#untilThere(path, { kind: 'Folder', uid: place.uid, pod: this.#o.podOf(place.uid), what, ...bound });
      return false;
    }
    if (place.kind === 'pod' || place.kind === 'inside') {
      const dir = `${this.#o.rootDir}/pods/${place.uid}`;
      // One that is there is no act of the kubelet.
      if (!(await this.#onDisk(dir)))
        await this.#untilThere(dir, { kind: 'Folder', uid: place.uid, pod: this.#o.podOf(place.uid), what: 'made the folder of the pod' });
      if (await this.#onDisk(path)) return false;
    }
    if (this.#held.get(path) !== undefined) return false;
    this.#hold(path, { kind: 'dir', mode });
    return true;
  };

  symlink: HostFs['symlink'] = async (target, path) => {
    if (this.#place(path).kind === 'own') return this.#fs.symlink(target, this.#at(path));
    const kind = await this.#kindOf(path);
    // The kubelet made it.
    if (kind === 'symlink' && this.#held.get(path) === undefined) return undefined;
    if (kind !== null) fail('EEXIST', path);
    this.#hold(path, { kind: 'symlink', mode: 0o777, target });
    return undefined;
  };

  rename: HostFs['rename'] = async (from, to) => {
    const [a, b] = [this.#place(from), this.#place(to)];
    if (a.kind === 'own' && b.kind === 'own') return this.#fs.rename(this.#at(from), this.#at(to));
    const held = this.#held.get(from);
    if (held !== undefined) {
      this.#held.drop(from);
      if (!(await this.#onDisk(to))) this.#held.put(to, held);
      return undefined;
    }
    if (b.kind === 'inside') return undefined;
    // A log that is rotated, for one: the kubelet gives it a name with a time of its own.
    const { ino } = await this.#fs.lstat(from);
    const look = async () => {
      const now = await this.#fs.lstat(from).catch(() => null);
      return now?.ino !== ino || (await this.#onDisk(to)) ? (true as const) : undefined;
    };
    await this.#until({ kind: 'Rename', ...this.#subject(b), what: `renamed ${from}` }, from, look);
    return undefined;
  };

  chmod: HostFs['chmod'] = async (path, mode) => {
    if (this.#place(path).kind === 'own') return this.#fs.chmod(this.#at(path), mode);
    if ((await this.#kindOf(path)) === null) fail('ENOENT', path);
    return undefined;
  };

  fsyncDir: HostFs['fsyncDir'] = async (path) => {
    if (this.#place(path).kind === 'own') await this.#fs.fsyncDir(this.#at(path));
  };

  unlink: HostFs['unlink'] = (path) => this.#remove(path, (at) => this.#fs.unlink(at));

  rmdir: HostFs['rmdir'] = async (path) => {
    const place = this.#place(path);
    if (place.kind === 'own') return this.#fs.rmdir(this.#at(path));
    // Of the folders of pods and volumes the kubelet removes all that is in them.
    const whole = place.kind !== 'other';
    if (!whole && (await this.readdir(path)).length > 0) fail('ENOTEMPTY', path);
    const wasHeld = whole && this.#held.dropTree(path);
    if (wasHeld && !(await this.#onDisk(path))) return undefined;
    return this.#remove(path, (at) => this.#fs.rmdir(at));
  };

  async #remove(path: string, own: (at: string) => Promise<void>): Promise<void> {
    const place = this.#place(path);
    if (place.kind === 'own') return own(this.#at(path));
    const wasHeld = this.#held.drop(path);
    if (!(await this.#onDisk(path))) return wasHeld ? undefined : fail('ENOENT', path);
    // It goes with the folder that it is in.
    if (place.kind === 'inside') return undefined;
    const wanted: Wanted = { kind: 'Removal', ...this.#subject(place), what: `removed ${path}` };
    await this.#until(wanted, path, async () => ((await this.#onDisk(path)) ? undefined : true));
  }

  #subject(place: Place): { pod: string; uid: string } {
    const uid = 'uid' in place ? place.uid : '';
    return { uid, pod: uid === '' ? '' : this.#o.podOf(uid) };
  }

  #hold(path: string, file: Parameters<HeldFiles['put']>[1] extends infer F ? Omit<F, 'atMs'> : never): void {
    this.#held.put(path, { ...file, atMs: this.#o.clock.wallMs() } as Parameters<HeldFiles['put']>[1]);
  }

  #untilThere(path: string, wanted: Wanted): Promise<void> {
    return this.#until(wanted, path, async () => ((await this.#onDisk(path)) ? true : undefined));
  }

  async #until(wanted: Wanted, path: string, look: () => Promise<true | undefined>): Promise<void> {
    const expectation = this.#o.expectations.expect(wanted);
    try {
      const end = await untilShown(this.#o.clock, { look, timeoutMs: WAIT_MS });
      if (end.kind === 'shown') return expectation.came();
    } catch (error) {
      expectation.withdrawn();
      throw error;
    }
    expectation.unanswered();
    return fail('ETIMEDOUT', path, `the kubelet has not ${wanted.what} within ${WAIT_MS} ms`);
  }

  /** What the disk has, then what is held. */
  async #read<T>(path: string, disk: (at: string) => Promise<T>, held: (file: NonNullable<ReturnType<HeldFiles['get']>>) => T): Promise<T> {
    try {
      return await disk(this.#at(path));
    } catch (error) {
      const file = this.#held.get(path);
      if (file === undefined || codeOf(error) !== 'ENOENT') throw error;
      return held(file);
    }
  }

  async #onDisk(path: string): Promise<boolean> {
    try {
      await this.#fs.lstat(this.#at(path));
      return true;
    } catch (error) {
      if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return false;
      throw error;
    }
  }

  async #kindOf(path: string): Promise<FileInfo['kind'] | null> {
    const info = await this.#fs.lstat(this.#at(path)).catch(() => null);
    return info?.kind ?? this.#held.get(path)?.kind ?? null;
  }

  /** This program's own state, which a daemon has below its root directory. */
  #at(path: string): string {
    if (path === this.#ownOfKubelet || path.startsWith(`${this.#ownOfKubelet}/`))
      return this.#ownHere + path.slice(this.#ownOfKubelet.length);
    return path;
  }

  #place(path: string): Place {
    const at = this.#at(path);
    if (path.split('/').includes('..')) return { kind: 'other' };
    if (at === this.#o.stateDir || at.startsWith(`${this.#o.stateDir}/`)) return { kind: 'own' };
    const pods = `${this.#o.rootDir}/pods/`;
    if (!path.startsWith(pods)) return { kind: 'other' };
    const [uid = '', folder, , , ...deeper] = path.slice(pods.length).split('/');
    if (folder === undefined) return { kind: 'pod', uid };
    if (folder === 'volumes' && path.slice(pods.length).split('/').length === 4 && deeper.length === 0) return { kind: 'volume', uid };
    return { kind: 'inside', uid };
  }
}

function isOfVolume(path: string): boolean {
  return path.includes('/volumes/');
}

function fail(code: string, path: string, why = code): never {
  throw Object.assign(new Error(`${code}: ${why}, '${path}'`), { code, path });
}
