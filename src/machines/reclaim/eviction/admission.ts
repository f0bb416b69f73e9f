/** Who is let in while the node is under pressure (resources 3.8). Pure. */
import type { Pod, Toleration } from '../../k8s.ts';
import { qosClass } from '../../pods/qos.ts';
import { EVICTED, isCritical } from './rank.ts';
import type { NodePressure } from './thresholds.ts';

const MEMORY_TAINT = 'node.kubernetes.io/memory-pressure';

function toleratesMemoryPressure({ key, operator, value, effect }: Toleration): boolean {
  if (effect !== undefined && effect !== '' && effect !== 'NoSchedule') return false;
  if (operator === 'Exists') return key === undefined || key === '' || key === MEMORY_TAINT;
  return key === MEMORY_TAINT && (value ?? '') === '';
}

/** Null: it may come. */
export function pressureRefusal(pod: Pod, pressures: readonly NodePressure[]): { reason: string; message: string } | null {
  if (pressures.length === 0 || isCritical(pod)) return null;
  const onlyMemory = pressures.every((p) => p === 'MemoryPressure');
  if (onlyMemory && (qosClass(pod) !== 'BestEffort' || pod.spec.tolerations?.some(toleratesMemoryPressure) === true)) return null;
  return { reason: EVICTED, message: `The node had condition: [${pressures.join(' ')}]. ` };
}
