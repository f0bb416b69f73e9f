/** Measures the starts of pods of the API: from their creation until a watch shows their containers running. */

import { hasStarted, isStateful, POD_START_SECONDS, startDurations } from '../../../machines/figures/podStarts.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { isMirror } from '../../../machines/pod/phase.ts';
import { imagePulls } from '../../../machines/runtime/imagePuller/messages.ts';
import type { ActorCtx } from '../../supervision/types.ts';

export interface StartMeter {
  /** Pods as a watch shows them; `byUid`: all that there are. */
  saw(changed: readonly Pod[], byUid: ReadonlyMap<string, Pod>): void;
}

/** Pods that a list shows first are left out: what they waited for may have been another daemon. */
export function startMeter({ registry, ports }: Pick<ActorCtx, 'registry' | 'ports'>): StartMeter {
  const sli = ports.metrics.histogram(
    'kubelet_pod_start_sli_duration_seconds',
    'Seconds from the creation of a pod until a watch shows all its containers started, without pulls and init containers',
    POD_START_SECONDS,
  );
  const total = ports.metrics.histogram(
    'kubelet_pod_start_total_duration_seconds',
    'Seconds from the creation of a pod until a watch shows all its containers started, pulls and init containers included',
    POD_START_SECONDS,
  );
  const first = ports.metrics.gauge(
    'kubelet_first_network_pod_start_sli_duration_seconds',
    'The same as kubelet_pod_start_sli_duration_seconds, of the first pod with a network of its own since the start',
  );
  let hasFirst = false;
  const waiting = new Set<string>();
  return {
    saw(changed, byUid) {
      for (const pod of changed) {
        const { uid } = pod.metadata;
        if (pod.status.phase === 'Pending' && !hasStarted(pod) && !isMirror(pod)) waiting.add(uid);
        if (!waiting.has(uid)) continue;
        const pull = registry.read(imagePulls)?.value.get(uid);
        const took = startDurations(pod, { seenMs: ports.clock.wallMs(), pull });
        if (took === null) continue;
        waiting.delete(uid);
        total.observe(took.totalSeconds);
        if (isStateful(pod)) continue;
        sli.observe(took.sliSeconds);
        if (hasFirst || pod.spec.hostNetwork === true) continue;
        hasFirst = true;
        first.set(took.sliSeconds);
      }
      for (const { metadata } of changed) if (!byUid.has(metadata.uid)) waiting.delete(metadata.uid);
    },
  };
}
