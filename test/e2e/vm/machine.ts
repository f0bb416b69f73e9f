/**
 * A small real machine of a test file's own: systemd, D-Bus, cgroup v2, containerd with the systemd driver (README.md beside
 * this). The daemon in it is a unit, `actorlet.service`, of this checkout's build.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../lab/ports.ts';

const kit = import.meta.dirname;
const project = join(kit, '..', '..', '..');
const cache = process.env.ACTORLET_VM ?? join(process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '/root', '.cache'), 'actorlet/vm');
const DIR = '/root/actorlet';
const RUN_MS = 120_000;
/** Each look starts processes on the machine's one processor, which its daemon needs too. */
const LOOK_EVERY_MS = 800;
/** A kernel that is emulated boots in half a minute on a quiet machine. */
const EMULATED_BOOT_SECONDS = 240;
/** A machine beside other tests is slow. */
const WAIT_MS = 240_000;

/** Whether `npm run e2e:setup` has built it. */
export const hasMachine = existsSync(join(cache, 'root.ext4'));

/** Whether it has a kernel for qemu, too: `test/e2e/vm/vm-setup.sh qemu`. */
export const hasEmulated = existsSync(join(cache, 'vmlinuz'));

interface MachineOptions {
  /** The one of this host that the machine runs on; else the last. Two machines on one starve each other. */
  processor?: number;
  /** Emulated by qemu, with these NUMA nodes: CPUS/MIB, `-` for no CPUs. */
  numa?: readonly string[];
  /** Between them: FROM,TO,DISTANCE, each pair once. */
  distances?: readonly string[];
  /** More words for the emulated kernel. */
  kernel?: string;
  /** Security modules of the user-mode kernel; default `yama`. */
  lsm?: string;
  /** Where the daemon's program is in the machine; default: the checkout. */
  agent?: string;
  /** At most, as the kernel's `mem=` has it; default 2G. */
  memory?: string;
}

export interface PodSeen {
  metadata: { name: string; uid: string };
  status: {
    phase: string;
    reason?: string;
    message?: string;
    conditions?: { type: string; status: string; reason?: string }[];
    containerStatuses?: { name: string; containerID?: string; restartCount: number; ready: boolean }[];
  };
}

export class Machine {
  readonly name: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #agent: string;

  constructor(name: string, o: MachineOptions = {}) {
    this.name = name;
    this.#agent = o.agent ?? '/share';
    this.#env = {
      ...(o.processor === undefined ? {} : { VM_CPU: String(o.processor) }),
      ...(o.numa === undefined ? {} : { VM_KIND: 'qemu', VM_NUMA: o.numa.join(' '), VM_BOOT_LIMIT: String(EMULATED_BOOT_SECONDS) }),
      ...(o.distances === undefined ? {} : { VM_DISTANCES: o.distances.join(' ') }),
      ...(o.kernel === undefined ? {} : { VM_KERNEL: o.kernel }),
      ...(o.lsm === undefined ? {} : { VM_LSM: o.lsm }),
      ...(o.memory === undefined ? {} : { VM_MEM: o.memory }),
    };
  }

  /** Runs a script as root, booting the machine first if it is not up. Rejects with what it printed when it fails. */
  run(script: string, o: { input?: string; timeoutMs?: number; keep?: boolean } = {}): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = execFile(
        join(kit, 'vm-run.sh'),
        ['-i', 'bash', '-c', script],
        {
          env: { ...process.env, ...this.#env, VM_NAME: this.name, VM_SHARE: project, ...(o.keep === true ? { VM_KEEP: '1' } : {}) },
          timeout: o.timeoutMs ?? RUN_MS,
          maxBuffer: 1 << 24,
        },
        (error, stdout, stderr) =>
          error === null ? resolve(stdout.trim()) : reject(new Error(`${script}: ${error.message}\n${stdout}${stderr}`)),
      );
      child.stdin?.end(o.input ?? '');
    });
  }

  /** Whether a script ends well. */
  async holds(script: string): Promise<boolean> {
    return this.run(script).then(
      () => true,
      () => false,
    );
  }

  /** Starts the daemon and waits until it says that it is healthy. */
  async start(config: Record<string, unknown> = {}, args: readonly string[] = []): Promise<void> {
    const whole = {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
      ...{ staticPodPath: `${DIR}/manifests`, podLogsDir: `${DIR}/logs/pods`, resolvConf: '' },
      ...{ address: '127.0.0.1', readOnlyPort: 10_255, enableServer: false, failSwapOn: false },
      ...{ evictionHard: { 'memory.available': '0%' }, imageGCHighThresholdPercent: 100 },
      ...config,
    };
    await this.run(`mkdir -p ${DIR}/manifests && cat >${DIR}/config.yaml`, { input: JSON.stringify(whole) });
    await this.run(
      `systemd-run --quiet --collect --unit=actorlet -p KillMode=process -p StandardOutput=append:${DIR}/log -p StandardError=append:${DIR}/log ` +
        `${this.#agent}/bin/actorlet --config=${DIR}/config.yaml --root-dir=${DIR}/root --cert-dir=${DIR}/pki --hostname-override=vm ${args.join(' ')}`,
    );
    await this.wait('the daemon to be healthy', () => this.holds('curl -sf http://127.0.0.1:10248/healthz'));
  }

  /** Ends the daemon; containers run on. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.run(`systemctl kill --kill-whom=main -s ${signal} actorlet; while systemctl is-active --quiet actorlet; do sleep 0.1; done`);
  }

  async put(name: string, pod: object): Promise<void> {
    await this.run(`cat >${DIR}/${name} && mv ${DIR}/${name} ${DIR}/manifests/${name}.yaml`, { input: JSON.stringify(pod) });
  }

  async remove(name: string): Promise<void> {
    await this.run(`rm ${DIR}/manifests/${name}.yaml`);
  }

  /** Of all manifests, what a failed test left included. */
  async clear(): Promise<void> {
    await this.run(`rm -f ${DIR}/manifests/*`);
    await this.wait('all pods to be gone', async () => (await this.pods()).length === 0);
  }

  async pods(): Promise<PodSeen[]> {
    return ((JSON.parse(await this.run('curl -sf http://127.0.0.1:10255/pods')) as { items: PodSeen[] | null }).items ?? []) as PodSeen[];
  }

  async running(name: string, timeoutMs?: number): Promise<PodSeen> {
    const look = async () => {
      const pod = (await this.pods()).find((p) => p.metadata.name === `${name}-vm`);
      return pod?.status.phase === 'Running' && pod.status.containerStatuses?.every((c) => c.ready) === true ? pod : undefined;
    };
    return this.wait(`${name} to run`, look, timeoutMs);
  }

  async log(): Promise<string> {
    return this.run(`cat ${DIR}/log`);
  }

  /** As `until`, with the end of the daemon's log in the error. */
  async wait<T>(what: string, probe: () => Promise<T>, timeoutMs = WAIT_MS): Promise<NonNullable<T>> {
    try {
      return (await until(what, probe, { timeoutMs, everyMs: LOOK_EVERY_MS })) as NonNullable<T>;
    } catch (error) {
      const log = await this.log().catch(String);
      throw new Error(`${error instanceof Error ? error.message : String(error)}\n${log.split('\n').slice(-25).join('\n')}`);
    }
  }

  /** Powers the machine off through systemd and waits until it is down. The next `run` with `keep` boots it with its disk. */
  async powerOff(timeoutMs = 240_000): Promise<void> {
    // A busy machine may be down before it has answered.
    await this.run('systemctl --no-block poweroff').catch(() => undefined);
    const isUp = () =>
      new Promise<boolean>((resolve) => {
        const script = '. "$0"; vm_alive';
        const child = spawn('bash', ['-c', script, join(kit, 'lib.sh')], {
          env: { ...process.env, VM_NAME: this.name },
          cwd: kit,
          stdio: 'ignore',
        });
        child.once('exit', (code) => resolve(code === 0));
      });
    await until('the machine to be down', async () => !(await isUp()), { timeoutMs, everyMs: 200 });
  }

  /** As if the power went; its disk goes too. */
  async dispose(): Promise<void> {
    await new Promise((resolve) => {
      spawn(join(kit, 'vm-stop.sh'), ['-k'], { env: { ...process.env, VM_NAME: this.name }, stdio: 'ignore' }).once('exit', resolve);
    });
    rmSync(join(cache, 'run', this.name), { recursive: true, force: true });
  }
}

export function staticPod(name: string, o: { uid?: string; resources?: object; spec?: object } = {}): object {
  const main = {
    name: 'main',
    image: 'localhost/busybox:1',
    command: ['sleep', '3600'],
    ...(o.resources ? { resources: o.resources } : {}),
  };
  return {
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: { name, ...(o.uid === undefined ? {} : { uid: o.uid }) },
    spec: { terminationGracePeriodSeconds: 1, containers: [main], ...o.spec },
  };
}
