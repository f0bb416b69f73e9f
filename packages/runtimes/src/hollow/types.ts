/** What a hollow runtime is given and what it shows. */

import type {
  ContainerConfig,
  CriContainerState,
  LinuxContainerResources,
  PodSandboxConfig,
  PodSandboxMetadata,
} from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { Clock, Cri, Rng } from '@actorlet/kubelet/ports/ports.ts';

import type { HollowLife } from './life.ts';
import type { Usage } from './usage.ts';

export interface ScriptedContainer {
  pod: PodSandboxMetadata;
  name: string;
  /** Restart count: 0 for the first. */
  attempt: number;
  /** As asked for in the pod. */
  image: string;
  config: ContainerConfig;
  /** Of the pod. */
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
}

/** A command that a person runs in a container, or its own output (`cmd` null). */
export interface StreamAsk {
  cmd: readonly string[] | null;
  tty: boolean;
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
}

export interface HollowOptions {
  clock: Clock;
  rng: Rng;
  /** Overrides annotations and images; asked once per CreateContainer. */
  script?(container: ScriptedContainer): Partial<HollowLife> | undefined;
  /** What a pull of this name finds; undefined = no such image, the pull fails with NotFound. Default: every name exists. */
  image?(name: string): HollowImage | undefined;
  /** Images present from the start. */
  images?: readonly string[];
  /** Images among these that the runtime says must stay. */
  pinned?: readonly string[];
  /** Answers ExecSync, after `delayMs`; default of each part: by the container's life, no output. Asked when the command begins. */
  exec?(
    container: ScriptedContainer,
    cmd: readonly string[],
  ): { exitCode: number; delayMs?: number; stdout?: Uint8Array; stderr?: Uint8Array } | undefined;
  /** True while the kernel holds its processes, which wait for a disk: no signal ends them. Default: never. */
  held?(container: ScriptedContainer): boolean;
  /** What it uses, unless the pod's annotations say so. Asked once per CreateContainer. */
  usage?(container: ScriptedContainer): Usage | undefined;
  /** Writes a line of a container into its log, at this path. Default: containers have no logs. */
  log?(path: string, line: { atMs: number; stream: 'stdout' | 'stderr'; text: string }): void;
  /** Gives the address at which Exec and Attach are answered. Default: they are not implemented. */
  stream?(container: ScriptedContainer, ask: StreamAsk): string;
  /** How long each call takes before it has its effect. Default 0 for all: the effect is immediate. */
  latencyMs?(method: CriMethod): number;
  /** How it makes cgroups; null: it does not say, as before containerd 2.0. Default CGROUPFS. */
  cgroupDriver?: 'SYSTEMD' | 'CGROUPFS' | null;
  /** Where writable layers lie. Default: with the images. */
  layerDir?: string;
  /** What it says that it can do for pods. Default: nothing, as runtimes do that know of no such things. */
  features?: Pick<CriResponse<'Status'>, 'runtimeHandlers' | 'features'>;
}

export interface HollowSandboxDump {
  id: string;
  uid: string;
  name: string;
  namespace: string;
  attempt: number;
  ready: boolean;
  ip: string;
  createdAtMs: number;
  /** Absent: none was asked for. */
  cgroupParent?: string;
}
export interface HollowContainerDump {
  id: string;
  sandboxId: string;
  podUid: string;
  name: string;
  attempt: number;
  state: CriContainerState;
  startedAtMs: number;
  finishedAtMs: number;
  exitCode: number;
  reason: string;
  /** Id of the image that it was made from. */
  imageRef: string;
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
  /** In force now. */
  resources: LinuxContainerResources;
}
export interface HollowDump {
  sandboxes: HollowSandboxDump[];
  containers: HollowContainerDump[];
  images: string[];
  /** Effects so far, over the runtime's whole life. */
  counts: { sandboxesRun: number; containersCreated: number; containersStarted: number; pulls: number };
}

/** A pod that this runtime's process had when it ended. */
export interface HollowHeld {
  config: PodSandboxConfig;
  runtimeHandler: string;
  /** '': none. */
  ip: string;
  createdAtMs: number;
  containers: readonly HollowHeldContainer[];
}
export interface HollowHeldContainer {
  id: string;
  /** It names the image as the pod does. */
  config: ContainerConfig;
  state: 'CONTAINER_RUNNING' | 'CONTAINER_EXITED';
  startedAtMs: number;
  /** 0: not yet. */
  finishedAtMs: number;
  exitCode: number;
  /** '': by exit code. */
  reason: string;
}

/** Itself a {@link Cri}; `connect()` gives further clients of the same runtime, each with its own streams and calls. */
export interface HollowRuntime extends Cri {
  connect(): Cri;
  dump(): HollowDump;
  /** What its running containers use now, by their curves. */
  used(): { cores: number; memoryBytes: number };
  /** Ends a running container from outside, as a crash, an OOM kill or `kill` would. False when it is not running. */
  exit(containerId: string, how: { exitCode: number; reason?: string }): boolean;
  /** What Status answers from now on. */
  setCondition(type: 'RuntimeReady' | 'NetworkReady', ok: boolean, reason: string): void;
  /** Ends every hint stream, as a restarted runtime does. Containers live on. */
  dropStreams(): void;
  /** Ends every call that takes its time: it has no further effect, as when the machine's power fails. */
  dropCalls(): void;
  /**
   * Before anything else is asked of it: has these pods as they were, with the same ids of containers, and what is left of their lives.
   * @returns those that it cannot have, and why not.
   */
  hold(pods: readonly HollowHeld[]): { pod: HollowHeld; why: string }[];
}

/** What an image name is worth in this world. */
export interface HollowImage {
  /** Present without a pull. Default false. */
  present?: boolean;
  /** Default 1 MiB. */
  sizeBytes?: number;
  /** Life of every container made from it, unless annotations or the script say otherwise. */
  life?: Partial<HollowLife>;
}
