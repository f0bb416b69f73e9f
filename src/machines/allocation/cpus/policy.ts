/** `cpuManagerPolicy` with its options, and which CPUs stay the system's (resources and volumes 2.2). Pure. */
import type { KubeletConfiguration } from '../../config/config.ts';
import type { Container } from '../../kube/podTable.ts';
import { quantityToMilli } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import { hasPodLevel } from '../../pod/resources/podLevel.ts';
import { qosClass } from '../../pod/resources/qos.ts';
import { type CpuSet, formatCpuSet, parseCpuSet, without } from '../cpuSet.ts';
import { lastingOf } from '../podContainers.ts';
import { type OptionMistake, parseBool } from '../policyOptions.ts';
import { type TakeOptions, takeCpus } from './take.ts';
import { allCpus, countOf, type Topology } from './topology.ts';

export interface CpuPolicy extends TakeOptions {
  /** `strict-cpu-reservation`: what is the system's is not shared with containers either. */
  strictReservation?: boolean;
  /** `align-by-socket`: sockets count, not NUMA nodes. */
  bySocket?: boolean;
}

const BETA = { gate: 'CPUManagerPolicyBetaOptions', stage: 'Beta' };
const ALPHA = { gate: 'CPUManagerPolicyAlphaOptions', stage: 'Alpha' };
const ALIGN_BY_SOCKET = 'align-by-socket';
/** Options by name: the stage of each with the gate that it needs beside that of all; null where it is stable. */
const OPTIONS: ReadonlyMap<string, { needs: typeof BETA | null; field: keyof CpuPolicy }> = new Map([
  ['full-pcpus-only', { needs: null, field: 'fullCoresOnly' }],
  ['strict-cpu-reservation', { needs: null, field: 'strictReservation' }],
  ['prefer-align-cpus-by-uncorecache', { needs: null, field: 'byCache' }],
  ['distribute-cpus-across-numa', { needs: BETA, field: 'acrossNodes' }],
  ['distribute-cpus-across-cores', { needs: ALPHA, field: 'acrossCores' }],
  [ALIGN_BY_SOCKET, { needs: ALPHA, field: 'bySocket' }],
]);
/** Pairs that contradict each other. */
const EXCLUSIVE = [
  ['full-pcpus-only', 'distribute-cpus-across-cores'],
  ['distribute-cpus-across-numa', 'distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-numa'],
] as const;

/** With what is wrong with them. */
export function readPolicyOptions(
  options: Readonly<Record<string, string>>,
  enabled: (gate: string) => boolean,
): { policy: CpuPolicy; mistakes: OptionMistake[] } {
  const policy: Partial<Record<keyof CpuPolicy, boolean>> = {};
  const mistakes: OptionMistake[] = [];
  for (const [option, text] of Object.entries(options)) {
    const known = OPTIONS.get(option);
    const value = parseBool(text);
    const wrong = (what: string): number => mistakes.push({ option, what });
    if (known === undefined) wrong(`unknown CPU Manager Policy option: "${option}"`);
    else if (known.needs !== null && !enabled(known.needs.gate))
      wrong(`CPU Manager Policy ${known.needs.stage}-level Options not enabled, but option "${option}" provided`);
    else if (value === null) wrong(`bad value for option "${option}": strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
    else if (value) policy[known.field] = true;
  }
  const isOn = (option: string): boolean => policy[OPTIONS.get(option)?.field ?? 'bySocket'] === true;
  for (const [one, other] of EXCLUSIVE)
    if (isOn(one) && isOn(other))
      mistakes.push({ option: '', what: `static policy options ${one} and ${other} can not be used at the same time` });
  return { policy, mistakes };
}

/** Why the options cannot be on this machine; null: they can. */
export function misplacedOption(policy: CpuPolicy, topology: Topology, topologyPolicy: string): string | null {
  if (policy.bySocket !== true) return null;
  if (topologyPolicy === 'single-numa-node')
    return `Topolgy manager ${topologyPolicy} policy is incompatible with CPUManager ${ALIGN_BY_SOCKET} policy option`;
  if (countOf(topology, 'socket') > countOf(topology, 'node'))
    return 'Align by socket is not compatible with hardware where number of sockets are more than number of NUMA';
  return null;
}

type Reservations = Pick<KubeletConfiguration, 'kubeReserved' | 'systemReserved' | 'reservedSystemCPUs'>;

/** Thousandths of a CPU that are kept for the system. */
export function reservedMilli(c: Reservations): number {
  return quantityToMilli(c.kubeReserved.cpu) + quantityToMilli(c.systemReserved.cpu);
}

/** `reservedSystemCPUs`, all of which have to be there, whatever the policy. */
export function listedCpus(
  { reservedSystemCPUs: list }: Pick<KubeletConfiguration, 'reservedSystemCPUs'>,
  online: CpuSet,
): { ok: true; cpus: CpuSet } | { ok: false; message: string } {
  const cpus = parseCpuSet(list);
  if (cpus === null) return { ok: false, message: `reservedSystemCPUs: ${JSON.stringify(list)} is not a list of CPUs` };
  const missing = without(cpus, online);
  if (missing.length === 0) return { ok: true, cpus };
  return {
    ok: false,
    message: `reservedSystemCPUs: ${formatCpuSet(missing)} of ${formatCpuSet(cpus)} are not there: online are ${formatCpuSet(online)}`,
  };
}

/** The CPUs that nobody gets alone. */
export function reservedCpus(
  topology: Topology,
  c: Reservations,
  policy: CpuPolicy,
): { ok: true; cpus: CpuSet } | { ok: false; message: string } {
  const online = allCpus(topology);
  if (c.reservedSystemCPUs !== '') return listedCpus(c, online);
  const count = Math.ceil(reservedMilli(c) / 1000);
  if (count <= 0)
    return {
      ok: false,
      message: 'the static policy requires systemReserved.cpu + kubeReserved.cpu to be greater than zero, or reservedSystemCPUs',
    };
  const got = takeCpus(topology, { free: online, n: count }, policy);
  if (got.ok) return got;
  return { ok: false, message: `unable to reserve the required amount of CPUs (size of  did not equal ${count})` };
}

/** How many CPUs this container is to have alone; 0: it shares. */
export function exclusiveCpus(pod: Pod, container: Container): number {
  if (hasPodLevel(pod) || qosClass(pod) !== 'Guaranteed') return 0;
  const milli = quantityToMilli(container.resources?.requests?.cpu);
  return milli > 0 && milli % 1000 === 0 ? milli / 1000 : 0;
}

export function wantsExclusive(pod: Pod): boolean {
  return lastingOf(pod).some(({ container }) => exclusiveCpus(pod, container) > 0);
}
