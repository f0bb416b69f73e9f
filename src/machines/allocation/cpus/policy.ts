/** `cpuManagerPolicy` with its options, and which CPUs stay the system's (resources and volumes 2.2). Pure. */
import type { KubeletConfiguration } from '../../config/config.ts';
import type { Container } from '../../kube/podTable.ts';
import { quantityToMilli } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import { hasPodLevel } from '../../pod/resources/podLevel.ts';
import { qosClass } from '../../pod/resources/qos.ts';
import { type CpuSet, formatCpuSet, parseCpuSet, without } from './cpuSet.ts';
import { takeCpus } from './take.ts';
import { allCpus, type Topology } from './topology.ts';

export interface CpuPolicy {
  /** `full-pcpus-only`: whole cores, or nothing. */
  fullCoresOnly: boolean;
  /** `distribute-cpus-across-cores`. */
  acrossCores: boolean;
  /** `strict-cpu-reservation`: what is the system's is not shared with containers either. */
  strictReservation: boolean;
}

/** Options by name: the gate that each of them needs beside that of all, and whether it is there. */
const OPTIONS: Readonly<Record<string, { gate: string | null; field: keyof CpuPolicy | null }>> = {
  'full-pcpus-only': { gate: null, field: 'fullCoresOnly' },
  'strict-cpu-reservation': { gate: 'CPUManagerPolicyBetaOptions', field: 'strictReservation' },
  'distribute-cpus-across-cores': { gate: 'CPUManagerPolicyAlphaOptions', field: 'acrossCores' },
  'distribute-cpus-across-numa': { gate: 'CPUManagerPolicyBetaOptions', field: null },
  'prefer-align-cpus-by-uncorecache': { gate: 'CPUManagerPolicyBetaOptions', field: null },
  'align-by-socket': { gate: 'CPUManagerPolicyAlphaOptions', field: null },
};

export interface OptionMistake {
  /** Name of the option; '' where it is about all of them. */
  option: string;
  what: string;
}

/** With what is wrong with them. An option that is not there yet is a mistake, too, where it is switched on: nobody is to rely on it. */
export function readPolicyOptions(
  options: Readonly<Record<string, string>>,
  enabled: (gate: string) => boolean,
): { policy: CpuPolicy; mistakes: OptionMistake[] } {
  const policy: CpuPolicy = { fullCoresOnly: false, acrossCores: false, strictReservation: false };
  const mistakes: OptionMistake[] = [];
  for (const [option, text] of Object.entries(options)) {
    const known = Object.hasOwn(OPTIONS, option) ? OPTIONS[option] : undefined;
    const wrong = (what: string): number => mistakes.push({ option, what });
    if (known === undefined) wrong(`is no option of the CPU manager; there are ${Object.keys(OPTIONS).join(', ')}`);
    else if (!/^(?:true|false|1|0|t|f)$/i.test(text)) wrong(`${JSON.stringify(text)} is not true or false`);
    else if (known.gate !== null && !enabled(known.gate)) wrong(`needs feature gate ${known.gate}`);
    else if (!/^(?:true|1|t)$/i.test(text)) continue;
    else if (known.field === null) wrong('is not there yet: leave it out');
    else policy[known.field] = true;
  }
  if (policy.fullCoresOnly && policy.acrossCores)
    mistakes.push({ option: '', what: 'full-pcpus-only and distribute-cpus-across-cores cannot be used together' });
  return { policy, mistakes };
}

type Reservations = Pick<KubeletConfiguration, 'kubeReserved' | 'systemReserved' | 'reservedSystemCPUs'>;

/** Thousandths of a CPU that are kept for the system. */
export function reservedMilli(c: Reservations): number {
  return quantityToMilli(c.kubeReserved.cpu) + quantityToMilli(c.systemReserved.cpu);
}

/** The CPUs that nobody gets alone. */
export function reservedCpus(topology: Topology, c: Reservations): { ok: true; cpus: CpuSet } | { ok: false; message: string } {
  const online = allCpus(topology);
  if (c.reservedSystemCPUs !== '') {
    const cpus = parseCpuSet(c.reservedSystemCPUs);
    if (cpus === null) return { ok: false, message: `reservedSystemCPUs: ${JSON.stringify(c.reservedSystemCPUs)} is not a list of CPUs` };
    const missing = without(cpus, online);
    if (missing.length === 0) return { ok: true, cpus };
    return {
      ok: false,
      message: `reservedSystemCPUs: ${formatCpuSet(missing)} of ${formatCpuSet(cpus)} are not there: online are ${formatCpuSet(online)}`,
    };
  }
  const count = Math.ceil(reservedMilli(c) / 1000);
  if (count <= 0)
    return {
      ok: false,
      message: 'the static policy requires systemReserved.cpu + kubeReserved.cpu to be greater than zero, or reservedSystemCPUs',
    };
  const cpus = takeCpus(topology, { free: online, n: count });
  if (cpus !== null) return { ok: true, cpus };
  return { ok: false, message: `${count} CPUs are to be reserved for the system and there are ${online.length}` };
}

/** How many CPUs this container is to have alone; 0: it shares. */
export function exclusiveCpus(pod: Pod, container: Container): number {
  if (hasPodLevel(pod) || qosClass(pod) !== 'Guaranteed') return 0;
  const milli = quantityToMilli(container.resources?.requests?.cpu);
  return milli > 0 && milli % 1000 === 0 ? milli / 1000 : 0;
}

/** Init containers in their order, then the others; those of debugging share. */
export function lastingOf(pod: Pod): { container: Container; init: boolean }[] {
  return [
    ...(pod.spec.initContainers ?? []).map((container) => ({ container, init: true })),
    ...pod.spec.containers.map((container) => ({ container, init: false })),
  ];
}

export function wantsExclusive(pod: Pod): boolean {
  return lastingOf(pod).some(({ container }) => exclusiveCpus(pod, container) > 0);
}
