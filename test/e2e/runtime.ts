/** What the runtime itself says about pods: the truth that the daemon's own reports are compared with. */
import { CRI_ANNOTATIONS, CRI_LABELS, type CriContainer, type CriContainerStatus, type PodSandbox } from '../../src/machines/wire/cri.ts';
import { NODE_NAME } from './daemon.ts';
import type { Containerd } from './lab/containerd.ts';
import { call } from './lab/pods.ts';
import { until } from './lab/ports.ts';

export const ms = (nanos: string): number => Number(BigInt(nanos) / 1000n) / 1000;
const label = (of: { labels: Record<string, string> }, key: keyof typeof CRI_LABELS): string => of.labels[CRI_LABELS[key]] ?? '';

export interface Held {
  pod: string;
  uid: string;
  container: string;
  id: string;
  sandboxId: string;
  running: boolean;
  restartCount: number;
}

function held(c: CriContainer): Held {
  return {
    pod: label(c, 'podName').replace(new RegExp(`-${NODE_NAME}$`), ''),
    uid: label(c, 'podUid'),
    container: label(c, 'containerName'),
    id: c.id,
    sandboxId: c.podSandboxId,
    running: c.state === 'CONTAINER_RUNNING',
    restartCount: Number(c.annotations[CRI_ANNOTATIONS.restartCount] ?? Number.NaN),
  };
}

/** Every container, of one pod (by manifest name) or of all, newest first. */
export async function containers(lab: Containerd, pod?: string): Promise<Held[]> {
  const listed = (await call(lab.cri, 'ListContainers', {})).containers;
  const sorted = [...listed].sort((a, b) => (BigInt(a.createdAt) < BigInt(b.createdAt) ? 1 : -1)).map(held);
  return pod === undefined ? sorted : sorted.filter((c) => c.pod === pod);
}
export async function sandboxes(lab: Containerd, pod?: string): Promise<(PodSandbox & { ready: boolean })[]> {
  const { items } = await call(lab.cri, 'ListPodSandbox', {});
  return items
    .filter((s) => pod === undefined || label(s, 'podName') === `${pod}-${NODE_NAME}`)
    .map((s) => ({ ...s, ready: s.state === 'SANDBOX_READY' }));
}

export async function statusOf(lab: Containerd, id: string): Promise<CriContainerStatus> {
  const { status } = await call(lab.cri, 'ContainerStatus', { containerId: id });
  if (status === null) throw new Error(`the runtime gives no status of container ${id}`);
  return status;
}

/**
 * Watches every instance of one container of one pod and keeps what was last seen of each, so that instances removed
 * meanwhile can still be asked about. By attempt.
 */
export class Instances {
  readonly lab: Containerd;
  readonly pod: string;
  readonly container: string;
  readonly seen = new Map<number, CriContainerStatus>();

  constructor(lab: Containerd, pod: string, container = 'main') {
    this.lab = lab;
    this.pod = pod;
    this.container = container;
  }

  async look(): Promise<void> {
    for (const c of await containers(this.lab, this.pod)) {
      if (c.container !== this.container || this.seen.get(c.restartCount)?.state === 'CONTAINER_EXITED') continue;
      try {
        this.seen.set(c.restartCount, await statusOf(this.lab, c.id));
      } catch {
        // Removed between the list and the question.
      }
    }
  }

  /** Waits until the instance of that attempt was seen running or exited. */
  async of(attempt: number, state: 'CONTAINER_RUNNING' | 'CONTAINER_EXITED', timeoutMs = 30_000): Promise<CriContainerStatus> {
    return until(
      `${this.pod}/${this.container} attempt ${attempt} to be ${state}`,
      async () => {
        await this.look();
        const status = this.seen.get(attempt);
        const fits = status?.state === state || (state === 'CONTAINER_RUNNING' && status?.state === 'CONTAINER_EXITED');
        return fits && status;
      },
      { timeoutMs, everyMs: 30 },
    );
  }
}

export interface ExecResult {
  code: number;
  out: string;
  err: string;
}
/** Runs a shell line inside a container, through the runtime. */
export async function exec(lab: Containerd, id: string, script: string): Promise<ExecResult> {
  const r = await call(lab.cri, 'ExecSync', { containerId: id, cmd: ['sh', '-c', script], timeout: 60 });
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8').trim();
  return { code: r.exitCode, out: text(r.stdout), err: text(r.stderr) };
}

/** Process id, on the host, of a container's first process. */
export async function hostPid(lab: Containerd, id: string): Promise<number> {
  const { info } = await call(lab.cri, 'ContainerStatus', { containerId: id, verbose: true });
  const { pid } = JSON.parse(info.info ?? '{}') as { pid?: number };
  if (pid === undefined) throw new Error(`the runtime gives no process id of container ${id}`);
  return pid;
}

/** The id of a container that runs. */
export async function idOf(lab: Containerd, pod: string, container = 'main'): Promise<string> {
  const id = (await containers(lab, pod)).find((c) => c.container === container && c.running)?.id;
  if (id === undefined) throw new Error(`${pod}/${container} is not running`);
  return id;
}

/** Running containers as `pod/container -> id#restartCount`; two instances of one name make the test fail. */
export async function running(lab: Containerd): Promise<Record<string, string>> {
  const result: Record<string, string> = {};
  for (const c of await containers(lab)) {
    if (!c.running) continue;
    const key = `${c.pod}/${c.container}`;
    if (result[key] !== undefined) throw new Error(`${key} runs twice: ${result[key]} and ${c.id}`);
    result[key] = `${c.id}#${c.restartCount}`;
  }
  return result;
}
