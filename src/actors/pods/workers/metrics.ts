/** The kubelet's metrics of pods, sandboxes and containers (boot-and-node 8.5). */

import type { Pod } from '../../../machines/kube/types.ts';
import type { ContainerKind } from '../../../machines/pods/workers/container/startJob.ts';
import { DEFAULT_SECONDS as SECONDS } from '../../../machines/text/buckets.ts';
import type { Metrics } from '../../../ports/ports.ts';

const CONTAINERS = [1, 2, 4, 8, 16];
/** Labels of the reference; a sidecar is one of the init containers there. */
const CONTAINER_TYPES: Readonly<Record<ContainerKind, string>> = {
  regular: 'container',
  init: 'init_container',
  ephemeral: 'ephemeral_container',
};
export type Operation = 'create' | 'update' | 'sync' | 'terminated';

export interface WorkerMetrics {
  /** The first worker of a pod began, so long after the pod was first seen. */
  workerStarted(pod: Pod, seconds: number): void;
  /** From a look at the runtime until the pod was as wanted, or gone. */
  round(operation: Operation, seconds: number): void;
  sandbox(handler: string, seconds: number, failure: string | null): void;
  containerStarts(kind: ContainerKind): void;
  containerFailed(kind: ContainerKind, reason: string): void;
  /** A pod with users of its own: a start of it began, or failed. */
  userNamespace(failed: boolean): void;
  /** A container was created, or could not be; it mounts so many images. */
  imageVolumes(count: number, outcome: 'mounted' | 'failed' | 'other'): void;
  httpFallback(): void;
  sleepCut(): void;
  /** A change of resources was carried out, or one of its steps failed. */
  resized(ms: number, success: boolean): void;
}
/** Milliseconds. */
const RESIZE_MS = [10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000];

/** One set serves all pods of a node. */
export function workerMetrics(metrics: Metrics): WorkerMetrics {
  const workerStart = metrics.histogram(
    'kubelet_pod_worker_start_duration_seconds',
    'Seconds from the first sight of a pod until its worker starts',
    SECONDS,
  );
  const worker = metrics.histogram(
    'kubelet_pod_worker_duration_seconds',
    'Seconds that one look at a pod took, by what it was for: create, update, sync or terminated',
    SECONDS,
    ['operation_type'],
  );
  const perPod = metrics.histogram('kubelet_containers_per_pod_count', 'Containers of a pod', CONTAINERS);
  const runSandbox = metrics.histogram(
    'kubelet_run_podsandbox_duration_seconds',
    'Seconds that a sandbox took to run, by runtime handler',
    SECONDS,
    ['runtime_handler'],
  );
  const sandboxErrors = metrics.counter('kubelet_run_podsandbox_errors_total', 'Sandboxes that could not be run, by runtime handler', [
    'runtime_handler',
  ]);
  const pods = metrics.counter('kubelet_started_pods_total', 'Pods started');
  const podErrors = metrics.counter('kubelet_started_pods_errors_total', 'Starts of pods that failed');
  const starts = metrics.counter('kubelet_started_containers_total', 'Containers started', ['container_type']);
  const startErrors = metrics.counter('kubelet_started_containers_errors_total', 'Starts of containers that failed', [
    'container_type',
    'code',
  ]);
  const rare = rareMetrics(metrics);
  return {
    ...rare,
    workerStarted(pod, seconds) {
      workerStart.observe(Math.max(0, seconds));
      perPod.observe(pod.spec.containers.length);
    },
    round: (operation, seconds) => worker.observe(seconds, { operation_type: operation }),
    sandbox(handler, seconds, failure) {
      pods.inc();
      runSandbox.observe(seconds, { runtime_handler: handler });
      if (failure === null) return;
      podErrors.inc();
      sandboxErrors.inc({ runtime_handler: handler });
    },
    containerStarts: (kind) => starts.inc({ container_type: CONTAINER_TYPES[kind] }),
    containerFailed: (kind, reason) => startErrors.inc({ container_type: CONTAINER_TYPES[kind], code: reason }),
  };
}

function rareMetrics(metrics: Metrics): Pick<WorkerMetrics, 'userNamespace' | 'imageVolumes' | 'httpFallback' | 'sleepCut' | 'resized'> {
  const counter = (name: string, help: string) => metrics.counter(`kubelet_${name}`, help);
  const users = counter('started_user_namespaced_pods_total', 'Starts of pods with users of their own (hostUsers: false)');
  const userErrors = counter(
    'started_user_namespaced_pods_errors_total',
    'Starts of pods with users of their own in which the sandbox or a container failed',
  );
  const requested = counter('image_volume_requested_total', 'Volumes of images that containers were to mount');
  const mounted = counter('image_volume_mounted_succeed_total', 'Volumes of images in containers that were created');
  const unmounted = counter('image_volume_mounted_errors_total', 'Volumes of images that the runtime could not mount');
  const fallbacks = counter(
    'lifecycle_handler_http_fallbacks_total',
    'Lifecycle hooks over HTTPS whose server answered without TLS and then took plain HTTP',
  );
  const sleeps = counter('sleep_action_terminated_early_total', 'Sleeps of lifecycle hooks that the end of the grace period cut short');
  const resizes = metrics.histogram(
    'kubelet_pod_resize_duration_milliseconds',
    'Milliseconds in which a change of resources was carried out, or failed',
    RESIZE_MS,
    ['success'],
  );
  return {
    resized: (ms, success) => resizes.observe(ms, { success: String(success) }),
    userNamespace: (failed) => (failed ? userErrors : users).inc(),
    imageVolumes(count, outcome) {
      requested.inc(undefined, count);
      if (outcome === 'mounted') mounted.inc(undefined, count);
      if (outcome === 'failed') unmounted.inc(undefined, count);
    },
    httpFallback: () => fallbacks.inc(),
    sleepCut: () => sleeps.inc(),
  };
}
