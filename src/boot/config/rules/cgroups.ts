/** Rules about cgroups, reservations and the CPU, memory and topology managers. */

import { readTopologyOptions } from '../../../machines/allocation/coordinator/topologyPolicy.ts';
import { readPolicyOptions, reservedMilli } from '../../../machines/allocation/cpus/policy.ts';
import { ENFORCEMENTS, RESERVABLE, SWAP_BEHAVIORS } from '../../../machines/config/schema.ts';
import { parseQuantity } from '../../../machines/kube/quantity.ts';
import { oneOf, type Rule } from './rule.ts';

const RESERVED: readonly string[] = RESERVABLE;
const ENFORCED: readonly string[] = ENFORCEMENTS;

const reservations: Rule = ({ config, bad }) => {
  for (const field of ['systemReserved', 'kubeReserved'] as const) {
    for (const [resource, text] of Object.entries(config[field])) {
      const quantity = parseQuantity(text);
      if (!RESERVED.includes(resource)) bad(`${field}.${resource}`, `cannot be reserved; possible are ${RESERVABLE.join(', ')}`);
      else if (quantity === undefined) bad(`${field}.${resource}`, `${JSON.stringify(text)} is not a quantity`);
      else if (quantity.mantissa < 0n) bad(`${field}.${resource}`, `${text} must not be negative`);
    }
  }
};

const enforcement: Rule = ({ config, bad }) => {
  const list = config.enforceNodeAllocatable;
  for (const value of list) {
    if (!ENFORCED.includes(value)) bad('enforceNodeAllocatable', `${JSON.stringify(value)} is not one of ${ENFORCEMENTS.join(', ')}`);
  }
  if (list.includes('none') && list.length > 1) bad('enforceNodeAllocatable', 'none must stand alone');
  if (!config.cgroupsPerQOS && list.some((v) => v !== 'none')) {
    bad('enforceNodeAllocatable', 'must be empty (or none) while cgroupsPerQOS (--cgroups-per-qos) is false');
  }
  for (const [prefix, field] of [
    ['system-reserved', 'systemReservedCgroup'],
    ['kube-reserved', 'kubeReservedCgroup'],
  ] as const) {
    if (list.includes(prefix) && list.includes(`${prefix}-compressible`))
      bad('enforceNodeAllocatable', `${prefix} and ${prefix}-compressible exclude each other`);
    if (list.some((v) => v.startsWith(prefix)) && config[field] === '') bad(field, `is needed by ${prefix} in enforceNodeAllocatable`);
  }
};

const cgroupNames: Rule = ({ config, bad }) => {
  if (config.systemCgroups !== '' && config.cgroupRoot === '') bad('systemCgroups', 'needs cgroupRoot (--cgroup-root) to be set');
  if (config.systemCgroups === '/') bad('systemCgroups', 'must not be the root cgroup');
  if (config.reservedSystemCPUs === '') return;
  if (!isCpuList(config.reservedSystemCPUs))
    bad('reservedSystemCPUs', `${JSON.stringify(config.reservedSystemCPUs)} is not a CPU list such as 0-3,7`);
  if (config.systemReservedCgroup !== '' || config.kubeReservedCgroup !== '') {
    bad('reservedSystemCPUs', 'cannot be used together with systemReservedCgroup or kubeReservedCgroup');
  }
};

function isCpuList(text: string): boolean {
  return text.split(',').every((part) => {
    const m = /^\s*(\d{1,6})(?:-(\d{1,6}))?\s*$/.exec(part);
    return m !== null && (m[2] === undefined || Number(m[2]) >= Number(m[1]));
  });
}

const reservedMemory: Rule = ({ config, bad }) => {
  const seen = new Set<string>();
  config.reservedMemory.forEach((item, i) => {
    const path = `reservedMemory[${i}]`;
    for (const [resource, text] of Object.entries(item.limits)) {
      const key = `${item.numaNode} ${resource}`;
      if (seen.has(key)) bad(`${path}.limits.${resource}`, `is given twice for NUMA node ${item.numaNode}`);
      seen.add(key);
      if (resource !== 'memory' && !resource.startsWith('hugepages-'))
        bad(`${path}.limits.${resource}`, 'only memory and hugepages-* can be reserved');
      if ((parseQuantity(text)?.mantissa ?? 0n) <= 0n)
        bad(`${path}.limits.${resource}`, `${JSON.stringify(text)} must be a quantity above 0`);
    }
  });
};

const managers: Rule = ({ config, gates, bad }) => {
  for (const [field, gate] of [
    ['cpuManagerPolicyOptions', 'CPUManagerPolicyOptions'],
    ['topologyManagerPolicyOptions', 'TopologyManagerPolicyOptions'],
  ] as const) {
    if (Object.keys(config[field]).length > 0 && !gates.enabled(gate)) bad(field, `needs feature gate ${gate}`);
  }
  // Under policy none the kubelet reads no options.
  const topology = config.topologyManagerPolicy === 'none' ? [] : readTopologyOptions(config.topologyManagerPolicyOptions).mistakes;
  for (const [field, mistakes] of [
    ['cpuManagerPolicyOptions', readPolicyOptions(config.cpuManagerPolicyOptions, (gate) => gates.enabled(gate)).mistakes],
    ['topologyManagerPolicyOptions', topology],
  ] as const)
    for (const { option, what } of mistakes) bad(option === '' ? field : `${field}.${option}`, what);
  if (config.cpuManagerPolicy === 'static' && config.reservedSystemCPUs === '' && reservedMilli(config) <= 0)
    bad('cpuManagerPolicy', "static needs cpu in systemReserved or kubeReserved, or reservedSystemCPUs: some CPUs stay the system's");
  const reserved = Object.entries(config.qosReserved);
  for (const [resource, share] of reserved) {
    const percent = /^(\d{1,3})%$/.exec(share)?.[1];
    if (resource !== 'memory') bad(`qosReserved.${resource}`, 'only memory can be reserved');
    else if (percent === undefined || Number(percent) > 100)
      bad('qosReserved.memory', `${JSON.stringify(share)} is not a percentage such as 50%`);
  }
};

const swap: Rule = ({ config, gates, bad }) => {
  const behaviour = config.memorySwap.swapBehavior;
  if (behaviour === '') return;
  if (!gates.enabled('NodeSwap')) bad('memorySwap.swapBehavior', 'needs feature gate NodeSwap');
  if (!SWAP_BEHAVIORS.some((known) => known === behaviour))
    bad('memorySwap.swapBehavior', `${JSON.stringify(behaviour)} is not one of ${SWAP_BEHAVIORS.join(', ')}`);
};

const memoryReservation: Rule = ({ config, gates, bad }) => {
  if (config.memoryReservationPolicy !== 'None' && !gates.enabled('MemoryQoS'))
    bad('memoryReservationPolicy', `${config.memoryReservationPolicy} needs feature gate MemoryQoS`);
};

const userNamespaces: Rule = ({ config, bad }) => {
  const ids = config.userNamespaces.idsPerPod;
  if (ids <= 0 || ids % 65_536 !== 0) bad('userNamespaces.idsPerPod', `${ids} must be a multiple of 65536`);
};

export const CGROUP_RULES: readonly Rule[] = [
  oneOf('cpuManagerPolicy'),
  oneOf('memoryManagerPolicy'),
  oneOf('memoryReservationPolicy'),
  oneOf('topologyManagerPolicy'),
  oneOf('topologyManagerScope'),
  reservations,
  enforcement,
  cgroupNames,
  reservedMemory,
  managers,
  swap,
  memoryReservation,
  userNamespaces,
];
