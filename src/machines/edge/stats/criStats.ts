/** What the runtime itself tells of pods, for /stats/summary (gate PodAndContainerStatsFromCRI). Pure. */

import { figure, isoOfNanos, known } from '../../figures/figure.ts';
import type { PsiStats } from '../../figures/groupStats.ts';
import type { CriContainerStats, CriInterfaceUsage, CriPsi, CriSandboxStats } from '../../wire/criStats.ts';
import type { ContainerStats, CpuStats, InterfaceStats, MemoryStats, NetworkStats, PodStats, Summary } from './stats.ts';

type Told = Pick<PodStats, 'cpu' | 'memory' | 'io' | 'network' | 'process_stats'>;
export interface SandboxFigures {
  /** Of every container that the runtime tells of. */
  containers: readonly CriContainerStats[];
  /** By the UID of the pod. */
  pods: ReadonlyMap<string, Told>;
}

/**
 * `ids`: of the sandboxes that pods have now. A runtime may tell of others of the same pod.
 * `pressure`: gate KubeletPSI.
 */
export function sandboxFigures(
  stats: readonly CriSandboxStats[],
  { ids, pressure }: { ids: Set<string>; pressure: boolean },
): SandboxFigures {
  const pods = new Map<string, Told>();
  const containers: CriContainerStats[] = [];
  for (const { attributes, linux } of stats) {
    const uid = attributes?.metadata?.uid ?? '';
    if (uid === '' || linux === null || !ids.has(attributes?.id ?? '')) continue;
    containers.push(...linux.containers);
    pods.set(uid, told(linux, pressure));
  }
  return { containers, pods };
}

function told({ cpu, memory, io, network, process }: NonNullable<CriSandboxStats['linux']>, pressure: boolean): Told {
  const processes = process === null ? undefined : figure(process.processCount);
  return known<Told>({
    ...used({ cpu, memory, ...(io === undefined ? {} : { io }) }, pressure),
    network: network === null ? undefined : networkOf(network),
    process_stats: processes === undefined ? undefined : { process_count: processes },
  });
}

type Used = Pick<ContainerStats, 'cpu' | 'memory' | 'io'>;
function used({ cpu, memory, io }: Pick<CriContainerStats, 'cpu' | 'memory' | 'io'>, pressure: boolean): Used {
  const psi = (of: CriPsi | null | undefined) => (pressure ? psiOf(of) : undefined);
  return known<Used>({
    cpu:
      cpu === null
        ? undefined
        : known<CpuStats>({
            time: at(cpu.timestamp),
            usageNanoCores: figure(cpu.usageNanoCores),
            usageCoreNanoSeconds: figure(cpu.usageCoreNanoSeconds),
            psi: psi(cpu.psi),
          }),
    memory:
      memory === null
        ? undefined
        : known<MemoryStats>({
            time: at(memory.timestamp),
            availableBytes: figure(memory.availableBytes),
            usageBytes: figure(memory.usageBytes),
            workingSetBytes: figure(memory.workingSetBytes),
            rssBytes: figure(memory.rssBytes),
            pageFaults: figure(memory.pageFaults),
            majorPageFaults: figure(memory.majorPageFaults),
            psi: psi(memory.psi),
          }),
    io:
      io === undefined || io === null || !pressure
        ? undefined
        : known<NonNullable<Used['io']>>({ time: at(io.timestamp), psi: psi(io.psi) }),
  });
}

const at = (timestamp: string): string => isoOfNanos(BigInt(timestamp));

function psiOf(psi: CriPsi | null | undefined): PsiStats | undefined {
  if (psi === undefined || psi === null) return undefined;
  const one = (of: CriPsi['Full']) => ({
    ...{ total: Number(of?.Total ?? 0), avg10: of?.Avg10 ?? 0, avg60: of?.Avg60 ?? 0, avg300: of?.Avg300 ?? 0 },
  });
  return { full: one(psi.Full), some: one(psi.Some) };
}

function networkOf({
  timestamp,
  defaultInterface,
  interfaces,
}: NonNullable<NonNullable<CriSandboxStats['linux']>['network']>): NetworkStats {
  const main = defaultInterface === null ? { name: '' } : interfaceOf(defaultInterface);
  return { time: at(timestamp), ...main, ...(interfaces.length === 0 ? {} : { interfaces: interfaces.map(interfaceOf) }) };
}
function interfaceOf({ name, rxBytes, rxErrors, txBytes, txErrors }: CriInterfaceUsage): InterfaceStats {
  return {
    name,
    ...{ rxBytes: figure(rxBytes) ?? 0, rxErrors: figure(rxErrors) ?? 0 },
    ...{ txBytes: figure(txBytes) ?? 0, txErrors: figure(txErrors) ?? 0 },
  };
}

/** The runtime's figures take the place of what was summed up. Its rate may be missing: then that of the containers stays. */
export function withSandboxes(summary: Summary, { pods, containers }: SandboxFigures, o: { pressure: boolean; brief: boolean }): Summary {
  const byName = new Map(containers.map((c): [string, CriContainerStats] => [`${uidOf(c)}/${c.attributes?.metadata?.name ?? ''}`, c]));
  return {
    ...summary,
    pods: summary.pods.map((pod): PodStats => {
      const { uid } = pod.podRef;
      const { network, process_stats, io, ...own } = pods.get(uid) ?? {};
      const cpu = own.cpu && known<CpuStats>({ ...own.cpu, usageNanoCores: own.cpu.usageNanoCores ?? pod.cpu?.usageNanoCores });
      const more = o.brief ? {} : known<Told>({ network, process_stats, io });
      return {
        ...pod,
        containers: pod.containers.map((c) => withPressure(c, byName.get(`${uid}/${c.name}`), o)),
        ...known<Told>({ cpu: cpu ?? pod.cpu, memory: own.memory ?? pod.memory }),
        ...more,
      };
    }),
  };
}

function uidOf({ attributes }: CriContainerStats): string {
  return attributes?.labels['io.kubernetes.pod.uid'] ?? '';
}

function withPressure(c: ContainerStats, stats: CriContainerStats | undefined, o: { pressure: boolean; brief: boolean }): ContainerStats {
  if (stats === undefined || !o.pressure) return c;
  const { cpu, memory, io } = used(stats, o.pressure);
  return {
    ...c,
    ...(c.cpu === undefined || cpu?.psi === undefined ? {} : { cpu: { ...c.cpu, psi: cpu.psi } }),
    ...(c.memory === undefined || memory?.psi === undefined ? {} : { memory: { ...c.memory, psi: memory.psi } }),
    ...(io === undefined || o.brief ? {} : { io }),
  };
}
