/** What claims of pods use, in /metrics: as it was last measured. */
import { claimStats, VOLUME_FAMILIES } from '../../../machines/figures/volumeStats.ts';
import { gaugeRows } from '../../../ports/gaugeRows.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { VolumeUsageSource } from '../../services/client.ts';

const LABELS = ['namespace', 'persistentvolumeclaim'] as const;

/** `measure`: a claim that is used no more leaves. */
export function volumeMetrics(metrics: Metrics, volumes: VolumeUsageSource): { measure(): Promise<void> } {
  const families = VOLUME_FAMILIES.map(({ name, help, of }) => ({ of, show: gaugeRows(metrics.gauge(name, help, LABELS)) }));
  return {
    async measure() {
      const claims = [...claimStats((await volumes()).values()).values()];
      for (const { of, show } of families) {
        const rows = claims.map((stats) => {
          const labels = { namespace: stats.pvcRef.namespace, persistentvolumeclaim: stats.pvcRef.name };
          return [labels, of(stats)] as const;
        });
        show(rows.flatMap(([labels, value]) => (value === undefined ? [] : [[labels, value] as const])));
      }
    },
  };
}
