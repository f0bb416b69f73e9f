/** An API server that a benchmark takes away from a fleet: that of `actorlet fleet --api local`, or another one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../../test/e2e/lab/cluster/controlPlane.ts';
import { KubeClient } from './kubeClient.ts';
import { UNLIMITED } from './onPlane.ts';
import { sleep } from './report.ts';

const GET_TIMEOUT_MS = 10_000;
/** A supervisor starts the program again meanwhile. */
const KILL_EVERY_MS = 50;

export type How = 'kill' | 'freeze';

export interface AwayCluster {
  /** What the fleet is told about its API server. */
  flags(ofControllers: string): string[];
  get(path: string): Promise<unknown>;
  /** Without an API server for that long. */
  away(how: How, ms: number): Promise<void>;
  stop(): Promise<void>;
}

/** One that the fleet is given a kubeconfig of. */
export class OtherCluster implements AwayCluster {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  static async start(ofControllers: string[]): Promise<OtherCluster> {
    const flags = { ...UNLIMITED, 'kube-controller-manager': ofControllers };
    return new OtherCluster(await startControlPlane({ controllerManager: true, scheduler: true, flags }));
  }

  flags(): string[] {
    return [`--kubeconfig=${this.#plane.adminKubeconfig}`];
  }

  async get(path: string): Promise<unknown> {
    return (await this.#plane.request('GET', path, { timeoutMs: GET_TIMEOUT_MS })).body;
  }

  async away(how: How, ms: number): Promise<void> {
    if (how === 'freeze') this.#plane.freeze('kube-apiserver', true);
    else await this.#plane.kill('kube-apiserver');
    await sleep(ms);
    if (how === 'freeze') this.#plane.freeze('kube-apiserver', false);
    else await this.#plane.start('kube-apiserver');
  }

  stop(): Promise<void> {
    return this.#plane.stop();
  }
}

/** That of the fleet itself. */
export class OfFleet implements AwayCluster {
  readonly #data: string;
  #client: KubeClient | undefined;

  constructor(data: string) {
    this.#data = data;
  }

  flags(ofControllers: string): string[] {
    return ['--api=local', `--data=${this.#data}`, `--api-flag=kube-controller-manager:${ofControllers}`];
  }

  async get(path: string): Promise<unknown> {
    this.#client ??= new KubeClient(join(this.#data, 'admin.kubeconfig'), 2);
    return await this.#client.ask('GET', path);
  }

  async away(how: How, ms: number): Promise<void> {
    const untilMs = performance.now() + ms;
    if (how === 'freeze') {
      this.#signal('SIGSTOP');
      await sleep(ms);
      this.#signal('SIGCONT');
    } else {
      for (; performance.now() < untilMs; await sleep(KILL_EVERY_MS)) this.#signal('SIGKILL');
    }
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(Number(readFileSync(join(this.#data, 'run', 'kube-apiserver.pid'), 'utf8')), signal);
    } catch (error) {
      // Its supervisor waits before it starts the next one.
      if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }

  stop(): Promise<void> {
    this.#client?.close();
    return Promise.resolve();
  }
}
