/** What a worker does, and how long it took: the kubelet's metrics of pods, sandboxes and containers (boot-and-node 8.5). */
import type { Pod } from '../../../machines/k8s.ts';
import type { ActOutcome, Cleared, ContainerKind, ImageUser, StartJob } from '../../../machines/pods/workers/containerMachine.ts';
import type { SandboxInput, WorkerContext } from '../../../machines/pods/workers/context.ts';
import type { WorkerSummary } from '../../../machines/protocol.ts';
import type { ImageResult } from '../../../machines/runtime/imagePuller/messages.ts';
import type { Metrics } from '../../../ports/ports.ts';
import { type EffectOptions, Effects } from './effects.ts';

/** Seconds: Prometheus' own default buckets, which the kubelet uses for these. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const CONTAINERS = [1, 2, 4, 8, 16];
/** Labels of the reference; a sidecar is one of the init containers there. */
const CONTAINER_TYPES: Readonly<Record<ContainerKind, string>> = {
  regular: 'container',
  init: 'init_container',
  ephemeral: 'ephemeral_container',
};
const SANDBOX = 'pod_sandbox';

type Operation = 'create' | 'update' | 'sync' | 'kill';

export interface WorkerMetrics {
  /** The first worker of a pod began, so long after the pod was first seen. */
  workerStarted(pod: Pod, seconds: number): void;
  /** From a look at the runtime until the pod was as wanted, or gone. */
  round(operation: Operation, seconds: number): void;
  sandbox(handler: string, seconds: number, failure: string | null): void;
  containerStarts(kind: ContainerKind): void;
  containerFailed(kind: ContainerKind, reason: string): void;
}

/** One set serves all pods of a node. */
export function workerMetrics(metrics: Metrics): WorkerMetrics {
  const workerStart = metrics.histogram(
    'kubelet_pod_worker_start_duration_seconds',
    'Seconds from the first sight of a pod until its worker starts',
    SECONDS,
  );
  const worker = metrics.histogram(
    'kubelet_pod_worker_duration_seconds',
    'Seconds that one look at a pod took, by what it was for: create, update, sync or kill',
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
  return {
    workerStarted(pod, seconds) {
      workerStart.observe(Math.max(0, seconds));
      perPod.observe(pod.spec.containers.length);
    },
    round: (operation, seconds) => worker.observe(seconds, { operation_type: operation }),
    sandbox(handler, seconds, failure) {
      pods.inc();
      starts.inc({ container_type: SANDBOX });
      runSandbox.observe(seconds, { runtime_handler: handler });
      if (failure === null) return;
      podErrors.inc();
      sandboxErrors.inc({ runtime_handler: handler });
      startErrors.inc({ container_type: SANDBOX, code: failure });
    },
    containerStarts: (kind) => starts.inc({ container_type: CONTAINER_TYPES[kind] }),
    containerFailed: (kind, reason) => startErrors.inc({ container_type: CONTAINER_TYPES[kind], code: reason }),
  };
}

/** The worker's effects with a watch beside them; what they do and answer is not touched. */
export class MeasuredEffects extends Effects {
  readonly #metrics: WorkerMetrics;
  /** Monotonic; since when the round under way lasts. */
  #beganMs: number | null = null;
  #killing = false;
  #pod: Pod | null = null;
  #settled: Pod | null = null;

  constructor(o: EffectOptions & { metrics: WorkerMetrics }) {
    super(o);
    this.#metrics = o.metrics;
  }

  override inspect(...args: Parameters<Effects['inspect']>): ReturnType<Effects['inspect']> {
    this.#beganMs ??= this.#now();
    return super.inspect(...args);
  }

  override publish(context: WorkerContext, finished: boolean): void {
    this.#pod = context.pod;
    if (context.killAsked && !this.#killing) {
      this.#killing = true;
      this.#beganMs = this.#now();
    }
    super.publish(context, finished);
  }

  override report(state: WorkerSummary): void {
    super.report(state);
    if (this.#beganMs === null || (state.state !== 'settled' && state.phase !== 'finished')) return;
    const operation: Operation =
      state.phase === 'finished' ? 'kill' : this.#settled === null ? 'create' : this.#settled === this.#pod ? 'sync' : 'update';
    this.#metrics.round(operation, (this.#now() - this.#beganMs) / 1000);
    this.#beganMs = null;
    this.#settled = this.#pod;
  }

  override async runSandbox(input: SandboxInput, signal: AbortSignal): Promise<ActOutcome<{ id: string }>> {
    const beganMs = this.#now();
    const outcome = await super.runSandbox(input, signal);
    if (outcome.kind === 'unknown' && signal.aborted) return outcome;
    const failure = outcome.kind === 'failed' ? outcome.failure.reason : outcome.kind === 'unknown' ? 'Unknown' : null;
    this.#metrics.sandbox(input.pod.spec.runtimeClassName ?? '', (this.#now() - beganMs) / 1000, failure);
    return outcome;
  }

  override async ensureImage(job: StartJob, signal: AbortSignal): Promise<ImageResult> {
    this.#metrics.containerStarts(job.kind);
    const result = await super.ensureImage(job, signal);
    if (!result.ok && !signal.aborted) this.#metrics.containerFailed(job.kind, result.failure.reason);
    return result;
  }

  override async createContainer(
    input: { job: StartJob; imageRef: string; imageUser: ImageUser | null },
    signal: AbortSignal,
  ): Promise<ActOutcome<{ id: string; restartCount: number }> | Cleared> {
    const outcome = await super.createContainer(input, signal);
    this.#failed(input.job, outcome);
    return outcome;
  }

  override async startContainer(
    input: { job: StartJob; id: string; restartCount: number },
    signal: AbortSignal,
  ): Promise<ActOutcome<null>> {
    const outcome = await super.startContainer(input, signal);
    this.#failed(input.job, outcome);
    return outcome;
  }

  #failed(job: StartJob, outcome: ActOutcome<unknown> | Cleared): void {
    if (outcome.kind === 'failed') this.#metrics.containerFailed(job.kind, outcome.failure.reason);
  }

  #now(): number {
    return this.ctx.ports.clock.monoMs();
  }
}
