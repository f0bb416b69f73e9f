/** What a running hollow container claims to use. */
import type { CriContainerStats } from '../../../machines/wire/cri.ts';
import { nanos } from '../../shared/model.ts';
import type { Container } from '../state.ts';
import { MiB } from './images.ts';

/** 10 millicores and 1 MiB. */
const CLAIMED = { cpuShare: 0.01, memoryBytes: MiB };

export function containerStats(c: Container, nowMs: number): CriContainerStats {
  const timestamp = nanos(nowMs);
  const usedNs = Math.round(Math.max(0, nowMs - c.startedAtMs) * CLAIMED.cpuShare * 1e6);
  const bytes = { value: String(CLAIMED.memoryBytes) };
  return {
    attributes: { id: c.id, metadata: c.metadata, labels: c.labels, annotations: c.annotations },
    cpu: { timestamp, usageCoreNanoSeconds: { value: String(usedNs) }, usageNanoCores: { value: String(CLAIMED.cpuShare * 1e9) } },
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
