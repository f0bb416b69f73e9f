/** Every unary CRI call this node makes. */

import type {
  AuthConfig,
  ContainerConfig,
  CriContainer,
  CriContainerState,
  CriContainerStatus,
  Image,
  ImageSpec,
  LinuxContainerResources,
  PodSandbox,
  PodSandboxConfig,
  PodSandboxState,
  PodSandboxStatus,
  StringMap,
} from './cri.ts';
import type { CriContainerStats, CriMetricDescriptor, CriSandboxMetrics, CriSandboxStats, FilesystemUsage } from './criStats.ts';

interface RuntimeCondition {
  type: string;
  status: boolean;
  reason: string;
  message: string;
}
type Empty = Record<never, never>;

/** Request and response by RPC name. */
export interface CriCalls {
  Version: { req: { version: string }; res: { version: string; runtimeName: string; runtimeVersion: string; runtimeApiVersion: string } };
  Status: {
    req: { verbose?: boolean };
    /** Handlers are named by runtimes that know of them. */
    res: {
      status: { conditions: RuntimeCondition[] } | null;
      info: StringMap;
      runtimeHandlers?: readonly { name: string; features?: { recursiveReadOnlyMounts: boolean; userNamespaces: boolean } | null }[];
      features?: { supplementalGroupsPolicy: boolean } | null;
    };
  };
  RuntimeConfig: { req: Empty; res: { linux: { cgroupDriver: 'SYSTEMD' | 'CGROUPFS' } | null } };
  UpdateRuntimeConfig: { req: { runtimeConfig: { networkConfig: { podCidr: string } } }; res: Empty };
  RunPodSandbox: { req: { config: PodSandboxConfig; runtimeHandler?: string }; res: { podSandboxId: string } };
  StopPodSandbox: { req: { podSandboxId: string }; res: Empty };
  RemovePodSandbox: { req: { podSandboxId: string }; res: Empty };
  PodSandboxStatus: { req: { podSandboxId: string; verbose?: boolean }; res: { status: PodSandboxStatus | null; info: StringMap } };
  ListPodSandbox: {
    req: { filter?: { id?: string; state?: { state: PodSandboxState }; labelSelector?: StringMap } };
    res: { items: PodSandbox[] };
  };
  CreateContainer: {
    req: { podSandboxId: string; config: ContainerConfig; sandboxConfig: PodSandboxConfig };
    res: { containerId: string };
  };
  StartContainer: { req: { containerId: string }; res: Empty };
  StopContainer: { req: { containerId: string; timeout: number | string }; res: Empty };
  RemoveContainer: { req: { containerId: string }; res: Empty };
  ListContainers: {
    req: { filter?: { id?: string; state?: { state: CriContainerState }; podSandboxId?: string; labelSelector?: StringMap } };
    res: { containers: CriContainer[] };
  };
  ContainerStatus: { req: { containerId: string; verbose?: boolean }; res: { status: CriContainerStatus | null; info: StringMap } };
  UpdateContainerResources: { req: { containerId: string; linux?: LinuxContainerResources }; res: Empty };
  /** What the sandbox may have in all. A runtime that refuses it refuses the change. */
  UpdatePodSandboxResources: {
    req: { podSandboxId: string; overhead?: LinuxContainerResources; resources: LinuxContainerResources };
    res: Empty;
  };
  /** `timeout`: seconds; 0 = the runtime's own. */
  CheckpointContainer: { req: { containerId: string; location: string; timeout: number | string }; res: Empty };
  ReopenContainerLog: { req: { containerId: string }; res: Empty };
  ExecSync: {
    req: { containerId: string; cmd: string[]; timeout: number | string };
    res: { stdout: Uint8Array; stderr: Uint8Array; exitCode: number };
  };
  Exec: {
    req: { containerId: string; cmd: string[]; tty: boolean; stdin: boolean; stdout: boolean; stderr: boolean };
    res: { url: string };
  };
  Attach: { req: { containerId: string; stdin: boolean; tty: boolean; stdout: boolean; stderr: boolean }; res: { url: string } };
  PortForward: { req: { podSandboxId: string; port: number[] }; res: { url: string } };
  ContainerStats: { req: { containerId: string }; res: { stats: CriContainerStats | null } };
  ListContainerStats: {
    req: { filter?: { id?: string; podSandboxId?: string; labelSelector?: StringMap } };
    res: { stats: CriContainerStats[] };
  };
  PodSandboxStats: { req: { podSandboxId: string }; res: { stats: CriSandboxStats | null } };
  ListPodSandboxStats: { req: { filter?: { id?: string; labelSelector?: StringMap } }; res: { stats: CriSandboxStats[] } };
  ListMetricDescriptors: { req: Empty; res: { descriptors: CriMetricDescriptor[] } };
  ListPodSandboxMetrics: { req: Empty; res: { podMetrics: CriSandboxMetrics[] } };
  ListImages: { req: { filter?: { image: ImageSpec } }; res: { images: Image[] } };
  ImageStatus: { req: { image: ImageSpec; verbose?: boolean }; res: { image: Image | null; info: StringMap } };
  PullImage: { req: { image: ImageSpec; auth?: AuthConfig; sandboxConfig?: PodSandboxConfig }; res: { imageRef: string } };
  RemoveImage: { req: { image: ImageSpec }; res: Empty };
  ImageFsInfo: { req: Empty; res: { imageFilesystems: FilesystemUsage[]; containerFilesystems: FilesystemUsage[] } };
}
export type CriMethod = keyof CriCalls;
export type CriRequest<M extends CriMethod> = CriCalls[M]['req'];
export type CriResponse<M extends CriMethod> = CriCalls[M]['res'];
