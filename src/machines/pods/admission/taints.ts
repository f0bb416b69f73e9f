/** Taints of a node and what pods tolerate of them. Pure. */

import type { Toleration } from '../../kube/podTable.ts';
import type { Taint } from '../../kube/types.ts';

/** An empty effect tolerates every effect, an empty key every key. */
function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  switch (toleration.operator ?? '') {
    case '':
    case 'Equal':
      return (toleration.value ?? '') === (taint.value ?? '');
    case 'Exists':
      return true;
    default:
      return false;
  }
}

/** The first taint of that effect that nothing tolerates. */
export function untolerated(taints: readonly Taint[], tolerations: readonly Toleration[], effect: string): Taint | null {
  return taints.find((taint) => taint.effect === effect && !tolerations.some((t) => tolerates(t, taint))) ?? null;
}

/** `key=value:effect`, as people write it. */
export function taintText({ key, value, effect }: Taint): string {
  return `${key}${value ? `=${value}` : ''}:${effect}`;
}
