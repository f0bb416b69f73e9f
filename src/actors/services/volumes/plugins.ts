/**
 * What setting a volume up and taking it down means for each plugin. Both may be repeated at any time, after any crash in
 * between: they look at what there is first. Foreign paths are only touched through the Mounter's killable helper.
 */

import { mountsAt } from '../../../machines/host/mountinfo.ts';
import type { ObjectSource } from '../../../machines/kube/objects.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../machines/nodeFacts.ts';
import { pathName } from '../../../machines/pod/pathName.ts';
import {
  CSI,
  deviceLink,
  HOST_PATH,
  LOCAL_VOLUME,
  markerDir,
  OWN_PLUGINS,
  podDir,
  subPathsDir,
  VOLUME_DEVICES,
  type VolumeRef,
  volumePath,
} from '../../../machines/pod/volumes/volumePaths.ts';
import { type HostPathType, hugePageBytes, nestedMountPoints, type PodVolume, tmpfsBytes } from '../../../machines/pod/volumes/volumes.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import { csiPath, ephemeralCsi } from '../../../machines/services/volumes/csi/volume.ts';
import type { Payload } from '../../../machines/services/volumes/payload.ts';
import type { BoundPart } from '../../../machines/services/volumes/subPaths.ts';
import type { SetUpDone, SetUpJob } from '../../../machines/services/volumes/volumeMachine.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { MountCall, Mounter, PathKind } from '../../../ports/machine/mounter.ts';
import type { FileInfo, Logger, Ports } from '../../../ports/ports.ts';
import { inTurn } from '../../../ports/turns.ts';
import { writeAtomically } from './atomicWriter.ts';
import type { ClaimSource } from './claims.ts';
import { setUpClaim } from './claimVolume.ts';
import type { CsiApi } from './csi/api.ts';
import { type CsiOptions, readData, standing } from './csi/place.ts';
import { type CsiJob, setUpCsi } from './csi/setUp.ts';
import { takeDownCsi } from './csi/takeDown.ts';
import { giveTreeToGroup, listIfThere, lstatIfThere, removeTree, rmdirIfEmpty, rmdirIfFree, rmdirIfThere, unlinkIfThere } from './files.ts';
import { type FoundVolumes, foundVolumes } from './found.ts';
import { askObjects, type FilesJob, keysOf, payloadOf } from './objectFiles.ts';

/** A mount or unmount of a local file system takes milliseconds; longer means that something is stuck. */
const MOUNT_TIMEOUT_MS = 60_000;
/** One look at a foreign path. */
const LOOK_TIMEOUT_MS = 10_000;
/** A volume of objects with more keys than this waits for others of such. */
const KEYS_AT_ONCE_MAX = 1_000;
const LARGE_PAYLOADS = 'payloads of many files';
/** Mounts one over another at one path, of which somebody took part: more are not undone in one go. */
const STACKED_MOUNTS_MAX = 8;
const DIR_MODE = 0o750;
const VOLUME_MODE = 0o777;
const NESTED_MODE = 0o755;
const HOST_DIR_MODE = 0o755;
const HOST_FILE_MODE = 0o644;

export interface PluginsOptions {
  ports: Ports;
  log: Logger;
  facts(): NodeFacts;
  /** Null on a node without an API. */
  objects: ObjectSource | null;
  claims: ClaimSource | null;
  csi: Pick<CsiOptions, 'drivers' | 'ledger' | 'inUseChanged'> & { api: CsiApi | null; reportedInUse(): readonly string[] };
  /** To the events of the pod. */
  warn(pod: Pod, reason: string, message: string): void;
}

type Mount = ((path: string) => Promise<void>) | null;

export class Plugins {
  readonly #o: PluginsOptions;

  constructor(o: PluginsOptions) {
    this.#o = o;
  }

  async setUp(job: SetUpJob, signal: AbortSignal): Promise<SetUpDone | null> {
    const { volume, pod, first } = job;
    const { source } = volume;
    switch (source.kind) {
      case 'claim':
        return setUpClaim(
          {
            ...this.#o,
            mounter: this.#mounter(),
            checkHostPath: (path, type) => this.#checkHostPath(path, type, signal),
            setUpCsi: (csi) => this.#setUpCsi({ ref: volume, pod, csi }, signal),
          },
          { volume, pod, source, first },
          signal,
        );
      case 'csi': {
        const served = await standing(this.#csi(), volume, signal);
        if (served !== null && (first || !served.republish)) return served;
        const { sha256Hex } = this.#o.ports.entropy;
        return this.#setUpCsi({ ref: volume, pod, csi: ephemeralCsi(source.csi, { pod, name: volume.name, sha256Hex }) }, signal);
      }
      // The worker pulls it, and the runtime mounts it.
      case 'image':
        return null;
      case 'hostPath':
        await this.#checkHostPath(source.path, source.type, signal);
        return null;
      case 'emptyDir': {
        const fresh = await this.#setUpDirectory(volume, this.#mediumOf(source, pod, signal));
        if (fresh) await this.#giveToGroup(pod, this.#path(volume));
        return null;
      }
      case 'files':
        await this.#setUpFiles({ ...job, source }, signal);
        return null;
    }
  }

  #csi(): CsiOptions {
    return { ...this.#o, ...this.#o.csi, mounter: this.#mounter() };
  }
  #setUpCsi(job: CsiJob, signal: AbortSignal): Promise<SetUpDone> {
    const { api, reportedInUse } = this.#o.csi;
    if (api === null) throw new Error('this node has no API to ask about the driver of a volume');
    return setUpCsi({ ...this.#csi(), api, reportedInUse, objects: this.#o.objects }, job, signal);
  }

  /** Directories of volumes of all pods; those of plugins we do not have are left to whoever made them, and said. */
  scan(): Promise<FoundVolumes> {
    const { ports, log, csi, facts } = this.#o;
    return foundVolumes({ fs: ports.fs, log, ledger: csi.ledger, rootDir: facts().rootDir });
  }

  async tearDown(ref: VolumeRef, signal: AbortSignal): Promise<void> {
    // Of a volume that stands elsewhere only what was bound of it is ours.
    if (ref.plugin === HOST_PATH) return this.#cleanSubPaths(ref, signal);
    if (!OWN_PLUGINS.includes(ref.plugin)) return;
    // What is behind a claim is seen by what it left.
    if (ref.plugin === CSI || ref.plugin === LOCAL_VOLUME) {
      await this.#cleanSubPaths(ref, signal);
      if (this.#o.ports.mounter !== undefined) await takeDownCsi(this.#csi(), ref, signal);
    }
    if (ref.plugin === CSI) return;
    await this.#takeDown(ref, signal);
    const dir = this.#path(ref);
    await rmdirIfEmpty(this.#o.ports.fs, dir.slice(0, dir.lastIndexOf('/')));
  }

  /** The directory that it shares with volumes of its kind stays: containers of the pod may run, and others may be set up there just now. */
  async #takeDown(ref: VolumeRef, signal: AbortSignal): Promise<void> {
    const { fs } = this.#o.ports;
    const dir = this.#path(ref);
    const { rootDir } = this.#o.facts();
    await this.#cleanSubPaths(ref, signal);
    // First the marker: whoever comes in between sees a volume that is not set up.
    const marker = markerDir(rootDir, ref);
    await unlinkIfThere(fs, `${marker}/ready`);
    await rmdirIfEmpty(fs, marker);
    if (ref.plugin !== LOCAL_VOLUME) return this.#removeAll(dir, signal);
    await this.#unlinkDevice(ref);
    await this.#unmountAll(dir, signal);
    // What was mounted there is somebody else's: the directory goes only when it is empty.
    await rmdirIfThere(fs, dir);
  }

  /**
   * A directory, what is mounted there, and what is in it. The mount table is long, and read as seldom as can be: a directory
   * that can be removed has nothing in it and nothing mounted on it.
   */
  async #removeAll(dir: string, signal: AbortSignal): Promise<void> {
    const { fs } = this.#o.ports;
    for (let unmounted = 0; ; unmounted++) {
      const mounts = await this.#mounts(dir);
      const topmost = mountsAt(mounts, dir).at(-1);
      if (topmost === undefined) return removeTree(fs, dir, mounts);
      if (unmounted === STACKED_MOUNTS_MAX) throw stillMounted(dir);
      await this.#mounter().unmount(dir, topmost.type, this.#call(signal));
      if (await rmdirIfFree(fs, dir)) return;
    }
  }

  async #unlinkDevice(ref: VolumeRef): Promise<void> {
    const { fs } = this.#o.ports;
    const link = deviceLink(this.#o.facts().rootDir, ref);
    await unlinkIfThere(fs, link);
    await rmdirIfEmpty(fs, link.slice(0, link.lastIndexOf('/')));
    await rmdirIfEmpty(fs, `${podDir(this.#o.facts().rootDir, ref.uid)}/${VOLUME_DEVICES}`);
  }

  /** Where one part of a volume that is set up is to be mounted from, for one container. */
  async bindSubPath(part: BoundPart, signal: AbortSignal): Promise<Built<string>> {
    const { volume, container, index, subPath } = part;
    const { fs } = this.#o.ports;
    const dir = `${subPathsDir(this.#o.facts().rootDir, volume.uid, volume.name)}/${pathName(container)}`;
    await fs.mkdirp(dir, DIR_MODE);
    const { source } = volume;
    const foreign = source.kind === 'hostPath' || source.kind === 'claim' || source.kind === 'csi';
    const root = source.kind === 'hostPath' ? source.path : foreign ? await this.#served(volume) : this.#path(volume);
    const request = { volume: root, subPath, target: `${dir}/${index}`, foreign };
    const result = await this.#mounter().bindSubPath(request, this.#call(signal));
    if (result.kind === 'bound') return built(request.target);
    const { uid, name } = volume;
    this.#o.log.warn({ uid, volume: name, container, subPath, err: result.why }, 'a part of a volume is not mounted');
    // What is on the host is not for the user of the pod to know (trap 60).
    const what = result.step === 'create' ? 'create subPath directory' : 'prepare subPath';
    return refused(`failed to ${what} for volumeMount "${name}" of container "${container}"`);
  }

  /** Where the volume of a claim or a driver stands. */
  async #served(ref: VolumeRef): Promise<string> {
    const dir = csiPath.dir(this.#o.facts().rootDir, ref.uid, ref.name);
    return (await readData(this.#o.ports.fs, dir)) === null ? this.#path(ref) : `${dir}/mount`;
  }
  #path(ref: VolumeRef): string {
    return volumePath(this.#o.facts().rootDir, ref);
  }
  #call(signal: AbortSignal, timeoutMs = MOUNT_TIMEOUT_MS): MountCall {
    return { timeoutMs, signal };
  }
  #mounter(): Mounter {
    const { mounter } = this.#o.ports;
    if (mounter === undefined) throw new Error('this node cannot mount anything');
    return mounter;
  }
  async #mounts(at: string) {
    return (await this.#o.ports.mounter?.list(`${this.#o.facts().rootDir}/pods`, at)) ?? [];
  }

  /** How it is mounted; null: it lies on the disk. */
  #mediumOf(source: { medium: string; sizeLimitBytes: number | null }, pod: Pod, signal: AbortSignal): Mount {
    if (source.medium === '') return null;
    if (source.medium === 'Memory') return this.#inMemory(pod, source.sizeLimitBytes, signal);
    const page = hugePageBytes(pod, source.medium);
    if (!page.ok) throw new Error(page.message);
    const request = { type: 'hugetlbfs', source: 'nodev', options: [`pagesize=${page.value}`] };
    return (path) => this.#mounter().mount({ ...request, path }, this.#call(signal));
  }
  #inMemory(pod: Pod, sizeLimitBytes: number | null, signal: AbortSignal): Mount {
    return (path) => this.#mountTmpfs(path, tmpfsBytes(pod, sizeLimitBytes, this.#o.facts().allocatable.memory), signal);
  }

  /** True when it was not there before. */
  async #setUpDirectory(volume: PodVolume, mount: Mount): Promise<boolean> {
    const { fs } = this.#o.ports;
    const dir = this.#path(volume);
    const marker = markerDir(this.#o.facts().rootDir, volume);
    const found = await lstatIfThere(fs, dir);
    const ready = (await lstatIfThere(fs, `${marker}/ready`)) !== null;
    if (ready && mount === null && found?.kind === 'dir') return false;
    const mounted = found?.kind === 'dir' && (await this.#isMounted(dir, found));
    if (ready && mount !== null && mounted) return false;
    if (ready) await unlinkIfThere(fs, `${marker}/ready`);
    await fs.mkdirp(dir.slice(0, dir.lastIndexOf('/')), DIR_MODE);
    await fs.mkdirp(dir, VOLUME_MODE);
    if (!mounted) {
      // mkdir passes through the umask.
      await fs.chmod(dir, VOLUME_MODE);
      await mount?.(dir);
    }
    await fs.mkdirp(marker, DIR_MODE);
    await fs.writeFile(`${marker}/ready`, '');
    return true;
  }

  /** The kernel writes a table of thousands of mounts anew for each reader: it is asked only where devices do not tell. */
  async #isMounted(dir: string, { dev }: FileInfo): Promise<boolean> {
    const parent = await lstatIfThere(this.#o.ports.fs, dir.slice(0, dir.lastIndexOf('/')));
    return (parent !== null && parent.dev !== dev) || mountsAt(await this.#mounts(dir), dir).length > 0;
  }

  async #mountTmpfs(path: string, bytes: number | null, signal: AbortSignal): Promise<void> {
    const size = bytes === null ? [] : [`size=${bytes}`];
    const request = { type: 'tmpfs', source: 'tmpfs', path };
    try {
      // Secrets must not reach a swap device; kernels before 6.3 do not know the option.
      await this.#mounter().mount({ ...request, options: [...size, 'noswap'] }, this.#call(signal));
    } catch (error) {
      if (['ETIMEDOUT', 'ECANCELED'].includes(codeOf(error)) || signal.aborted) throw error;
      await this.#mounter().mount({ ...request, options: size }, this.#call(signal));
    }
  }

  async #unmountAll(path: string, signal: AbortSignal): Promise<void> {
    for (let i = 0; i < STACKED_MOUNTS_MAX; i++) {
      const topmost = mountsAt(await this.#mounts(path), path).at(-1);
      if (topmost === undefined) return;
      await this.#mounter().unmount(path, topmost.type, this.#call(signal));
    }
    throw stillMounted(path);
  }

  /** Fetch, build, and only then touch the disk. What is there stays when a refresh fails. */
  async #setUpFiles(job: FilesJob, signal: AbortSignal): Promise<void> {
    const objects = await askObjects(this.#o.objects, job, signal);
    const write = async (): Promise<void> => {
      signal.throwIfAborted();
      await this.#writeFiles(job, payloadOf(this.#o, job, objects), signal);
    };
    // Many pods can name one object of tens of thousands of keys: what they hold is built and written for one at a time.
    const { objects: owner } = this.#o;
    return owner === null || keysOf(objects) <= KEYS_AT_ONCE_MAX ? write() : inTurn(owner, LARGE_PAYLOADS, write);
  }

  async #writeFiles(job: FilesJob, payload: Payload, signal: AbortSignal): Promise<void> {
    const { volume, pod, source } = job;
    const dir = this.#path(volume);
    const fresh = await this.#setUpDirectory(volume, source.memory ? this.#inMemory(pod, null, signal) : null);
    try {
      const nestedIn = nestedMountPoints(pod, volume.name);
      if (!nestedIn.ok) throw new Error(nestedIn.message);
      for (const nested of nestedIn.value) await this.#o.ports.fs.mkdirp(`${dir}/${nested}`, NESTED_MODE);
      const gid = pod.spec.securityContext?.fsGroup ?? null;
      const written = await writeAtomically({ ...this.#o.ports, mounter: this.#mounter() }, { dir, payload, gid });
      if (fresh && gid !== null) await this.#giveToGroup(pod, dir, true);
      if (written) this.#o.log.debug({ uid: volume.uid, volume: volume.name, files: payload.size }, 'files of a volume written');
    } catch (error) {
      if (job.first && fresh) await this.#undo(volume, error, signal);
      throw error;
    }
  }

  async #undo(volume: VolumeRef, cause: unknown, signal: AbortSignal): Promise<void> {
    try {
      await this.#takeDown(volume, signal);
    } catch (error) {
      throw new AggregateError([cause, error], `${messageOf(cause)}; and taking it down again: ${messageOf(error)}`);
    }
  }

  async #giveToGroup(pod: Pod, dir: string, readOnly = false): Promise<void> {
    const gid = pod.spec.securityContext?.fsGroup;
    if (gid === undefined) return;
    const failed = (path: string, error: unknown) => {
      this.#o.log.warn({ path, gid, err: messageOf(error) }, 'a file of a volume could not be given to the group of its pod');
    };
    await giveTreeToGroup({ fs: this.#o.ports.fs, mounter: this.#mounter(), failed }, dir, { gid, readOnly });
  }

  async #checkHostPath(path: string, type: HostPathType, signal: AbortSignal): Promise<void> {
    if (type === '') return;
    const mounter = this.#mounter();
    const call = this.#call(signal, LOOK_TIMEOUT_MS);
    let kind = await mounter.kindOf(path, call);
    if (kind === 'absent' && type === 'DirectoryOrCreate') await mounter.makeDir(path, HOST_DIR_MODE, call);
    else if (kind === 'absent' && type === 'FileOrCreate') await mounter.makeFile(path, HOST_FILE_MODE, call);
    if (kind === 'absent' && type.endsWith('OrCreate')) kind = await mounter.kindOf(path, call);
    const [wanted, words] = HOST_PATH_KINDS[type];
    if (kind !== wanted) throw new Error(`hostPath type check failed: ${path} is not a ${words}`);
  }

  /** What was bound of this volume for containers, by us or by an earlier agent. */
  async #cleanSubPaths(ref: VolumeRef, signal: AbortSignal): Promise<void> {
    const { fs } = this.#o.ports;
    const { rootDir } = this.#o.facts();
    const dir = subPathsDir(rootDir, ref.uid, ref.name);
    for (const container of await listIfThere(fs, dir)) {
      for (const index of await listIfThere(fs, `${dir}/${container}`)) {
        const path = `${dir}/${container}/${index}`;
        await this.#unmountAll(path, signal);
        const info = await lstatIfThere(fs, path);
        if (info?.kind === 'dir') await fs.rmdir(path);
        else await unlinkIfThere(fs, path);
      }
      await rmdirIfEmpty(fs, `${dir}/${container}`);
    }
    await rmdirIfEmpty(fs, dir);
    await rmdirIfEmpty(fs, dir.slice(0, dir.lastIndexOf('/')));
  }
}

const stillMounted = (path: string): Error => new Error(`${path} is still mounted after ${STACKED_MOUNTS_MAX} unmounts`);

const HOST_PATH_KINDS: Record<Exclude<HostPathType, ''>, [PathKind, string]> = {
  DirectoryOrCreate: ['dir', 'directory'],
  Directory: ['dir', 'directory'],
  FileOrCreate: ['file', 'file'],
  File: ['file', 'file'],
  Socket: ['socket', 'socket file'],
  CharDevice: ['char', 'character device'],
  BlockDevice: ['block', 'block device'],
};
