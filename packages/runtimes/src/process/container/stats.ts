/** CRI statistics of a container from /proc: processor time and memory of its processes, summed. */
import type { CriContainerStats } from '@actorlet/kubelet/machines/wire/criStats.ts';
import { nanos } from '../../shared/model.ts';
import { familyOf, type ProcStat, TICK_NS } from './procfs.ts';
import type { Supervised } from './supervise.ts';

/** What the container's cgroup says, where it has one. */
interface Usage {
  cpuNs: number;
  bytes: number;
  workingBytes: number;
}

export function containerStats(
  c: Supervised,
  o: { all: readonly ProcStat[]; pageBytes: number; nowMs: number; usage?: Usage | null },
): CriContainerStats {
  const processes = c.row.shim === null ? [] : familyOf(c.row.shim.pid, o.all);
  const shim = o.all.find((p) => p.pid === c.row.shim?.pid);
  // Time of ended processes lives on in the parent that waited for them.
  const ticks = processes.reduce((sum, p) => sum + p.ticks + p.childTicks, (shim?.ticks ?? 0) + (shim?.childTicks ?? 0));
  // Shared pages are counted once per process: an upper bound, as without a memory cgroup there is none better.
  const bytes = processes.reduce((sum, p) => sum + p.rssPages, shim?.rssPages ?? 0) * o.pageBytes;
  const timestamp = nanos(o.nowMs);
  const { usage } = o;
  const value = { value: String(usage?.bytes ?? bytes) };
  return {
    attributes: { id: c.row.id, metadata: c.row.metadata, labels: c.row.labels, annotations: c.row.annotations },
    cpu: { timestamp, usageCoreNanoSeconds: { value: String(usage?.cpuNs ?? ticks * TICK_NS) }, usageNanoCores: null },
    memory: {
      timestamp,
      workingSetBytes: { value: String(usage?.workingBytes ?? bytes) },
      availableBytes: null,
      usageBytes: value,
      rssBytes: { value: String(bytes) },
      pageFaults: null,
      majorPageFaults: null,
    },
    writableLayer: null,
  };
}
