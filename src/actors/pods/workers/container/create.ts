/**
 * One container is made, step by step: room for it, what its configuration is made of, the configuration, the call. A time-out is
 * `unknown`, never `failed`.
 */

import type { ContainerShare } from '../../../../machines/allocation/messages.ts';
import { pathName } from '../../../../machines/pod/pathName.ts';
import { containerLogDir, podFolder, restartCountFromLogNames } from '../../../../machines/pod/runtime/logNames.ts';
import { type ContainerConfigResult, generateContainerConfig } from '../../../../machines/pods/workers/config/containerConfig.ts';
import { type EnvSources, envVariables } from '../../../../machines/pods/workers/config/env.ts';
import type { EnvFiles } from '../../../../machines/pods/workers/config/envFile.ts';
import type { SandboxConfigResult } from '../../../../machines/pods/workers/config/sandboxConfig.ts';
import { CREATING, EARLIER_START } from '../../../../machines/pods/workers/container/containerSetup.ts';
import type { ActOutcome, Cleared, Created, CreateRequest, StartJob } from '../../../../machines/pods/workers/container/startJob.ts';
import type { Built } from '../../../../machines/result.ts';
import type { ContainerConfig, Device, ImageSpec, PodSandboxConfig } from '../../../../machines/wire/cri.ts';
import { handlingPod } from '../../../../ports/handling.ts';
import { containerShare, doubtClaims } from '../../../allocation/client.ts';
import { envSources } from '../../../services/client.ts';
import type { Acts } from '../acts.ts';
import { failedBecause, removals, unknownOr } from '../outcomes.ts';
import { resizePodGroup } from '../sandbox/podGroup.ts';
import { presentSandbox } from '../sandbox/sandbox.ts';
import { debugTarget } from './debugTarget.ts';
import { readEnvFiles } from './envFiles.ts';
import { hostsMount, LOG_DIR_MODE, terminationLogMount } from './files.ts';
import { type MountsGiven, mountedVolumes, volumeDevices, volumeMounts } from './volumes.ts';

/** What containerd answers to a removal in the middle of a start. */
const START_UNDER_WAY = /in starting state/;

/** `images`: what images of volumes came to when they were pulled. */
export async function createContainer(
  acts: Acts,
  { images, ...input }: CreateRequest & { images: ReadonlyMap<string, ImageSpec> },
  signal: AbortSignal,
): Promise<Created> {
  const { job } = input;
  const room = await makeRoom(acts, job, signal);
  if (room.kind !== 'room') return room;
  const parts = await gather(acts, { job, images }, signal);
  if (signal.aborted) return { kind: 'unknown', details: 'cancelled before the container was asked for' };
  const configs = await configure(acts, { ...input, restartCount: room.restartCount, parts }, signal);
  if (!configs.ok) {
    acts.startFailed(job, configs.message, signal);
    return failedBecause('CreateContainerConfigError', configs.message, parts.share.ok ? undefined : 'later');
  }
  return call(acts, { job, restartCount: room.restartCount, ...configs.value }, signal);
}

/** The folder of its logs, the pod's cgroup as large as it needs, and no earlier instance that may still start. */
async function makeRoom(
  acts: Acts,
  job: StartJob,
  signal: AbortSignal,
): Promise<{ kind: 'room'; restartCount: number } | ActOutcome<never> | Cleared> {
  const { pod, container } = job;
  const facts = acts.facts();
  const logDir = containerLogDir(facts.podLogsDir, podFolder(pod.metadata), pathName(container.name));
  const firstLog = await acts.ctx.ports.fs.mkdirp(logDir, LOG_DIR_MODE);
  // It may start with more than its predecessor had.
  const group = await resizePodGroup(acts.ctx, { facts, pod, how: 'raise' }, signal);
  if (group !== null) {
    const reason = group.later === undefined ? 'CreateContainerError' : CREATING;
    return failedBecause(reason, `the pod's cgroup: ${group.message}`, group.later && 'later');
  }
  const left = await removeUnstarted(acts, job, signal);
  if (left !== null) return left;
  return { kind: 'room', restartCount: await restartCountOf(acts, job, firstLog ? null : logDir) };
}

/**
 * An instance that was created and never seen to start is left over from an act of unknown outcome, and its start may
 * still come: removed first, so that two never run at once. It may have started before it went, and been shown running:
 * what the next one counts is decided by a look that began after it was gone. Null when nothing stands in the way.
 */
async function removeUnstarted(acts: Acts, job: StartJob, signal: AbortSignal): Promise<ActOutcome<never> | Cleared | null> {
  const { pod, unstarted } = job;
  const calls = removals(unstarted);
  const result = (await acts.all(pod, calls, signal)).find((r) => !r.ok);
  if (result === undefined || result.ok) return calls.length === 0 ? null : { kind: 'cleared' };
  if (START_UNDER_WAY.test(result.error.details)) {
    return { kind: 'failed', failure: { reason: EARLIER_START, message: 'an earlier start of it is still under way in the runtime' } };
  }
  const message = `an instance that was created and not started cannot be removed: ${result.error.details}`;
  acts.startFailed(job, message, signal);
  return unknownOr({ ...result.error, details: message }, 'CreateContainerError');
}

/** Where the runtime holds no instance any more, logs tell of those there were. `logDir` null: there are none. */
async function restartCountOf(acts: Acts, { newest, clearedCount, restartCount }: StartJob, logDir: string | null): Promise<number> {
  if (clearedCount !== undefined) return Math.max(restartCount ?? 0, clearedCount);
  if (newest !== null && restartCount !== null) return restartCount;
  // Beside another kubelet the newest log is that of the very instance which is waited for.
  if (logDir === null || acts.ctx.ports.observer !== undefined) return restartCount ?? 0;
  return Math.max(restartCount ?? 0, restartCountFromLogNames(await acts.ctx.ports.fs.readdir(logDir)));
}

/** What the configuration is made of. Each part is asked for, also where an earlier one is missing. */
interface Parts {
  sandbox: SandboxConfigResult;
  cluster: Built<EnvSources | undefined>;
  files: EnvFiles;
  share: Built<ContainerShare>;
  mounts: Built<MountsGiven>;
  devices: Built<Device[]>;
}

async function gather(
  acts: Acts,
  { job, images }: { job: StartJob; images: ReadonlyMap<string, ImageSpec> },
  signal: AbortSignal,
): Promise<Parts> {
  const { ctx } = acts;
  const { pod, container } = job;
  const facts = acts.facts();
  const sandbox = await presentSandbox(ctx, { pod, attempt: job.sandboxAttempt, facts });
  const cluster = await envSources(ctx, job, signal);
  const files = await readEnvFiles(ctx.ports.fs, container, () => mountedVolumes(ctx.registry, pod, signal));
  const share = await containerShare(ctx, job, signal);
  const given = share.ok ? share.value.envs : [];
  const variables = () =>
    cluster.ok ? envVariables({ pod, container, podIPs: job.podIPs, facts, ...envFrom({ cluster, files }) }, given) : cluster;
  const mounts = await volumeMounts(ctx, { pod, container, variables, images, handler: job.handler }, signal);
  const devices = await volumeDevices(ctx.registry, job, signal);
  return { sandbox, cluster, files, share, mounts, devices };
}

function envFrom({ cluster, files }: Pick<Parts, 'cluster' | 'files'>): { files: EnvFiles; cluster?: EnvSources } {
  return { files, ...(cluster.ok && cluster.value !== undefined ? { cluster: cluster.value } : {}) };
}

interface Configs {
  config: ContainerConfig;
  sandboxConfig: PodSandboxConfig;
}

/** The want of the sandbox's configuration is said first. */
async function configure(
  acts: Acts,
  input: CreateRequest & { restartCount: number; parts: Parts },
  signal: AbortSignal,
): Promise<Built<Configs>> {
  const { sandbox } = input.parts;
  const config = await configOf(acts, input, signal);
  if (!sandbox.ok) return sandbox;
  return config.ok ? { ok: true, value: { config: config.config, sandboxConfig: sandbox.config } } : config;
}

async function configOf(
  acts: Acts,
  { job, imageRef, imageUser, restartCount, parts }: CreateRequest & { restartCount: number; parts: Parts },
  signal: AbortSignal,
): Promise<ContainerConfigResult> {
  const { sandbox, cluster, files, share, mounts, devices } = parts;
  if (!mounts.ok) return mounts;
  if (!share.ok) return share;
  if (!devices.ok) return devices;
  if (!cluster.ok) return cluster;
  const { ctx } = acts;
  const { pod, container, kind, podIPs } = job;
  const facts = acts.facts();
  const target = await debugTarget(acts.cri, job, signal);
  const ownFiles = [...(await hostsMount(ctx, facts, job)), ...(await terminationLogMount(ctx, facts, job))];
  return handlingPod(ctx.ports, pod.metadata.uid, () =>
    generateContainerConfig({
      ...{ ...envFrom({ cluster, files }), pod, container, kind, restartCount, imageRef, imageUser, podIPs, facts, ...target },
      userNamespace: sandbox.ok ? sandbox.config.linux?.securityContext?.namespaceOptions?.usernsOptions : undefined,
      devices: devices.value,
      share: share.value,
      volumeGroups: mounts.value.groups,
      mounts: [...mounts.value.mounts, ...ownFiles],
    }),
  );
}

async function call(acts: Acts, o: Configs & { job: StartJob; restartCount: number }, signal: AbortSignal): Promise<Created> {
  const { job, restartCount, config, sandboxConfig } = o;
  const { pod, container } = job;
  const result = await acts.one(
    pod,
    { method: 'CreateContainer', request: { podSandboxId: job.sandboxId, config, sandboxConfig } },
    signal,
  );
  if (result.ok) {
    acts.event(pod, 'Normal', 'Created', 'Container created', container);
    return { kind: 'done', value: { id: (result.value as { containerId: string }).containerId, restartCount } };
  }
  acts.inspector.doubt();
  doubtClaims(acts.ctx, pod, result.error.details);
  acts.startFailed(job, result.error.details, signal);
  return unknownOr(result.error, 'CreateContainerError');
}
