/** What a worker does, and how long it took: the kubelet's metrics of pods, sandboxes and containers (boot-and-node 8.5). */

import type { Pod } from '../../../machines/kube/types.ts';
import { mountedImages } from '../../../machines/pod/volumes/volumes.ts';
import type { ActOutcome, Cleared, ContainerKind, ImageUser, StartJob } from '../../../machines/pods/workers/container/containerMachine.ts';
import { POST_START_ERROR } from '../../../machines/pods/workers/container/containerSetup.ts';
import type { SandboxInput, WorkerContext, WorkerReport } from '../../../machines/pods/workers/context.ts';
import type { Update } from '../../../machines/pods/workers/resizeMachine.ts';
import type { ImageResult } from '../../../machines/runtime/imagePuller/messages.ts';
import { DEFAULT_SECONDS as SECONDS } from '../../../machines/text/buckets.ts';
import type { Metrics } from '../../../ports/ports.ts';
import { HTTP_FALLBACK } from './container/hooks.ts';
import { type EffectOptions, Effects } from './effects.ts';

const CONTAINERS = [1, 2, 4, 8, 16];
/** Labels of the reference; a sidecar is one of the init containers there. */
const CONTAINER_TYPES: Readonly<Record<ContainerKind, string>> = {
  regular: 'container',
  init: 'init_container',
  ephemeral: 'ephemeral_container',
};
/** Reason of the event of a postStart hook that failed. */
const FAILED_POST_START = 'FailedPostStartHook';
/** How a runtime's answer begins when it could not mount the image of a volume (CRI). */
const IMAGE_MOUNT_FAILED = 'ImageVolumeMountFailed';

type Operation = 'create' | 'update' | 'sync' | 'terminated';

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

/** The worker's effects with a watch beside them; what they do and answer is not touched. */
export class MeasuredEffects extends Effects {
  readonly #metrics: WorkerMetrics;
  /** Monotonic; since when the round under way lasts. */
  #beganMs: number | null = null;
  /** Monotonic; since when a change of resources is carried out. */
  #resizingMs: number | null = null;
  #killing = false;
  #pod: Pod | null = null;
  #settled: Pod | null = null;
  /** Started containers of a pod with users of its own whose sandbox is new and where nothing has failed since. */
  #proven: Set<string> | null = null;

  constructor(o: EffectOptions & { metrics: WorkerMetrics }) {
    super(o);
    this.#metrics = o.metrics;
  }

  override inspect(...args: Parameters<Effects['inspect']>): ReturnType<Effects['inspect']> {
    this.#beganMs ??= this.#now();
    return super.inspect(...args);
  }

  override nothing(...args: Parameters<Effects['nothing']>): ReturnType<Effects['nothing']> {
    this.#beganMs ??= this.#now();
    return super.nothing(...args);
  }

  override publish(context: WorkerContext, finished: boolean): void {
    this.#pod = context.pod;
    if (context.killAsked && !this.#killing) {
      this.#killing = true;
      this.#beganMs = this.#now();
    }
    super.publish(context, finished);
  }

  override report(state: WorkerReport): void {
    super.report(state);
    if (this.#beganMs === null || (state.state !== 'syncing.settled' && state.phase !== 'finished')) return;
    const operation: Operation =
      state.phase === 'finished' ? 'terminated' : this.#settled === null ? 'create' : this.#settled === this.#pod ? 'sync' : 'update';
    this.#metrics.round(operation, (this.#now() - this.#beganMs) / 1000);
    this.#beganMs = null;
    this.#settled = this.#pod;
  }

  override async runSandbox(input: SandboxInput, signal: AbortSignal): Promise<ActOutcome<{ id: string }>> {
    const beganMs = this.#now();
    if (input.pod.spec.hostUsers === false) {
      this.#proven = new Set();
      this.#metrics.userNamespace(false);
    }
    const outcome = await super.runSandbox(input, signal);
    if (outcome.kind === 'unknown' && signal.aborted) return outcome;
    const failure = outcome.kind === 'failed' ? outcome.failure.reason : outcome.kind === 'unknown' ? 'Unknown' : null;
    this.#metrics.sandbox(input.pod.spec.runtimeClassName ?? '', (this.#now() - beganMs) / 1000, failure);
    if (failure !== null) this.#startFailed('');
    return outcome;
  }

  override async ensureImage(job: StartJob, signal: AbortSignal): Promise<ImageResult> {
    this.#metrics.containerStarts(job.kind);
    const result = await super.ensureImage(job, signal);
    if (!result.ok && !signal.aborted) this.#containerFailed(job, result.failure.reason);
    return result;
  }

  override async createContainer(
    input: { job: StartJob; imageRef: string; imageUser: ImageUser | null },
    signal: AbortSignal,
  ): Promise<ActOutcome<{ id: string; restartCount: number }> | Cleared> {
    const outcome = await super.createContainer(input, signal);
    this.#failed(input.job, outcome);
    this.#imagesMounted(input.job, outcome);
    return outcome;
  }

  override async startContainer(
    input: { job: StartJob; id: string; restartCount: number },
    signal: AbortSignal,
  ): Promise<ActOutcome<null>> {
    const outcome = await super.startContainer(input, signal);
    if (outcome.kind === 'done') this.#proven?.add(input.job.container.name);
    this.#failed(input.job, outcome);
    return outcome;
  }

  #failed(job: StartJob, outcome: ActOutcome<unknown> | Cleared): void {
    if (outcome.kind === 'failed') this.#containerFailed(job, outcome.failure.reason);
  }

  #containerFailed(job: StartJob, reason: string): void {
    this.#metrics.containerFailed(job.kind, reason);
    this.#startFailed(job.container.name);
  }

  /** Once for each sandbox, and not for a container that had started in it. */
  #startFailed(container: string): void {
    if (this.#proven === null || this.#proven.has(container)) return;
    this.#metrics.userNamespace(true);
    this.#proven = null;
  }

  #imagesMounted({ pod, container }: StartJob, outcome: ActOutcome<unknown> | Cleared): void {
    if (outcome.kind !== 'done' && outcome.kind !== 'failed') return;
    const { length } = mountedImages(pod, container);
    if (length === 0) return;
    const refused = outcome.kind === 'failed' && outcome.failure.message.startsWith(IMAGE_MOUNT_FAILED);
    this.#metrics.imageVolumes(length, outcome.kind === 'done' ? 'mounted' : refused ? 'failed' : 'other');
  }

  override event(...args: Parameters<Effects['event']>): void {
    const [pod, , reason, , container] = args;
    if (reason === HTTP_FALLBACK) this.#metrics.httpFallback();
    // A hook is of a container that is being started, an ephemeral one has none.
    if (reason === FAILED_POST_START && container !== undefined) this.#hookFailed(pod, container.name);
    super.event(...args);
  }

  #hookFailed(pod: Pod, container: string): void {
    const init = pod.spec.initContainers?.some((c) => c.name === container) === true;
    this.#metrics.containerFailed(init ? 'init' : 'regular', POST_START_ERROR);
    this.#startFailed(container);
  }

  override async updateResources(input: Update, signal: AbortSignal): Promise<string | null> {
    this.#resizingMs ??= this.#now();
    const trouble = await super.updateResources(input, signal);
    if (trouble === null && !input.last) return trouble;
    this.#metrics.resized(this.#now() - this.#resizingMs, trouble === null);
    this.#resizingMs = null;
    return trouble;
  }

  override sleepCut(): void {
    this.#metrics.sleepCut();
  }

  #now(): number {
    return this.ctx.ports.clock.monoMs();
  }
}
