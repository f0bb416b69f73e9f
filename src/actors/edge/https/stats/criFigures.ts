/** Asks the runtime for the figures that it makes itself. A runtime without the calls is passed over, and that is said once. */

import { criMetrics } from '../../../../machines/edge/https/stats/criMetrics.ts';
import { type SandboxFigures, sandboxFigures } from '../../../../machines/edge/https/stats/criStats.ts';
import type { CriMetricDescriptor } from '../../../../machines/wire/cri.ts';
import { CriError, type Logger } from '../../../../ports/ports.ts';
import type { CriClient } from '../../../runtime/client.ts';

/** gRPC's UNIMPLEMENTED. */
const UNIMPLEMENTED = 12;

export interface CriFigures {
  /** Null: the runtime does not tell. Rejects where it should and fails. */
  sandboxes(signal: AbortSignal): Promise<SandboxFigures | null>;
  /** Prometheus text. Null, and rejects, as {@link sandboxes}. */
  metrics(signal: AbortSignal): Promise<string | null>;
}

export function criFigures(o: { cri: CriClient; log: Logger; pressure: boolean }): CriFigures {
  const passedOver = new Set<string>();
  const unlessUnknown = async <T>(call: string, instead: string, ask: () => Promise<T>): Promise<T | null> => {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof CriError) || error.code !== UNIMPLEMENTED) throw error;
      if (!passedOver.has(call)) o.log.warn({ call }, `PodAndContainerStatsFromCRI: the runtime does not know this call; ${instead}`);
      passedOver.add(call);
      return null;
    }
  };
  let descriptors: readonly CriMetricDescriptor[] | undefined;
  return {
    sandboxes: (signal) =>
      unlessUnknown('ListPodSandboxStats', 'figures of pods come from their cgroups', async () =>
        sandboxFigures((await o.cri.read('ListPodSandboxStats', {}, { signal })).stats, o),
      ),
    metrics: (signal) =>
      unlessUnknown('ListPodSandboxMetrics', 'metrics of containers come from their cgroups', async () => {
        descriptors ??= (await o.cri.read('ListMetricDescriptors', {}, { signal })).descriptors;
        return criMetrics(descriptors, (await o.cri.read('ListPodSandboxMetrics', {}, { signal })).podMetrics);
      }),
  };
}
