/** Containers that may have something alone, and what a pod needs of it at a time. Pure. */
import type { Container } from '../kube/podTable.ts';
import type { Pod } from '../kube/types.ts';
import { isRestartableInit } from '../pod/runtime/shouldRestart.ts';

/** Init containers in their order, then the others; those of debugging share. */
export function lastingOf(pod: Pod): { container: Container; init: boolean }[] {
  return [
    ...(pod.spec.initContainers ?? []).map((container) => ({ container, init: true })),
    ...pod.spec.containers.map((container) => ({ container, init: false })),
  ];
}

/** Init containers run one after the other, each beside the sidecars before it; all others run together. */
export function podTotal(wanted: Iterable<{ container: Container; init: boolean; n: number }>): number {
  let [sidecars, others, most] = [0, 0, 0];
  for (const { container, init, n } of wanted) {
    if (!init) others += n;
    else if (isRestartableInit(container)) sidecars += n;
    else most = Math.max(most, sidecars + n);
  }
  return Math.max(most, sidecars + others);
}
