/** What claims of pods use, in /metrics: as it was last measured. */
import { claimStats, VOLUME_FAMILIES } from '../../../machines/figures/volumeStats.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { VolumeUsageSource } from '../../services/client.ts';

const LABELS = ['namespace', 'persistentvolumeclaim'] as const;

/** `measure`: a claim that is used no more leaves. */
export function volumeMetrics(metrics: Metrics, volumes: VolumeUsageSource): { measure(): Promise<void> } {
  const families = VOLUME_FAMILIES.map((f) => ({ ...f, gauge: metrics.gauge(f.name, f.help, LABELS) }));
  let shown = new Map<string, Record<string, string>>();
  return {
    async measure() {
      const claims = claimStats((await volumes()).values());
      const next: typeof shown = new Map();
      for (const [key, stats] of claims) {
        const labels = { namespace: stats.pvcRef.namespace, persistentvolumeclaim: stats.pvcRef.name };
        next.set(key, labels);
        for (const { gauge, of } of families) {
          const value = of(stats);
          if (value === undefined) gauge.remove(labels);
          else gauge.set(value, labels);
        }
      }
      for (const [key, labels] of shown) if (!next.has(key)) for (const { gauge } of families) gauge.remove(labels);
      shown = next;
    },
  };
}
