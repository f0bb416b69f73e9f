/**
 * A real control plane for one test: etcd, kube-apiserver and, where asked for, kube-controller-manager and
 * kube-scheduler, on free loopback ports, with certificates and folders of its own. `stop()` leaves nothing behind.
 * scripts/setup/control-plane-setup.sh brings the programs.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Authority, type Identity, type KeyPair, serviceAccountKeys } from '../pki.ts';
import { until } from '../ports.ts';

const run = promisify(execFile);
const READY_TIMEOUT_MS = 90_000;
const END_TIMEOUT_MS = 15_000;
/** A port found free may be taken by somebody else before we bind it. */
const ATTEMPTS_MAX = 3;
const SERVICE_RANGE = '10.251.0.0/24';
const ISSUER = 'https://kubernetes.default.svc';

export type Component = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';
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

/** The program of that name: from $KUBEBUILDER_ASSETS, else from the cache, else from PATH. */
export function program(name: Component | 'kubectl' | 'kubelet'): string {
  const assets = process.env.KUBEBUILDER_ASSETS;
  const folders = [...(assets ? [assets] : []), join(controlPlaneCache(), 'bin'), ...(process.env.PATH ?? '').split(':'), '/usr/sbin'];
  const found = folders.filter((dir) => dir !== '').find((dir) => existsSync(join(dir, name)));
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

/** Kubernetes before 1.24 had ports without TLS, and opens them unless told not to; later ones refuse the flag. */
const noPlainPort = (name: Exclude<Component, 'etcd'>, flag: string): string[] => (minorVersion(name) < 24 ? [flag] : []);

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (address !== null && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port'))));
    });
  });
}

export class Program {
  readonly name: Component;
  readonly logFile: string;
  /** Of the executable; undefined: wherever {@link program} finds it. */
  readonly #path: string | undefined;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;

  constructor(what: Component | { name: Component; path: string }, dir: string, args: readonly string[]) {
    const { name, path } = typeof what === 'string' ? { name: what, path: undefined } : what;
    this.name = name;
    this.#path = path;
    this.logFile = join(dir, `${name}.log`);
    this.#args = args;
  }

  start(): void {
    if (this.alive()) return;
    const out = openSync(this.logFile, 'a');
    // Neither the test runner's library paths nor a kubeconfig of the person who runs the tests may reach it.
    const child = spawn(this.#path ?? program(this.name), this.#args, {
      stdio: ['ignore', out, out],
      env: { PATH: process.env.PATH ?? '' },
    });
    child.once('error', (error) => writeFileSync(this.logFile, `did not start: ${error.message}\n`, { flag: 'a' }));
    closeSync(out);
    this.#child = child;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  alive(): boolean {
    return this.#child?.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.alive()) this.#child?.kill(signal);
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.alive()) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    // A frozen process does not see a signal to end.
    child.kill('SIGCONT');
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
    await ended;
    clearTimeout(late);
  }

  log(): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8') : '';
  }
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
  readonly #programs: readonly Program[];
  readonly #core: boolean;

  /** @param o.core False: a server that has no namespaces, and is never ready for want of services. */
  constructor(o: { dir: string; url: string; ca: Authority; kubeletClient: KeyPair; programs: readonly Program[]; core?: boolean }) {
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
    this.#find(name).signal(frozen ? 'SIGSTOP' : 'SIGCONT');
  }

  async kill(name: Component): Promise<void> {
    await this.#find(name).end('SIGKILL');
  }

  /** Starts components that were ended, on their old addresses; of etcd and API server it waits until they are ready. */
  async start(...names: Component[]): Promise<void> {
    for (const name of names) this.#find(name).start();
    if (names.includes('kube-apiserver') || names.includes('etcd')) await this.ready();
  }

  /** Waits until the API server says that it is ready. An ended component ends the wait at once. */
  async ready(): Promise<void> {
    const deadline = performance.now() + READY_TIMEOUT_MS;
    for (;;) {
      const ended = this.#programs.find((p) => p.name !== 'kube-controller-manager' && p.name !== 'kube-scheduler' && !p.alive());
      if (ended !== undefined) throw new Error(`${ended.name} ended; the end of its log:\n${ended.log().slice(-3000)}`);
      const done = await until(
        'the API server to be ready',
        async () => (await this.request('GET', this.#core ? '/readyz' : '/livez', { timeoutMs: 2_000 })).status === 200,
        { timeoutMs: 2_000, everyMs: 100 },
      ).catch((error: unknown) => error);
      if (done === true) break;
      if (performance.now() > deadline) throw new Error(`${String(done)}\n${this.log('kube-apiserver').slice(-3000)}`);
    }
    if (!this.#core) return;
    // Pods cannot be made in a namespace that is not there yet; the server makes it shortly after it is ready.
    await until('namespace default', async () => (await this.request('GET', '/api/v1/namespaces/default')).status === 200, {
      timeoutMs: 30_000,
      everyMs: 100,
    });
  }

  log(name: Component): string {
    return this.#find(name).log();
  }

  pid(name: Component): number | undefined {
    return this.#find(name).pid;
  }

  #find(name: Component): Program {
    const found = this.#programs.find((p) => p.name === name);
    if (found === undefined) throw new Error(`this control plane has no ${name}`);
    return found;
  }

  /** Ends every process and removes every file. */
  async stop(): Promise<void> {
    for (const p of [...this.#programs].reverse()) await p.end();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** About five seconds. Give it a `beforeAll`, and `stop()` to the `afterAll`. */
export async function startControlPlane(o: ControlPlaneOptions = {}): Promise<ControlPlane> {
  for (let attempt = 1; ; attempt++) {
    const plane = await build(o);
    try {
      for (const name of ['etcd', 'kube-apiserver'] as const) plane.programs.find((p) => p.name === name)?.start();
      await plane.it.ready();
      for (const p of plane.programs) p.start();
      return plane.it;
    } catch (error) {
      const taken = plane.programs.some((p) => /address already in use/.test(p.log()));
      await plane.it.stop();
      if (!taken || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** Of an etcd alone, on these ports of loopback. */
export function etcdFlags(dir: string, { client, peer }: { client: number; peer: number }): string[] {
  return [
    `--data-dir=${join(dir, 'etcd')}`,
    `--listen-client-urls=http://127.0.0.1:${client}`,
    `--advertise-client-urls=http://127.0.0.1:${client}`,
    `--listen-peer-urls=http://127.0.0.1:${peer}`,
    `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
    `--initial-cluster=default=http://127.0.0.1:${peer}`,
    '--unsafe-no-fsync',
  ];
}

async function build(o: ControlPlaneOptions): Promise<{ it: ControlPlane; programs: readonly Program[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-cluster-'));
  mkdirSync(join(dir, 'pki'));
  const ca = new Authority(join(dir, 'pki'), 'lab-ca');
  const serving = ca.issue('kube-apiserver', {
    name: 'kube-apiserver',
    hosts: ['127.0.0.1', 'localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', '10.251.0.1'],
  });
  const kubeletClient = ca.issue('kubelet-client', { name: 'kube-apiserver-kubelet-client', groups: ['system:masters'] });
  const keys = serviceAccountKeys(join(dir, 'pki'));
  const [client, peer, secure] = [await freePort(), await freePort(), await freePort()];
  const url = `https://127.0.0.1:${secure}`;
  const programs = [
    new Program('etcd', dir, [...etcdFlags(dir, { client, peer }), ...(o.flags?.etcd ?? [])]),
    new Program('kube-apiserver', dir, [
      `--etcd-servers=http://127.0.0.1:${client}`,
      `--secure-port=${secure}`,
      '--bind-address=127.0.0.1',
      ...noPlainPort('kube-apiserver', '--insecure-port=0'),
      `--cert-dir=${join(dir, 'pki')}`,
      `--tls-cert-file=${serving.certFile}`,
      `--tls-private-key-file=${serving.keyFile}`,
      `--client-ca-file=${ca.certFile}`,
      `--kubelet-client-certificate=${kubeletClient.certFile}`,
      `--kubelet-client-key=${kubeletClient.keyFile}`,
      '--kubelet-preferred-address-types=InternalIP,Hostname',
      `--service-account-issuer=${ISSUER}`,
      `--service-account-signing-key-file=${keys.privateFile}`,
      `--service-account-key-file=${keys.publicFile}`,
      `--api-audiences=${ISSUER}`,
      '--authorization-mode=Node,RBAC',
      '--enable-bootstrap-token-auth',
      '--enable-admission-plugins=NodeRestriction',
      '--allow-privileged',
      `--service-cluster-ip-range=${SERVICE_RANGE}`,
      ...(o.flags?.['kube-apiserver'] ?? []),
    ]),
  ];
  const it = new ControlPlane({ dir, url, ca, kubeletClient, programs });
  if (o.controllerManager === true) programs.push(controllerManager(it, keys.privateFile, o.flags?.['kube-controller-manager'] ?? []));
  if (o.scheduler === true) {
    const kubeconfig = it.kubeconfig('scheduler', { name: 'system:kube-scheduler' });
    const flags = [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', ...noPlainPort('kube-scheduler', '--port=0'), '--secure-port=0'];
    programs.push(new Program('kube-scheduler', dir, [...flags, ...(o.flags?.['kube-scheduler'] ?? [])]));
  }
  return { it, programs };
}

function controllerManager(plane: ControlPlane, serviceAccountKey: string, more: readonly string[]): Program {
  const kubeconfig = plane.kubeconfig('controller-manager', { name: 'system:kube-controller-manager' });
  return new Program('kube-controller-manager', plane.dir, [
    `--kubeconfig=${kubeconfig}`,
    '--leader-elect=false',
    ...noPlainPort('kube-controller-manager', '--port=0'),
    '--secure-port=0',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${serviceAccountKey}`,
    `--root-ca-file=${plane.ca.certFile}`,
    `--cluster-signing-cert-file=${plane.ca.certFile}`,
    `--cluster-signing-key-file=${plane.ca.keyFile}`,
    ...more,
  ]);
}
