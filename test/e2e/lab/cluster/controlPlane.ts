/**
 * A real control plane for one test: etcd, kube-apiserver and, where asked for, kube-controller-manager and kube-scheduler. It is that
 * of `actorlet fleet --api local`, whose programs a test can end, start and freeze. `stop()` leaves nothing behind.
 * scripts/setup/control-plane-setup.sh brings the programs.
 */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startLocalPlane } from '../../../../packages/fleet/src/boot/plane/local.ts';
import type { ProgramTree } from '../../../../packages/fleet/src/boot/plane/programTree.ts';
import { PROGRAMS, type ProgramName } from '../../../../packages/fleet/src/plane/messages.ts';
import type { Authority, Identity, KeyPair } from '../pki.ts';
import { until } from '../ports.ts';

const run = promisify(execFile);
const READY_TIMEOUT_MS = 90_000;

export type Component = ProgramName;
export interface ControlPlaneOptions {
  controllerManager?: boolean;
  scheduler?: boolean;
  /** Flags added to those of a component; of a flag given twice the last counts. */
  flags?: Partial<Record<Component, readonly string[]>>;
}

/** Where scripts/setup/control-plane-setup.sh keeps what it built. */
export function controlPlaneCache(): string {
  const own = process.env.ACTORLET_CONTROL_PLANE_CACHE;
  return own || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'actorlet', 'control-plane');
}

/** After $KUBEBUILDER_ASSETS. */
const folders = (): string[] =>
  [join(controlPlaneCache(), 'bin'), ...(process.env.PATH ?? '').split(':'), '/usr/sbin'].filter((dir) => dir !== '');

/** The program of that name: from the folder `assets`, else from $KUBEBUILDER_ASSETS, else from the cache, else from PATH. */
export function program(name: Component | 'kubectl' | 'kubelet' | 'kubeadm' | 'kube-proxy', assets?: string): string {
  const first = [assets ?? '', process.env.KUBEBUILDER_ASSETS ?? ''].filter((dir) => dir !== '');
  const found = [...first, ...folders()].find((dir) => existsSync(join(dir, name)));
  if (found === undefined) throw new Error(`${name} is not on this machine: run scripts/setup/control-plane-setup.sh first`);
  return join(found, name);
}

/** The Y of `Kubernetes v1.Y.Z` that the program says it is. */
export function minorVersion(name: Exclude<Component, 'etcd'> | 'kubelet'): number {
  const said = execFileSync(program(name), ['--version'], { encoding: 'utf8' });
  const minor = /v1\.(\d+)/.exec(said)?.[1];
  if (minor === undefined) throw new Error(`${name} --version said no version: ${said}`);
  return Number(minor);
}

export class ControlPlane {
  readonly dir: string;
  readonly url: string;
  /** Signs client certificates and the API server's own; nodes trust it as their client CA too. */
  readonly ca: Authority;
  /** With it the API server comes to a node: give its CA to the node as `clientCAFile`. */
  readonly kubeletClient: KeyPair;
  /** Path of a kubeconfig that may do everything. */
  readonly adminKubeconfig: string;
  readonly #programs: ProgramTree;
  readonly #end: () => Promise<void>;
  readonly #core: boolean;

  /** @param o.core False: a server that has no namespaces, and is never ready for want of services. @param o.end Ends all programs and removes all files. */
  constructor(o: {
    dir: string;
    url: string;
    ca: Authority;
    kubeletClient: KeyPair;
    programs: ProgramTree;
    core?: boolean;
    end(): Promise<void>;
  }) {
    this.#end = o.end;
    this.dir = o.dir;
    this.#core = o.core !== false;
    this.url = o.url;
    this.ca = o.ca;
    this.kubeletClient = o.kubeletClient;
    this.#programs = o.programs;
    this.adminKubeconfig = this.kubeconfig('admin', { name: 'kubernetes-admin', groups: ['system:masters'] });
  }

  /** A kubeconfig for that identity; files are made once per `file`. Gives its path. */
  kubeconfig(file: string, who: Identity): string {
    return this.#writeKubeconfig(file, this.ca.issue(file, who));
  }

  /** The kubeconfig of a node: user `system:node:NAME`, group `system:nodes`. */
  nodeKubeconfig(nodeName: string): string {
    return this.kubeconfig(`node-${nodeName}`, { name: `system:node:${nodeName}`, groups: ['system:nodes'] });
  }

  #writeKubeconfig(file: string, pair: KeyPair): string {
    const path = join(this.dir, `${file}.kubeconfig`);
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'lab', cluster: { server: this.url, 'certificate-authority': this.ca.certFile } }],
      users: [{ name: file, user: { 'client-certificate': pair.certFile, 'client-key': pair.keyFile } }],
      contexts: [{ name: 'lab', context: { cluster: 'lab', user: file } }],
      'current-context': 'lab',
    };
    // JSON is YAML.
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }

  /** kubectl as the administrator; rejects, with what it printed, when its exit code is not 0. */
  async kubectl(...args: string[]): Promise<string> {
    return this.kubectlAs(this.adminKubeconfig, ...args);
  }

  async kubectlAs(kubeconfig: string, ...args: string[]): Promise<string> {
    const env = { PATH: process.env.PATH ?? '', HOME: this.dir, KUBECONFIG: kubeconfig };
    const { stdout } = await run(program('kubectl'), args, { env, timeout: 120_000, maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  }

  /** One request to the API server, or to a whole URL, as that identity's key pair; the administrator by default. */
  request(
    method: string,
    path: string,
    o: { as?: KeyPair; body?: unknown; contentType?: string; timeoutMs?: number; verify?: false } = {},
  ): Promise<{ status: number; body: unknown }> {
    const as = o.as ?? this.ca.issue('admin', { name: 'kubernetes-admin', groups: ['system:masters'] });
    return new Promise((resolve, reject) => {
      const req = request(new URL(path, this.url), {
        method,
        ca: readFileSync(this.ca.certFile),
        cert: readFileSync(as.certFile),
        key: readFileSync(as.keyFile),
        rejectUnauthorized: o.verify !== false,
        agent: false,
        timeout: o.timeoutMs ?? 10_000,
        headers: { 'content-type': o.contentType ?? 'application/json', accept: 'application/json' },
      });
      req.once('timeout', () => req.destroy(new Error(`${method} ${path}: no answer in time`)));
      req.once('error', reject);
      req.once('response', (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.once('error', reject);
        res.once('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const json = (res.headers['content-type'] ?? '').includes('json');
          resolve({ status: res.statusCode ?? 0, body: json ? JSON.parse(text) : text });
        });
      });
      req.end(o.body === undefined ? undefined : JSON.stringify(o.body));
    });
  }

  /** Whether pods of that namespace can have the account they get by default, with what their token needs. */
  async hasAccount(namespace = 'default'): Promise<boolean> {
    const [account, root] = await Promise.all([
      this.request('GET', `/api/v1/namespaces/${namespace}/serviceaccounts/default`),
      this.request('GET', `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`),
    ]);
    // Before 1.24 a controller adds a secret to the account, and pods get that.
    const secret = minorVersion('kube-apiserver') >= 24 || (account.body as { secrets?: unknown[] }).secrets !== undefined;
    return account.status === 200 && root.status === 200 && secret;
  }

  /**
   * A page of the node whose HTTPS API listens on that port of loopback. It is asked through the API server, except of releases
   * that pass nothing on to loopback (1.21.1 and later): then as the API server asks it.
   */
  async nodePage(o: { node: string; port: number; path: string }): Promise<string> {
    if (minorVersion('kube-apiserver') < 21) return this.kubectl('get', '--raw', `/api/v1/nodes/${o.node}/proxy${o.path}`);
    const { status, body } = await this.request('GET', `https://127.0.0.1:${o.port}${o.path}`, { as: this.kubeletClient, verify: false });
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    if (status !== 200) throw new Error(`GET ${o.path} of the node: ${status} ${text}`);
    return text;
  }

  /** Freezes or thaws a component: connections stay, nothing is answered. */
  freeze(name: Component, frozen: boolean): void {
    this.#programs.program(name).signal(frozen ? 'SIGSTOP' : 'SIGCONT');
  }

  /** It stays away until it is started. */
  async kill(name: Component): Promise<void> {
    await this.#programs.off(name, 'SIGKILL');
  }

  /** Starts components that were ended, on their old addresses; of etcd and API server it waits until they are ready. */
  async start(...names: Component[]): Promise<void> {
    await Promise.all(names.map((name) => this.#programs.on(name)));
    if (names.includes('kube-apiserver') || names.includes('etcd')) await this.ready();
  }

  /** Waits until the API server says that it is ready. */
  async ready(): Promise<void> {
    await until(
      'the API server to be ready',
      async () => (await this.request('GET', this.#core ? '/readyz' : '/livez', { timeoutMs: 2_000 })).status === 200,
      { timeoutMs: READY_TIMEOUT_MS, everyMs: 100 },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.log('kube-apiserver').slice(-3000)}`);
    });
    if (!this.#core) return;
    // Pods cannot be made in a namespace that is not there yet; the server makes it shortly after it is ready.
    await until('namespace default', async () => (await this.request('GET', '/api/v1/namespaces/default')).status === 200, {
      timeoutMs: 30_000,
      everyMs: 100,
    });
  }

  log(name: Component): string {
    const { logFile } = this.#programs.program(name);
    return existsSync(logFile) ? readFileSync(logFile, 'utf8') : '';
  }

  pid(name: Component): number | undefined {
    return this.#programs.program(name).pid;
  }

  /** Ends every process and removes every file. */
  stop(): Promise<void> {
    return this.#end();
  }
}

/** About five seconds. Give it a `beforeAll`, and `stop()` to the `afterAll`. */
export async function startControlPlane(o: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const said: string[] = [];
  const wanted = { 'kube-controller-manager': o.controllerManager, 'kube-scheduler': o.scheduler };
  const plane = await startLocalPlane({
    ...{ data: '', port: 0, accounts: true, flags: o.flags ?? {}, signal: new AbortController().signal },
    wanted: (name) => !(name in wanted) || wanted[name as keyof typeof wanted] === true,
    say: (text) => void said.push(text),
    on: { env: process.env, platform: process.platform, arch: process.arch, folders: folders() },
  });
  try {
    for (const name of PROGRAMS.filter((of) => plane.programs.names.includes(of))) await plane.programs.on(name);
  } catch (error) {
    await plane.stop();
    throw new Error(`${String(error)}\n${said.join('')}`);
  }
  const { dir, url, ca, kubeletClient, programs } = plane;
  return new ControlPlane({ dir, url, ca, kubeletClient, programs, end: () => plane.stop() });
}
