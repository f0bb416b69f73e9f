/** Whether a container that is not running is to be started (again), and who counts as a sidecar. */
import type { Container, ContainerRestartRule } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import type { RestartPolicy } from '../../kube/words.ts';
import type { RuntimeContainer } from './seen.ts';

/** A sidecar: an init container that is kept running beside the regular ones. To be asked of init containers only. */
export function isRestartableInit(container: Container): boolean {
  return container.restartPolicy === 'Always';
}

/** The pod's policy; Always when a pod came without the API's default. */
export function podRestartPolicy(pod: Pod): RestartPolicy {
  return pod.spec.restartPolicy ?? 'Always';
}

/** The container's own policy, else its pod's. */
export function restartPolicyOf(container: Container, pod: Pod): RestartPolicy {
  const { restartPolicy: own } = container;
  return own === 'Always' || own === 'OnFailure' || own === 'Never' ? own : podRestartPolicy(pod);
}

function matches({ exitCodes }: ContainerRestartRule, exitCode: number): boolean {
  if (exitCodes === undefined) return false;
  const listed = exitCodes.values?.includes(exitCode) === true;
  return exitCodes.operator === 'In' ? listed : exitCodes.operator === 'NotIn' && !listed;
}

/** The first of its rules that is about this end. Each of them restarts it, alone or with all containers of its pod. */
export function matchingRule(container: Container, exitCode: number): ContainerRestartRule | undefined {
  return container.restartPolicyRules?.find((rule) => matches(rule, exitCode));
}

/** Whether a container that ended so is started again: a rule of its own that matches, else its policy, else its pod's. */
export function restartsAfter(container: Container, pod: Pod, exitCode: number): boolean {
  if (matchingRule(container, exitCode) !== undefined) return true;
  const policy = restartPolicyOf(container, pod);
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

/** The same of an instance that ended: one that the worker stopped to replace it is followed by another in any case. */
export function isFollowed(container: Container, pod: Pod, ended: Pick<RuntimeContainer, 'exitCode' | 'replaced'>): boolean {
  return ended.replaced === true || restartsAfter(container, pod, ended.exitCode);
}

/** Whether there is an end after which it would be started again. */
export function mayRestart(container: Container, pod: Pod): boolean {
  return restartPolicyOf(container, pod) !== 'Never' || (container.restartPolicyRules?.length ?? 0) > 0;
}

/** Pod lifecycle 5.2 `shouldRestart`. A sidecar counts as Always, so that one which crashes in a Never pod is shown as waiting. */
export function shouldRestart(input: { container: Container; pod: Pod; newest: RuntimeContainer | undefined }): boolean {
  const { container, pod, newest } = input;
  if (pod.metadata.deletionTimestamp) return false;
  if (newest === undefined) return true;
  if (newest.state === 'running') return false;
  if (newest.state === 'unknown' || newest.state === 'created') return true;
  return isFollowed(container, pod, newest);
}
