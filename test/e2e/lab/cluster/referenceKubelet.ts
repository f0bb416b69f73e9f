/**
 * The reference kubelet for one test, on the folders and the runtime of a daemon that takes its node over. It is built by
 * `scripts/setup/control-plane-setup.sh --with-kubelet`. Some of its paths cannot be chosen: /var/log/pods, /var/log/containers
 * and the folder of device plugins. So it is started only on a machine on which nobody else uses those, and they are
 * removed afterwards; so are the kernel settings that it changes set back.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../../freePort.ts';
import { type Daemon, NODE_NAME } from '../../daemon.ts';
import { until } from '../ports.ts';
import { type ControlPlane, minorVersion, program } from './controlPlane.ts';

/** Where it has its logs. */
export const REFERENCE_LOGS = { podLogs: '/var/log/pods', containerLogs: '/var/log/containers' };
const FIXED_FOLDERS = [REFERENCE_LOGS.podLogs, REFERENCE_LOGS.containerLogs, '/var/lib/kubelet'];
/** What it sets when it starts, below /proc/sys. */
export const TUNABLES = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
];
const END_TIMEOUT_MS = 20_000;
const READY_TIMEOUT_MS = 90_000;

/** Why it cannot be run on this machine; undefined where it can. */
export function whyNoReferenceKubelet(): string | undefined {
  try {
    program('kubelet');
  } catch {
    return 'the reference kubelet is not built: run scripts/setup/control-plane-setup.sh --with-kubelet';
  }
  const taken = FIXED_FOLDERS.find((dir) => existsSync(dir) && readdirSync(dir).length > 0);
  return taken === undefined ? undefined : `${taken} is in use: another node agent works on this machine`;
}

export class ReferenceKubelet {
  readonly #plane: ControlPlane;
  readonly #daemon: Daemon;
  readonly #port: number;
  readonly #healthzPort: number;
  readonly #kubeconfig: string;
  readonly #made: readonly string[];
  readonly #tunables: readonly (readonly [string, string])[];
  #child: ChildProcess | undefined;

  constructor(o: { plane: ControlPlane; daemon: Daemon; port: number; healthzPort: number; kubeconfig?: string }) {
    this.#plane = o.plane;
    this.#kubeconfig = o.kubeconfig ?? o.plane.nodeKubeconfig(NODE_NAME);
    this.#daemon = o.daemon;
    this.#port = o.port;
    this.#healthzPort = o.healthzPort;
    this.#made = FIXED_FOLDERS.filter((dir) => !existsSync(dir));
    this.#tunables = TUNABLES.map((name) => `/proc/sys/${name}`)
      .filter(existsSync)
      .map((path) => [path, readFileSync(path, 'utf8')] as const);
  }

  /**
   * Waits until it is healthy, unless `ready` is false. `config`: beside what a test needs. `nodeIp`: where the API server reaches it;
   * by default it listens on loopback, and its node has no address.
   */
  async start(o: { ready?: boolean; config?: object; nodeIp?: string; args?: readonly string[] } = {}): Promise<void> {
    const { dir, rootDir, lab, manifests } = this.#daemon;
    mkdirSync(rootDir, { recursive: true });
    const config = {
      ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' },
      ...{
        address: o.nodeIp ?? '127.0.0.1',
        port: this.#port,
        readOnlyPort: 0,
        healthzBindAddress: '127.0.0.1',
        healthzPort: this.#healthzPort,
      },
      staticPodPath: manifests,
      ...{ fileCheckFrequency: '1s', syncFrequency: '10s' },
      ...{ failSwapOn: false, cgroupsPerQOS: false, enforceNodeAllocatable: [], makeIPTablesUtilChains: false },
      // A disk that others fill is no reason to evict the test's pods.
      evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '0%', 'imagefs.available': '0%', 'nodefs.inodesFree': '0%' },
      imageGCHighThresholdPercent: 100,
      authentication: { x509: { clientCAFile: this.#plane.ca.certFile } },
      kubeAPIQPS: 50,
      kubeAPIBurst: 100,
      // A field of 1.31; the test machine may be one with cgroup v1.
      ...(minorVersion('kubelet') >= 31 ? { failCgroupV1: false } : {}),
      ...o.config,
    };
    const file = join(dir, 'reference.json');
    writeFileSync(file, JSON.stringify(config));
    const out = openSync(join(dir, 'reference.log'), 'a');
    const args = [
      `--config=${file}`,
      `--kubeconfig=${this.#kubeconfig}`,
      ...[`--root-dir=${rootDir}`, `--cert-dir=${join(dir, 'reference-pki')}`, `--volume-plugin-dir=${join(dir, 'reference-plugins')}`],
      ...(minorVersion('kubelet') < 24 ? ['--container-runtime=remote'] : []),
      ...[`--container-runtime-endpoint=${lab.endpoint}`, `--image-service-endpoint=${lab.endpoint}`],
      // Its cAdvisor does not ask the runtime's endpoint for this.
      `--containerd=${lab.endpoint.replace('unix://', '')}`,
      ...[`--hostname-override=${NODE_NAME}`, `--node-ip=${o.nodeIp ?? '127.0.0.1'}`, '--v=2', ...(o.args ?? [])],
    ];
    const child = spawn(program('kubelet'), args, {
      stdio: ['ignore', out, out],
      env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` },
    });
    closeSync(out);
    this.#child = child;
    if (o.ready !== false) await this.healthy();
  }

  async healthy(): Promise<void> {
    await until(
      'the reference kubelet to be healthy',
      async () => {
        if (!this.alive()) return false;
        const answer = await fetch(`http://127.0.0.1:${this.#healthzPort}/healthz`, { signal: AbortSignal.timeout(5_000) });
        return answer.ok;
      },
      { timeoutMs: READY_TIMEOUT_MS, everyMs: 200 },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.log().slice(-4000)}`);
    });
  }

  alive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Undefined when it does not run. */
  get pid(): number | undefined {
    return this.alive() ? this.#child?.pid : undefined;
  }

  get healthzPort(): number {
    return this.#healthzPort;
  }

  log(): string {
    return readFileSync(join(this.#daemon.dir, 'reference.log'), { encoding: 'utf8', flag: 'a+' });
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.alive()) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
    await ended;
    clearTimeout(late);
  }

  /** Ends it and removes what it made outside of the daemon's folder. */
  async dispose(): Promise<void> {
    await this.end('SIGKILL');
    for (const dir of this.#made) rmSync(dir, { recursive: true, force: true });
    // What was there before was empty: whyNoReferenceKubelet.
    for (const dir of FIXED_FOLDERS.filter((of) => existsSync(of)))
      for (const name of readdirSync(dir)) rmSync(join(dir, name), { recursive: true, force: true });
    for (const [path, value] of this.#tunables) if (readFileSync(path, 'utf8') !== value) writeFileSync(path, value);
  }
}

/**
 * Not started. `port`: of its HTTPS API, which may be the daemon's: only one of the two runs at a time. `kubeconfig`: its way to the API
 * server, instead of straight there.
 */
export async function createReferenceKubelet(o: {
  plane: ControlPlane;
  daemon: Daemon;
  port: number;
  kubeconfig?: string;
}): Promise<ReferenceKubelet> {
  return new ReferenceKubelet({ ...o, healthzPort: await freePort() });
}
