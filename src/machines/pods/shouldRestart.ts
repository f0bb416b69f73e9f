/** Whether a container that is not running is to be started (again), and who counts as a sidecar. */
import type { Container, Pod, RestartPolicy } from '../k8s.ts';
import type { RuntimeContainer } from './types.ts';

/** A sidecar: an init container that is kept running beside the regular ones. */
export function isRestartableInit(container: Container): boolean {
  return container.restartPolicy === 'Always';
}

/** The pod's policy; Always when a pod came without the API's default. */
export function podRestartPolicy(pod: Pod): RestartPolicy {
  return pod.spec.restartPolicy ?? 'Always';
}

/**
 * Pod lifecycle 5.2 `shouldRestart`, container restart rules (alpha in 1.34) left out. A sidecar counts as Always
 * whatever the pod's policy, so that one which crashes in a Never pod is shown as waiting, as it is.
 */
export function shouldRestart(input: { container: Container; pod: Pod; newest: RuntimeContainer | undefined }): boolean {
  const { container, pod, newest } = input;
  if (pod.metadata.deletionTimestamp) return false;
  if (newest === undefined) return true;
  if (newest.state === 'running') return false;
  if (newest.state === 'unknown' || newest.state === 'created') return true;
  const sidecar = isRestartableInit(container) && pod.spec.initContainers?.some((c) => c.name === container.name) === true;
  const policy = sidecar ? 'Always' : podRestartPolicy(pod);
  if (policy === 'Never') return false;
  return policy === 'Always' || newest.exitCode !== 0;
}
