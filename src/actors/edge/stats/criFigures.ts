/**
 * Asks the runtime for the figures that it makes itself. One that does not know a call, or fails for one of its sandboxes, is passed
 * over: the figures of all pods would be missing. That is said once.
 */

import { criMetrics } from '../../../machines/edge/stats/criMetrics.ts';
import type { CriMetricDescriptor, CriSandboxStats } from '../../../machines/wire/criStats.ts';
import type { Logger } from '../../../ports/ports.ts';
import { type CriClient, isRefusal } from '../../runtime/client.ts';

export interface CriFigures {
  /** Null: the runtime does not tell. Rejects where it does not answer. */
  sandboxes(signal: AbortSignal): Promise<readonly CriSandboxStats[] | null>;
  /** Prometheus text. Null, and rejects, as {@link sandboxes}. */
  metrics(signal: AbortSignal): Promise<string | null>;
}

export function criFigures(o: { cri: CriClient; log: Logger }): CriFigures {
  const passedOver = new Set<string>();
  const unlessRefused = async <T>(call: string, instead: string, ask: () => Promise<T>): Promise<T | null> => {
    try {
      const answer = await ask();
      passedOver.delete(call);
      return answer;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const { details: err } = error;
      if (!passedOver.has(call)) o.log.warn({ call, err }, `PodAndContainerStatsFromCRI: the runtime refuses this call; ${instead}`);
      passedOver.add(call);
      return null;
    }
  };
  let descriptors: readonly CriMetricDescriptor[] | undefined;
  return {
    sandboxes: (signal) =>
      unlessRefused(
        'ListPodSandboxStats',
        'figures of pods come from their cgroups',
        async () => (await o.cri.read('ListPodSandboxStats', {}, { signal })).stats,
      ),
    metrics: (signal) =>
      unlessRefused('ListPodSandboxMetrics', 'metrics of containers come from their cgroups', async () => {
        descriptors ??= (await o.cri.read('ListMetricDescriptors', {}, { signal })).descriptors;
        return criMetrics(descriptors, (await o.cri.read('ListPodSandboxMetrics', {}, { signal })).podMetrics);
      }),
  };
}
