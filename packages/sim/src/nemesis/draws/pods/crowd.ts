/** Pods of the API that others have to make room for, and some that take the room which those need. */
import { CRITICAL_PRIORITY } from '@actorlet/kubelet/machines/pod/phase.ts';
import type { PodDraw } from './podDraw.ts';

const CRITICAL = 0.04;
const ASKING = 0.5;
/** Of those that ask: as a whole, too. */
const WHOLE = 0.25;
/** Beside one of the first kind none of the others fits; of those alone there are never too many. */
const CRITICAL_CPU = '3800m';
const ASKED_CPU = '250m';

export const drawCrowd: PodDraw = (rng, { pod, manifest: { spec } }) => {
  const critical = rng.chance(CRITICAL) && pod.fate === 'steady';
  if (!critical && !rng.chance(ASKING)) return {};
  const [first] = spec.containers;
  // A pod that no node has room for stays so.
  if (first === undefined || first.resources?.requests !== undefined) return {};
  first.resources = { ...first.resources, requests: { cpu: critical ? CRITICAL_CPU : ASKED_CPU } };
  if (critical) spec.priority = CRITICAL_PRIORITY;
  else if (rng.chance(WHOLE)) spec.resources = { requests: { cpu: ASKED_CPU } };
  return {};
};
