/**
 * The rule of a container that restarts all containers of its pod (KEP-5532): when it applies, what is taken away first, and
 * when all of it is gone. The condition `AllContainersRestarting` is what a later daemon goes on by. Pure.
 */

import type { Container } from '../../kube/podTable.ts';
import type { ContainerState, Pod, PodStatus } from '../../kube/types.ts';
import { OWN_ENDS } from '../ends/ownEnds.ts';
import { firstStatus } from './runtimeStatus.ts';
import type { PodRuntimeStatus, ResetGroup, RuntimeContainer } from './seen.ts';
import { matchingRule } from './shouldRestart.ts';

/** Type of the pod's condition. */
export const ALL_RESTARTING = 'AllContainersRestarting';
/** Reason of a container that was taken away for it. */
export const RESTARTING_ALL = 'RestartingAllContainers';

const restarted = (pod: Pod): readonly Container[] => [...(pod.spec.initContainers ?? []), ...pod.spec.containers];

/** Some container has such a rule. */
export function mayRestartAll(pod: Pod): boolean {
  return restarted(pod).some((c) => c.restartPolicyRules?.some((rule) => rule.action === 'RestartAllContainers') === true);
}

/** It ended so that a rule of its own restarts all containers. That a person asked for its end is no such end. */
function asksForAll(container: Container, instance: RuntimeContainer | undefined): boolean {
  return (
    instance?.state === 'exited' && instance.asked !== true && matchingRule(container, instance.exitCode)?.action === 'RestartAllContainers'
  );
}

/** It began, by what was said before, or begins with what the runtime shows. */
export function restartsAll(pod: Pod, status: PodRuntimeStatus, old: PodStatus | undefined): boolean {
  if (!mayRestartAll(pod)) return false;
  const said = old?.conditions?.some((c) => c.type === ALL_RESTARTING && c.status === 'True') === true;
  return said || restarted(pod).some((container) => asksForAll(container, firstStatus(status, container.name)));
}

/** The runtime holds none of the containers that restart; ephemeral ones stay. */
export function isCleared(pod: Pod, status: PodRuntimeStatus): boolean {
  return restarted(pod).every((c) => firstStatus(status, c.name) === undefined);
}

/** Of a container that was taken away: how it is shown until it starts again. */
export const TAKEN_AWAY: { state: ContainerState; lastState: ContainerState } = {
  state: { waiting: { reason: RESTARTING_ALL, message: OWN_ENDS.restartingAll } },
  lastState: { terminated: { exitCode: 137, reason: RESTARTING_ALL, message: OWN_ENDS.restartingAll } },
};

/**
 * What is taken away, group after group: regular containers, then sidecars and init containers. Those that asked for it go last: as
 * long as one of them is there, a daemon that begins in the middle goes on.
 */
export function containersToReset(pod: Pod, status: PodRuntimeStatus): ResetGroup[] {
  const of = (containers: readonly Container[]) =>
    containers.flatMap((container) =>
      status.containers.filter((c) => c.name === container.name).map((instance) => ({ instance, asked: asksForAll(container, instance) })),
    );
  const [regular, inits] = [of(pod.spec.containers), of(pod.spec.initContainers ?? [])];
  const group = (from: typeof regular, asked: boolean): ResetGroup => {
    const instances = from.filter((c) => c.asked === asked).map(({ instance }) => instance);
    const stop = instances.filter((c) => c.state === 'running' || c.state === 'unknown');
    return { stop: stop.map(({ id, name }) => ({ id, name })), remove: instances.map((c) => c.id) };
  };
  const groups = [group(regular, false), group(inits, false), group(regular, true), group(inits, true)];
  return groups.filter(({ remove }) => remove.length > 0);
}
