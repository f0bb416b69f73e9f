/** Which pods are let in while the node is under pressure (resources 3.8). Pure. */

import type { Toleration } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import type { NodePressure } from '../../nodeFacts.ts';
import { isCritical } from '../../pod/phase.ts';
import { qosClass } from '../../pod/resources/qos.ts';
import { EVICTED } from './messages.ts';

const MEMORY_TAINT = 'node.kubernetes.io/memory-pressure';

function toleratesMemoryPressure({ key, operator, value, effect }: Toleration): boolean {
  if (effect !== undefined && effect !== '' && effect !== 'NoSchedule') return false;
  if (operator === 'Exists') return key === undefined || key === '' || key === MEMORY_TAINT;
  return key === MEMORY_TAINT && (value ?? '') === '';
}

/** Why a node under pressure refuses the pod. Null: the pod may come. */
export function pressureRefusal(pod: Pod, pressures: readonly NodePressure[]): { reason: string; message: string } | null {
  if (pressures.length === 0 || isCritical(pod)) return null;
  const onlyMemory = pressures.every((p) => p === 'MemoryPressure');
  if (onlyMemory && (qosClass(pod) !== 'BestEffort' || pod.spec.tolerations?.some(toleratesMemoryPressure) === true)) return null;
  return { reason: EVICTED, message: `The node had condition: [${pressures.join(' ')}]. ` };
}
