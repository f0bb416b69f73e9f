/**
 * `--api local`: a real control plane on loopback, for as long as this process lives. etcd, kube-apiserver and, where they are there,
 * kube-controller-manager and kube-scheduler are supervised actors of it.
 */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { flagsOf, LOOPBACK, type PairFiles, type PlaneFiles, SERVICE_ADDRESS } from '../../plane/flags.ts';
import { isPortTaken } from '../../plane/lastWords.ts';
import { PROGRAMS, type ProgramName } from '../../plane/messages.ts';
import { UsageError } from '../args.ts';
import { type AskedAs, ask } from './asking.ts';
import { type Assets, fetching, findAssets, type Surroundings, thisProcess } from './assets.ts';
import { Authority, accountKeys } from './authority.ts';
import { minorOf, openFolder, type PlaneFolder } from './folder.ts';
import { anyPort, freePort } from './ports.ts';
import { Ended, LocalProgram, type ProgramChange } from './process.ts';
import { ProgramTree } from './programTree.ts';
import { WARDEN, wardenCommand } from './warden.ts';

export interface LocalPlaneOptions {
  /** A folder that is gone on with; '': a new one, which goes with the control plane. */
  data: string;
  /** Of the API server; 0: a free one, or that of the folder. */
  port: number;
  /** Added to those of a program; of a flag given twice the last counts. */
  flags?: Partial<Record<ProgramName, readonly string[]>>;
  /** Which of the two that may be missing are wanted. Default: those that are found. */
  wanted?: (name: ProgramName) => boolean;
  /** Pods need a service account. Default: where a controller manager makes them. */
  accounts?: boolean;
  /** What a person is told. */
  say(text: string): void;
  /** Aborted: everything that was started ends. */
  signal: AbortSignal;
  on?: Surroundings;
}

/** A port that was found free may be taken before it is used. */
const ATTEMPTS_MAX = 3;
const LOOK_EVERY_MS = 50;
const ACCOUNT_TIMEOUT_MS = 90_000;
const ADMIN = { name: 'kubernetes-admin', groups: ['system:masters'] };
/** Those that must answer before the others start. */
const FIRST = ['etcd', 'kube-apiserver'] as const;

/** @throws UsageError for what a person can mend, Error with the last words of a program that did not start. */
export async function startLocalPlane(o: LocalPlaneOptions): Promise<LocalPlane> {
  const assets = await findAssets(o.on ?? thisProcess(), o.signal);
  const wanted = Object.fromEntries(Object.entries(assets).filter(([name]) => o.wanted?.(name as ProgramName) !== false)) as Assets;
  sayFound(wanted, o);
  using stack = new Undo();
  const folder = await openFolder(o.data, wanted);
  stack.add(() => {
    folder.remove();
    folder[Symbol.dispose]();
  });
  for (let attempt = 1; ; attempt++) {
    o.signal.throwIfAborted();
    const plane = new LocalPlane(o, { assets: wanted, folder, ports: await portsOf(o, folder, attempt) });
    try {
      await plane.start();
      stack.release();
      return plane;
    } catch (error) {
      await plane.end();
      if (!isPortTaken(messageOf(error)) || attempt === ATTEMPTS_MAX || o.signal.aborted) throw error;
    }
  }
}

/** Undoes at the end of its block, unless it is released. */
class Undo implements Disposable {
  #undo: (() => void)[] = [];
  add(undo: () => void): void {
    this.#undo.push(undo);
  }
  release(): void {
    this.#undo = [];
  }
  [Symbol.dispose](): void {
    for (const undo of this.#undo.reverse()) undo();
  }
}

function sayFound(assets: Assets, { say, on }: LocalPlaneOptions): void {
  const found = PROGRAMS.flatMap((name) => (assets[name] === undefined ? [] : [`${name} ${assets[name].version} (${assets[name].path})`]));
  say(`local control plane: ${found.join(', ')}\n`);
  const lacks = PROGRAMS.filter((name) => assets[name] === undefined);
  const without = {
    'kube-controller-manager': 'no Deployment, Job or garbage collection works, and pods have no service account',
    'kube-scheduler': 'pods stay Pending unless they name their node, or a scheduler of yours binds them',
  };
  const said = lacks.flatMap((name) => (name in without ? [`without ${name} ${without[name as keyof typeof without]}`] : []));
  if (said.length > 0)
    say(`${said.join('; ')}; fetch what is missing with \`${fetching(on ?? thisProcess(), assets['kube-apiserver'].version)[1]}\`\n`);
  const api = assets['kube-apiserver'].version;
  const others = (['kube-controller-manager', 'kube-scheduler'] as const).filter((name) => {
    const version = assets[name]?.version;
    return version !== undefined && minorOf(version) !== minorOf(api);
  });
  for (const name of others)
    say(`${name} is of another release than the API server (${assets[name]?.version} and ${api}): expect odd behaviour\n`);
}

async function portsOf(o: LocalPlaneOptions, { record }: PlaneFolder, attempt: number): Promise<{ etcd: number; api: number }> {
  const before = attempt === 1 ? record?.ports : undefined;
  const etcd = (before === undefined ? null : await freePort(before.etcd)) ?? (await anyPort());
  if (o.port !== 0) {
    const api = await freePort(o.port);
    if (api === null)
      throw new UsageError(`port ${o.port} of ${LOOPBACK} is taken by another program: choose another --api-port, or none for a free one`);
    return { etcd, api };
  }
  const again = before === undefined ? null : await freePort(before.api);
  if (before !== undefined && again === null)
    o.say(`port ${before.api} of the last time is taken: kubeconfigs of then do not reach this API server\n`);
  return { etcd, api: again ?? (await anyPort()) };
}

export class LocalPlane {
  readonly dir: string;
  readonly url: string;
  readonly logs: string;
  /** Path of a kubeconfig that may do everything. */
  readonly kubeconfig: string;
  readonly programs: ProgramTree;
  /** Signs client certificates and the API server's own. */
  readonly ca: Authority;
  readonly kubeletClient: PairFiles;
  readonly #o: LocalPlaneOptions;
  readonly #assets: Assets;
  readonly #folder: PlaneFolder;
  readonly #admin: AskedAs;
  #isUp = false;
  #firstFailure = Promise.withResolvers<never>();
  #stopping: Promise<void> | undefined;

  constructor(
    o: LocalPlaneOptions,
    { assets, folder, ports }: { assets: Assets; folder: PlaneFolder; ports: { etcd: number; api: number } },
  ) {
    const { dir, temporary } = folder;
    this.#o = o;
    this.#assets = assets;
    this.#folder = folder;
    this.dir = dir;
    this.logs = join(dir, 'logs');
    this.url = `https://${LOOPBACK}:${ports.api}`;
    this.#firstFailure.promise.catch(() => {});
    const kubernetes = assets['kube-apiserver'].version;
    folder.write({ kubernetes, etcd: assets.etcd.version, ports });
    this.ca = new Authority(join(dir, 'pki'), 'ca');
    const { ca } = this;
    const admin = ca.issue('admin', ADMIN);
    this.#admin = { caFile: ca.certFile, pair: admin };
    this.kubeletClient = ca.issue('kubelet-client', { name: 'kube-apiserver-kubelet-client', groups: ['system:masters'] });
    this.kubeconfig = this.writeKubeconfig('admin', admin);
    const files = this.#files();
    const minor = Number(kubernetes.split('.')[1]);
    const flags = { files, ports, minor, throwAway: temporary, accounts: o.accounts ?? assets['kube-controller-manager'] !== undefined };
    const ready: Partial<Record<ProgramName, () => Promise<boolean>>> = {
      etcd: async () =>
        (await ask(`https://${LOOPBACK}:${ports.etcd}/health`, { caFile: files.etcdCa.certFile, pair: files.etcdClient })).status === 200,
      'kube-apiserver': async () =>
        (await this.#get('/readyz')).status === 200 && (await this.#get('/api/v1/namespaces/default')).status === 200,
    };
    const programs = PROGRAMS.flatMap((name) => {
      const found = assets[name];
      return found === undefined ? [] : [this.#program(name, [found.path, ...flagsOf(name, flags, o.flags?.[name])], ready[name])];
    });
    this.programs = new ProgramTree([this.#program(WARDEN, wardenCommand(dir, { remove: temporary })), ...programs]);
  }

  #files(): PlaneFiles {
    const { dir, ca } = this;
    const pki = join(dir, 'pki');
    const etcdCa = new Authority(pki, 'etcd-ca');
    const hosts = [LOOPBACK, 'localhost'];
    const service = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', SERVICE_ADDRESS];
    const clientOf = (name: ProgramName): string => this.writeKubeconfig(name, ca.issue(name, { name: `system:${name}` }));
    return {
      ...{ dir, ca, etcdCa, kubeletClient: this.kubeletClient, accounts: accountKeys(pki) },
      etcd: etcdCa.issue('etcd', { name: 'etcd', hosts }),
      etcdClient: etcdCa.issue('etcd-client', { name: 'kube-apiserver-etcd-client' }),
      serving: ca.issue('kube-apiserver', { name: 'kube-apiserver', hosts: [...hosts, ...service] }),
      kubeconfigs: { 'kube-controller-manager': clientOf('kube-controller-manager'), 'kube-scheduler': clientOf('kube-scheduler') },
    };
  }

  #program(name: string, command: readonly [string, ...string[]], ready?: () => Promise<boolean>): LocalProgram {
    const onChange = (change: ProgramChange): void => this.#changed(name, change);
    return new LocalProgram({ name, dir: this.dir, command, onChange, ...(ready === undefined ? {} : { ready }) });
  }

  /** With its credentials in it: one file that can be given away. */
  writeKubeconfig(file: string, pair: PairFiles): string {
    const path = join(this.dir, `${file}.kubeconfig`);
    const base64 = (of: string): string => readFileSync(of).toString('base64');
    const config = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'local' },
      clusters: [{ name: 'local', cluster: { server: this.url, 'certificate-authority-data': base64(this.ca.certFile) } }],
      users: [{ name: file, user: { 'client-certificate-data': base64(pair.certFile), 'client-key-data': base64(pair.keyFile) } }],
      contexts: [{ name: 'local', context: { cluster: 'local', user: file } }],
    };
    // JSON is YAML.
    writeFileSync(path, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
    return path;
  }

  /** Resolves when the API server is ready, and the others were started. @throws Error with the last words of what did not start. */
  async start(): Promise<void> {
    const { signal } = this.#o;
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => {});
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    const trouble = Promise.race([this.#firstFailure.promise, aborted.promise]);
    trouble.catch(() => {});
    try {
      // The API server waits for etcd by itself, and has much to do before it asks it.
      await Promise.race([this.#untilOn(WARDEN), trouble]);
      await Promise.race([Promise.all(FIRST.map((name) => this.#untilOn(name))), trouble]);
      this.#isUp = true;
      for (const name of this.programs.names) void this.programs.tryOn(name);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** One that a signal ended starts again. */
  async #untilOn(name: string): Promise<void> {
    while ((await this.programs.tryOn(name)) !== null && this.#stopping === undefined) await wait(LOOK_EVERY_MS);
  }

  /** Whether pods of the namespace `default` can have the account that they get. Without a controller manager none has. */
  async accountsReady(): Promise<void> {
    if (this.#assets['kube-controller-manager'] === undefined) return;
    const deadline = performance.now() + ACCOUNT_TIMEOUT_MS;
    const paths = ['/api/v1/namespaces/default/serviceaccounts/default', '/api/v1/namespaces/default/configmaps/kube-root-ca.crt'];
    while (!this.#o.signal.aborted && this.#stopping === undefined) {
      const answers = await Promise.all(paths.map((path) => this.#get(path).catch(() => ({ status: 0 }))));
      if (answers.every(({ status }) => status === 200)) return;
      if (performance.now() > deadline)
        throw new Error(`the namespace default has no service account after ${ACCOUNT_TIMEOUT_MS / 1_000} s; see ${this.logs}`);
      await wait(LOOK_EVERY_MS);
    }
  }

  /** Copies what etcd keeps. Its files are whole only when it has ended. */
  async backup(): Promise<void> {
    await this.#whileAway(() => {
      rmSync(this.#copy, { recursive: true, force: true });
      cpSync(join(this.dir, 'etcd'), this.#copy, { recursive: true });
    });
  }

  /** As from a backup: objects are as they were, and versions go back. All that knows of later ones begins anew. @throws Error without one. */
  async restore(): Promise<void> {
    if (!existsSync(this.#copy)) throw new Error('there is no backup; a step backup comes before restore');
    await this.#whileAway(() => {
      rmSync(join(this.dir, 'etcd'), { recursive: true, force: true });
      cpSync(this.#copy, join(this.dir, 'etcd'), { recursive: true });
    });
  }

  get #copy(): string {
    return join(this.dir, 'etcd.backup');
  }

  /** All programs end, the last first, and start again. */
  async #whileAway(act: () => void): Promise<void> {
    const names = this.programs.names.filter((name) => name !== WARDEN);
    for (const name of [...names].reverse()) await this.programs.off(name, name === 'etcd' ? 'SIGTERM' : 'SIGKILL');
    try {
      act();
    } finally {
      for (const name of FIRST) await this.#untilOn(name);
      for (const name of names) void this.programs.tryOn(name);
    }
  }

  /** Ends all programs, and removes a temporary folder. */
  stop(): Promise<void> {
    this.#stopping ??= this.end().finally(() => {
      this.#folder.remove();
      this.#folder[Symbol.dispose]();
    });
    return this.#stopping;
  }

  /** Ends all programs. The warden is the last: until then it ends them should this process be killed. */
  async end(): Promise<void> {
    this.#isUp = false;
    const { temporary } = this.#folder;
    const named = this.programs.names.filter((name) => name !== WARDEN).reverse();
    // What they know is in etcd, whose data may be gone on with.
    for (const name of named) await this.programs.off(name, name === 'etcd' && !temporary ? 'SIGTERM' : 'SIGKILL');
    await this.programs.off(WARDEN, 'SIGKILL');
    await this.programs.stop();
  }

  #get(path: string): Promise<{ status: number; text: string }> {
    return ask(`${this.url}${path}`, this.#admin);
  }

  #changed(name: string, change: ProgramChange): void {
    const program = this.programs.program(name);
    const { say } = this.#o;
    if (this.#stopping !== undefined) return;
    if (change.kind === 'ended') {
      // Of one that never ran the first words are the reason why there is no control plane. A signal is somebody else's act.
      if (!this.#isUp && !(program.failure instanceof Ended && !program.failure.byItself)) this.#firstFailure.reject(new Error(change.why));
      else say(`${change.why}; it starts again (log: ${program.logFile})\n`);
    }
    if (change.kind === 'ready' && change.again) say(`${name} runs again\n`);
  }
}
