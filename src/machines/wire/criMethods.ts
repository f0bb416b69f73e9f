/**
 * What the node knows of each CRI call, in one table: its service, the kubelet's metric verb, whether it changes
 * anything, and which deadline rule it follows. Pure data.
 */
import type { CriMethod } from './criCalls.ts';

/**
 * How a call's deadline follows from `runtimeRequestTimeout` (CRI reference 13.1): `request` = that time, `sandbox` =
 * twice that, `stop` and `exec` = that plus the request's own seconds, `none` = only cancellable.
 */
type DeadlineRule = 'request' | 'sandbox' | 'stop' | 'exec' | 'none';

export interface MethodFacts {
  service: 'runtime' | 'image';
  /** The kubelet's `operation_type`. */
  verb: string;
  /** Changes the runtime: such a call needs a fence, and may have an unknown outcome. */
  mutating: boolean;
  deadline: DeadlineRule;
  /** "Not found" means that the wanted end is reached (stop and remove calls are repeated). */
  notFoundIsDone: boolean;
}

const runtime = (verb: string, o: Partial<MethodFacts> = {}): MethodFacts => ({
  service: 'runtime',
  verb,
  mutating: false,
  deadline: 'request',
  notFoundIsDone: false,
  ...o,
});
const image = (verb: string, o: Partial<MethodFacts> = {}): MethodFacts => ({ ...runtime(verb, o), service: 'image' });

export const CRI_METHODS: Readonly<Record<CriMethod, MethodFacts>> = {
  Version: runtime('version'),
  Status: runtime('status'),
  RuntimeConfig: runtime('runtime_config'),
  UpdateRuntimeConfig: runtime('update_runtime_config', { mutating: true }),
  RunPodSandbox: runtime('run_podsandbox', { mutating: true, deadline: 'sandbox' }),
  StopPodSandbox: runtime('stop_podsandbox', { mutating: true, notFoundIsDone: true }),
  RemovePodSandbox: runtime('remove_podsandbox', { mutating: true, notFoundIsDone: true }),
  PodSandboxStatus: runtime('podsandbox_status'),
  ListPodSandbox: runtime('list_podsandbox'),
  CreateContainer: runtime('create_container', { mutating: true }),
  StartContainer: runtime('start_container', { mutating: true }),
  StopContainer: runtime('stop_container', { mutating: true, deadline: 'stop', notFoundIsDone: true }),
  RemoveContainer: runtime('remove_container', { mutating: true, notFoundIsDone: true }),
  ListContainers: runtime('list_containers'),
  ContainerStatus: runtime('container_status'),
  UpdateContainerResources: runtime('update_container', { mutating: true }),
  UpdatePodSandboxResources: runtime('update_podsandbox_resources', { mutating: true }),
  // It stops nothing for good and may take its time: it is not fenced, so it never delays a stop.
  CheckpointContainer: runtime('checkpoint_container'),
  // It changes no container's life: it waits for no stop, and none waits for it.
  ReopenContainerLog: runtime('reopen_container_log'),
  // Exec runs a process but never changes a container's life, so it is not fenced: a slow hook must not delay a stop.
  ExecSync: runtime('exec_sync', { deadline: 'exec' }),
  Exec: runtime('exec'),
  Attach: runtime('attach'),
  PortForward: runtime('port_forward'),
  ContainerStats: runtime('container_stats'),
  ListContainerStats: runtime('list_container_stats'),
  PodSandboxStats: runtime('podsandbox_stats'),
  ListPodSandboxStats: runtime('list_podsandbox_stats'),
  ListMetricDescriptors: runtime('list_metric_descriptors'),
  ListPodSandboxMetrics: runtime('list_podsandbox_metrics'),
  ListImages: image('list_images'),
  ImageStatus: image('image_status'),
  // A pull belongs to no pod's fence: it is shared between pods and never delays a stop.
  PullImage: image('pull_image', { deadline: 'none' }),
  RemoveImage: image('remove_image', { notFoundIsDone: true }),
  ImageFsInfo: image('image_fs_info'),
};
