/**
 * A real containerd for tests: its own folders, socket, bridge, subnet and cgroup. Files that one worker runs after each other share it.
 * `stop()` leaves nothing behind for the next, and says what it could not remove. `labs.ts` ends it after the last file.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGrpcCri } from '../../../src/boot/dependencies/cri/grpcCri.ts';
import type { Cri } from '../../../src/ports/ports.ts';
import { mountsUnder, processesInCgroups, processesOf, removeBridge, removeCgroups, removeMounts } from './cleanup.ts';
import { cniConfig, containerdConfig, type InstanceNames } from './config.ts';
import { BUSYBOX_IMAGES, buildImages, PAUSE_IMAGE } from './images.ts';
import { noteLab, sharesLabs } from './labs.ts';
import { quietLog, realClock, until } from './ports.ts';

export interface Containerd {
  readonly dir: string;
  readonly socket: string;
  /** `unix://` form of {@link socket}, for `--container-runtime-endpoint`. */
  readonly endpoint: string;
  /** Cgroup parent for sandboxes of this instance, removed by `stop()`. */
  readonly cgroupParent: string;
  readonly bridge: string;
  /** What the pause process is made of; `busybox` where no compiler works. */
  readonly pauseFrom: 'gcc' | 'busybox';
  /** A client of its own for the test's questions. Closed by `stop()`. */
  readonly cri: Cri;
  /** Of the daemon, while it runs. */
  readonly pid: number | undefined;
  /** `ctr` on this instance, namespace `k8s.io` unless the arguments say otherwise. */
  ctr(...args: string[]): string;
  /** SIGKILL to the daemon; containers and shims go on. */
  kill(): Promise<void>;
  /** Starts the daemon again after `kill()` and waits until it is ready. */
  start(): Promise<void>;
  /** Freezes (true) or thaws the daemon: calls hang, the connection stays. Resolves when every thread of it has stopped. */
  freeze(frozen: boolean): Promise<void>;
  log(): string;
  /** Removes every container, process, mount and cgroup, of an instance that is not shared also itself. Returns what is left. */
  stop(): Promise<string[]>;
}

const READY_TIMEOUT_MS = 60_000;
const STOPPED_TIMEOUT_MS = 60_000;
const STOPPED_POLL_MS = 5;
const REMOVAL_LOOKS = 5;
const once = (timeoutMs: number) => ({ timeoutMs, signal: new AbortController().signal });

/** Whether every thread of a process is stopped: state T of proc(5). */
function isStopped(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((tid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/task/${tid}/stat`, 'utf8');
      return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
    } catch {
      // The thread ended meanwhile: others may not have stopped either.
      return false;
    }
  });
}

class Instance implements Containerd {
  readonly dir: string;
  readonly socket: string;
  readonly endpoint: string;
  readonly cgroupParent: string;
  readonly bridge: string;
  readonly cri: Cri;
  pauseFrom: 'gcc' | 'busybox' = 'gcc';
  /** Files after this one go on with it. */
  shared = false;
  #daemon: ChildProcess | undefined;

  constructor(names: InstanceNames, cgroupParent: string) {
    this.dir = names.dir;
    this.socket = names.socket;
    this.bridge = names.bridge;
    this.endpoint = `unix://${names.socket}`;
    this.cgroupParent = cgroupParent;
    this.cri = createGrpcCri({ endpoint: this.endpoint, log: quietLog, clock: realClock });
  }

  get pid(): number | undefined {
    return this.#daemon?.exitCode === null && this.#daemon.signalCode === null ? this.#daemon.pid : undefined;
  }

  ctr(...args: string[]): string {
    const namespaced = args[0] === '-n' ? args : ['-n', 'k8s.io', ...args];
    return execFileSync('ctr', ['-a', this.socket, ...namespaced], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  async start(): Promise<void> {
    const out = openSync(join(this.dir, 'containerd.log'), 'a');
    // The library paths of a test runner must not reach the runtime.
    const daemon = spawn('containerd', ['-c', join(this.dir, 'config.toml')], {
      stdio: ['ignore', out, out],
      env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` },
    });
    closeSync(out);
    // A worker that shares it ends before it.
    daemon.unref();
    this.#daemon = daemon;
    let failure: string | undefined;
    daemon.once('error', (error) => {
      failure = `containerd did not start: ${error.message}`;
    });
    daemon.once('exit', (code, signal) => {
      failure = `containerd ended with ${code ?? signal}`;
    });
    this.cri.reconnect();
    await until(
      'containerd to answer',
      async () => {
        if (failure !== undefined) return failure;
        const answer = await this.cri.call('Status', {}, once(2000));
        return answer.status?.conditions.find((c) => c.type === 'RuntimeReady')?.status === true;
      },
      { timeoutMs: READY_TIMEOUT_MS },
    );
    if (failure !== undefined) throw new Error(`${failure}\n${this.log().slice(-2000)}`);
  }

  async kill(): Promise<void> {
    const daemon = this.#daemon;
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => daemon.once('exit', () => resolve()));
    daemon.kill('SIGKILL');
    await ended;
  }

  async freeze(frozen: boolean): Promise<void> {
    const daemon = this.#daemon;
    if (daemon?.pid === undefined) return;
    daemon.kill(frozen ? 'SIGSTOP' : 'SIGCONT');
    // On a busy machine a thread may answer a call that comes right after the signal.
    for (let i = 0; frozen && !isStopped(daemon.pid); i++) {
      if (i >= STOPPED_TIMEOUT_MS / STOPPED_POLL_MS) throw new Error(`containerd (${daemon.pid}) did not stop on SIGSTOP`);
      await new Promise((resolve) => setTimeout(resolve, STOPPED_POLL_MS));
    }
  }

  log(): string {
    const path = join(this.dir, 'containerd.log');
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  async loadImages(): Promise<void> {
    const images = buildImages();
    this.pauseFrom = images.pauseFrom;
    for (const name of ['pause', 'busybox'] as const) {
      const file = join(this.dir, `${name}.tar`);
      writeFileSync(file, images[name]);
      this.ctr('images', 'import', file);
      rmSync(file);
    }
    for (const image of [PAUSE_IMAGE, ...BUSYBOX_IMAGES]) {
      await until(`image ${image}`, async () => (await this.cri.call('ImageStatus', { image: { image } }, once(5000))).image !== null);
    }
  }

  /**
   * Through CRI, so that networks are taken down too. A sandbox that a killed daemon had asked for may come after the first look.
   * Failures are left to the steps after it.
   */
  async #removePods(): Promise<void> {
    for (let look = 0; look < REMOVAL_LOOKS; look++) {
      const { items } = await this.cri.call('ListPodSandbox', {}, once(5000));
      if (items.length === 0) return;
      await Promise.allSettled(items.map(({ id }) => this.#removePod(id)));
    }
  }

  async #removePod(id: string): Promise<void> {
    const { containers } = await this.cri.call('ListContainers', { filter: { podSandboxId: id } }, once(5000));
    await Promise.allSettled(containers.map((c) => this.cri.call('StopContainer', { containerId: c.id, timeout: 0 }, once(10_000))));
    await this.cri.call('StopPodSandbox', { podSandboxId: id }, once(20_000));
    await this.cri.call('RemovePodSandbox', { podSandboxId: id }, once(20_000));
  }

  async stop(): Promise<string[]> {
    let answers = true;
    try {
      if (this.pid === undefined) await this.start();
      await this.freeze(false);
      await this.#removePods();
    } catch {
      // A daemon that does not answer: its processes and mounts are removed by hand below.
      answers = false;
    }
    const left = this.shared && answers ? await this.#emptied() : null;
    if (left?.length === 0) return left;
    // What one file left is not for the next to find.
    if (shared === this) shared = undefined;
    return [...(left ?? []), ...(await this.#ended())];
  }

  /** As it was before its first file. Returns what is left of the one that ran. */
  async #emptied(): Promise<string[]> {
    const ended = () => processesInCgroups(this.cgroupParent).length === 0;
    await until('containers to end', ended, { timeoutMs: STOPPED_TIMEOUT_MS }).catch(() => {});
    const left = [
      ...processesInCgroups(this.cgroupParent).map((pid) => `process ${pid}`),
      ...mountsUnder(this.dir).map((path) => `mount ${path}`),
      ...removeCgroups(this.cgroupParent).map((path) => `cgroup ${path}`),
    ];
    const ours: readonly string[] = [PAUSE_IMAGE, ...BUSYBOX_IMAGES];
    const { images } = await this.cri.call('ListImages', {}, once(5_000));
    for (const { id, repoTags } of images) {
      const image = repoTags.length === 0 ? id : repoTags.find((tag) => !ours.includes(tag));
      if (image !== undefined) await this.cri.call('RemoveImage', { image: { image } }, once(20_000));
    }
    const tags = images.flatMap((image) => image.repoTags);
    if (!ours.every((tag) => tags.includes(tag))) await this.loadImages();
    rmSync(join(this.dir, 'certs.d'), { recursive: true });
    mkdirSync(join(this.dir, 'certs.d'));
    truncateSync(join(this.dir, 'containerd.log'));
    return left;
  }

  /** Removes the instance itself. */
  async #ended(): Promise<string[]> {
    this.cri.close();
    if (this.#daemon !== undefined && this.#daemon.exitCode === null && this.#daemon.signalCode === null) {
      const ended = new Promise<void>((resolve) => this.#daemon?.once('exit', () => resolve()));
      this.#daemon.kill('SIGTERM');
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 5000))]);
      await this.kill();
    }
    await this.#removeRest();
    return this.#leftovers();
  }

  async #removeRest(): Promise<void> {
    const processes = () => [...processesOf(this.dir), ...processesInCgroups(this.cgroupParent)];
    for (const pid of processes()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Ended meanwhile.
      }
    }
    await until('shims and containers to end', () => processes().length === 0, { timeoutMs: 30_000 }).catch(() => {});
    removeMounts(this.dir);
    removeBridge(this.bridge);
    removeCgroups(this.cgroupParent);
    if (mountsUnder(this.dir).length === 0) rmSync(this.dir, { recursive: true, force: true });
  }

  #leftovers(): string[] {
    return [
      ...processesOf(this.dir).map((pid) => `process ${pid}`),
      ...mountsUnder(this.dir).map((path) => `mount ${path}`),
      ...removeCgroups(this.cgroupParent).map((path) => `cgroup ${path}`),
      ...(existsSync(`/sys/class/net/${this.bridge}`) ? [`bridge ${this.bridge}`] : []),
      ...(existsSync(this.dir) ? [`folder ${this.dir}`] : []),
    ];
  }
}

/** A bridge gets its address with its first pod. Until then only the number of subnets keeps two labs apart. */
const [FIRST_SUBNET, SUBNETS] = [128, 122];

function freeSubnet(): string {
  const taken = execFileSync('ip', ['-4', '-o', 'addr'], { encoding: 'utf8' });
  for (let attempt = 0; attempt < 50; attempt++) {
    const [a = 0, b = 0] = randomBytes(2);
    const subnet = `10.${FIRST_SUBNET + (a % SUBNETS)}.${b}`;
    if (!taken.includes(`${subnet}.`)) return subnet;
  }
  throw new Error(`no free 10.${FIRST_SUBNET}-${FIRST_SUBNET + SUBNETS - 1}.x.0/24 subnet on this machine`);
}

/** The instance of this worker. */
let shared: Instance | undefined;

/**
 * Gives the worker's instance, or starts one and imports the pause and busybox images: about two seconds. With `dir`, or where
 * nobody would end it after the last file, it is the caller's own: `dir` is created if absent and removed by `stop()`.
 */
export async function startContainerd(o: { dir?: string } = {}): Promise<Containerd> {
  if (o.dir !== undefined || !sharesLabs()) return startInstance(o);
  if (shared === undefined) {
    shared = await startInstance(o);
    shared.shared = true;
  }
  return shared;
}

async function startInstance(o: { dir?: string }): Promise<Instance> {
  if (process.getuid?.() !== 0) throw new Error('a real containerd needs root');
  const dir = o.dir ?? mkdtempSync(join(tmpdir(), 'actorlet-lab-'));
  const id = randomBytes(3).toString('hex');
  const names: InstanceNames = {
    dir,
    socket: join(dir, 'containerd.sock'),
    bridge: `alab${id}`,
    subnet: freeSubnet(),
    pauseImage: PAUSE_IMAGE,
  };
  for (const sub of ['cni', 'certs.d', 'opt']) mkdirSync(join(dir, sub), { recursive: true });
  writeFileSync(join(dir, 'config.toml'), containerdConfig(names));
  writeFileSync(join(dir, 'cni', '10-lab.conflist'), cniConfig(names));
  const instance = new Instance(names, `/actorlet-lab-${id}`);
  if (sharesLabs()) noteLab({ dir, bridge: names.bridge, cgroupParent: instance.cgroupParent });
  try {
    await instance.start();
    await instance.loadImages();
  } catch (error) {
    const log = instance.log().slice(-3000);
    await instance.stop();
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${log}`);
  }
  return instance;
}
