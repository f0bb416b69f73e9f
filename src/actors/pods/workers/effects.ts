/**
 * What a pod worker does to the runtime and the host: each act is one promise actor with an outcome. Mutating CRI
 * calls go through the CRI link's fence for this pod; a time-out is `unknown`, never `failed`.
 */

import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Container } from '../../../machines/kube/podTable.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../machines/nodeFacts.ts';
import { podRef } from '../../../machines/pod/names.ts';
import { pathName } from '../../../machines/pod/pathName.ts';
import { podDescription } from '../../../machines/pod/podDescription.ts';
import { eventFieldPath } from '../../../machines/pod/runtime/killOrder.ts';
import { containerLogDir, podFolder, podLogDir, restartCountFromLogNames } from '../../../machines/pod/runtime/logNames.ts';
import type { PodRuntimeStatus } from '../../../machines/pod/runtime/seen.ts';
import { podDir } from '../../../machines/pod/volumes/volumePaths.ts';
import {
  type ContainerConfigInput,
  type ContainerConfigResult,
  generateContainerConfig,
} from '../../../machines/pods/workers/config/containerConfig.ts';
import { envVariables } from '../../../machines/pods/workers/config/env.ts';
import type { ActOutcome, Cleared, ImageUser, StartJob } from '../../../machines/pods/workers/container/containerMachine.ts';
import { CREATING, EARLIER_START } from '../../../machines/pods/workers/container/containerSetup.ts';
import type { StopRequest } from '../../../machines/pods/workers/container/containerStopMachine.ts';
import type { HookAnswer, HookJob } from '../../../machines/pods/workers/container/hookMachine.ts';
import type {
  EffectOutcome,
  InspectionOf,
  ResetInput,
  SandboxInput,
  WorkerContext,
  WorkerIo,
  WorkerReport,
} from '../../../machines/pods/workers/context.ts';
import type { WorkerEvent } from '../../../machines/pods/workers/messages.ts';
import type { MemoryUsage, Update, UsageOf } from '../../../machines/pods/workers/resizeMachine.ts';
import type { SandboxesInput } from '../../../machines/pods/workers/stopMachine.ts';
import { removingDirs } from '../../../machines/reclaim/messages.ts';
import type { CriResult } from '../../../machines/runtime/cri/messages.ts';
import type { ImageResult } from '../../../machines/runtime/imagePuller/messages.ts';
import type { ImageSpec } from '../../../machines/wire/cri.ts';
import { handlingPod } from '../../../ports/handling.ts';
import { containerShare, doubtClaims, prepareClaims, releaseClaims } from '../../allocation/client.ts';
import { type CriCall, type CriClient, criClient } from '../../runtime/client.ts';
import { envSources } from '../../services/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { debugTarget } from './container/debugTarget.ts';
import { readEnvFiles } from './container/envFiles.ts';
import { hostsMount, LOG_DIR_MODE, linkLog, POD_DIR_MODE, terminationLogMount } from './container/files.ts';
import { runHook } from './container/hooks.ts';
import { ensureImages } from './container/images.ts';
import { resetContainers } from './container/reset.ts';
import { memoryUsage, updateResources } from './container/resize.ts';
import { askForVolumes, giveBackVolumes, mountedVolumes, severVolumes, volumeDevices, volumeMounts } from './container/volumes.ts';
import { Inspector } from './inspect.ts';
import { failedBecause, failedWith, removals, unknownOr } from './outcomes.ts';
import { Reports } from './reports.ts';
import { ensurePodGroup, resizePodGroup } from './sandbox/podGroup.ts';
import { SandboxResources } from './sandbox/resized.ts';
import { newSandbox, presentSandbox } from './sandbox/sandbox.ts';

/** Reason of a pod that waits until the cgroups of its node are made. */
const AWAITING_CGROUPS = 'AwaitingCgroups';
/** What containerd answers to a removal in the middle of a start. */
const START_UNDER_WAY = /in starting state/;

export interface EffectOptions {
  ctx: ActorCtx<WorkerEvent>;
  /** The pod manager's count of this UID's lives; goes out with every report. */
  life: number;
  facts(): NodeFacts;
  /** When the runtime was last listed and held nothing of this pod, and that will do; null: the runtime is asked. */
  nothingAtMonoMs?(): number | null;
}

export class Effects implements WorkerIo {
  readonly ctx: ActorCtx<WorkerEvent>;
  readonly cri: CriClient;
  readonly inspector: Inspector;
  private readonly facts: () => NodeFacts;
  /** What images of volumes came to when they were pulled: before each creation. */
  private readonly imageVolumes = new Map<string, ImageSpec>();
  /** Sandboxes of this pod that are known to be stopped; those no longer there are forgotten. */
  private readonly stopped = new Set<string>();
  private readonly sandboxResources = new SandboxResources(() => this.facts());
  private readonly reports: Reports;

  constructor(o: EffectOptions) {
    this.ctx = o.ctx;
    this.facts = o.facts;
    this.reports = new Reports(o.ctx, o.life);
    this.cri = criClient(o.ctx.registry);
    this.inspector = new Inspector(this.cri, o.ctx.ports, { facts: () => this.facts(), nothingAtMonoMs: o.nothingAtMonoMs });
  }

  fence(uid: string): Promise<unknown> {
    return this.cri.fence(uid, this.ctx.incarnation);
  }

  inspect(of: InspectionOf, signal: AbortSignal): Promise<PodRuntimeStatus> {
    return this.inspector.inspect(of, signal);
  }

  /** What shows that the runtime holds nothing of the pod, where the last listing tells. */
  nothing(uid: string): PodRuntimeStatus | null {
    return this.inspector.nothing(uid);
  }

  /** The pod's directories: its own, its volumes', its plugins', its logs'. Then its volumes. */
  async prepare(pod: Pod, signal: AbortSignal): Promise<EffectOutcome> {
    const { fs } = this.ctx.ports;
    await this.notBeingRemoved(pod.metadata.uid);
    const dir = podDir(this.facts().rootDir, pathName(pod.metadata.uid));
    for (const d of [`${dir}/volumes`, `${dir}/plugins`]) await fs.mkdirp(d, POD_DIR_MODE);
    await fs.mkdirp(podLogDir(this.facts().podLogsDir, podFolder(pod.metadata)), LOG_DIR_MODE);
    const result = await askForVolumes(this.ctx.registry, pod, signal);
    return result.ok ? { kind: 'done' } : { kind: 'failed', failure: result.failure };
  }

  /** What is left of an earlier life of this UID may be on its way out just now. */
  private async notBeingRemoved(uid: string): Promise<void> {
    const { registry } = this.ctx;
    while (registry.read(removingDirs)?.value.has(uid) === true) {
      const next = Promise.withResolvers<void>();
      using _ = registry.watch(removingDirs, () => next.resolve());
      await next.promise;
    }
  }

  async prepareClaims(pod: Pod, signal: AbortSignal): Promise<EffectOutcome> {
    const prepared = await prepareClaims(this.ctx, pod, signal);
    return prepared.ok
      ? { kind: 'done' }
      : failedBecause('FailedPrepareDynamicResources', `prepare dynamic resources: ${prepared.message}`);
  }

  async releaseClaims(pod: Pod, signal: AbortSignal): Promise<EffectOutcome> {
    const released = await releaseClaims(this.ctx, pod, signal);
    return released.ok
      ? { kind: 'done' }
      : failedBecause('FailedUnprepareDynamicResources', `unprepare dynamic resources: ${released.message}`);
  }

  async runSandbox(input: SandboxInput, signal: AbortSignal): Promise<ActOutcome<{ id: string }>> {
    const { pod, actions } = input;
    const earlier = input.status.sandboxes.map((s) => s.id);
    for (const id of this.stopped) if (!earlier.includes(id)) this.stopped.delete(id);
    // A sandbox that died by itself still has its addresses and host ports: they are released before they are asked for again.
    const fresh = earlier.filter((id) => !this.stopped.has(id));
    for (const r of await this.stopSandboxesOf(pod, fresh, signal)) if (!r.ok) return unknownOr(r.error, 'KillPodSandboxError');
    const [purge] = (await this.removeInits(pod, input.status, signal)).filter((r) => !r.ok);
    if (purge?.ok === false) return unknownOr(purge.error, 'CreatePodSandboxError');
    const group = await ensurePodGroup(this.ctx, this.facts(), pod);
    if (group !== null) {
      const message = `unable to ensure pod container exists: ${group.message}`;
      if (group.later?.failing !== false) this.event(pod, 'Warning', 'FailedCreatePodContainer', message);
      if (group.later !== undefined) return failedBecause(AWAITING_CGROUPS, group.message, 'later');
      return failedBecause('FailedCreatePodContainer', message);
    }
    const lastHandler = input.status.sandboxes[0]?.handler;
    const config = await newSandbox(this.ctx, { pod, attempt: actions.attempt, facts: this.facts(), lastHandler }, signal);
    if (signal.aborted) return { kind: 'unknown', details: 'cancelled before the sandbox was asked for' };
    if (!config.ok) {
      const { message } = config;
      this.event(pod, 'Warning', 'FailedCreatePodSandBox', `Failed to create pod sandbox: ${message}`);
      return { kind: 'failed', failure: { reason: 'CreatePodSandboxError', message } };
    }
    for (const w of config.warnings) this.event(pod, 'Warning', w.reason, w.message);
    const handler = config.handler === '' ? {} : { runtimeHandler: config.handler };
    const result = await this.act(pod, { method: 'RunPodSandbox', request: { config: config.config, ...handler } }, signal);
    if (result.ok) return { kind: 'done', value: { id: (result.value as { podSandboxId: string }).podSandboxId } };
    this.inspector.doubt();
    if (!signal.aborted) this.event(pod, 'Warning', 'FailedCreatePodSandBox', `Failed to create pod sandbox: ${result.error.details}`);
    return unknownOr(result.error, 'CreatePodSandboxError');
  }

  async ensureImage(job: StartJob, signal: AbortSignal): Promise<ImageResult> {
    const sandbox = await presentSandbox(this.ctx, { pod: job.pod, attempt: job.sandboxAttempt, facts: this.facts() });
    if (!sandbox.ok) return { ok: false, failure: { reason: 'CreateContainerConfigError', message: sandbox.message } };
    const warn = (reason: string, message: string) => this.event(job.pod, 'Warning', reason, message);
    const result = await ensureImages(this.ctx, { job, sandboxConfig: sandbox.config, volumes: this.imageVolumes, warn }, signal);
    // Beside what was said of the image itself: of the container, by the reason that it waits with.
    if (!result.ok) this.startFailed(job, result.failure.reason, signal);
    return result;
  }

  async createContainer(
    input: { job: StartJob; imageRef: string; imageUser: ImageUser | null },
    signal: AbortSignal,
  ): Promise<ActOutcome<{ id: string; restartCount: number }> | Cleared> {
    const { job } = input;
    const { pod, container } = job;
    const { fs } = this.ctx.ports;
    const facts = this.facts();
    const logDir = containerLogDir(facts.podLogsDir, podFolder(pod.metadata), pathName(container.name));
    const firstLog = await fs.mkdirp(logDir, LOG_DIR_MODE);
    // It may start with more than its predecessor had.
    const group = await resizePodGroup(this.ctx, { facts, pod, how: 'raise' }, signal);
    if (group !== null) {
      const reason = group.later === undefined ? 'CreateContainerError' : CREATING;
      return failedBecause(reason, `the pod's cgroup: ${group.message}`, group.later && 'later');
    }
    const left = await this.removeUnstarted(job, signal);
    if (left !== null) return left;
    const restartCount = await this.restartCountOf(job, firstLog ? null : logDir);
    const sandbox = await presentSandbox(this.ctx, { pod, attempt: job.sandboxAttempt, facts });
    const cluster = await envSources(this.ctx, job, signal);
    const files = await readEnvFiles(fs, container, () => mountedVolumes(this.ctx.registry, pod, signal));
    const envFrom = { files, ...(cluster.ok && cluster.value !== undefined ? { cluster: cluster.value } : {}) };
    const share = await containerShare(this.ctx, job, signal);
    const given = share.ok ? share.value.envs : [];
    const variables = () => (cluster.ok ? envVariables({ pod, container, podIPs: job.podIPs, facts, ...envFrom }, given) : cluster);
    const mounting = { pod, container, variables, images: this.imageVolumes, handler: job.handler };
    const mounts = await volumeMounts(this.ctx, mounting, signal);
    const devices = await volumeDevices(this.ctx.registry, job, signal);
    if (signal.aborted) return { kind: 'unknown', details: 'cancelled before the container was asked for' };
    const config = !mounts.ok
      ? mounts
      : !share.ok
        ? share
        : !devices.ok
          ? devices
          : !cluster.ok
            ? cluster
            : this.configOf({
                ...envFrom,
                pod,
                container,
                kind: job.kind,
                restartCount,
                imageRef: input.imageRef,
                imageUser: input.imageUser,
                podIPs: job.podIPs,
                facts,
                userNamespace: sandbox.ok ? sandbox.config.linux?.securityContext?.namespaceOptions?.usernsOptions : undefined,
                ...(await debugTarget(this.cri, job, signal)),
                devices: devices.value,
                share: share.value,
                volumeGroups: mounts.value.groups,
                mounts: [
                  ...mounts.value.mounts,
                  ...(await hostsMount(this.ctx, facts, job)),
                  ...(await terminationLogMount(this.ctx, facts, job)),
                ],
              });
    if (!sandbox.ok || !config.ok) {
      const message = sandbox.ok ? (config.ok ? '' : config.message) : sandbox.message;
      this.startFailed(job, message, signal);
      return failedBecause('CreateContainerConfigError', message, share.ok ? undefined : 'later');
    }
    const call: CriCall = {
      method: 'CreateContainer',
      request: { podSandboxId: job.sandboxId, config: config.config, sandboxConfig: sandbox.config },
    };
    const result = await this.act(pod, call, signal);
    if (result.ok) {
      this.event(pod, 'Normal', 'Created', 'Container created', container);
      return { kind: 'done', value: { id: (result.value as { containerId: string }).containerId, restartCount } };
    }
    this.inspector.doubt();
    doubtClaims(this.ctx, pod, result.error.details);
    this.startFailed(job, result.error.details, signal);
    return unknownOr(result.error, 'CreateContainerError');
  }

  private configOf(input: ContainerConfigInput): ContainerConfigResult {
    return handlingPod(this.ctx.ports, input.pod.metadata.uid, () => generateContainerConfig(input));
  }

  /**
   * An instance that was created and never seen to start is left over from an act of unknown outcome, and its start may
   * still come: removed first, so that two never run at once. It may have started before it went, and been shown running:
   * what the next one counts is decided by a look that began after it was gone. Null when nothing stands in the way.
   */
  private async removeUnstarted(job: StartJob, signal: AbortSignal): Promise<ActOutcome<never> | Cleared | null> {
    const { pod, unstarted } = job;
    const calls = removals(unstarted);
    const result = (await this.acts(pod, calls, signal)).find((r) => !r.ok);
    if (result === undefined || result.ok) return calls.length === 0 ? null : { kind: 'cleared' };
    if (START_UNDER_WAY.test(result.error.details)) {
      return { kind: 'failed', failure: { reason: EARLIER_START, message: 'an earlier start of it is still under way in the runtime' } };
    }
    const message = `an instance that was created and not started cannot be removed: ${result.error.details}`;
    this.startFailed(job, message, signal);
    return unknownOr({ ...result.error, details: message }, 'CreateContainerError');
  }

  /** Where the runtime holds no instance any more, logs tell of those there were. `logDir` null: there are none. */
  private async restartCountOf({ newest, clearedCount, restartCount }: StartJob, logDir: string | null): Promise<number> {
    if (clearedCount !== undefined) return Math.max(restartCount ?? 0, clearedCount);
    if (newest !== null && restartCount !== null) return restartCount;
    if (logDir === null) return restartCount ?? 0;
    return Math.max(restartCount ?? 0, restartCountFromLogNames(await this.ctx.ports.fs.readdir(logDir)));
  }

  async startContainer(input: { job: StartJob; id: string; restartCount: number }, signal: AbortSignal): Promise<ActOutcome<null>> {
    const { job, id } = input;
    const result = await this.act(job.pod, { method: 'StartContainer', request: { containerId: id } }, signal);
    if (!result.ok) {
      this.startFailed(job, result.error.details.replaceAll(id, job.container.name), signal);
      return unknownOr(result.error, 'RunContainerError');
    }
    this.event(job.pod, 'Normal', 'Started', 'Container started', job.container);
    await linkLog(this.ctx, this.facts(), input);
    return { kind: 'done', value: null };
  }

  /** A hook reads nothing and changes nothing of the runtime's own: it needs no fence. */
  runHook(job: HookJob, signal: AbortSignal): Promise<HookAnswer> {
    return runHook(this, job, signal);
  }

  /** Counted by those effects that are measured. */
  sleepCut(): void {}
  readonly severVolumes = (pod: Pod): void => severVolumes(this.ctx.registry, pod);

  async stopContainer({ pod, id, timeoutSeconds }: StopRequest, signal: AbortSignal): Promise<EffectOutcome> {
    const call: CriCall = { method: 'StopContainer', request: { containerId: id, timeout: timeoutSeconds } };
    return failedWith('KillContainerError', [await this.act(pod, call, signal)]);
  }

  memoryUsage(of: UsageOf, signal: AbortSignal): Promise<MemoryUsage> {
    return memoryUsage({ cri: this.cri, statsFromCri: this.facts().statsFromCri === true }, of, signal);
  }

  /** The runtime may refuse it. What grows finds room in the pod's group first; the group shrinks when the last of its containers has. */
  async updateResources(input: Update, signal: AbortSignal): Promise<string | null> {
    const refusal = await this.sandboxResources.tell(input, (call) => this.act(input.pod, call, signal));
    if (refusal !== null) return refusal;
    const group = (how: 'raise' | 'exact') => resizePodGroup(this.ctx, { facts: this.facts(), pod: input.pod, how }, signal);
    const raised = await group('raise');
    if (raised !== null) return `the cgroup of the pod could not be raised: ${raised.message}`;
    const by = { cri: this.cri, inspector: this.inspector, incarnation: this.ctx.incarnation };
    const trouble = await updateResources(by, input, signal);
    if (trouble !== null || !input.last) return trouble;
    const set = await group('exact');
    return set === null ? null : `the cgroup of the pod could not be set: ${set.message}`;
  }

  async stopSandboxes({ pod, status, forSandbox }: SandboxesInput, signal: AbortSignal): Promise<EffectOutcome> {
    const ids = status.sandboxes.map((s) => s.id);
    const results = [...(await this.stopSandboxesOf(pod, ids, signal)), ...(forSandbox ? await this.removeInits(pod, status, signal) : [])];
    return failedWith('FailedKillPod', results);
  }

  private async stopSandboxesOf(pod: Pod, ids: readonly string[], signal: AbortSignal): Promise<readonly CriResult[]> {
    const results = await this.acts(
      pod,
      ids.map((id) => ({ method: 'StopPodSandbox', request: { podSandboxId: id } })),
      signal,
    );
    ids.forEach((id, i) => {
      if (results[i]?.ok === true) this.stopped.add(id);
    });
    return results;
  }

  resetContainers({ pod, groups }: ResetInput, signal: AbortSignal): Promise<EffectOutcome> {
    const act = (calls: readonly CriCall[]) => this.acts(pod, calls, signal);
    return resetContainers({ act, say: (name, message) => this.event(pod, 'Normal', 'Killing', message, { name }) }, groups);
  }

  /** What ran to its end in an old sandbox says nothing about a new one. */
  private removeInits(pod: Pod, status: PodRuntimeStatus, signal: AbortSignal): Promise<readonly CriResult[]> {
    const inits = new Set((pod.spec.initContainers ?? []).map((c) => c.name));
    return this.acts(pod, removals(status.containers.flatMap((c) => (inits.has(c.name) ? [c.id] : []))), signal);
  }

  /** Nothing of this pod is in flight or mounted any more; its directories go when its source has let go of it (housekeeping). */
  async cleanup(pod: Pod): Promise<void> {
    await this.fence(pod.metadata.uid);
    const result = await giveBackVolumes(this.ctx.registry, pod, this.ctx.signal);
    if (!result.ok) throw new Error(result.failure.message);
  }

  publish(context: WorkerContext, finished: boolean): void {
    this.reports.publish(context, finished);
  }

  report(report: WorkerReport): void {
    this.reports.report(report);
  }

  backingOff(job: StartJob): void {
    const message = `Back-off restarting failed container ${job.container.name} in pod ${podDescription(job.pod)}`;
    this.event(job.pod, 'Warning', 'BackOff', message, job.container);
  }

  /** What was given up, as its pod ends, failed at nothing: not told. */
  private startFailed({ pod, container }: StartJob, error: string, signal: AbortSignal): void {
    if (!signal.aborted) this.event(pod, 'Warning', 'Failed', `Error: ${error}`, container);
  }

  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string, container?: Pick<Container, 'name'>): void {
    const fieldPath = container === undefined ? undefined : eventFieldPath(pod, container.name);
    this.ctx.registry.send(eventsAddr, {
      type: 'event.record',
      event: { type, reason, message, pod: podRef(pod), ...(fieldPath === undefined ? {} : { fieldPath }) },
    });
  }

  private async act(pod: Pod, call: CriCall, signal: AbortSignal): Promise<CriResult> {
    const [result] = await this.acts(pod, [call], signal);
    if (result === undefined) throw new Error(`CRI link: no result for ${call.method} of pod ${pod.metadata.uid}`);
    return result;
  }

  private async acts(pod: Pod, calls: readonly CriCall[], signal: AbortSignal): Promise<readonly CriResult[]> {
    if (calls.length === 0) return [];
    this.inspector.acts.begin();
    const results = await this.cri.act(pod.metadata.uid, this.ctx.incarnation, calls, { signal });
    this.inspector.acts.ended(calls, results);
    return results;
  }
}
