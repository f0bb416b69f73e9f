/**
 * The real daemon process for tests: the built program through its launcher, on the endpoint of a lab containerd, with
 * its own root, manifests, logs and ports. Ends only the process it started.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type AdminClient, adminClient } from '@actorlet/admin/src/client.ts';
import type { RecordedEvent } from '../../src/machines/foundation/messages.ts';
import type { Pod, PodStatus } from '../../src/machines/kube/types.ts';
import { freePort } from '../freePort.ts';
import { removeMounts } from './lab/cleanup.ts';
import type { Containerd } from './lab/containerd.ts';
import { until } from './lab/ports.ts';

const project = join(import.meta.dirname, '..', '..');
const run = promisify(execFile);
export const NODE_NAME = 'e2e';
/** Wide: a machine that is busy with other things is no failure. Below the `testTimeout` of e2e tests. */
const WAIT_TIMEOUT_MS = 90_000;
const END_TIMEOUT_MS = 20_000;

/** How often a wait may start `actorctl`: each start takes 0.3 s of processor time. */
export const BY_PROGRAM = { everyMs: 1_000 };

/** Builds `dist/` unless it is up to date. */
export async function buildDaemon(): Promise<void> {
  await run(process.execPath, [join(project, 'scripts/build.mjs')]);
}

export type PodView = Pod & { status: PodStatus };
export interface Why {
  found: boolean;
  lines: string[];
}

export class Daemon {
  readonly dir: string;
  readonly rootDir: string;
  readonly manifests: string;
  readonly podLogs: string;
  readonly containerLogs: string;
  readonly admin: AdminClient;
  readonly lab: Pick<Containerd, 'endpoint'>;
  readonly #ports: { readOnly: number; healthz: number };
  readonly #args: readonly string[];
  #config: Record<string, unknown>;
  #child: ChildProcess | undefined;

  constructor(
    lab: Pick<Containerd, 'endpoint'>,
    o: { dir: string; ports: { readOnly: number; healthz: number }; config: Record<string, unknown>; args?: readonly string[] },
  ) {
    this.lab = lab;
    this.dir = o.dir;
    this.rootDir = join(o.dir, 'root');
    this.manifests = join(o.dir, 'manifests');
    this.podLogs = join(o.dir, 'logs', 'pods');
    this.containerLogs = join(o.dir, 'logs', 'containers');
    this.#ports = o.ports;
    this.#args = o.args ?? [];
    this.#config = o.config;
    this.admin = adminClient(join(this.rootDir, 'actorlet.sock'), new AbortController().signal);
    mkdirSync(this.manifests);
  }

  /** Takes effect at the next start. */
  configure(config: Record<string, unknown>): void {
    this.#config = { ...this.#config, ...config };
  }

  /** Starts the process and waits until it says that it is healthy. `ready: false`: only until it was started. `program`: another than this checkout's. */
  async start(o: { ready?: boolean; program?: string } = {}): Promise<void> {
    if (this.alive()) throw new Error('the daemon runs already');
    const file = join(this.dir, 'config.yaml');
    const config = {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      containerRuntimeEndpoint: this.lab.endpoint,
      staticPodPath: this.manifests,
      podLogsDir: this.podLogs,
      address: '127.0.0.1',
      readOnlyPort: this.#ports.readOnly,
      healthzBindAddress: '127.0.0.1',
      healthzPort: this.#ports.healthz,
      enableServer: false,
      failSwapOn: false,
      makeIPTablesUtilChains: false,
      // Groups of its own would stand beside those of the machine, outside of the lab's.
      cgroupsPerQOS: false,
      enforceNodeAllocatable: [],
      // How full the machine is, is no matter of a test.
      evictionHard: { 'memory.available': '0%' },
      imageGCHighThresholdPercent: 100,
      ...this.#config,
    };
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(config));
    const out = openSync(join(this.dir, 'daemon.log'), 'a');
    const args = [
      `--root-dir=${this.rootDir}`,
      `--cert-dir=${join(this.dir, 'pki')}`,
      `--config=${file}`,
      `--hostname-override=${NODE_NAME}`,
      ...this.#args,
    ];
    const child = spawn(o.program ?? join(project, 'bin/actorlet'), args, {
      stdio: ['ignore', out, out],
      // The kernel settings of this machine stay as they are.
      env: { ...process.env, ACTORLET_PROC_SYS: join(import.meta.dirname, 'lab/procSys') },
    });
    closeSync(out);
    this.#child = child;
    if (o.ready === false) return;
    await this.healthy();
  }

  async healthy(): Promise<void> {
    await this.wait('the daemon to be healthy', async () => (await this.healthz()) === 'ok', { timeoutMs: WAIT_TIMEOUT_MS });
  }

  async healthz(): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${this.#ports.healthz}/healthz`, { signal: AbortSignal.timeout(30_000) });
    return answer.text();
  }

  get pid(): number | undefined {
    return this.alive() ? this.#child?.pid : undefined;
  }

  alive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Ends the process with `signal` and gives its exit code; null after SIGKILL. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || !this.alive()) return child?.exitCode ?? null;
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
    const code = await ended;
    clearTimeout(late);
    return code;
  }

  /** Ends the process and removes its folder. Containers are the lab's to remove. */
  async dispose(): Promise<void> {
    await this.end('SIGKILL');
    // Volumes of pods that a failed test left.
    removeMounts(this.dir);
    rmSync(this.dir, { recursive: true, force: true });
  }

  log(): string {
    return readFileSync(join(this.dir, 'daemon.log'), { encoding: 'utf8', flag: 'a+' });
  }

  /** As `until`, with the end of the daemon's log in the error, and an early end when the daemon has died. */
  async wait<T>(what: string, probe: () => T | Promise<T>, o: { timeoutMs?: number; everyMs?: number } = {}) {
    const child = this.#child;
    try {
      return await until(what, probe, { timeoutMs: WAIT_TIMEOUT_MS, ...o });
    } catch (error) {
      const state = child === undefined || child.exitCode === null ? '' : `; the daemon ended with ${child.exitCode}`;
      const log = this.log().split('\n').slice(-25).join('\n');
      throw new Error(`${error instanceof Error ? error.message : String(error)}${state}\n${log}`);
    }
  }

  /** Writes beside the folder and renames into it, as a careful person does. */
  put(file: string, content: unknown): void {
    const temporary = join(this.dir, `put-${file}`);
    writeFileSync(temporary, typeof content === 'string' ? content : JSON.stringify(content));
    renameSync(temporary, join(this.manifests, file));
  }

  remove(file: string): void {
    unlinkSync(join(this.manifests, file));
  }

  get healthzPort(): number {
    return this.#ports.healthz;
  }

  get readOnlyUrl(): string {
    return `http://127.0.0.1:${this.#ports.readOnly}`;
  }

  async pods(o: { timeoutMs?: number } = {}): Promise<PodView[]> {
    const answer = await fetch(`${this.readOnlyUrl}/pods`, { signal: AbortSignal.timeout(o.timeoutMs ?? 5_000) });
    if (!answer.ok) throw new Error(`/pods: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { items: PodView[] | null }).items ?? [];
  }

  /** The pod of that manifest name (without the node's suffix), or undefined. */
  async pod(name: string): Promise<PodView | undefined> {
    return (await this.pods()).find((p) => p.metadata.name === `${name}-${NODE_NAME}`);
  }

  async why(query: string): Promise<Why> {
    return (await this.admin.json('/why', { pod: query })) as Why;
  }

  /** `actorctl` as a person runs it; rejects when its exit code is not 0. */
  async ctl(...args: string[]): Promise<string> {
    const { stdout } = await run(join(project, 'bin/actorctl'), [...args, '--socket', join(this.rootDir, 'actorlet.sock')]);
    return stdout;
  }

  async whyText(query: string): Promise<string> {
    return (await this.why(query)).lines.join('\n');
  }

  async events(name?: string): Promise<RecordedEvent[]> {
    const { events } = (await this.admin.json('/events')) as { events: RecordedEvent[] };
    return name === undefined ? events : events.filter((e) => e.pod?.name === `${name}-${NODE_NAME}`);
  }

  /** Waits for a phase, and gives the pod. */
  async phase(name: string, phase: string, timeoutMs = WAIT_TIMEOUT_MS): Promise<PodView> {
    return this.podWhere(name, `${name} to be ${phase}`, (p) => p.status.phase === phase, timeoutMs);
  }

  async podWhere(name: string, what: string, fits: (pod: PodView) => boolean, timeoutMs = WAIT_TIMEOUT_MS): Promise<PodView> {
    let last: PodView | undefined;
    try {
      return await this.wait(
        what,
        async () => {
          last = await this.pod(name);
          return last !== undefined && fits(last) && last;
        },
        { timeoutMs },
      );
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : String(error)}\n${JSON.stringify(last?.status)}`);
    }
  }
}

/** A daemon with folders and ports of its own, not started. `args`: more of its command line. */
export async function createDaemon(
  lab: Pick<Containerd, 'endpoint'>,
  config: Record<string, unknown> = {},
  args: readonly string[] = [],
): Promise<Daemon> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-e2e-'));
  return new Daemon(lab, { dir, ports: { readOnly: await freePort(), healthz: await freePort() }, config, args });
}
