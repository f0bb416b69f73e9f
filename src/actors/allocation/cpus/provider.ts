/** The CPU manager as a provider of allocation. */
import { CPU_STATE_BYTES_MAX, CPU_STATE_FILE, encodeCpuState, openCpuState } from '../../../machines/allocation/cpus/file.ts';
import { cpusAddr, cpusView } from '../../../machines/allocation/cpus/messages.ts';
import { wantsExclusive } from '../../../machines/allocation/cpus/policy.ts';
import { cpusShare, heldCpus } from '../../../machines/allocation/cpus/share.ts';
import { built } from '../../../machines/result.ts';
import type { Provider, ProviderState } from '../provider.ts';
import { cpusSpec } from './cpus.ts';
import { cpuMetrics } from './metrics.ts';
import { cpuPlaceOf } from './place.ts';

/** CPUs are written to a disk before an answer. */
const TIMEOUT_MS = 30_000;

const state: ProviderState = {
  file: CPU_STATE_FILE,
  bytesMax: CPU_STATE_BYTES_MAX,
  owner: 'the CPU manager',
  field: 'cpuManagerPolicy (--cpu-manager-policy)',
  /** Under policy none the file says just that, for a later start with another policy; under static the CPU manager writes it. */
  open(text, { config, host, file }) {
    const place = cpuPlaceOf(config, host);
    const opened = openCpuState(text, { place, file });
    return opened.ok ? { ok: true, first: place === null && opened.isNew ? encodeCpuState(null) : null } : opened;
  },
};

export const cpusProvider: Provider = {
  address: cpusAddr,
  timeoutMs: TIMEOUT_MS,
  spec(config, { host }) {
    const place = cpuPlaceOf(config, host);
    if (place === null) return null;
    const quotaLifted = config.gates.enabled('DisableCPUQuotaWithExclusiveCPUs');
    return cpusSpec({ rootDir: config.flags.rootDir, place, everyMs: config.config.cpuManagerReconcilePeriod, quotaLifted });
  },
  wants: wantsExclusive,
  fixed: 'cpu',
  hints: true,
  drafts: true,
  share({ registry }, { pod, container }) {
    const known = registry.read(cpusView)?.value;
    return known === undefined ? built({}) : cpusShare(known, pod, container);
  },
  held(registry) {
    const known = registry.read(cpusView)?.value;
    return known === undefined ? undefined : heldCpus(known);
  },
  state,
  metrics: cpuMetrics,
};
