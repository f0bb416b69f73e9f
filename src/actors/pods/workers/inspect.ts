/** One pod as the runtime holds it now: sandboxes, containers, termination messages. Reads only. */
import { CRI_LABELS, type CriContainer, type CriContainerStatus, type PodSandbox, type PodSandboxStatus } from '../../../machines/cri.ts';
import { toRuntimeStatus } from '../../../machines/pods/runtimeStatus.ts';
import { chooseTerminationMessage, TERMINATION_LOG_BYTES_MAX } from '../../../machines/pods/terminationMessage.ts';
import type { PodRuntimeStatus, RuntimeContainer } from '../../../machines/pods/types.ts';
import { CriError, type HostFs, type Ports } from '../../kernel/ports.ts';
import type { CriClient } from '../../runtime/client.ts';

/** gRPC NotFound: gone between the list and the question, so not there (pod lifecycle 4.1, since 1.26). */
const NOT_FOUND = 5;

/**
 * What is ready or running stays as it was read for as long as the listing calls it so, addresses and start times
 * included; but once in a while it is read again, for what a listing does not show (a network that went away).
 */
const KEPT_MS_MAX = 10_000;

interface Kept<T> {
  status: T;
  readMonoMs: number;
}

/** Exited containers never change: what was read of them once is kept for the worker's life, keyed by container id. */
export class Inspector {
  readonly cri: CriClient;
  readonly ports: Ports;
  private exited = new Map<string, CriContainerStatus>();
  private running = new Map<string, Kept<CriContainerStatus>>();
  private ready = new Map<string, Kept<PodSandboxStatus>>();
  private messages = new Map<string, string>();

  constructor(cri: CriClient, ports: Ports) {
    this.cri = cri;
    this.ports = ports;
  }

  async inspect(uid: string, signal: AbortSignal): Promise<PodRuntimeStatus> {
    const observedAtMonoMs = this.ports.clock.monoMs();
    const filter = { labelSelector: { [CRI_LABELS.podUid]: uid } };
    const [sandboxList, containerList] = await Promise.all([
      this.cri.read('ListPodSandbox', { filter }, { signal }),
      this.cri.read('ListContainers', { filter }, { signal }),
    ]);
    const [sandboxes, containers] = await Promise.all([
      Promise.all(sandboxList.items.map((s) => this.sandbox(s, signal))),
      Promise.all(containerList.containers.map((c) => this.container(c, signal))),
    ]);
    const status = toRuntimeStatus(uid, sandboxes.filter(present), containers.filter(present), observedAtMonoMs);
    this.forgetExcept(new Set([...sandboxList.items, ...containerList.containers].map((x) => x.id)));
    return { ...status, containers: await Promise.all(status.containers.map((c) => this.withMessage(c))) };
  }

  private async sandbox({ id, state }: PodSandbox, signal: AbortSignal): Promise<PodSandboxStatus | null> {
    const known = state === 'SANDBOX_READY' ? this.recent(this.ready.get(id)) : undefined;
    if (known !== undefined) return known;
    try {
      const { status } = await this.cri.read('PodSandboxStatus', { podSandboxId: id }, { signal });
      if (status?.state === 'SANDBOX_READY' && status.network?.ip) this.ready.set(id, this.kept(status));
      else this.ready.delete(id);
      return status;
    } catch (error) {
      if (error instanceof CriError && error.code === NOT_FOUND) return null;
      throw error;
    }
  }

  private async container({ id, state }: CriContainer, signal: AbortSignal): Promise<CriContainerStatus | null> {
    const known = this.exited.get(id) ?? (state === 'CONTAINER_RUNNING' ? this.recent(this.running.get(id)) : undefined);
    if (known !== undefined) return known;
    try {
      const { status } = await this.cri.read('ContainerStatus', { containerId: id }, { signal });
      this.running.delete(id);
      if (status?.state === 'CONTAINER_EXITED') this.exited.set(id, status);
      else if (status?.state === 'CONTAINER_RUNNING') this.running.set(id, this.kept(status));
      return status;
    } catch (error) {
      if (error instanceof CriError && error.code === NOT_FOUND) return null;
      throw error;
    }
  }

  private kept<T>(status: T): Kept<T> {
    return { status, readMonoMs: this.ports.clock.monoMs() };
  }
  private recent<T>(kept: Kept<T> | undefined): T | undefined {
    return kept !== undefined && this.ports.clock.monoMs() - kept.readMonoMs < KEPT_MS_MAX ? kept.status : undefined;
  }

  private async withMessage(c: RuntimeContainer): Promise<RuntimeContainer> {
    if (c.state !== 'exited') return c;
    const known = this.messages.get(c.id);
    if (known !== undefined) return { ...c, message: known };
    const fileText =
      c.terminationMessageHostPath === null ? null : await tail(this.ports.fs, c.terminationMessageHostPath, TERMINATION_LOG_BYTES_MAX);
    const message = await chooseTerminationMessage(c, fileText, (bytesMax) => tail(this.ports.fs, c.logPath, bytesMax));
    this.messages.set(c.id, message);
    return { ...c, message };
  }

  private forgetExcept(ids: ReadonlySet<string>): void {
    for (const kept of [this.exited, this.running, this.ready, this.messages])
      for (const id of kept.keys()) if (!ids.has(id)) kept.delete(id);
  }
}

function present<T>(value: T | null): value is T {
  return value !== null;
}

/** Missing file: null. Any other error is the text, as the reference shows it to the user (pod lifecycle 5.15). */
async function tail(fs: HostFs, path: string, bytesMax: number): Promise<string | null> {
  if (path === '') return null;
  try {
    return new TextDecoder().decode(await fs.readTail(path, bytesMax));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    return error instanceof Error ? error.message : String(error);
  }
}
