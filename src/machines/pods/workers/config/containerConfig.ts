/** What CRI is told of one container (pod lifecycle 5.10). */

import { type ContainerShare, NO_SHARE } from '../../../allocation/messages.ts';
import type { Container } from '../../../kube/podTable.ts';
import type { Pod } from '../../../kube/types.ts';
import type { NodeFacts } from '../../../nodeFacts.ts';
import { ExecRoom, expandAll } from '../../../pod/execLimits.ts';
import { encodeHandler, encodePorts } from '../../../pod/goJson.ts';
import { pathName } from '../../../pod/pathName.ts';
import { writeAmounts } from '../../../pod/resources/amounts.ts';
import { memoryControls } from '../../../pod/resources/memoryControl.ts';
import { effectiveAmounts } from '../../../pod/resources/podLevel.ts';
import { qosClass } from '../../../pod/resources/qos.ts';
import { containerResources } from '../../../pod/resources/resources.ts';
import { hashNameAndImage } from '../../../pod/runtime/containerHash.ts';
import { containerLogPath } from '../../../pod/runtime/logNames.ts';
import { criSignal } from '../../../pod/runtime/stopSignal.ts';
import { refused } from '../../../result.ts';
import {
  type ContainerConfig,
  CRI_ANNOTATIONS,
  CRI_LABELS,
  type Device,
  type LinuxContainerResources,
  type Mount,
  type UserNamespace,
} from '../../../wire/cri.ts';
import { byName, containerEnv, type EnvSources } from './env.ts';
import type { EnvFiles } from './envFile.ts';
import { podLabels } from './sandboxConfig.ts';
import { containerSecurity, type ImageUser } from './security.ts';

export type { ImageUser } from './security.ts';

export interface ContainerConfigInput {
  pod: Pod;
  container: Container;
  kind: 'init' | 'regular' | 'ephemeral';
  restartCount: number;
  /** What the image manager answered: digest or id. */
  imageRef: string;
  /** Null: not known; then the runtime applies the image's user. */
  imageUser: ImageUser | null;
  podIPs: readonly string[];
  facts: NodeFacts;
  mounts: readonly Mount[];
  /** Devices that are volumes. */
  devices?: readonly Device[];
  volumeGroups?: readonly number[];
  /** What was allocated to it. */
  share?: ContainerShare;
  /** Newest instance of an ephemeral container's target. */
  targetContainerId?: string;
  /** The sandbox's; absent: the users of the host. */
  userNamespace?: UserNamespace | undefined;
  /** Absent: the node belongs to no cluster. */
  cluster?: EnvSources;
  /** Files that variables come from. */
  files?: EnvFiles;
}
export type ContainerConfigResult =
  | { ok: true; config: ContainerConfig }
  /** Becomes `CreateContainerConfigError`. */
  | { ok: false; message: string };

/** What must survive a restart of the node agent is written on the container itself. */
export function containerAnnotations(pod: Pod, container: Container, restartCount: number): Record<string, string> {
  const { deletionGracePeriodSeconds } = pod.metadata;
  const { terminationGracePeriodSeconds } = pod.spec;
  const preStop = container.lifecycle?.preStop;
  return {
    [CRI_ANNOTATIONS.hash]: hashNameAndImage(container),
    [CRI_ANNOTATIONS.restartCount]: String(restartCount),
    [CRI_ANNOTATIONS.terminationMessagePath]: container.terminationMessagePath ?? '',
    [CRI_ANNOTATIONS.terminationMessagePolicy]: container.terminationMessagePolicy ?? '',
    ...(deletionGracePeriodSeconds === undefined ? {} : { [CRI_ANNOTATIONS.podDeletionGracePeriod]: String(deletionGracePeriodSeconds) }),
    ...(terminationGracePeriodSeconds === undefined
      ? {}
      : { [CRI_ANNOTATIONS.podTerminationGracePeriod]: String(terminationGracePeriodSeconds) }),
    ...(preStop === undefined ? {} : { [CRI_ANNOTATIONS.preStopHandler]: encodeHandler(preStop) }),
    ...(container.ports === undefined || container.ports.length === 0 ? {} : { [CRI_ANNOTATIONS.ports]: encodePorts(container.ports) }),
    // Where nothing is asked for nothing can change: it would be another class of pod.
    ...(qosClass(pod) === 'BestEffort' ? {} : { [CRI_ANNOTATIONS.resources]: writeAmounts(effectiveAmounts(pod, container)) }),
  };
}

/** Files belong on the disk to whom they belong in the container: the mount maps the ids, not the files. */
function mapped(mount: Mount, users: UserNamespace | undefined): Mount {
  return users === undefined ? mount : { ...mount, uidMappings: users.uids, gidMappings: users.gids };
}

/** No quota is -1: 0 would leave it to the runtime. */
function allocated(resources: LinuxContainerResources, { cpus, quotaLifted, mems }: ContainerShare): LinuxContainerResources {
  return {
    ...resources,
    ...(quotaLifted === true && resources.cpuQuota !== undefined ? { cpuQuota: -1 } : {}),
    ...(cpus === undefined ? {} : { cpusetCpus: cpus }),
    ...(mems === undefined ? {} : { cpusetMems: mems }),
  };
}

export function generateContainerConfig(input: ContainerConfigInput): ContainerConfigResult {
  const { pod, container, facts } = input;
  const sources = {
    ...(input.cluster === undefined ? {} : { cluster: input.cluster }),
    ...(input.files === undefined ? {} : { files: input.files }),
  };
  const room = new ExecRoom();
  const { share = NO_SHARE } = input;
  const { envs: given, annotations: told, cdiDevices } = share;
  for (const { key, value } of given) {
    const why = room.take(`${key}=${value}`);
    if (why !== null) return refused(`container "${container.name}": environment variable "${key}" of a device plugin ${why}`);
  }
  const env = containerEnv({ pod, container, podIPs: input.podIPs, facts, ...sources }, room);
  if (!env.ok) return env;
  // Variables of the pod come later, and win.
  const envs = [...given, ...env.value];
  const variables = byName(envs);
  const expanded = (what: 'command' | 'args') =>
    expandAll(container[what] ?? [], (name) => variables.get(name), { room, what: `container "${container.name}": ${what}` });
  const command = expanded('command');
  if (!command.ok) return command;
  const args = expanded('args');
  if (!args.ok) return args;
  const security = containerSecurity({
    pod,
    container,
    imageUser: input.imageUser,
    facts,
    targetContainerId: input.targetContainerId,
    userNamespace: input.userNamespace,
    volumeGroups: input.volumeGroups,
  });
  if (!security.ok) return security;
  const stopSignal = container.lifecycle?.stopSignal;
  return {
    ok: true,
    config: {
      metadata: { name: container.name, attempt: input.restartCount },
      image: { image: input.imageRef, userSpecifiedImage: container.image ?? '' },
      command: command.value,
      args: args.value,
      workingDir: container.workingDir ?? '',
      envs,
      mounts: [...share.mounts, ...input.mounts].map((m) => mapped(m, input.userNamespace)),
      devices: [...share.devices, ...(input.devices ?? [])],
      labels: { [CRI_LABELS.containerName]: container.name, ...podLabels(pod) },
      annotations: { ...told, ...containerAnnotations(pod, container, input.restartCount) },
      logPath: containerLogPath(pathName(container.name), input.restartCount),
      stdin: container.stdin ?? false,
      stdinOnce: container.stdinOnce ?? false,
      tty: container.tty ?? false,
      linux: {
        resources: allocated({ ...containerResources(pod, container, facts), ...memoryControls(pod, container, facts) }, share),
        securityContext: security.value,
      },
      ...(cdiDevices.length === 0 ? {} : { CDIDevices: cdiDevices.map((name) => ({ name })) }),
      ...(stopSignal === undefined ? {} : { stopSignal: criSignal(stopSignal) }),
    },
  };
}
