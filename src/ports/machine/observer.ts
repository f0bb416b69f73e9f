/** The port of a node that observes: another program is the kubelet of its machine. */
import type { ObserverLedger } from '../../machines/shown/observer/ledger.ts';

export interface Observer {
  /** What is expected of the kubelet now, and where it did something else. */
  ledger(): ObserverLedger;
}
