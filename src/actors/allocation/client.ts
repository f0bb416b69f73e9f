/** How workers learn what was allocated to a container. Holds nothing. */

import { formatCpuSet } from '../../machines/allocation/cpus/cpuSet.ts';
import { cpusOf } from '../../machines/allocation/cpus/ledger.ts';
import { exclusiveCpus } from '../../machines/allocation/cpus/policy.ts';
import { allocationView } from '../../machines/allocation/messages.ts';
import type { Container } from '../../machines/kube/podTable.ts';
import type { Pod } from '../../machines/kube/types.ts';
import type { Built } from '../../machines/result.ts';
import type { Registry } from '../supervision/types.ts';

export interface ContainerCpus {
  /** A list such as `0-3,7`. */
  cpuset: string;
  /** It has them alone, and no quota of time on them. */
  quotaLifted: boolean;
}

/** Undefined: no CPUs are allocated, it runs on all. Not there is better than on CPUs that are somebody else's. */
export function containerCpus(registry: Registry, pod: Pod, container: Container): Built<ContainerCpus | undefined> {
  const known = registry.read(allocationView.cpus)?.value;
  if (known === undefined) return { ok: true, value: undefined };
  const { cpus, exclusive } = cpusOf(known.ledger, pod.metadata.uid, container.name);
  const wanted = exclusiveCpus(pod, container);
  if (wanted > 0 && (!exclusive || cpus.length !== wanted))
    return { ok: false, message: `${wanted} CPUs of its own are not allocated to container ${container.name} yet` };
  if (cpus.length === 0) return { ok: false, message: 'no CPU is left that containers may share' };
  return { ok: true, value: { cpuset: formatCpuSet(cpus), quotaLifted: exclusive && known.quotaLifted } };
}
