/** What the process runtime is given and what it shows. */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { PodSandboxConfig, RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { OciPlan } from '../oci/rows.ts';
import type { ContainerPlan } from './container/plan.ts';
import type { Supervised } from './container/supervise.ts';
import type { Isolation } from './probe.ts';
import type { Layout, StoredContainer, StoredSandbox } from './store/store.ts';
import type { Asked, Size } from './streaming/remote.ts';

type ContainerConfig = CriRequest<'CreateContainer'>['config'];

export interface ExecAsk extends Asked {
  container: Supervised;
  cmd: readonly string[];
}
export interface AttachAsk extends Asked {
  container: Supervised;
  /** Null for a container without standard input and terminal. */
  input: ContainerInput | null;
}
/** Standard input of a container, which outlives the runtime. */
export interface ContainerInput {
  /** A FIFO to write to. */
  file: string;
  tty: boolean;
  /** The first client's input is all of it. */
  once: boolean;
  resize(size: Size): Promise<void>;
  /** The container reads its end, after what was written. */
  end(): void;
}
export type Offer =
  | { kind: 'exec'; ask: ExecAsk }
  | { kind: 'attach'; ask: AttachAsk }
  /** `ports`: those that a client over WebSocket named beforehand. */
  | { kind: 'portForward'; ports: readonly number[]; open(port: number): Promise<Duplex> };
/** Null where no pod has the address. Rejects when nobody listens at the port. */
export type Tunnel = (ip: string, port: number) => Promise<Duplex | null>;

export interface StreamingServer {
  /** A URL good for one use within a minute: `http+unix://<socket path, percent-encoded>/<kind>/<token>`. */
  offer(offer: Offer): string;
  /** What answers CONNECT with the address of a pod: a proxy into its network. */
  tunnels(open: Tunnel): void;
  close(): void;
}

export interface RuntimeDeps {
  layout: Layout;
  isolation: Isolation;
  streaming: StreamingServer;
  env: { path: string; home: string };
  nodePath: string;
  /** Set with the kind `oci`. */
  oci?: Oci | undefined;
  /** Pid of the process that held the namespaces of containers, and has ended; null: none. */
  lostHolder: number | null;
  log(level: 'info' | 'warn', message: string): void;
}

export interface RuntimeEvent {
  kind: Extract<RuntimeHint['kind'], 'created' | 'started' | 'stopped' | 'deleted'>;
  id: string;
  sandbox: StoredSandbox | undefined;
  containers: StoredContainer[];
}

/** The calls that this runtime serves; others are UNIMPLEMENTED. */
export type Served = Exclude<
  CriMethod,
  | 'CheckpointContainer'
  | 'UpdateContainerResources'
  | 'UpdatePodSandboxResources'
  | 'PodSandboxStats'
  | 'ListPodSandboxStats'
  | 'ListMetricDescriptors'
  | 'ListPodSandboxMetrics'
>;
export type ProcessHandlers = {
  [M in Served]: (req: CriRequest<M>, signal: AbortSignal) => CriResponse<M> | Promise<CriResponse<M>>;
};
export interface ProcessRuntime {
  handlers: ProcessHandlers;
  onEvent(fn: (e: RuntimeEvent) => void): () => void;
  /** Lets go of everything; containers live on. */
  close(): Promise<void>;
}

/** What is about images. */
export type ImageHandlers = Pick<ProcessHandlers, 'ListImages' | 'ImageStatus' | 'PullImage' | 'RemoveImage' | 'ImageFsInfo'>;

export interface BesideAsk {
  cmd: readonly string[];
  tty: boolean;
  /** Of its terminal, where it is known. */
  size: Size | null;
}
/** A command to run beside a container's own. */
export interface Beside {
  file: string;
  args: string[];
  /** Its output begins with this once its terminal takes input; '' if it takes input at once. */
  opens: string;
  /** Of its terminal. */
  resize(size: Size): Promise<void>;
  /** Cleans up; why the command could not be run, '' when it ran. */
  ended(): string;
}

/** What the kind `oci` does with images that are not built in (packages/runtimes/src/oci). */
export interface Oci {
  about: { programs: string; cgroups: string };
  /** Of pods that start now. `message` '': they have one, with a way out. */
  network(): { reason: string; message: string };
  /** For images that are not `builtIn`, which `others` answers for. `usedBy`: a container of an image. */
  imageHandlers(o: { others: ImageHandlers; builtIn(ref: string): boolean; usedBy(imageId: string): string | undefined }): ImageHandlers;
  /** Every image of an archive; `name` instead of what the archive says, unless it is ''. */
  load(path: string, name: string, signal: AbortSignal): Promise<{ id: string; tags: string[] }[]>;
  hasImage(ref: string): boolean;
  /** Fills in the row's address and namespaces; `changed` when its network has come up, or failed, later. */
  startPod(row: StoredSandbox, config: PodSandboxConfig, changed: () => void): Promise<void>;
  /** Before a container starts. */
  networkUp(sandboxId: string): Promise<void>;
  stopPod(row: StoredSandbox): void;
  isPodUp(row: StoredSandbox): boolean;
  plan(input: { id: string; config: ContainerConfig; sandbox: StoredSandbox; innerPid(id: string): number | null }): {
    plan: ContainerPlan;
    imageId: string;
  };
  /** The container's folder is there. */
  prepare(plan: OciPlan, id: string): void;
  beside(row: StoredContainer, ask: BesideAsk): Beside;
  /** Null for a container that has neither standard input nor a terminal. */
  input(row: StoredContainer, innerPid: () => number | null): ContainerInput | null;
  ended(plan: OciPlan): { oomKilled: boolean };
  /** Null where no cgroup says it. */
  usage(plan: OciPlan): { cpuNs: number; bytes: number; workingBytes: number } | null;
  drop(plan: OciPlan): void;
  /** A connection into the pod's network; null for a pod on the host's. */
  dial(row: StoredSandbox, port: number): Promise<Socket> | null;
  close(): Promise<void>;
}
