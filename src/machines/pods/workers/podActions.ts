/**
 * What to do about one pod, from its definition and what the runtime was seen to hold (pod lifecycle 5.2): replace the
 * sandbox, start or stop which containers. Pure: the same inputs give the same actions.
 */

import type { Container } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import type { ProbeResults } from '../../pod/probes/probes.ts';
import { type AskedRestarts, askedMessage } from '../../pod/restart/asked.ts';
import { matchesHash } from '../../pod/runtime/containerHash.ts';
import { findContainer } from '../../pod/runtime/killOrder.ts';
import { firstStatus } from '../../pod/runtime/runtimeStatus.ts';
import type { KillContainer, PodActions, PodRuntimeStatus, RuntimeContainer } from '../../pod/runtime/seen.ts';
import {
  isFollowed,
  isRestartableInit,
  mayRestart,
  podRestartPolicy,
  restartPolicyOf,
  shouldRestart,
} from '../../pod/runtime/shouldRestart.ts';

export interface PodActionsInput {
  pod: Pod;
  status: PodRuntimeStatus;
  liveness?: ProbeResults;
  startup?: ProbeResults;
  /** Names of containers whose postStart hook has not ended: what waits for one of them waits on. */
  hookAhead?: ReadonlySet<string>;
  /** Names of running containers that get other resources, which takes a restart. */
  resizeRestarts?: ReadonlySet<string>;
  /** Instances whose restart a person asked for. */
  asked?: AskedRestarts;
  /** All containers restart, and some are still to be taken away: nothing starts before that. Default false. */
  restartingAll?: boolean;
}

export interface SandboxCheck {
  /** A new sandbox is needed. */
  changed: boolean;
  attempt: number;
  /** '' when there is none, or the pod moved to or from the host's network. */
  sandboxId: string;
}

/** Whether the pod's newest sandbox can be used. Sandboxes are newest first. */
export function checkSandbox(pod: Pod, status: PodRuntimeStatus): SandboxCheck {
  const newest = status.sandboxes[0];
  if (newest === undefined) return { changed: true, attempt: 0, sandboxId: '' };
  // The newest need not have the highest number: a call that a crash cut off may make one after its successor, and clocks go back.
  const attempt = 1 + status.sandboxes.reduce((highest, s) => Math.max(highest, s.attempt), 0);
  const replaced = { changed: true, attempt, sandboxId: newest.id };
  const hostNetwork = pod.spec.hostNetwork === true;
  if (status.sandboxes.filter((s) => s.ready).length > 1 || !newest.ready) return replaced;
  if (newest.hostNetwork !== hostNetwork) return { ...replaced, sandboxId: '' };
  if (!hostNetwork && newest.ips.length === 0) return replaced;
  return { changed: false, attempt: newest.attempt, sandboxId: newest.id };
}

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

/** How one init container stands, and what follows from it. */
interface InitStep {
  /** Start it. */
  start?: boolean;
  /** Stop it first. */
  kill?: Pick<KillContainer, 'message' | 'reason'>;
  /** It did its part: the one after it may start, or, if it is the last, the regular containers. */
  passed?: boolean;
  /** It failed and the pod's policy forbids another try. */
  failedForGood?: boolean;
}

/**
 * Fills in the init part and answers whether initialisation is complete. Walks from the last init container backwards,
 * because finished earlier ones may have been collected: the newest evidence decides, and everything before it counts
 * as having passed.
 */
function initActions(input: PodActionsInput, actions: PodActions): boolean {
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
    const step = own.kill === undefined ? { ...own, ...askedStep(container, newest, input) } : own;
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

/** Of a running init container whose restart a person asked for. */
function askedStep({ name }: Container, { id, state }: RuntimeContainer, { asked }: PodActionsInput): Pick<InitStep, 'start' | 'kill'> {
  const over = state === 'running' ? asked?.get(id) : undefined;
  return over === undefined ? {} : { start: true, kill: { message: askedMessage(name, over), reason: 'restartAsked' } };
}

function initStep(container: Container, newest: RuntimeContainer, { pod, resizeRestarts }: PodActionsInput): InitStep {
  const never = restartPolicyOf(container, pod) === 'Never';
  switch (newest.state) {
    case 'created':
      return { start: true };
    case 'running':
      if (resizeRestarts?.has(container.name) !== true) return {};
      return { start: true, kill: { message: resizeMessage(container), reason: 'definitionChanged' } };
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
  if (input.resizeRestarts?.has(container.name) === true) {
    return { start: true, kill: { message: resizeMessage(container), reason: 'definitionChanged' }, passed: true };
  }
  return { passed: true };
}

function unknownKill(who: string): Pick<KillContainer, 'message' | 'reason'> {
  return { message: `${who} is in unknown state, try killing it before restart`, reason: 'Unknown' };
}

/** Why a running regular container has to be stopped, or undefined to keep it. `restart` says whether it starts again. */
function reasonToKill(
  container: Container,
  newest: RuntimeContainer,
  input: PodActionsInput,
): { what: string; reason: KillContainer['reason']; restart: boolean } | undefined {
  if (!matchesHash(container, newest.hash)) return { what: 'definition changed', reason: 'definitionChanged', restart: true };
  const restart = restartPolicyOf(container, input.pod) !== 'Never';
  if (input.liveness?.get(newest.id) === 'failure') return { what: 'failed liveness probe', reason: 'LivenessProbe', restart };
  if (input.startup?.get(newest.id) === 'failure') return { what: 'failed startup probe', reason: 'StartupProbe', restart };
  return undefined;
}

/** Why a regular container that is well restarts all the same. */
function wishToRestart(
  container: Container,
  newest: RuntimeContainer,
  { asked, resizeRestarts }: PodActionsInput,
): Pick<KillContainer, 'message' | 'reason'> | undefined {
  const over = asked?.get(newest.id);
  if (over !== undefined) return { message: askedMessage(container.name, over), reason: 'restartAsked' };
  return resizeRestarts?.has(container.name) === true ? { message: resizeMessage(container), reason: 'definitionChanged' } : undefined;
}

function resizeMessage({ name }: Container): string {
  return `Container ${name} resize requires restart`;
}

function regularActions(input: PodActionsInput, actions: PodActions): void {
  const { pod, status } = input;
  let kept = 0;
  for (const container of pod.spec.containers) {
    const newest = firstStatus(status, container.name);
    if (newest === undefined || newest.state !== 'running') {
      if (!shouldRestart({ container, pod, newest })) continue;
      actions.containersToStart.push(container.name);
      // It may be running all the same: stop it first, so that two instances never run at once.
      if (newest?.state === 'unknown') {
        actions.containersToKill.push({ id: newest.id, name: container.name, ...unknownKill(`Container ${container.name}`) });
      }
      continue;
    }
    const kill = reasonToKill(container, newest, input);
    const wish = kill === undefined ? wishToRestart(container, newest, input) : undefined;
    if (wish !== undefined) {
      actions.containersToStart.push(container.name);
      actions.containersToKill.push({ id: newest.id, name: container.name, ...wish });
      continue;
    }
    if (kill === undefined) {
      kept += 1;
      continue;
    }
    if (kill.restart) actions.containersToStart.push(container.name);
    actions.containersToKill.push({
      id: newest.id,
      name: container.name,
      message: `Container ${container.name} ${kill.what}${kill.restart ? ', will be restarted' : ''}`,
      reason: kill.reason,
    });
  }
  if (kept === 0 && actions.containersToStart.length === 0) {
    actions.killPod = true;
    // Sidecars must not keep a finished pod alive.
    actions.initToStart = [];
  }
}
