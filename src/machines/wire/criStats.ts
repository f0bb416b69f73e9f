/** What a runtime counts of pods and containers: the messages of the CRI's calls for figures. */

import type { ContainerMetadata, Nanos, PodSandboxMetadata, StringMap } from './cri.ts';

export interface UInt64Value {
  value: string | number;
}
export interface FilesystemUsage {
  timestamp: Nanos;
  fsId: { mountpoint: string } | null;
  usedBytes: UInt64Value | null;
  inodesUsed: UInt64Value | null;
}
interface CriPsiData {
  /** Microseconds. */
  Total: string | number;
  Avg10: number;
  Avg60: number;
  Avg300: number;
}
export interface CriPsi {
  Full: CriPsiData | null;
  Some: CriPsiData | null;
}
interface CriCpuUsage {
  timestamp: Nanos;
  usageCoreNanoSeconds: UInt64Value | null;
  usageNanoCores: UInt64Value | null;
  psi?: CriPsi | null;
}
interface CriMemoryUsage {
  timestamp: Nanos;
  workingSetBytes: UInt64Value | null;
  availableBytes: UInt64Value | null;
  usageBytes: UInt64Value | null;
  rssBytes: UInt64Value | null;
  pageFaults: UInt64Value | null;
  majorPageFaults: UInt64Value | null;
  psi?: CriPsi | null;
}
interface CriIoUsage {
  timestamp: Nanos;
  psi?: CriPsi | null;
}
export interface CriInterfaceUsage {
  name: string;
  rxBytes: UInt64Value | null;
  rxErrors: UInt64Value | null;
  txBytes: UInt64Value | null;
  txErrors: UInt64Value | null;
}
export interface CriSandboxStats {
  attributes: { id: string; metadata: PodSandboxMetadata | null; labels: StringMap; annotations: StringMap } | null;
  linux: {
    cpu: CriCpuUsage | null;
    memory: CriMemoryUsage | null;
    network: { timestamp: Nanos; defaultInterface: CriInterfaceUsage | null; interfaces: CriInterfaceUsage[] } | null;
    process: { timestamp: Nanos; processCount: UInt64Value | null } | null;
    containers: CriContainerStats[];
    io?: CriIoUsage | null;
  } | null;
}
export interface CriMetricDescriptor {
  name: string;
  help: string;
  labelKeys: string[];
}
export interface CriMetric {
  name: string;
  /** 0: the runtime read it for this answer. */
  timestamp: Nanos;
  metricType: 'COUNTER' | 'GAUGE';
  labelValues: string[];
  value: UInt64Value | null;
}
export interface CriSandboxMetrics {
  podSandboxId: string;
  metrics: CriMetric[];
  containerMetrics: { containerId: string; metrics: CriMetric[] }[];
}
export interface CriContainerStats {
  attributes: { id: string; metadata: ContainerMetadata | null; labels: StringMap; annotations: StringMap } | null;
  cpu: CriCpuUsage | null;
  memory: CriMemoryUsage | null;
  writableLayer: FilesystemUsage | null;
  /** Absent: the runtime does not count it. */
  swap?: { timestamp: Nanos; swapAvailableBytes: UInt64Value | null; swapUsageBytes: UInt64Value | null } | null;
  io?: CriIoUsage | null;
}
