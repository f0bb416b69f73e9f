/** What to do about the init containers of a pod, sidecars among them (pod lifecycle 5.2). Pure. */

import type { Container } from '../../../kube/podTable.ts';
import { matchesHash } from '../../../pod/runtime/containerHash.ts';
import { firstStatus } from '../../../pod/runtime/runtimeStatus.ts';
import type { KillContainer, PodActions, RuntimeContainer } from '../../../pod/runtime/seen.ts';
import { isFollowed, isRestartableInit, restartPolicyOf } from '../../../pod/runtime/shouldRestart.ts';
import { askedKill, type Kill, type PodActionsInput, resizeKill, unknownKill } from './kills.ts';

/** How one init container stands, and what follows from it. */
interface InitStep {
  start?: boolean;
  /** Stop it first. */
  kill?: Kill;
  /** It did its part: the one after it may start, or, if it is the last, the regular containers. */
  passed?: boolean;
  /** It failed and the pod's policy forbids another try. */
  failedForGood?: boolean;
}

/**
 * Fills in the init part and answers whether initialisation is complete. Walks from the last init container backwards, because finished
 * earlier ones may have been collected: the newest evidence decides, and everything before it counts as having passed.
 */
export function initActions(input: PodActionsInput, actions: PodActions): boolean {
  const { pod, status } = input;
  const inits = pod.spec.initContainers ?? [];
  if (inits.length === 0) return true;
  // Exited does not count: after a reboot every container is exited, and the new sandbox is not initialised. Nor does one
  // that was created in a sandbox before it and never started.
  const sandboxAtNs = status.sandboxes[0]?.createdAtNs ?? 0n;
  let initialized = pod.spec.containers.some((c) => {
    const newest = firstStatus(status, c.name);
    return newest?.state === 'running' || (newest?.state === 'created' && newest.createdAtNs >= sandboxAtNs);
  });
  let passedBefore = initialized;
  // What this worker stopped to replace it ran in this sandbox: an init container of which nothing is left was collected since.
  const ranHere = pod.spec.containers.some((c) => {
    const newest = firstStatus(status, c.name);
    return newest?.state === 'exited' && newest.replaced === true && newest.createdAtNs >= sandboxAtNs;
  });
  const starts = new Set<number>();
  const pass = (i: number): void => {
    if (i === inits.length - 1) initialized = true;
    else if (!passedBefore) starts.add(i + 1);
  };

  for (let i = inits.length - 1; i >= 0; i -= 1) {
    const container = inits[i];
    if (container === undefined) continue;
    const newest = firstStatus(status, container.name);
    if (newest === undefined) {
      if (passedBefore && isRestartableInit(container)) starts.add(i);
      if (!ranHere || isRestartableInit(container)) continue;
      pass(i);
      passedBefore = true;
      continue;
    }
    if (passedBefore && !isRestartableInit(container)) continue;
    const own = isRestartableInit(container) ? sidecarStep(container, newest, input) : initStep(container, newest, input);
    // A sidecar gets other resources once it has passed.
    const resizes = newest.state === 'running' && (own.passed === true || !isRestartableInit(container));
    const asked = newest.state === 'running' ? askedKill(container, newest.id, input) : undefined;
    const wish = (resizes ? resizeKill(container, input) : undefined) ?? asked;
    const step = own.kill === undefined && wish !== undefined ? { ...own, start: true, kill: wish } : own;
    if (step.failedForGood === true) {
      actions.killPod = true;
      actions.containersToKill = [];
      return false;
    }
    if (step.kill !== undefined) actions.containersToKill.push({ id: newest.id, name: container.name, ...step.kill });
    if (step.start === true) starts.add(i);
    if (step.passed === true) pass(i);
    passedBefore = true;
  }
  if (!passedBefore) starts.add(0);
  actions.initToStart = [...starts].sort((a, b) => a - b).map((i) => inits[i]?.name ?? '');
  actions.containersToKill.reverse();
  return initialized;
}

function initStep(container: Container, newest: RuntimeContainer, { pod }: PodActionsInput): InitStep {
  const never = restartPolicyOf(container, pod) === 'Never';
  switch (newest.state) {
    case 'created':
      return { start: true };
    case 'running':
      return {};
    case 'exited':
      if (newest.exitCode === 0 && newest.replaced !== true) return { passed: true };
      return never && !isFollowed(container, pod, newest) ? { failedForGood: true } : { start: true };
    case 'unknown':
      return never ? { failedForGood: true } : { start: true, kill: unknownKill(`Init container ${container.name}`) };
  }
}

function sidecarStep(container: Container, newest: RuntimeContainer, input: PodActionsInput): InitStep {
  switch (newest.state) {
    case 'created':
    case 'exited':
      return { start: true };
    case 'unknown':
      return { start: true, kill: unknownKill(`Init container ${container.name}`) };
    case 'running':
      break;
  }
  const again = (what: string, reason: KillContainer['reason']): InitStep => ({
    start: true,
    kill: { message: `Init container ${container.name} ${what}, will be restarted`, reason },
  });
  if (input.hookAhead?.has(container.name) === true) {
    return matchesHash(container, newest.hash) ? {} : again('definition changed', 'definitionChanged');
  }
  if (container.startupProbe !== undefined) {
    const startup = input.startup?.get(newest.id);
    if (startup === 'failure') return again('failed startup probe', 'StartupProbe');
    if (startup !== 'success') return {};
  }
  if (!matchesHash(container, newest.hash)) return { ...again('definition changed', 'definitionChanged'), passed: true };
  if (container.livenessProbe !== undefined && input.liveness?.get(newest.id) === 'failure') {
    return { ...again('failed liveness probe', 'LivenessProbe'), passed: true };
  }
  return { passed: true };
}
