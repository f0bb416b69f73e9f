/** What a pod worker does to the runtime and the host: each act is one promise actor with an outcome. */

import type { Container } from '../../../machines/kube/podTable.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { pathName } from '../../../machines/pod/pathName.ts';
import { podDescription } from '../../../machines/pod/podDescription.ts';
import { beforeRestart } from '../../../machines/pod/resources/actuation.ts';
import { podFolder, podLogDir } from '../../../machines/pod/runtime/logNames.ts';
import type { PodRuntimeStatus } from '../../../machines/pod/runtime/seen.ts';
import { podDir } from '../../../machines/pod/volumes/volumePaths.ts';
import type { EffectOutcome, StopRequest } from '../../../machines/pods/workers/container/containerStopMachine.ts';
import type { HookAnswer, HookInput } from '../../../machines/pods/workers/container/hookMachine.ts';
import type { ActOutcome, Created, CreateRequest, StartJob, StartRequest } from '../../../machines/pods/workers/container/startJob.ts';
import type { WorkerContext, WorkerReport } from '../../../machines/pods/workers/context.ts';
import type { InspectionOf, ResetInput, SandboxInput, WorkerIo } from '../../../machines/pods/workers/io.ts';
import type { MemoryUsage, Update, UsageOf } from '../../../machines/pods/workers/resizeMachine.ts';
import type { SandboxesInput } from '../../../machines/pods/workers/stopMachine.ts';
import { removingDirs } from '../../../machines/reclaim/messages.ts';
import type { ImageResult } from '../../../machines/runtime/imagePuller/messages.ts';
import type { ImageSpec } from '../../../machines/wire/cri.ts';
import { prepareClaims, releaseClaims } from '../../allocation/client.ts';
import type { CriCall } from '../../runtime/client.ts';
import { Acts, type ActsOptions } from './acts.ts';
import { createContainer } from './container/create.ts';
import { LOG_DIR_MODE, linkLog, POD_DIR_MODE } from './container/files.ts';
import { runHook } from './container/hooks.ts';
import { ensureImages } from './container/images.ts';
import { resetContainers } from './container/reset.ts';
import { memoryUsage, updateResources } from './container/resize.ts';
import { askForVolumes, giveBackVolumes, severVolumes } from './container/volumes.ts';
import { failedBecause, failedWith, unknownOr } from './outcomes.ts';
import { Reports } from './reports.ts';
import { resizePodGroup } from './sandbox/podGroup.ts';
import { SandboxResources } from './sandbox/resized.ts';
import { Sandboxes } from './sandbox/run.ts';
import { presentSandbox } from './sandbox/sandbox.ts';

export interface EffectOptions extends ActsOptions {
  /** The pod manager's count of this UID's lives; goes out with every report. */
  life: number;
}

export class Effects implements WorkerIo {
  readonly acts: Acts;
  readonly #reports: Reports;
  readonly #sandboxes: Sandboxes;
  readonly #sandboxResources: SandboxResources;
  /** What images of volumes came to when they were pulled: before each creation. */
  readonly #images = new Map<string, ImageSpec>();

  constructor(o: EffectOptions) {
    this.acts = new Acts(o);
    this.#reports = new Reports(o.ctx, o.life);
    this.#sandboxes = new Sandboxes(this.acts);
    this.#sandboxResources = new SandboxResources(o.facts);
  }

  /** Goes on with what its worker kept while it slept. */
  resume(context: WorkerContext): void {
    if (context.status !== null) this.acts.inspector.resume(context.status);
    this.#reports.resume(context);
  }

  fence(uid: string): Promise<unknown> {
    return this.acts.cri.fence(uid, this.acts.ctx.incarnation);
  }

  inspect(of: InspectionOf, signal: AbortSignal): Promise<PodRuntimeStatus> {
    return this.acts.inspector.inspect(of, signal);
  }

  /** What shows that the runtime holds nothing of the pod, where the last listing tells. */
  nothing(uid: string): PodRuntimeStatus | null {
    return this.acts.inspector.nothing(uid);
  }

  /** The pod's directories: its own, its volumes', its plugins', its logs'. Then its volumes. */
  async prepare(pod: Pod, signal: AbortSignal): Promise<EffectOutcome> {
    const { ports, registry } = this.acts.ctx;
    const { rootDir, podLogsDir } = this.acts.facts();
    await this.#notBeingRemoved(pod.metadata.uid);
    const dir = podDir(rootDir, pathName(pod.metadata.uid));
    for (const d of [`${dir}/volumes`, `${dir}/plugins`]) await ports.fs.mkdirp(d, POD_DIR_MODE);
    await ports.fs.mkdirp(podLogDir(podLogsDir, podFolder(pod.metadata)), LOG_DIR_MODE);
    const result = await askForVolumes(registry, pod, signal);
    return result.ok ? { kind: 'done' } : { kind: 'failed', failure: result.failure };
  }

  /** What is left of an earlier life of this UID may be on its way out just now. */
  async #notBeingRemoved(uid: string): Promise<void> {
    const { registry } = this.acts.ctx;
    while (registry.read(removingDirs)?.value.has(uid) === true) {
      const next = Promise.withResolvers<void>();
      using _ = registry.watch(removingDirs, () => next.resolve());
      await next.promise;
    }
  }

  async prepareClaims(pod: Pod, signal: AbortSignal): Promise<EffectOutcome> {
    const prepared = await prepareClaims(this.acts.ctx, pod, signal);
    return prepared.ok
      ? { kind: 'done' }
      : failedBecause('FailedPrepareDynamicResources', `prepare dynamic resources: ${prepared.message}`);
  }

  async releaseClaims(pod: Pod, signal: AbortSignal): Promise<EffectOutcome> {
    const released = await releaseClaims(this.acts.ctx, pod, signal);
    return released.ok
      ? { kind: 'done' }
      : failedBecause('FailedUnprepareDynamicResources', `unprepare dynamic resources: ${released.message}`);
  }

  runSandbox(input: SandboxInput, signal: AbortSignal): Promise<ActOutcome<{ id: string }>> {
    return this.#sandboxes.run(input, signal);
  }

  async ensureImage(job: StartJob, signal: AbortSignal): Promise<ImageResult> {
    const { acts } = this;
    const sandbox = await presentSandbox(acts.ctx, { pod: job.pod, attempt: job.sandboxAttempt, facts: acts.facts() });
    if (!sandbox.ok) return { ok: false, failure: { reason: 'CreateContainerConfigError', message: sandbox.message } };
    const warn = (reason: string, message: string) => acts.event(job.pod, 'Warning', reason, message);
    const result = await ensureImages(acts.ctx, { job, sandboxConfig: sandbox.config, volumes: this.#images, warn }, signal);
    // Beside what was said of the image itself: of the container, by the reason that it waits with.
    if (!result.ok) acts.startFailed(job, result.failure.reason, signal);
    return result;
  }

  /** With a container that starts anew the sandbox may have changed. A refusal holds up no start, as in the kubelet. */
  async createContainer(input: CreateRequest, signal: AbortSignal): Promise<Created> {
    const { pod, sandboxId, container, newest } = input.job;
    const before = beforeRestart(pod, container, newest);
    const refusal = await this.#sandboxResources.tell({ pod, before, sandboxId }, (call) => this.acts.one(pod, call, signal));
    if (refusal !== null) this.acts.ctx.log.warn({ err: refusal, uid: pod.metadata.uid }, 'the runtime does not resize the sandbox');
    return createContainer(this.acts, { ...input, images: this.#images }, signal);
  }

  async startContainer(input: StartRequest, signal: AbortSignal): Promise<ActOutcome<null>> {
    const { acts } = this;
    const { job, id } = input;
    const result = await acts.one(job.pod, { method: 'StartContainer', request: { containerId: id } }, signal);
    if (!result.ok) {
      acts.startFailed(job, result.error.details.replaceAll(id, job.container.name), signal);
      return unknownOr(result.error, 'RunContainerError');
    }
    acts.event(job.pod, 'Normal', 'Started', 'Container started', job.container);
    await linkLog(acts.ctx, acts.facts(), input);
    return { kind: 'done', value: null };
  }

  /** A hook reads nothing and changes nothing of the runtime's own: it needs no fence. */
  runHook(input: HookInput, signal: AbortSignal): Promise<HookAnswer> {
    return runHook(this.acts, input, signal);
  }

  /** Counted where the effects are measured. */
  sleepCut(): void {}

  severVolumes(pod: Pod): void {
    severVolumes(this.acts.ctx.registry, pod);
  }

  async stopContainer({ pod, id, timeoutSeconds }: StopRequest, signal: AbortSignal): Promise<EffectOutcome> {
    const call: CriCall = { method: 'StopContainer', request: { containerId: id, timeout: timeoutSeconds } };
    return failedWith('KillContainerError', [await this.acts.one(pod, call, signal)]);
  }

  memoryUsage(of: UsageOf, signal: AbortSignal): Promise<MemoryUsage> {
    return memoryUsage({ cri: this.acts.cri, statsFromCri: this.acts.facts().statsFromCri === true }, of, signal);
  }

  /** The runtime may refuse it. What grows finds room in the pod's group first; the group shrinks when the last of its containers has. */
  async updateResources(input: Update, signal: AbortSignal): Promise<string | null> {
    const { acts } = this;
    const { pod } = input;
    const refusal = await this.#sandboxResources.tell(input, (call) => acts.one(pod, call, signal));
    if (refusal !== null)
      return `failed to notify runtime for UpdatePodSandboxResources (resource=${input.step.resource}); resize rejected: ${refusal}`;
    const group = (how: 'raise' | 'exact') => resizePodGroup(acts.ctx, { facts: acts.facts(), pod, how }, signal);
    const raised = await group('raise');
    if (raised !== null) return `the cgroup of the pod could not be raised: ${raised.message}`;
    const by = { cri: acts.cri, inspector: acts.inspector, incarnation: acts.ctx.incarnation };
    const trouble = await updateResources(by, input, signal);
    if (trouble !== null || !input.last) return trouble;
    const set = await group('exact');
    return set === null ? null : `the cgroup of the pod could not be set: ${set.message}`;
  }

  stopSandboxes(input: SandboxesInput, signal: AbortSignal): Promise<EffectOutcome> {
    return this.#sandboxes.stop(input, signal);
  }

  resetContainers({ pod, groups }: ResetInput, signal: AbortSignal): Promise<EffectOutcome> {
    const act = (calls: readonly CriCall[]) => this.acts.all(pod, calls, signal);
    return resetContainers({ act, say: (name, message) => this.acts.event(pod, 'Normal', 'Killing', message, { name }) }, groups);
  }

  /** Nothing of this pod is in flight or mounted any more; its directories go when its source has let go of it (housekeeping). */
  async cleanup(pod: Pod): Promise<void> {
    await this.fence(pod.metadata.uid);
    const result = await giveBackVolumes(this.acts.ctx.registry, pod, this.acts.ctx.signal);
    if (!result.ok) throw new Error(result.failure.message);
  }

  publish(context: WorkerContext, finished: boolean): void {
    this.#reports.publish(context, finished);
  }

  report(report: WorkerReport): void {
    this.#reports.report(report);
  }

  backingOff(job: StartJob): void {
    const message = `Back-off restarting failed container ${job.container.name} in pod ${podDescription(job.pod)}`;
    this.acts.event(job.pod, 'Warning', 'BackOff', message, job.container);
  }

  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string, container?: Pick<Container, 'name'>): void {
    this.acts.event(pod, type, reason, message, container);
  }
}
