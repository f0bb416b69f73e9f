/** What a running hollow container claims to use. */
import type {
  CriContainerStats,
  CriMetricDescriptor,
  CriSandboxMetrics,
  CriSandboxStats,
} from '@actorlet/kubelet/machines/wire/criStats.ts';
import { nanos } from '../../shared/model.ts';
import type { Container, Sandbox } from '../state.ts';
import { sumTo, valueAt } from '../usage.ts';

export function containerStats(c: Container, nowMs: number): CriContainerStats {
  const timestamp = nanos(nowMs);
  const ranMs = Math.max(0, nowMs - c.startedAtMs);
  const usedNs = Math.round(sumTo(c.usage.cpu, ranMs) * 1e6);
  const nanoCores = Math.round(valueAt(c.usage.cpu, ranMs) * 1e9);
  const bytes = { value: String(Math.round(valueAt(c.usage.memory, ranMs))) };
  return {
    attributes: { id: c.id, metadata: c.metadata, labels: c.labels, annotations: c.annotations },
    cpu: { timestamp, usageCoreNanoSeconds: { value: String(usedNs) }, usageNanoCores: { value: String(nanoCores) } },
    memory: {
      timestamp,
      workingSetBytes: bytes,
      availableBytes: { value: '0' },
      usageBytes: bytes,
      rssBytes: bytes,
      pageFaults: { value: '0' },
      majorPageFaults: { value: '0' },
    },
    writableLayer: {
      timestamp,
      fsId: { mountpoint: '/var/lib/hollow' },
      usedBytes: { value: String(c.life.writtenBytes) },
      inodesUsed: { value: '0' },
    },
  };
}

export function usedBy(containers: Iterable<Container>, nowMs: number): { cores: number; memoryBytes: number } {
  const used = { cores: 0, memoryBytes: 0 };
  for (const c of containers) {
    if (c.state !== 'CONTAINER_RUNNING') continue;
    used.cores += valueAt(c.usage.cpu, nowMs - c.startedAtMs);
    used.memoryBytes += valueAt(c.usage.memory, nowMs - c.startedAtMs);
  }
  return used;
}

/** A pod uses what its containers do. */
export function sandboxStats(s: Sandbox, containers: CriContainerStats[], nowMs: number): CriSandboxStats {
  const timestamp = nanos(nowMs);
  const sum = (of: (c: CriContainerStats) => { value: string | number } | null | undefined) => ({
    value: String(containers.reduce((all, c) => all + Number(of(c)?.value ?? 0), 0)),
  });
  const bytes = sum((c) => c.memory?.usageBytes);
  const zero = { value: '0' };
  return {
    attributes: { id: s.id, metadata: s.config.metadata, labels: s.labels, annotations: s.annotations },
    linux: {
      cpu: { timestamp, usageCoreNanoSeconds: sum((c) => c.cpu?.usageCoreNanoSeconds), usageNanoCores: sum((c) => c.cpu?.usageNanoCores) },
      memory: {
        ...{ timestamp, workingSetBytes: bytes, availableBytes: zero, usageBytes: bytes, rssBytes: bytes },
        ...{ pageFaults: zero, majorPageFaults: zero },
      },
      network: {
        timestamp,
        defaultInterface: { name: 'eth0', rxBytes: zero, rxErrors: zero, txBytes: zero, txErrors: zero },
        interfaces: [],
      },
      process: { timestamp, processCount: { value: String(containers.length) } },
      containers,
    },
  };
}

const LABEL_KEYS = ['id', 'name', 'image', 'container', 'pod', 'namespace'];
export const DESCRIPTORS: CriMetricDescriptor[] = [
  { name: 'container_memory_usage_bytes', help: 'Current memory usage in bytes.', labelKeys: LABEL_KEYS },
];
export function sandboxMetrics(s: Sandbox, containers: readonly CriContainerStats[]): CriSandboxMetrics {
  const { name, namespace } = s.config.metadata;
  return {
    podSandboxId: s.id,
    metrics: [],
    containerMetrics: containers.map(({ attributes, memory }) => ({
      containerId: attributes?.id ?? '',
      metrics: [
        {
          ...{ name: 'container_memory_usage_bytes', timestamp: '0', metricType: 'GAUGE' as const, value: memory?.usageBytes ?? null },
          labelValues: [attributes?.id ?? '', attributes?.id ?? '', '', attributes?.metadata?.name ?? '', name, namespace],
        },
      ],
    })),
  };
}
