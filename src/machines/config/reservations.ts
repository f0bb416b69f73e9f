/** What of the machine pods may not use, by the configuration. Pure. */
import { ceilDiv, scaledCeil } from '../kube/quantity.ts';
import type { KubeletConfiguration } from './config.ts';
import { SIGNAL_FACTS, SIGNALS, type StarvedResource } from './evictionSignals.ts';

export type ReservationConfig = Pick<
  KubeletConfiguration,
  'maxPods' | 'podsPerCore' | 'kubeReserved' | 'systemReserved' | 'reservedSystemCPUs' | 'evictionHard'
> & {
  /** `--experimental-allocatable-ignore-eviction`: pods may use what eviction would defend. */
  ignoreEviction: boolean;
};
/** What pods may not use of a `total`: kept for the system and the agent, or defended by hard eviction. */
export function reservedOf(c: ReservationConfig, resource: 'memory' | 'ephemeral-storage', total: bigint): bigint {
  return whole(c.kubeReserved[resource]) + whole(c.systemReserved[resource]) + defended(c, resource, total);
}

/** What hard eviction defends of a resource: an amount, or a share of the whole. */
function defended(c: ReservationConfig, resource: StarvedResource, total: bigint): bigint {
  const signal = SIGNALS.find((s) => SIGNAL_FACTS[s].resource === resource && SIGNAL_FACTS[s].reserves === true);
  const text = c.ignoreEviction || signal === undefined ? undefined : c.evictionHard[signal];
  // Exactly 100 % switches the signal off.
  if (text === undefined || text === '100%') return 0n;
  if (!text.endsWith('%')) return whole(text);
  // In thousandths of a per cent, so that `7.5%` is exact.
  const share = scaledCeil(text.slice(0, -1), MILLI) ?? 0n;
  return ceilDiv(total * share, 100_000n);
}

const MILLI = -3;
const whole = (text: string | undefined): bigint => scaledCeil(text, 0) ?? 0n;
