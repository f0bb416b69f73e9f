/**
 * One real cluster of one node for a test file: control plane, containerd and the daemon as its member, with the API
 * server let in at the node's port. And the questions that its tests ask of it.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Container, PodSpec } from '../../src/machines/kube/podTable.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../e2e/daemon.ts';
import { type ControlPlane, type ControlPlaneOptions, program, startControlPlane } from '../e2e/lab/cluster/controlPlane.ts';
import { type Containerd, startContainerd } from '../e2e/lab/containerd.ts';
import { until } from '../e2e/lab/ports.ts';
import { freePort } from '../freePort.ts';

export const LONG = { timeoutMs: 120_000, everyMs: 100 };
export const DEFAULT_NAMESPACE = '/api/v1/namespaces/default';
/** Of probes that must not fail: a machine that is busy with other things is no failure. */
export const PROBE_TIMEOUT_S = 20;
/** Stays, and obeys TERM within moments. */
export const STAY = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';

export interface Ran {
  code: number | null;
  out: string;
  err: string;
}
export interface Running {
  result: Promise<Ran>;
  /** What came so far. */
  ran: Ran;
  write(text: string): void;
  /** Ends its standard input. */
  close(): void;
  stop(): void;
}

/** kubectl as the administrator types it; its input ends after `input` unless `more` will come. */
export function startKubectl(plane: ControlPlane, args: readonly string[], input = '', more = false): Running {
  const env = { PATH: process.env.PATH ?? '', HOME: plane.dir, KUBECONFIG: plane.adminKubeconfig };
  const child = spawn(program('kubectl'), args, { env, stdio: 'pipe' });
  const ran: Ran = { code: null, out: '', err: '' };
  child.stdout.on('data', (d: Buffer) => {
    ran.out += d.toString();
  });
  child.stderr.on('data', (d: Buffer) => {
    ran.err += d.toString();
  });
  // kubectl may end before it has read everything.
  child.stdin.on('error', () => undefined);
  child.stdin.write(input);
  if (!more) child.stdin.end();
  const result = new Promise<Ran>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ ...ran, code }));
  });
  return {
    ...{ result, ran },
    write: (text) => void child.stdin.write(text),
    close: () => void child.stdin.end(),
    stop: () => void child.kill('SIGKILL'),
  };
}

export const isReady = (pod: Pod): boolean => pod.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

/** What must stay as it is for a pod that nothing happened to: containers, restarts, and since when it is Ready. */
export function lifeOf(pod: Pod): object {
  return {
    uid: pod.metadata.uid,
    containers: (pod.status.containerStatuses ?? []).map((c) => `${c.name} ${c.containerID} ${c.restartCount}`).sort(),
    readySince: pod.status.conditions?.find((c) => c.type === 'Ready' && c.status === 'True')?.lastTransitionTime,
    ip: pod.status.podIP,
  };
}

export class Cluster {
  readonly plane: ControlPlane;
  readonly lab: Containerd;
  readonly daemon: Daemon;
  /** Of the node's HTTPS API. */
  readonly port: number;

  constructor(o: { plane: ControlPlane; lab: Containerd; daemon: Daemon; port: number }) {
    this.plane = o.plane;
    this.lab = o.lab;
    this.daemon = o.daemon;
    this.port = o.port;
  }

  /** Ends and removes everything; fails if something is left. */
  async stop(): Promise<void> {
    await this.daemon.dispose();
    await this.plane.stop();
    expect(await this.lab.stop()).toEqual([]);
  }

  kubectl(...args: string[]): Promise<string> {
    return this.plane.kubectl(...args);
  }

  nodePage(path: string): Promise<string> {
    return this.plane.nodePage({ node: NODE_NAME, port: this.port, path });
  }

  /** `kubectl apply -f -` with these objects. */
  async apply(...objects: object[]): Promise<string> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    const ran = await startKubectl(this.plane, ['apply', '-f', '-'], JSON.stringify(list)).result;
    if (ran.code !== 0) throw new Error(`kubectl apply: ${ran.err}`);
    return ran.out;
  }

  async post(path: string, body: object): Promise<void> {
    const made = await this.plane.request('POST', `${DEFAULT_NAMESPACE}/${path}`, { body });
    if (made.status !== 201) throw new Error(`POST ${path}: ${made.status} ${JSON.stringify(made.body)}`);
  }

  async merge(path: string, body: object): Promise<void> {
    const done = await this.plane.request('PATCH', `${DEFAULT_NAMESPACE}/${path}`, { body, contentType: 'application/merge-patch+json' });
    if (done.status !== 200) throw new Error(`PATCH ${path}: ${done.status} ${JSON.stringify(done.body)}`);
  }

  async pod(name: string): Promise<Pod | null> {
    const got = await this.plane.request('GET', `${DEFAULT_NAMESPACE}/pods/${name}`);
    if (got.status !== 200 && got.status !== 404) throw new Error(`GET pod ${name}: ${got.status}`);
    return got.status === 200 ? (got.body as Pod) : null;
  }

  async pods(selector: string): Promise<Pod[]> {
    const got = await this.plane.request('GET', `${DEFAULT_NAMESPACE}/pods?labelSelector=${encodeURIComponent(selector)}`);
    if (got.status !== 200) throw new Error(`GET pods: ${got.status}`);
    return (got.body as { items: Pod[] }).items;
  }

  /** Makes a pod of one namespace, `default`; the scheduler places it. */
  async create(name: string, spec: Partial<PodSpec> & { containers: Container[] }, labels: Record<string, string> = {}): Promise<void> {
    const metadata = { name, labels };
    await this.post('pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec: { terminationGracePeriodSeconds: 1, ...spec } });
  }

  /** Waits for what holds of the pod as the API server shows it. */
  async podWhere(name: string, what: string, fits: (pod: Pod) => boolean, within = LONG): Promise<Pod> {
    let last: Pod | null = null;
    try {
      return await this.daemon.wait(
        `${name} ${what}`,
        async () => {
          last = await this.pod(name);
          return last !== null && fits(last) && last;
        },
        within,
      );
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : String(error)}\n${JSON.stringify((last as Pod | null)?.status)}`);
    }
  }

  ready(name: string): Promise<Pod> {
    return this.podWhere(name, 'is Ready', isReady);
  }

  async gone(name: string): Promise<void> {
    await this.daemon.wait(`${name} is gone`, async () => (await this.pod(name)) === null, LONG);
  }

  /** What a container of the pod wrote in its life number `attempt`. */
  said(pod: Pod, container = 'main', attempt = 0): string {
    const { name, uid } = pod.metadata;
    const file = join(this.daemon.podLogs, `default_${name}_${uid}`, container, `${attempt}.log`);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }
}

export interface ClusterOptions {
  /** Of the daemon. */
  config?: Record<string, unknown>;
  args?: readonly string[];
  plane?: ControlPlaneOptions;
  /** False: the daemon is left to be started. */
  start?: boolean;
  /** The node's way to the API server, instead of straight there. */
  kubeconfig?: (plane: ControlPlane) => Promise<string>;
}

/** About ten seconds. */
export async function startCluster(o: ClusterOptions = {}): Promise<Cluster> {
  await buildDaemon();
  const plane = await startControlPlane({ controllerManager: true, scheduler: true, ...o.plane });
  let lab: Containerd | undefined;
  try {
    lab = await startContainerd();
    const port = await freePort();
    const kubeconfig = (await o.kubeconfig?.(plane)) ?? plane.nodeKubeconfig(NODE_NAME);
    const daemon = await createDaemon(
      lab,
      { enableServer: true, port, authentication: { x509: { clientCAFile: plane.ca.certFile } }, ...o.config },
      [`--kubeconfig=${kubeconfig}`, '--node-ip=127.0.0.1', ...(o.args ?? [])],
    );
    const cluster = new Cluster({ plane, lab, daemon, port });
    if (o.start === false) return cluster;
    try {
      await daemon.start();
      await until('the default service account', () => plane.hasAccount(), LONG);
      await daemon.wait('the node is Ready', async () => / Ready /.test(await plane.kubectl('get', 'node', NODE_NAME)), LONG);
    } catch (error) {
      await daemon.dispose();
      throw error;
    }
    return cluster;
  } catch (error) {
    await plane.stop();
    await lab?.stop();
    throw error;
  }
}
