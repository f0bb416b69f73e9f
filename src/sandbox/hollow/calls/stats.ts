/** What a running hollow container claims to use. */
import type { CriContainerStats } from '../../../machines/wire/cri.ts';
import { nanos } from '../../shared/model.ts';
import type { Container } from '../state.ts';
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
