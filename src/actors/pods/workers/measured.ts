/** What is measured of a worker: a table of its effects, and what each tells before it begins and when it has ended. */

import type { Pod } from '../../../machines/kube/types.ts';
import { mountedImages } from '../../../machines/pod/volumes/volumes.ts';
import { POST_START_ERROR } from '../../../machines/pods/workers/container/containerSetup.ts';
import type { ActOutcome, Cleared, StartJob } from '../../../machines/pods/workers/container/startJob.ts';
import type { WorkerContext, WorkerReport } from '../../../machines/pods/workers/context.ts';
import type { Update } from '../../../machines/pods/workers/resizeMachine.ts';
import type { Clock } from '../../../ports/ports.ts';
import { HTTP_FALLBACK } from './container/hooks.ts';
import { type EffectOptions, Effects } from './effects.ts';
import type { Operation, WorkerMetrics } from './metrics.ts';

/** Reason of the event of a postStart hook that failed. */
const FAILED_POST_START = 'FailedPostStartHook';
/** How a runtime's answer begins when it could not mount the image of a volume (CRI). */
const IMAGE_MOUNT_FAILED = 'ImageVolumeMountFailed';

/** Effects of which something is measured. */
type Watched = Pick<Effects, (typeof NAMES)[number]>;
const NAMES = [
  'inspect',
  'nothing',
  'publish',
  'report',
  'runSandbox',
  'ensureImage',
  'createContainer',
  'startContainer',
  'updateResources',
  'sleepCut',
] as const;

type Before = { [K in keyof Watched]?: (watch: Watch, ...args: Parameters<Watched[K]>) => void };
type After = { [K in keyof Watched]?: (watch: Watch, result: Awaited<ReturnType<Watched[K]>>, ...args: Parameters<Watched[K]>) => void };

const BEFORE: Before = {
  inspect: (watch) => watch.roundBegins(),
  nothing: (watch) => watch.roundBegins(),
  publish: (watch, context) => watch.published(context),
  runSandbox: (watch, { pod }) => watch.sandboxBegins(pod),
  ensureImage: ({ metrics }, { kind }) => metrics.containerStarts(kind),
  updateResources: (watch) => watch.resizeBegins(),
  sleepCut: ({ metrics }) => metrics.sleepCut(),
};
const AFTER: After = {
  report: (watch, _, state) => watch.reported(state),
  runSandbox: (watch, outcome, { pod }, signal) => watch.sandboxEnded(pod, outcome, signal.aborted),
  ensureImage: (watch, result, job, signal) => {
    if (!result.ok && !signal.aborted) watch.containerFailed(job, result.failure.reason);
  },
  createContainer: (watch, outcome, { job }) => {
    watch.containerEnded(job, outcome);
    watch.imagesMounted(job, outcome);
  },
  startContainer: (watch, outcome, { job }) => watch.containerStarted(job, outcome),
  updateResources: (watch, trouble, update) => watch.resizeStepEnded(update, trouble),
};

/** The effects, and what is told of them. What they do and answer is not touched. */
export class MeasuredEffects extends Effects {
  readonly watch: Watch;

  constructor(o: EffectOptions, metrics: WorkerMetrics) {
    const watch = new Watch(metrics, o.ctx.ports.clock);
    super({ ...o, heard: (pod, reason, container) => watch.told(pod, reason, container) });
    this.watch = watch;
  }

  override resume(context: WorkerContext): void {
    super.resume(context);
    this.watch.resume(context.pod);
  }
}
for (const name of NAMES) watchOver(name);

/** For all pods: a method of each would take 2 KiB a pod. */
function watchOver<K extends keyof Watched>(name: K): void {
  type Args = Parameters<Watched[K]>;
  type Result = ReturnType<Watched[K]>;
  const method = Effects.prototype[name] as (this: Effects, ...args: Args) => Result;
  const [before, after] = [BEFORE[name], AFTER[name]];
  const value = function (this: MeasuredEffects, ...args: Args): Result {
    const { watch } = this;
    before?.(watch, ...args);
    const result = method.apply(this, args);
    if (after === undefined) return result;
    const then = (r: unknown) => {
      after(watch, r as Awaited<Result>, ...args);
      return r;
    };
    return (result instanceof Promise ? result.then(then) : then(result)) as Result;
  };
  Object.defineProperty(MeasuredEffects.prototype, name, { value });
}

/** What is going on with one pod, as far as its metrics need it. */
class Watch {
  readonly metrics: WorkerMetrics;
  readonly #clock: Clock;
  /** Monotonic; since when the round under way lasts. */
  #beganMs: number | null = null;
  /** Monotonic; when the last start of a sandbox began. */
  #sandboxBeganMs = 0;
  /** Monotonic; since when a change of resources is carried out. */
  #resizingMs: number | null = null;
  #killing = false;
  #pod: Pod | null = null;
  #settled: Pod | null = null;
  /** Started containers of a pod with users of its own whose sandbox is new and where nothing has failed since. */
  #proven: Set<string> | null = null;

  constructor(metrics: WorkerMetrics, clock: Clock) {
    this.metrics = metrics;
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.monoMs();
  }

  /** It was settled with this definition. */
  resume(pod: Pod): void {
    this.#pod = pod;
    this.#settled = pod;
  }

  roundBegins(): void {
    this.#beganMs ??= this.now();
  }

  published(context: WorkerContext): void {
    this.#pod = context.pod;
    if (context.end.kill === null || this.#killing) return;
    this.#killing = true;
    this.#beganMs = this.now();
  }

  reported(state: WorkerReport): void {
    if (this.#beganMs === null || (state.state !== 'syncing.settled' && state.phase !== 'finished')) return;
    this.metrics.round(this.#operation(state), (this.now() - this.#beganMs) / 1000);
    this.#beganMs = null;
    this.#settled = this.#pod;
  }

  #operation({ phase }: WorkerReport): Operation {
    if (phase === 'finished') return 'terminated';
    if (this.#settled === null) return 'create';
    return this.#settled === this.#pod ? 'sync' : 'update';
  }

  sandboxBegins(pod: Pod): void {
    this.#sandboxBeganMs = this.now();
    if (pod.spec.hostUsers !== false) return;
    this.#proven = new Set();
    this.metrics.userNamespace(false);
  }

  sandboxEnded(pod: Pod, outcome: ActOutcome<unknown>, givenUp: boolean): void {
    if (outcome.kind === 'unknown' && givenUp) return;
    const failure = outcome.kind === 'failed' ? outcome.failure.reason : outcome.kind === 'unknown' ? 'Unknown' : null;
    this.metrics.sandbox(pod.spec.runtimeClassName ?? '', (this.now() - this.#sandboxBeganMs) / 1000, failure);
    if (failure !== null) this.#startFailed('');
  }

  containerStarted(job: StartJob, outcome: ActOutcome<unknown>): void {
    if (outcome.kind === 'done') this.#proven?.add(job.container.name);
    this.containerEnded(job, outcome);
  }

  containerEnded(job: StartJob, outcome: ActOutcome<unknown> | Cleared): void {
    if (outcome.kind === 'failed') this.containerFailed(job, outcome.failure.reason);
  }

  containerFailed(job: StartJob, reason: string): void {
    this.metrics.containerFailed(job.kind, reason);
    this.#startFailed(job.container.name);
  }

  /** Once for each sandbox, and not for a container that had started in it. */
  #startFailed(container: string): void {
    if (this.#proven === null || this.#proven.has(container)) return;
    this.metrics.userNamespace(true);
    this.#proven = null;
  }

  imagesMounted({ pod, container }: StartJob, outcome: ActOutcome<unknown> | Cleared): void {
    if (outcome.kind !== 'done' && outcome.kind !== 'failed') return;
    const { length } = mountedImages(pod, container);
    if (length === 0) return;
    const refused = outcome.kind === 'failed' && outcome.failure.message.startsWith(IMAGE_MOUNT_FAILED);
    this.metrics.imageVolumes(length, outcome.kind === 'done' ? 'mounted' : refused ? 'failed' : 'other');
  }

  told(pod: Pod, reason: string, container: string | undefined): void {
    if (reason === HTTP_FALLBACK) this.metrics.httpFallback();
    // A hook is of a container that is being started, an ephemeral one has none.
    if (reason === FAILED_POST_START && container !== undefined) this.#hookFailed(pod, container);
  }

  #hookFailed(pod: Pod, container: string): void {
    const init = pod.spec.initContainers?.some((c) => c.name === container) === true;
    this.metrics.containerFailed(init ? 'init' : 'regular', POST_START_ERROR);
    this.#startFailed(container);
  }

  resizeBegins(): void {
    this.#resizingMs ??= this.now();
  }

  resizeStepEnded({ last }: Update, trouble: string | null): void {
    if (this.#resizingMs === null || (trouble === null && !last)) return;
    this.metrics.resized(this.now() - this.#resizingMs, trouble === null);
    this.#resizingMs = null;
  }
}
