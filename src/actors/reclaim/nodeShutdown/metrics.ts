/** When the last shutdown of the machine began and when its pods had ended, as the kubelet tells it; 0 before the first. */
import type { ShutdownState } from '../../../machines/reclaim/nodeShutdown/stateFile.ts';
import type { Metrics } from '../../../ports/ports.ts';

export function shutdownTimes(metrics: Metrics): (state: ShutdownState) => void {
  const gauge = (which: 'start' | 'end', what: string) =>
    metrics.gauge(`kubelet_graceful_shutdown_${which}_time_seconds`, `When the last graceful shutdown ${what}, in Unix seconds`);
  const start = gauge('start', 'began');
  const end = gauge('end', 'had ended all pods');
  const seconds = (ms: number | null): number => (ms === null ? 0 : Math.floor(ms / 1000));
  return ({ startedMs, endedMs }) => {
    start.set(seconds(startedMs));
    end.set(seconds(endedMs));
  };
}
