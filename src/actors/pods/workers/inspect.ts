/** One pod as the runtime holds it now: sandboxes, containers, termination messages. Reads only. */
import { CRI_LABELS, type CriContainerStatus, type PodSandboxStatus } from '../../../machines/cri.ts';
import { toRuntimeStatus } from '../../../machines/pods/runtimeStatus.ts';
import { chooseTerminationMessage, TERMINATION_LOG_BYTES_MAX } from '../../../machines/pods/terminationMessage.ts';
import type { PodRuntimeStatus, RuntimeContainer } from '../../../machines/pods/types.ts';
import { CriError, type HostFs, type Ports } from '../../kernel/ports.ts';
import type { CriClient } from '../../runtime/client.ts';

/** gRPC NotFound: gone between the list and the question, so not there (pod lifecycle 4.1, since 1.26). */
const NOT_FOUND = 5;

/** Exited containers never change: what was read of them once is kept for the worker's life, keyed by container id. */
export class Inspector {
  readonly cri: CriClient;
  readonly ports: Ports;
  private exited = new Map<string, CriContainerStatus>();
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
      Promise.all(sandboxList.items.map((s) => this.sandbox(s.id, signal))),
      Promise.all(containerList.containers.map((c) => this.container(c.id, signal))),
    ]);
    const status = toRuntimeStatus(uid, sandboxes.filter(present), containers.filter(present), observedAtMonoMs);
    this.forgetExcept(new Set(containerList.containers.map((c) => c.id)));
    return { ...status, containers: await Promise.all(status.containers.map((c) => this.withMessage(c))) };
  }

  private async sandbox(id: string, signal: AbortSignal): Promise<PodSandboxStatus | null> {
    try {
      return (await this.cri.read('PodSandboxStatus', { podSandboxId: id }, { signal })).status;
    } catch (error) {
      if (error instanceof CriError && error.code === NOT_FOUND) return null;
      throw error;
    }
  }

  private async container(id: string, signal: AbortSignal): Promise<CriContainerStatus | null> {
    const known = this.exited.get(id);
    if (known !== undefined) return known;
    try {
      const { status } = await this.cri.read('ContainerStatus', { containerId: id }, { signal });
      if (status?.state === 'CONTAINER_EXITED') this.exited.set(id, status);
      return status;
    } catch (error) {
      if (error instanceof CriError && error.code === NOT_FOUND) return null;
      throw error;
    }
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
    for (const id of this.exited.keys()) if (!ids.has(id)) this.exited.delete(id);
    for (const id of this.messages.keys()) if (!ids.has(id)) this.messages.delete(id);
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
