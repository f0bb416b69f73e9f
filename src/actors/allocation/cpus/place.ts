/** What the CPU manager can allocate on this machine, by the configuration; null under policy none. */
import type { CpuPlace } from '../../../machines/allocation/cpus/ledger.ts';
import { misplacedOption, readPolicyOptions, reservedCpus } from '../../../machines/allocation/cpus/policy.ts';
import { topologyOf } from '../../../machines/allocation/cpus/topology.ts';
import type { NodeConfig } from '../../../machines/config/config.ts';
import type { Host } from '../../../ports/ports.ts';

/** @throws with the field and what is wrong where the policy cannot be on this machine. */
export function cpuPlaceOf({ config: c, gates }: NodeConfig, host: Pick<Host, 'cpus'>): CpuPlace | null {
  if (c.cpuManagerPolicy !== 'static') return null;
  const infos = host.cpus?.() ?? [];
  if (infos.length === 0) throw new Error('cpuManagerPolicy: this machine does not tell which CPUs it has');
  const topology = topologyOf(infos);
  const { policy } = readPolicyOptions(c.cpuManagerPolicyOptions, (gate) => gates.enabled(gate));
  const misplaced = misplacedOption(policy, topology, c.topologyManagerPolicy);
  if (misplaced !== null) throw new Error(`cpuManagerPolicyOptions: ${misplaced}`);
  const reserved = reservedCpus(topology, c, policy);
  if (!reserved.ok) throw new Error(reserved.message);
  return { topology, policy, reserved: reserved.cpus, aligned: c.topologyManagerPolicy !== 'none' };
}
