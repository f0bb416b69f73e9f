/** How soon containers are killed when memory runs out. Pure. */

import type { Container } from '../../kube/podTable.ts';
import { quantityToInteger } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import { isCritical } from '../phase.ts';
import { isRestartableInit } from '../runtime/shouldRestart.ts';
import { memoryShareOf } from './podLevel.ts';
import { qosClass } from './qos.ts';

const OOM_GUARANTEED = -997;
const OOM_BEST_EFFORT = 1000;
/** By its name: nobody makes a priority of it for a static pod. */
const NODE_CRITICAL_CLASS = 'system-node-critical';

function burstableScore(memoryRequestBytes: number, memoryCapacityBytes: number): number {
  if (memoryCapacityBytes <= 0) return OOM_BEST_EFFORT - 1;
  const score = 1000 - Math.floor((1000 * memoryRequestBytes) / memoryCapacityBytes);
  const least = 1000 + OOM_GUARANTEED;
  return Math.min(OOM_BEST_EFFORT - 1, Math.max(least, score));
}

/** -997 hardly ever, 1000 first. */
export function oomScoreAdj(pod: Pod, container: Container, memoryCapacityBytes: number): number {
  if (isCritical(pod) && pod.spec.priorityClassName === NODE_CRITICAL_CLASS) return OOM_GUARANTEED;
  const qos = qosClass(pod);
  if (qos === 'Guaranteed') return OOM_GUARANTEED;
  if (qos === 'BestEffort') return OOM_BEST_EFFORT;
  const share = memoryShareOf(pod);
  const scoreOf = (c: Container): number => burstableScore(quantityToInteger(c.resources?.requests?.memory) + share, memoryCapacityBytes);
  const own = scoreOf(container);
  const sidecar = isRestartableInit(container) && pod.spec.initContainers?.some((c) => c.name === container.name) === true;
  // A sidecar serves the regular containers: it must not be killed before all of them.
  return sidecar ? Math.min(own, Math.max(...pod.spec.containers.map(scoreOf))) : own;
}
