/** What containers get of the CPUs, and what the pod resources API shows of them. Pure. */
import type { Container } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { type Built, built, refused } from '../../result.ts';
import { formatCpuSet } from '../cpuSet.ts';
import type { ContainerShare, Held } from '../messages.ts';
import { cpusOf } from './ledger.ts';
import type { CpusView } from './messages.ts';
import { exclusiveCpus } from './policy.ts';

/** Not there is better than on CPUs that are another container's. */
export function cpusShare(known: CpusView, pod: Pod, container: Container): Built<Pick<ContainerShare, 'cpus' | 'quotaLifted'>> {
  const { cpus, exclusive } = cpusOf(known.ledger, pod.metadata.uid, container.name);
  const wanted = exclusiveCpus(pod, container);
  if (wanted > 0 && (!exclusive || cpus.length !== wanted))
    return refused(`${wanted} CPUs of its own are not allocated to container ${container.name} yet`);
  if (cpus.length === 0) return refused('no CPU is left that containers may share');
  return built({ cpus: formatCpuSet(cpus), quotaLifted: exclusive && known.quotaLifted });
}

/** Under policy none there is no view, and the API shows no CPUs, as in the reference. */
export function heldCpus({ ledger, allocatable }: CpusView): Held {
  return {
    of: (uid, container) => {
      const { cpus, exclusive } = cpusOf(ledger, uid, container);
      return { cpuIds: exclusive ? cpus : [] };
    },
    allocatable: () => ({ cpuIds: allocatable }),
  };
}
