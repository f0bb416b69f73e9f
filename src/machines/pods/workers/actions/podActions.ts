/**
 * What to do about one pod, from its definition and what the runtime was seen to hold (pod lifecycle 5.2): replace the
 * sandbox, start or stop which containers. Pure: the same inputs give the same actions.
 */

import type { Container } from '../../../kube/podTable.ts';
import type { Pod } from '../../../kube/types.ts';
import { matchesHash } from '../../../pod/runtime/containerHash.ts';
import { findContainer } from '../../../pod/runtime/killOrder.ts';
import { checkSandbox, firstStatus } from '../../../pod/runtime/runtimeStatus.ts';
import type { PodActions, PodRuntimeStatus, RuntimeContainer } from '../../../pod/runtime/seen.ts';
import { isFollowed, mayRestart, podRestartPolicy, restartPolicyOf, shouldRestart } from '../../../pod/runtime/shouldRestart.ts';
import { initActions } from './initActions.ts';
import { askedKill, type Kill, type PodActionsInput, resizeKill, unknownKill } from './kills.ts';

/** The decision itself. `containersToKill` and the start lists are in the order in which they are to be done. */
export function computePodActions(input: PodActionsInput): PodActions {
  const { pod, status } = input;
  const sandbox = checkSandbox(pod, status);
  const actions: PodActions = {
    killPod: sandbox.changed,
    createSandbox: sandbox.changed,
    sandboxId: sandbox.sandboxId,
    attempt: sandbox.attempt,
    initToStart: [],
    containersToStart: [],
    ephemeralToStart: [],
    containersToKill: [],
    initializing: false,
  };
  if (input.restartingAll === true) return actions;
  if (sandbox.changed) {
    fromScratch(pod, status, actions);
    return actions;
  }
  undeclared(pod, status, actions);
  for (const container of pod.spec.ephemeralContainers ?? []) {
    if (firstStatus(status, container.name) === undefined) actions.ephemeralToStart.push(container.name);
  }
  // Every regular container ended for good: a sidecar that ended too is not started once more (the reference does).
  const finished = pod.spec.containers.every((container) => {
    const newest = firstStatus(status, container.name);
    return newest?.state === 'exited' && !shouldRestart({ container, pod, newest });
  });
  if (finished) {
    actions.killPod = true;
    return actions;
  }
  const initialized = initActions(input, actions);
  if (actions.killPod || !initialized) {
    actions.initializing = !initialized;
    return actions;
  }
  regularActions(input, actions);
  return actions;
}

/** Names of all that is to start. */
export function toStart({ initToStart, containersToStart, ephemeralToStart }: PodActions): ReadonlySet<string> {
  return new Set([...initToStart, ...containersToStart, ...ephemeralToStart]);
}

/** A sandbox is missing or unusable: what would start in a new one, and whether one is worth creating. */
function fromScratch(pod: Pod, status: PodRuntimeStatus, actions: PodActions): void {
  const never = !pod.spec.containers.some((c) => mayRestart(c, pod));
  if (never && actions.attempt !== 0 && status.containers.length > 0) {
    actions.createSandbox = false;
    return;
  }
  const succeeded = (name: string): boolean => {
    const newest = firstStatus(status, name);
    return newest?.state === 'exited' && newest.exitCode === 0 && newest.replaced !== true;
  };
  const ownRules = pod.spec.containers.some((c) => c.restartPolicy !== undefined);
  const start = pod.spec.containers
    .filter((c) => (ownRules ? startsAnew(c, pod, status) : podRestartPolicy(pod) !== 'OnFailure' || !succeeded(c.name)))
    .map((c) => c.name);
  if (start.length === 0 && pod.spec.containers.some((c) => everCreated(firstStatus(status, c.name)))) {
    actions.createSandbox = false;
    return;
  }
  const firstInit = pod.spec.initContainers?.[0];
  if (firstInit !== undefined) {
    actions.initToStart.push(firstInit.name);
    actions.initializing = true;
    return;
  }
  actions.containersToStart = start;
}

/** In a new sandbox: where containers have policies of their own, one whose last end forbids another start stays ended. */
function startsAnew(container: Container, pod: Pod, status: PodRuntimeStatus): boolean {
  const newest = firstStatus(status, container.name);
  return newest?.state !== 'exited' || isFollowed(container, pod, newest);
}

/** What still runs under a name that the definition no longer has is stopped; the reference leaves it running (trap 33). */
function undeclared(pod: Pod, status: PodRuntimeStatus, actions: PodActions): void {
  for (const { id, name, state } of status.containers) {
    if (state !== 'running' || findContainer(pod, name) !== undefined) continue;
    actions.containersToKill.push({ id, name, message: `Container ${name} is no longer in the definition`, reason: 'definitionChanged' });
  }
}

function everCreated(container: RuntimeContainer | undefined): boolean {
  return container !== undefined && container.state !== 'unknown';
}

/** Why a running regular container has to be stopped, and whether it starts again; undefined to keep it. */
function reasonToKill(container: Container, newest: RuntimeContainer, input: PodActionsInput): (Kill & { restart: boolean }) | undefined {
  const because = (what: string, reason: Kill['reason'], restart: boolean) => ({
    message: `Container ${container.name} ${what}${restart ? ', will be restarted' : ''}`,
    ...{ reason, restart },
  });
  if (!matchesHash(container, newest.hash)) return because('definition changed', 'definitionChanged', true);
  const restart = restartPolicyOf(container, input.pod) !== 'Never';
  if (input.liveness?.get(newest.id) === 'failure') return because('failed liveness probe', 'LivenessProbe', restart);
  if (input.startup?.get(newest.id) === 'failure') return because('failed startup probe', 'StartupProbe', restart);
  const asked = askedKill(container, newest.id, input) ?? resizeKill(container, input);
  return asked === undefined ? undefined : { ...asked, restart: true };
}

function regularActions(input: PodActionsInput, actions: PodActions): void {
  const { pod, status } = input;
  let kept = 0;
  for (const container of pod.spec.containers) {
    const { name } = container;
    const newest = firstStatus(status, name);
    if (newest?.state !== 'running') {
      if (!shouldRestart({ container, pod, newest })) continue;
      actions.containersToStart.push(name);
      // It may be running all the same: stop it first, so that two instances never run at once.
      if (newest?.state === 'unknown') actions.containersToKill.push({ id: newest.id, name, ...unknownKill(`Container ${name}`) });
      continue;
    }
    const kill = reasonToKill(container, newest, input);
    if (kill === undefined) {
      kept += 1;
      continue;
    }
    const { restart, ...why } = kill;
    if (restart) actions.containersToStart.push(name);
    actions.containersToKill.push({ id: newest.id, name, ...why });
  }
  if (kept === 0 && actions.containersToStart.length === 0) {
    actions.killPod = true;
    // Sidecars must not keep a finished pod alive.
    actions.initToStart = [];
  }
}
