/** Containers with restart policies and rules of their own. What becomes of the pod stays what it was drawn to be. */
import { HOLLOW_ANNOTATION } from '@actorlet/runtimes/src/hollow/index.ts';
import type { DrawnContainer, PodDraw } from '../pods/podDraw.ts';

const OWN = 0.15;
/** No container of the simulation ends so but one whose rule names it. */
const NEVER_SEEN = 77;
const LISTED = 42;

/** A container that is to run for good never restarts, but after whatever may happen to it. */
function anyEnd(container: DrawnContainer): void {
  container.restartPolicy = 'Never';
  container.restartPolicyRules = [{ action: 'Restart', exitCodes: { operator: 'NotIn', values: [NEVER_SEEN] } }];
}
/** A container that is to end runs once more, after a first end that its rule lists. */
function onceMore(container: DrawnContainer, annotations: Record<string, string>): void {
  const key = `${HOLLOW_ANNOTATION}.${container.name}`;
  annotations[key] = `run=700ms,exit=${LISTED};${annotations[key] ?? ''}`;
  container.restartPolicy = 'Never';
  container.restartPolicyRules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [LISTED] } }];
}

function own(container: DrawnContainer, policy: string): void {
  container.restartPolicy = policy;
}

export const drawRestarts: PodDraw = (rng, { pod, manifest: { spec, metadata } }) => {
  for (const container of spec.containers) {
    // A pod that is refused for its size ends before it begins.
    if (!rng.chance(OWN) || container.resources?.requests !== undefined) continue;
    const ruled = rng.chance(0.6);
    if (pod.fate === 'steady') ruled ? anyEnd(container) : own(container, 'Always');
    // Under another policy than its pod's a container might not come to an end: this one ends the sooner.
    if (pod.fate === 'ends') ruled ? onceMore(container, metadata.annotations) : own(container, 'Never');
  }
  return {};
};

/** Chance of a pod whose first instances all restart. */
const WHOLE = 0.12;
/** No container ends so but one whose rule restarts all containers of its pod. */
export const RESTARTS_ALL = 43;

/** One container of a pod that is to run for good ends once so that all of it restart. */
export const drawWholeRestarts: PodDraw = (rng, { pod, manifest: { spec, metadata } }) => {
  const container = rng.pick(spec.containers.filter((c) => c.restartPolicy === undefined && c.resources?.requests === undefined));
  if (!rng.chance(WHOLE) || pod.fate !== 'steady' || container === undefined) return {};
  const key = `${HOLLOW_ANNOTATION}.${container.name}`;
  metadata.annotations[key] = `run=900ms,exit=${RESTARTS_ALL};${metadata.annotations[key] ?? ''}`;
  container.restartPolicy = 'Always';
  container.restartPolicyRules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [RESTARTS_ALL] } }];
  return {};
};
