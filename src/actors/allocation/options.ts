/** What the actors that allocate the resources of the node are made of, from its configuration. */

import { type TopologyPlan, topologyPlan } from '../../machines/allocation/coordinator/topologyPolicy.ts';
import { cpuListSize } from '../../machines/api/node/nodeCapacity.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import { HUGE_PAGES_PREFIX } from '../../machines/kube/names.ts';
import { quantityToInteger } from '../../machines/kube/quantity.ts';
import type { Pod } from '../../machines/kube/types.ts';
import type { NodeFacts } from '../../machines/nodeFacts.ts';
import type { AnySpec } from '../supervision/types.ts';
import type { AgentGroupsOptions } from './cgroups/agentGroups.ts';
import type { CgroupsOptions } from './cgroups/cgroups.ts';
import type { Provider, ProviderPlace } from './provider.ts';
import { PROVIDERS } from './providers.ts';

export interface AllocationOptions {
  /** Null with `cgroupsPerQOS: false`. */
  cgroups: CgroupsOptions | null;
  /** Null where neither kubeletCgroups nor systemCgroups is set. */
  agentGroups: AgentGroupsOptions | null;
  /** Providers that this node has, in the order in which they are asked. */
  providers: readonly { provider: Provider; spec: AnySpec }[];
  /** Null: topology manager policy none. */
  topology: TopologyPlan | null;
}

export function allocationOptions(config: NodeConfig, o: ProviderPlace): AllocationOptions {
  const { kubeletCgroups, systemCgroups } = config.config;
  return {
    cgroups: cgroupsOptions(config, o.facts),
    agentGroups: kubeletCgroups === '' && systemCgroups === '' ? null : { kubeletCgroups, systemCgroups },
    providers: PROVIDERS.flatMap((provider) => {
      const spec = provider.spec(config, o);
      return spec === null ? [] : [{ provider, spec }];
    }),
    topology: config.config.topologyManagerPolicy === 'none' ? null : topologyPlan(config, o.host.numaNodes?.() ?? []),
  };
}

/** What the pod manager has to know of the providers, without their names. */
export function offered({ providers, topology }: AllocationOptions) {
  const all = providers.map(({ provider }) => provider);
  return {
    // Under a topology policy each pod is counted.
    allocates: (pod: Pod) => topology !== null || all.some((p) => p.wants(pod)),
    fixed: all.flatMap((p) => p.fixed ?? []),
    extendedResources: all.some((p) => p.extendedResources === true),
  };
}

function cgroupsOptions({ config: c, gates }: NodeConfig, facts: () => NodeFacts): CgroupsOptions | null {
  if (!c.cgroupsPerQOS) return null;
  const { capacity } = facts();
  const { cpuCFSQuota, podPidsLimit, systemReservedCgroup, kubeReservedCgroup } = c;
  const pages = Object.entries(capacity).filter(([name]) => name.startsWith(HUGE_PAGES_PREFIX));
  return {
    root: c.cgroupRoot,
    driver: () => facts().cgroupDriver,
    rules: {
      ...{ cpuCFSQuota, cpuCFSQuotaPeriodMs: c.cpuCFSQuotaPeriod, podPidsLimit },
      ...(gates.enabled('MemoryQoS') ? { memoryFloors: c.memoryReservationPolicy === 'TieredReservation' } : {}),
      quotaLifted: c.cpuManagerPolicy === 'static' && gates.enabled('DisableCPUQuotaWithExclusiveCPUs'),
    },
    // Looked at by the rules: a percentage.
    qosReservedPercent: c.qosReserved.memory === undefined ? null : Number.parseInt(c.qosReserved.memory, 10),
    reservations: {
      enforceNodeAllocatable: c.enforceNodeAllocatable,
      kubeReserved: c.kubeReserved,
      // A list of CPUs is what is reserved of them, whatever else was said.
      systemReserved: reservedCpus(c.reservedSystemCPUs, c.systemReserved),
      ...(c.reservedSystemCPUs === ''
        ? {}
        : { kubeReserved: Object.fromEntries(Object.entries(c.kubeReserved).filter(([k]) => k !== 'cpu')) }),
    },
    machine: {
      cpus: quantityToInteger(capacity.cpu),
      memoryBytes: quantityToInteger(capacity.memory),
      hugePages: Object.fromEntries(pages.map(([name, bytes]) => [name.slice(HUGE_PAGES_PREFIX.length), quantityToInteger(bytes)])),
    },
    systemReservedCgroup,
    kubeReservedCgroup,
  };
}

function reservedCpus(list: string, reserved: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return list === '' ? reserved : { ...reserved, cpu: String(cpuListSize(list)) };
}
