/** The memory manager as a provider of allocation. */
import { encodeMemoryState, MEMORY_STATE_BYTES_MAX, MEMORY_STATE_FILE, openMemoryState } from '../../../machines/allocation/memory/file.ts';
import { wantsMemory } from '../../../machines/allocation/memory/ledger.ts';
import { type MemoryPlace, machineOf } from '../../../machines/allocation/memory/machine.ts';
import { memoryAddr, memoryView } from '../../../machines/allocation/memory/messages.ts';
import { reservedMemory } from '../../../machines/allocation/memory/reserved.ts';
import { heldMemory, memoryShare } from '../../../machines/allocation/memory/share.ts';
import type { NodeConfig } from '../../../machines/config/config.ts';
import { built } from '../../../machines/result.ts';
import { keptMemory } from '../kept.ts';
import type { Provider, ProviderPlace, ProviderState } from '../provider.ts';
import { memorySpec } from './memory.ts';
import { memoryMetrics } from './metrics.ts';

/** Memory is written to a disk before an answer. */
const TIMEOUT_MS = 30_000;

/** Null under policy None. @throws with what is wrong where the policy cannot be on this machine. */
function memoryPlaceOf(config: NodeConfig, host: ProviderPlace['host']): MemoryPlace | null {
  const { config: c } = config;
  if (c.memoryManagerPolicy !== 'Static') return null;
  const nodes = host.numaNodes?.() ?? [];
  if (nodes.length === 0) throw new Error('memoryManagerPolicy: this machine does not tell which NUMA nodes it has');
  const reserved = reservedMemory(nodes, { reservedMemory: c.reservedMemory, kept: keptMemory(config, nodes) });
  if (!reserved.ok) throw new Error(reserved.message);
  return { nodes: machineOf(nodes, reserved.value), aligned: c.topologyManagerPolicy !== 'none' };
}

const state: ProviderState = {
  file: MEMORY_STATE_FILE,
  bytesMax: MEMORY_STATE_BYTES_MAX,
  owner: 'the memory manager',
  field: 'memoryManagerPolicy (--memory-manager-policy)',
  /** Under policy None the file says just that, for a later start with another policy; under Static the memory manager writes it. */
  open(text, { config, host, file }) {
    const place = memoryPlaceOf(config, host);
    const opened = openMemoryState(text, { place, file });
    return opened.ok ? { ok: true, first: place === null && opened.isNew ? encodeMemoryState(null) : null } : opened;
  },
};

export const memoryProvider: Provider = {
  address: memoryAddr,
  timeoutMs: TIMEOUT_MS,
  spec(config, { host }) {
    const place = memoryPlaceOf(config, host);
    return place === null ? null : memorySpec({ rootDir: config.flags.rootDir, place });
  },
  wants: wantsMemory,
  fixed: 'memory',
  hints: true,
  drafts: true,
  share({ registry }, { pod, container }) {
    const known = registry.read(memoryView)?.value;
    return known === undefined ? built({}) : memoryShare(known, pod, container);
  },
  held(registry) {
    const known = registry.read(memoryView)?.value;
    return known === undefined ? undefined : heldMemory(known);
  },
  state,
  metrics: memoryMetrics,
};
